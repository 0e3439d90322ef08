"""The private Neo4j of a data folder, for as long as a context lasts."""

import asyncio
import errno
import os
import shutil
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from reverie.errors import LocalNeo4jError
from reverie.local.distribution import Distribution, fetch_neo4j
from reverie.local.home import Home
from reverie.local.java import Java, find_java
from reverie.local.locks import read_owner, try_lock, write_owner
from reverie.local.options import LocalNeo4jOptions
from reverie.local.process import (
    EndedEarlyError,
    LocalNeo4j,
    Neo4jProcess,
    PortTakenError,
    disk_full,
    free_port,
    start,
    wait_until_ready,
)

_PORTS_TRIED = 5
_LEAST_FREE_SPACE = 150_000_000


@asynccontextmanager
async def private_neo4j(
    options: LocalNeo4jOptions, *, notify: Callable[[str], None], progress: bool = False
) -> AsyncIterator[LocalNeo4j]:
    """Runs the data folder's Neo4j for as long as the context lasts, fetching Neo4j first where it isn't there.

    Neo4j ends with this process in every case. `notify` gets lines for a person, from any thread, and also when Neo4j
    ends before its time; `progress` shows a bar on standard error while fetching.

    Raises LocalNeo4jError, one sentence for the terminal, when it can't be fetched or started.
    """
    options = replace(options, data_dir=options.data_dir.absolute(), cache_dir=options.cache_dir.absolute())
    async with AsyncExitStack() as stack:
        try:
            running = await _open(stack, options, notify, progress)
        except OSError as error:
            raise _explained(error, options.data_dir) from error
        yield running


async def _open(
    stack: AsyncExitStack, options: LocalNeo4jOptions, notify: Callable[[str], None], progress: bool
) -> LocalNeo4j:
    java = await asyncio.to_thread(find_java, options.java)
    home = Home(options.data_dir / "neo4j", options.version)
    options.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    _lock_data_dir(stack, options.data_dir)
    home.check_version()
    distribution = Distribution(options.version, options.cache_dir)
    jars = await _fetch(distribution, options, notify, progress)
    home.path.mkdir(mode=0o700, exist_ok=True)
    try:
        process, running = await _start(options, java, jars, home, notify)
    except EndedEarlyError:
        # A jar that rotted on the disk shows itself only here: reading them all takes longer than a start may.
        if not await asyncio.to_thread(distribution.discard_damaged):
            raise
        jars = await _fetch(distribution, options, notify, progress)
        process, running = await _start(options, java, jars, home, notify)
    stack.push_async_callback(process.stop)
    await stack.enter_async_context(_watched(process, home, notify))
    return running


def _lock_data_dir(stack: AsyncExitStack, data_dir: Path) -> None:
    path = data_dir / "reverie.lock"
    lock = try_lock(path)
    if lock is None:
        owner = read_owner(path)
        by = "another process" if owner is None else f"process {owner}"
        raise LocalNeo4jError(f"The data folder {data_dir} is in use by {by}.")
    stack.callback(os.close, lock)
    write_owner(lock, os.getpid())


async def _fetch(
    distribution: Distribution, options: LocalNeo4jOptions, notify: Callable[[str], None], progress: bool
) -> list[Path]:
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(
            fetch_neo4j,
            distribution,
            repository=options.repository,
            notify=notify,
            progress=progress,
            cancelled=cancelled,
        )
    except OSError as error:
        raise _explained(error, options.cache_dir) from error
    finally:
        cancelled.set()


async def _start(
    options: LocalNeo4jOptions, java: Java, jars: list[Path], home: Home, notify: Callable[[str], None]
) -> tuple[Neo4jProcess, LocalNeo4j]:
    free = shutil.disk_usage(home.path).free
    if free < _LEAST_FREE_SPACE:
        raise LocalNeo4jError(
            f"Neo4j needs {_LEAST_FREE_SPACE / 1e6:.0f} MB in {home.path} to start, and that disk has "
            f"{free / 1e6:.0f} MB left."
        )
    for _ in range(_PORTS_TRIED):
        lock = await _lock_store(home, options.stop_timeout, notify)
        try:
            password = home.prepare()
            port = free_port()
            arguments = home.write_configuration(options, java, jars, port)
            notify(f"Starting Neo4j {options.version}…")
            process = await start(java, arguments, home, lock, options)
        finally:
            os.close(lock)
        try:
            running = await wait_until_ready(process, options, port, password)
            home.finish_first_start()
        except PortTakenError:
            await process.stop()
        except BaseException:
            await process.stop()
            raise
        else:
            return process, running
    raise LocalNeo4jError(
        f"Neo4j found no free port: {_PORTS_TRIED} times, another program took the one chosen for it."
    )


async def _lock_store(home: Home, stop_timeout: float, notify: Callable[[str], None]) -> int:
    """Locks the store, and gives the lock's descriptor.

    The Neo4j of a Reverie that was killed may still be stopping. One that was left without its watcher, which can
    happen where the kernel doesn't end it, is killed.
    """
    lock = try_lock(home.lock_file)
    if lock is not None:
        return lock
    notify("Waiting for the former Neo4j of this data folder to stop…")
    for _ in range(2):
        deadline = time.monotonic() + stop_timeout + 2
        while time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            lock = try_lock(home.lock_file)
            if lock is not None:
                return lock
        owner = read_owner(home.lock_file)
        if owner is None:
            break
        with suppress(ProcessLookupError, PermissionError):
            os.kill(owner, signal.SIGKILL)
    raise LocalNeo4jError(f"The store in {home.path} is in use by a Neo4j that doesn't stop.")


@asynccontextmanager
async def _watched(process: Neo4jProcess, home: Home, notify: Callable[[str], None]) -> AsyncIterator[None]:
    """Says so when Neo4j ends before the context does."""

    async def watch() -> None:
        await process.watcher.wait()
        process.kill_orphan()
        notify(f"Neo4j has ended unexpectedly; its log is {home.log_file}.")

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _explained(error: OSError, folder: Path) -> LocalNeo4jError:
    """What to say of a file that can't be read or written, in `folder` if it doesn't tell where."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return disk_full(folder)
    return LocalNeo4jError(f"Neo4j's files can't be written: {error.filename or folder}: {error.strerror or error}.")
