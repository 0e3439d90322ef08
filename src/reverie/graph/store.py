"""The door to Neo4j: reads, transactions, retries, and the driver's errors in our words."""

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncTransaction,
    Query,
)
from neo4j.exceptions import (
    AuthError,
    ClientError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)
from neo4j.exceptions import (
    ConfigurationError as DriverConfigurationError,
)

from reverie.errors import ConfigurationError, StoreError, Unavailable

T = TypeVar("T")
log = logging.getLogger("reverie.graph")

OLDEST_SERVER = (2026, 2)
PING = "RETURN 1"
_RACES = {"Neo.ClientError.Statement.EntityNotFound", "Neo.ClientError.Schema.ConstraintValidationFailed"}
_CONNECTION_LOST = (ServiceUnavailable, SessionExpired, OSError, ssl.SSLError)
_MOST_TRIES = 12
_CONNECTION_TRIES = 3
_GRACE = 5.0
"""Seconds that are left to the driver to end by itself, before it is made to."""


class Raced(Exception):
    """What a transaction was about to connect, or a read to return, went away meanwhile; it is run again."""


class Contended(Unavailable):
    """Too many writers met on the same things, again and again; nothing was written."""


class CommitUnknown(Unavailable):
    """Neo4j stopped answering at commit: the write may or may not have happened."""


class Transaction:
    """One open transaction; its statements answer with one record of one value."""

    def __init__(self, transaction: AsyncTransaction | AsyncManagedTransaction, graph: "Graph") -> None:
        self._transaction = transaction
        self._graph = graph

    async def run(self, statement: str, **parameters: Any) -> Any:
        """The first value of the first record; None where there is no record."""
        self._graph.statements += 1
        result = await self._transaction.run(statement, parameters)
        record = await result.single()
        return None if record is None else record[0]


class Graph:
    """One database of one Neo4j of that version. `statements` counts what was sent, for tests and metrics."""

    def __init__(self, driver: AsyncDriver, database: str | None, *, time_limit: float, server_version: str) -> None:
        self.server_version = server_version
        self._driver = driver
        self._database = database
        self._time_limit = time_limit
        self.statements = 0

    def with_time_limit(self, seconds: float) -> "Graph":
        """The same database, through the same connections, with another time limit and its own count."""
        return Graph(self._driver, self._database, time_limit=seconds, server_version=self.server_version)

    async def read(self, statement: str, **parameters: Any) -> Any:
        """Runs a reading statement by itself: the first value of its first record, None where there is no record.

        Raises Unavailable when Neo4j doesn't answer within the time limit.
        """
        deadline = asyncio.get_running_loop().time() + self._time_limit + _GRACE
        for attempt in range(1, _CONNECTION_TRIES + 1):
            self.statements += 1
            try:
                async with asyncio.timeout_at(deadline):
                    async with self._driver.session(
                        database=self._database, default_access_mode=READ_ACCESS, fetch_size=-1
                    ) as session:
                        result = await session.run(Query(statement, timeout=self._time_limit), parameters)
                        record = await result.single()
                        return None if record is None else record[0]
            except TimeoutError as error:
                raise unavailable(error) from error
            except (TransientError, *_CONNECTION_LOST) as error:
                if attempt == _CONNECTION_TRIES or timed_out(error):
                    raise unavailable(error) from error
                await asyncio.sleep(0.05 * attempt)
            except DriverError as error:
                raise unavailable(error) from error
            except ClientError as error:
                if timed_out(error) or isinstance(error, AuthError):
                    raise unavailable(error) from error
                if error.code not in _RACES or attempt == _CONNECTION_TRIES:
                    raise
        raise AssertionError("unreachable")

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction, again from the start after a deadlock, a race or a lost connection; commits.

        All tries together have twice the time limit, and the commit the time limit once more. Raises Unavailable when
        Neo4j doesn't answer, Contended after too many deadlocks and races, CommitUnknown when Neo4j stopped answering
        at commit.
        """
        deadline = asyncio.get_running_loop().time() + 2 * self._time_limit
        lost = 0
        for attempt in range(1, _MOST_TRIES + 1):
            try:
                async with asyncio.timeout_at(deadline + self._time_limit + _GRACE):
                    return await self._try(work, deadline)
            except TimeoutError as error:
                raise unavailable(error) from error
            except (TransientError, Raced) as error:
                if attempt == _MOST_TRIES or timed_out(error):
                    raise unavailable(error) from error
            except ClientError as error:
                if timed_out(error) or isinstance(error, AuthError):
                    raise unavailable(error) from error
                if error.code not in _RACES or attempt == _MOST_TRIES:
                    raise
            except _CONNECTION_LOST as error:
                # a connection may have broken while it was idle; nothing was committed on it
                lost += 1
                if lost == _CONNECTION_TRIES:
                    raise unavailable(error) from error
            except DriverError as error:
                raise unavailable(error) from error
            log.debug("transaction is run again", extra={"attempt": attempt})
            # full jitter: writers that met once must not meet again
            await asyncio.sleep(random.uniform(0, min(1.0, 0.02 * 2**attempt)))  # noqa: S311 - no secret
        raise AssertionError("unreachable")

    async def write(self, statement: str, **parameters: Any) -> Any:
        """Runs one writing statement in a transaction of its own, as `transact` does: its first record's first value."""
        return await self.transact(lambda transaction: transaction.run(statement, **parameters))

    async def _try(self, work: Callable[[Transaction], Awaitable[T]], deadline: float) -> T:
        async with self._driver.session(
            database=self._database, default_access_mode=WRITE_ACCESS, fetch_size=-1
        ) as session:
            async with asyncio.timeout_at(deadline):
                transaction = await session.begin_transaction(timeout=self._time_limit)
                try:
                    done = await work(Transaction(transaction, self))
                except BaseException:
                    await transaction.close()
                    raise
            try:
                async with asyncio.timeout(self._time_limit):
                    await transaction.commit()
            except _CONNECTION_LOST as error:
                raise CommitUnknown(
                    "Neo4j went away while the write was being committed; it may have happened"
                ) from error
            return done

    async def execute(self, statement: str, **parameters: Any) -> Any:
        """Runs a statement that can't share a transaction (schema changes, procedures), once and without a time limit.

        Raises Unavailable when Neo4j doesn't answer, and the driver's Neo4jError when it refuses.
        """
        self.statements += 1
        try:
            async with self._driver.session(database=self._database, default_access_mode=WRITE_ACCESS) as session:
                result = await session.run(statement, parameters)
                record = await result.single()
                return None if record is None else record[0]
        except (DriverError, *_CONNECTION_LOST) as error:
            raise unavailable(error) from error


def timed_out(error: BaseException) -> bool:
    """Whether Neo4j ended a transaction for its time limit."""
    return isinstance(error, Neo4jError) and "TransactionTimedOut" in (error.code or "")


def unavailable(error: BaseException) -> Unavailable:
    """The driver's error in our words, its own text left to the log."""
    if isinstance(error, Unavailable):
        return error
    log.warning("Neo4j does not answer as it should: %s", _root_cause(error))
    log.debug("where that was", exc_info=error)
    if isinstance(error, TimeoutError) or timed_out(error):
        return Unavailable("Neo4j did not answer within the time limit")
    if isinstance(error, (TransientError, Raced)):
        return Contended("too many writers met on the same things; try again")
    return Unavailable("Neo4j can't be reached")


@asynccontextmanager
async def open_graph(
    uri: str, username: str | None, password: str | None, database: str | None, *, time_limit: float
) -> AsyncIterator[Graph]:
    """Opens a Neo4j of at least version 2026.02 and closes it again.

    Raises ConfigurationError for an address or credentials that are refused, StoreError for an older server,
    Unavailable when nothing answers.
    """
    auth = None if username is None or password is None else (username, password)
    routed = uri.startswith("neo4j")
    try:
        driver = AsyncGraphDatabase.driver(
            uri,
            auth=auth,
            connection_timeout=5,
            connection_acquisition_timeout=time_limit,
            max_connection_pool_size=50,
            telemetry_disabled=True,
            # a label or property that nothing has yet is no news
            notifications_min_severity="OFF",
            user_agent="reverie",
        )
    except (DriverConfigurationError, ValueError) as error:
        raise _no_address(uri) from error
    async with driver:
        try:
            server = await driver.get_server_info()
            if database:
                async with driver.session(database=database, default_access_mode=READ_ACCESS) as session:
                    await session.run(PING)
        except AuthError as error:
            raise ConfigurationError(
                f"Neo4j at {uri} refuses the user or password (NEO4J_USERNAME, NEO4J_PASSWORD)"
            ) from error
        except ClientError as error:
            raise ConfigurationError(f"Neo4j at {uri} refuses the database {database!r} (NEO4J_DATABASE)") from error
        except (DriverError, Neo4jError, OSError) as error:
            raise Unavailable(f"no Neo4j answers at {uri} (NEO4J_URI): {_root_cause(error)}") from error
        except ValueError as error:
            # what the driver says of a host or port that no resolver takes
            raise _no_address(uri) from error
        version = server.agent.removeprefix("Neo4j/")
        check_version(uri, version)
        log.info("connected to Neo4j", extra={"version": version, "routed": routed})
        yield Graph(driver, database, time_limit=time_limit, server_version=version)


def check_version(uri: str, version: str) -> None:
    """Raises StoreError where `version`, such as "2026.08.1", is older than what Reverie needs."""
    numbers = tuple(int(part) for part in version.split("-", maxsplit=1)[0].split(".")[:2] if part.isdigit())
    if numbers < OLDEST_SERVER:
        oldest = ".".join(f"{part:02}" for part in OLDEST_SERVER)
        raise StoreError(f"Neo4j at {uri} is version {version}; Reverie needs {oldest} or newer")


def _no_address(uri: str) -> ConfigurationError:
    return ConfigurationError(
        f"NEO4J_URI: {uri!r} is not an address of a Neo4j, such as bolt://localhost:7687 or neo4j+s://example.org"
    )


def _root_cause(error: BaseException) -> str:
    """What the error goes back to, on one line: the driver wraps it in several others."""
    while cause := error.exceptions[-1] if isinstance(error, BaseExceptionGroup) else error.__cause__:
        error = cause
    return " ".join(str(error).split()) or type(error).__name__
