"""Runs one Neo4j process below its watcher: start, wait until it answers, stop."""

import asyncio
import os
import re
import shutil
import signal
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import neo4j
from neo4j.exceptions import AuthError, DriverError, Neo4jError

from reverie.errors import LocalNeo4jError
from reverie.local.distribution import Distribution
from reverie.local.home import USERNAME, Home
from reverie.local.java import Java
from reverie.local.locks import try_lock
from reverie.local.options import LocalNeo4jOptions

_POLL_INTERVAL = 0.02
# What the watcher may take beyond the time that it gives Neo4j.
_PATIENCE = 5.0
_LITTLE_SPACE = 16 << 20
_LONGEST_REASON = 300
# What Java and Neo4j need of the environment; options for Java that are meant for other programs would open doors here.
_ENVIRONMENT = ("HOME", "PATH", "TMPDIR", "TZ", "USER")


_BOLT_LISTENS = "Bolt enabled on"
_DATABASE_FAILED = "Failed to start DatabaseId"


class PortTakenError(Exception):
    """Somebody else took the port between its choice and Neo4j's start."""


class EndedEarlyError(LocalNeo4jError):
    """Neo4j ended before it answered, for no reason that is known here."""


@dataclass(frozen=True, slots=True)
class LocalNeo4j:
    """A private Neo4j that runs: where it answers on Bolt, with which credentials, its log and its process."""

    uri: str
    username: str
    password: str = field(repr=False)
    log_file: Path
    pid: int


@dataclass(slots=True)
class Neo4jProcess:
    """One run of Neo4j. Its watcher ends when Neo4j does, and the other way round."""

    watcher: Process
    home: Home
    pid: int
    stop_timeout: float

    async def stop(self) -> None:
        """Ends Neo4j: asked first, forced after `stop_timeout` seconds."""
        await _end(self.watcher, self.stop_timeout)
        self.kill_orphan()

    def kill_orphan(self) -> None:
        """Kills a Neo4j whose watcher was killed; Linux does so by itself."""
        lock = try_lock(self.home.lock_file)
        if lock is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        else:
            os.close(lock)


def free_port() -> int:
    """A port of the loopback interface on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def start(java: Java, arguments: list[str], home: Home, lock: int, options: LocalNeo4jOptions) -> Neo4jProcess:
    """Starts `java` among the jars, under a watcher; both hold the descriptor `lock` and write to the home's log."""
    watcher_script = str(Path(__file__).with_name("watcher.py"))
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    with suppress(FileNotFoundError):
        home.log_file.replace(home.previous_log_file)
    with home.log_file.open("ab") as log:
        watcher = await create_subprocess_exec(
            *(sys.executable, "-I", "-S", watcher_script, str(lock), str(options.stop_timeout), str(os.getpid())),
            *(str(java.executable.absolute()), *arguments),
            stdin=PIPE,
            stdout=PIPE,
            stderr=log,
            pass_fds=(lock,),
            # Out of reach of the terminal's Ctrl-C, which would end Neo4j before those who still use it.
            start_new_session=True,
            cwd=Distribution(options.version, options.cache_dir).repository,
            # UTF-8 for folders whose names aren't ASCII.
            env={**environment, "LC_ALL": "C.UTF-8"},
        )
        try:
            pid = await watcher.stdout.readline() if watcher.stdout is not None else b""
        except BaseException:
            await _end(watcher, options.stop_timeout)
            raise
    if not pid:
        await watcher.wait()
        raise _reason(home, watcher)
    return Neo4jProcess(watcher, home, int(pid), options.stop_timeout)


async def _end(watcher: Process, stop_timeout: float) -> None:
    """Has the watcher end Neo4j and itself, which is what it does when its standard input ends."""
    if watcher.stdin is not None:
        watcher.stdin.close()
    try:
        await asyncio.wait_for(watcher.wait(), stop_timeout + _PATIENCE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            watcher.kill()
        await watcher.wait()


async def wait_until_ready(process: Neo4jProcess, options: LocalNeo4jOptions, port: int, password: str) -> LocalNeo4j:
    """Returns when Neo4j answers on `port` to `password`.

    The password is only sent once Neo4j says that the port is its own.

    Raises PortTakenError, EndedEarlyError and other LocalNeo4jErrors.
    """
    home = process.home
    running = LocalNeo4j(f"bolt://127.0.0.1:{port}", USERNAME, password, home.log_file, process.pid)
    deadline = time.monotonic() + options.start_timeout
    listens = False
    while time.monotonic() < deadline:
        log = _read_log(home)
        if _DATABASE_FAILED in log:
            await process.stop()
        if process.watcher.returncode is not None:
            raise _reason(home, process.watcher)
        listens = listens or _BOLT_LISTENS in log
        if listens:
            try:
                async with neo4j.AsyncGraphDatabase.driver(running.uri, auth=(USERNAME, password)) as driver:
                    await driver.verify_connectivity()
            except AuthError as error:
                raise LocalNeo4jError(
                    f"The store in {home.path} doesn't accept the password in {home.path / 'password'}."
                ) from error
            except (DriverError, Neo4jError):
                pass
            else:
                return running
        await asyncio.sleep(_POLL_INTERVAL)
    raise LocalNeo4jError(f"Neo4j didn't answer within {options.start_timeout:g} seconds; its log is {home.log_file}.")


def _read_log(home: Home) -> str:
    return home.log_file.read_text(encoding="utf-8", errors="replace")


def _reason(home: Home, watcher: Process) -> Exception:
    """Why Neo4j ended before it answered."""
    log = _read_log(home)
    if "Address already in use" in log:
        return PortTakenError()
    if "No space left on device" in log or shutil.disk_usage(home.path).free < _LITTLE_SPACE:
        return disk_full(home.path)
    if "newer version of neo4j" in log:
        return home.newer_store("a newer Neo4j")
    if "Lock file has been locked by another process" in log:
        return LocalNeo4jError(f"The store in {home.path} is in use by another Neo4j.")
    cause = _cause(log) or f"exit code {watcher.returncode}"
    return EndedEarlyError(
        f"Neo4j ended while it was starting ({cause[:_LONGEST_REASON]}); its log is {home.log_file}."
    )


def _cause(log: str) -> str:
    """What the log gives as the reason of an end: an exception's innermost cause, an error, or Java's own words."""
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", log, re.MULTILINE)
    errors = re.findall(r"^\S+ \S+ ERROR +(.+)$", log, re.MULTILINE)
    return str([*errors[:1], *causes][-1]) if errors or causes else ": ".join(log.splitlines()[:2])


def disk_full(folder: Path) -> LocalNeo4jError:
    """The disk that `folder` is on has no space left."""
    return LocalNeo4jError(f"There is no space left on the disk of {folder}.")
