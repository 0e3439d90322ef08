"""`python -m tests.bench.start`: the time until `reverie serve` is ready, against Neo4j alone until it answers.

Both start on data folders of their own that were used before, with a warm cache, in turns. Neo4j alone is started
directly: the same Java, class path and configuration, without Reverie, its watcher or its checks; it counts as
answering when a Bolt handshake with its password and one statement went through.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neo4j import GraphDatabase
from neo4j.exceptions import DriverError, Neo4jError

from reverie.local import LocalNeo4jOptions, default_cache_dir, private_neo4j
from reverie.local.distribution import Distribution
from reverie.local.home import USERNAME, Home
from reverie.local.java import find_java
from reverie.local.process import free_port

POLL = 0.02
LIMIT = 600.0


def neo4j_alone(options: LocalNeo4jOptions) -> float:
    """Seconds until a Neo4j of its own answers on Bolt."""
    home = Home(options.data_dir / "neo4j", options.version)
    distribution = Distribution(options.version, options.cache_dir)
    jars = distribution.jars()
    if jars is None:
        raise SystemExit("the cache is not warm")
    java = find_java(options.java)
    password = home.prepare()
    port = free_port()
    arguments = home.write_configuration(options, java, jars, port)
    started = time.perf_counter()
    with (
        home.log_file.open("ab") as log,
        _running([str(java.executable), *arguments], distribution.repository, log.fileno()),
    ):
        while True:
            try:
                with (
                    GraphDatabase.driver(f"bolt://127.0.0.1:{port}", auth=(USERNAME, password)) as driver,
                    driver.session() as session,
                ):
                    session.run("RETURN 1").consume()
            except (DriverError, Neo4jError):
                time.sleep(POLL)
            else:
                return time.perf_counter() - started


def reverie(options: LocalNeo4jOptions, embedder: str) -> float:
    """Seconds until `reverie serve` says at /health/ready that it is."""
    port = free_port()
    command = [sys.executable, "-m", "reverie", "serve", "--port", str(port), "--embedder", embedder]
    command += ["--data-dir", str(options.data_dir), "--cache-dir", str(options.cache_dir)]
    started = time.perf_counter()
    with _running(command, options.data_dir, subprocess.DEVNULL):
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=LIMIT) as answer:
                    if json.load(answer)["status"] == "ready":
                        return time.perf_counter() - started
            except (urllib.error.URLError, ConnectionError):
                time.sleep(POLL)


@contextmanager
def _running(command: list[str], folder: Path, errors: int) -> Iterator[None]:
    """A process that is told to end, and has ended, when the block is left."""
    # as a user's Python does, it keeps what it has compiled
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)


async def used_before(options: LocalNeo4jOptions) -> None:
    """Makes the data folder, as a first start does."""
    async with private_neo4j(options, notify=print, progress=True):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--embedder", default="auto", help="as REVERIE_EMBEDDER; auto is what a newcomer has")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="reverie-bench-start-"))
    try:
        alone, served = (
            LocalNeo4jOptions(data_dir=folder / name, cache_dir=default_cache_dir()) for name in ("alone", "served")
        )
        for options in (alone, served):
            asyncio.run(used_before(options))
        times: dict[str, list[float]] = {"Neo4j alone": [], "reverie serve": []}
        # the first of each is no round: it compiles Python's modules, sets the store up and fills the file cache
        for number in range(given.rounds + 1):
            pair = {"Neo4j alone": neo4j_alone(alone), "reverie serve": reverie(served, given.embedder)}
            print(
                f"round {number}: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in pair.items()), flush=True
            )
            if number:
                for name, seconds in pair.items():
                    times[name].append(seconds)
        floor, ours = (statistics.median(column) for column in times.values())
        ratio = statistics.median(b / a for a, b in zip(*times.values(), strict=True))
        print()
        print(f"{'':24}{'median':>10}{'least':>10}{'most':>10}")
        for name, column in times.items():
            print(f"{name:24}{statistics.median(column):9.2f}s{min(column):9.2f}s{max(column):9.2f}s")
        print(f"{'ratio (wanted ≤ 1.5)':24}{ours / floor:10.2f}   in each round, at the median: {ratio:.2f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
