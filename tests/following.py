"""A client that follows the change log over graphql-transport-ws, and comes back by its cursor after any cut."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from tests.serving import until
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from reverie.domain.changes import log_position

CHANGES = """
subscription($filter: BeliefChangeFilter, $after: String) { beliefChanges(filter: $filter, after: $after) {
  kindOf: __typename
  ... on ChangeCheckpoint { cursor }
  ... on ChangeGap { cursor missedFrom }
  ... on BeliefChange { id cursor kind subjectId key belief { value version epistemicStatus } previous { value } }
} }
"""
LEAN = """
subscription($filter: BeliefChangeFilter, $after: String) { beliefChanges(filter: $filter, after: $after) {
  kindOf: __typename
  ... on ChangeCheckpoint { cursor }
  ... on ChangeGap { cursor missedFrom }
  ... on BeliefChange { id cursor }
} }
"""


class Stream:
    """One subscription on a connection of its own: each result as it comes."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def frame(self, seconds: float = 30) -> dict[str, Any]:
        """The next frame of the protocol."""
        async with asyncio.timeout(seconds):
            found: dict[str, Any] = orjson.loads(await self.connection.recv())
        return found

    async def next(self, seconds: float = 30) -> dict[str, Any]:
        """The one field of the next result, which must have no errors."""
        frame = await self.frame(seconds)
        assert frame["type"] == "next", frame
        assert "errors" not in frame["payload"], frame
        (found,) = frame["payload"]["data"].values()
        return dict(found)

    async def next_change(self) -> dict[str, Any]:
        """The next result that isn't a checkpoint."""
        while (found := await self.next())["kindOf"] == "ChangeCheckpoint":
            pass
        return found

    async def ended(self) -> None:
        """The server has nothing more to say, and says so."""
        frame = await self.frame()
        assert frame["type"] == "complete", frame

    async def errors(self) -> list[dict[str, Any]]:
        """What the field failed for, with which the operation ends."""
        frame = await self.frame()
        assert (frame["type"], frame["payload"]["data"]) == ("next", None), frame
        await self.ended()
        found: list[dict[str, Any]] = frame["payload"]["errors"]
        return found


@asynccontextmanager
async def subscribed(
    address: str, key: str, query: str, /, connecting: dict[str, Any] | None = None, **variables: Any
) -> AsyncIterator[Stream]:
    """A subscription by the caller of a key; `connecting` is for the connection."""
    protocol = Subprotocol("graphql-transport-ws")
    given = {"open_timeout": 30, "close_timeout": 1, "ping_interval": None, **(connecting or {})}
    async with connect(f"ws://{address}/graphql", subprotocols=[protocol], **given) as connection:
        await connection.send(
            orjson.dumps({"type": "connection_init", "payload": {"Authorization": f"Bearer {key}"}}).decode()
        )
        stream = Stream(connection)
        assert (await stream.frame())["type"] == "connection_ack"
        payload = {"query": query, "variables": variables}
        await connection.send(orjson.dumps({"id": "1", "type": "subscribe", "payload": payload}).decode())
        yield stream


@dataclass
class Member:
    """A subscriber who reconnects for ever, each time from the last cursor he was given."""

    address: str
    key: str
    query: str = LEAN
    after: str | None = None
    filter: dict[str, Any] | None = None
    changes: list[dict[str, Any]] = field(default_factory=list)
    gaps: int = 0
    connections: int = 0
    """How many were made and acknowledged."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    @property
    def numbers(self) -> list[int]:
        """Where in the log the changes were that he was told of, as they came."""
        return [log_position(change["cursor"]).number for change in self.changes]

    async def knows(self, condition: Callable[[Self], bool], seconds: float = 60) -> None:
        """Waits until what he was told fulfils a condition."""
        await until(lambda: self._task.done() or condition(self), seconds)
        if self._task.done():
            self._task.result()

    async def _run(self) -> None:
        while True:
            # what a killed or unreachable server does to its clients; anything else is the test's failure
            with suppress(OSError, WebSocketException, TimeoutError):
                async with subscribed(
                    self.address, self.key, self.query, filter=self.filter, after=self.after
                ) as stream:
                    self.connections += 1
                    while (frame := await stream.frame(3_600))["type"] == "next":
                        if not self._take(frame["payload"]):
                            break
            await asyncio.sleep(0.2)

    def _take(self, payload: dict[str, Any]) -> bool:
        """Whether it was an event; not so when Neo4j didn't answer as the subscription began, which is begun again."""
        if codes := [error["extensions"]["code"] for error in payload.get("errors", ())]:
            assert codes == ["UNAVAILABLE"], payload
            return False
        told = payload["data"]["beliefChanges"]
        self.after = told["cursor"]
        if told["kindOf"] == "BeliefChange":
            self.changes.append(told)
        self.gaps += told["kindOf"] == "ChangeGap"
        return True
