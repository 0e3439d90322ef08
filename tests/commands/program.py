"""The program as its users start it: a process of its own, what it says, how it ends, and what it leaves running."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.openai_server import OpenAIServer

from reverie.local.java import find_java
from reverie.local.locks import read_owner, try_lock

REVERIE = [sys.executable, "-m", "reverie"]
LIMIT = 300.0
"""Seconds after which a process counts as stuck: a busy machine takes many times as long as an idle one."""


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """A user's environment with these variables of Reverie's alone, and a home of its own."""
    names = ("PATH", "PYTHONPATH", "JAVA_HOME", "TMPDIR", "LD_LIBRARY_PATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "HOME": str(folder), "LANG": "C.UTF-8", **variables}


def finished(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """What a command said when it had ended."""
    command = [*REVERIE, *arguments]
    given = environment(folder, **variables)
    return subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)


class Program:
    """A command that runs until it is told to stop."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        given = environment(folder, **variables)
        # a process group of its own, as a terminal gives each job: Ctrl-C is sent to all of it
        self.process = subprocess.Popen(
            [*REVERIE, *arguments],
            env=given,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self._lines: list[str] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def said(self) -> str:
        """What it has written on standard error until now."""
        return "".join(self._lines)

    def until(self, words: str) -> str:
        """Waits until it says these words, and gives all that it said."""
        deadline = time.monotonic() + LIMIT
        with self._more:
            while words not in self.said:
                left = deadline - time.monotonic()
                assert left > 0, f"not said within {LIMIT:g} s: {words!r}; said was:\n{self.said}"
                assert self._reader.is_alive(), f"ended before it said {words!r}; said was:\n{self.said}"
                self._more.wait(min(left, 1.0))
        return self.said

    def ready(self) -> str:
        """Waits until it serves, and gives the address to be found there."""
        found = re.search(r"GraphiQL\s+(http://\S+)/graphiql", self.until("Stop with Ctrl-C."))
        assert found is not None, self.said
        return found[1]

    def send(self, number: int) -> None:
        """Sends a signal to the process alone."""
        self.process.send_signal(number)

    def press_ctrl_c(self) -> None:
        """Sends what a terminal sends to the whole job on Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self) -> int:
        """Waits for its end, and gives its exit code."""
        code = self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                with self._more:
                    self._lines.append(line)
                    self._more.notify_all()


@contextmanager
def running(folder: Path, *arguments: str, **variables: str) -> Iterator[Program]:
    """A command that is ended, hard if need be, when the block is."""
    program = Program(folder, *arguments, **variables)
    try:
        yield program
    finally:
        program.process.kill()
        program.ended()


def small_neo4j(folder: Path, cache_dir: Path) -> dict[str, str]:
    """Variables for a private Neo4j that takes little memory and starts soon, being compiled but little."""
    java = folder / "java"
    java.write_text(f'#!/bin/sh\nexec "{find_java(None).executable}" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@"\n')
    java.chmod(0o700)
    return {
        "REVERIE_CACHE_DIR": str(cache_dir),
        "REVERIE_JAVA": str(java),
        "REVERIE_NEO4J_HEAP": "512m",
        "REVERIE_NEO4J_PAGE_CACHE": "64m",
        # as long as a statement may take on a busy machine
        "REVERIE_NEO4J_TIMEOUT": "120",
    }


def openai_variables(server: OpenAIServer) -> dict[str, str]:
    """Variables for vectors from the server that stands for OpenAI's."""
    return {
        "REVERIE_EMBEDDER": "openai",
        "REVERIE_EMBEDDING_TIMEOUT": "60",
        "REVERIE_EMBEDDING_DIMENSIONS": "64",
        "OPENAI_API_KEY": server.api_key,
        "OPENAI_BASE_URL": server.base_url,
    }


def client_of(address: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=address, timeout=LIMIT, limits=httpx.Limits(max_connections=None))


async def asked(client: httpx.AsyncClient, query: str, /, **variables: Any) -> dict[str, Any]:
    """The data of an answer that must have no errors."""
    answer = (await client.post("/graphql", json={"query": query, "variables": variables})).json()
    assert "errors" not in answer, answer
    data: dict[str, Any] = answer["data"]
    return data


def neo4j_id(data_dir: Path) -> int:
    """The process id of the data folder's Neo4j."""
    owner = read_owner(data_dir / "neo4j" / "run.lock")
    assert owner is not None
    return owner


def neo4j_is_gone(data_dir: Path, limit: float = LIMIT) -> bool:
    """Whether neither Neo4j nor its watcher lives, given time to stop: each holds the store's lock while it does."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        lock = try_lock(data_dir / "neo4j" / "run.lock")
        if lock is not None:
            os.close(lock)
            return True
        time.sleep(0.05)
    return False


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have, in turn (Linux)."""
    parents = {int(entry.name): _stat(int(entry.name))[1] for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found, latest = set[int](), {pid}
    while latest:
        latest = {child for child, parent in parents.items() if parent in latest}
        found |= latest
    return found


def alive(pids: set[int]) -> set[int]:
    """Those of the processes that still run (Linux); one that has ended, but that nobody has asked how, doesn't."""
    return {pid for pid in pids if _stat(pid)[0] not in "ZX"}


def _stat(pid: int) -> tuple[str, int]:
    """A process's state and its parent; X, as the kernel calls the dead, and 0 where it is gone."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    return state, int(parent)
