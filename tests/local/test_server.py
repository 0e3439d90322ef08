"""The private Neo4j as a whole: real processes, and whatever may befall them."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import neo4j
import pytest
from tests.local.maven_repository import VERSION, MavenRepository, small_distribution

from reverie.errors import LocalNeo4jError
from reverie.local import LocalNeo4j, LocalNeo4jOptions, private_neo4j
from reverie.local.distribution import Distribution
from reverie.local.locks import try_lock, write_owner

_NOWHERE = "http://127.0.0.1:1"

# Another process that uses a private Neo4j: it tells what it got, acknowledges each node it writes, and goes on until
# Ctrl-C.
_USER = """
import asyncio, json, sys
from pathlib import Path
import neo4j
from reverie.local import LocalNeo4jOptions, private_neo4j

async def main():
    options = LocalNeo4jOptions(data_dir=Path(sys.argv[1]), cache_dir=Path(sys.argv[2]), quick=True, heap="512m")
    async with private_neo4j(options, notify=lambda line: None) as running:
        print(json.dumps({"pid": running.pid, "uri": running.uri, "password": running.password}), flush=True)
        async with neo4j.AsyncGraphDatabase.driver(running.uri, auth=("neo4j", running.password)) as driver:
            for number in range(1_000_000):
                await driver.execute_query("CREATE (:Written {number: $number})", number=number)
                print(number, flush=True)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(3)
"""


@pytest.fixture
def options(tmp_path: Path, cache_dir: Path) -> LocalNeo4jOptions:
    """A data folder of the test's own, under a name that asks for care."""
    return LocalNeo4jOptions(
        data_dir=tmp_path / "Däta: folder's", cache_dir=cache_dir, heap="512m", page_cache="64m", quick=True
    )


def _silent(_: str) -> None:
    """Hears nothing."""


async def _ask(running: LocalNeo4j, query: str, **parameters: Any) -> Any:
    auth = (running.username, running.password)
    async with neo4j.AsyncGraphDatabase.driver(running.uri, auth=auth) as driver:
        return (await driver.execute_query(neo4j.Query(query), parameters)).records[0][0]


def _is_free(home: Path) -> bool:
    """Whether neither Neo4j nor its watcher lives, since both hold the lock for as long as they do."""
    lock = try_lock(home / "run.lock")
    if lock is None:
        return False
    os.close(lock)
    return True


async def _until(happened: Callable[[], bool], limit: float = 60) -> bool:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if happened():
            return True
        await asyncio.sleep(0.01)
    return False


@contextmanager
def _user(options: LocalNeo4jOptions) -> Iterator["subprocess.Popen[str]"]:
    """Another process that uses the data folder, in a process group of its own as a terminal's job is."""
    command = [sys.executable, "-c", _USER, str(options.data_dir), str(options.cache_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _left_behind(home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that holds the lock on a store."""
    home.mkdir(parents=True)
    lock = try_lock(home / "run.lock")
    assert lock is not None
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], pass_fds=(lock,)) as process:
        write_owner(lock, process.pid)
        os.close(lock)
        try:
            yield process
        finally:
            process.kill()


def _line(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def _sockets(pid: int) -> set[tuple[str, str]]:
    """The addresses that a process listens on or waits for datagrams on, each with its protocol (Linux)."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{protocol}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[9] in inodes and (protocol.startswith("udp") or columns[3] == "0A"):
                found.add((protocol, columns[1]))
    return found


async def test_it_starts_keeps_what_was_written_and_starts_again_without_a_network(
    options: LocalNeo4jOptions, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    home = options.data_dir / "neo4j"

    async with private_neo4j(options, notify=said.append) as first:
        # then: ready means ready
        assert await _ask(first, "CREATE (n:Kept {text: 'naïve ✓'}) RETURN n.text") == "naïve ✓"
        # and: nothing but Bolt on loopback, with a password that only the owner can read
        if sys.platform == "linux":
            port = int(first.uri.rpartition(":")[2])
            assert _sockets(first.pid) == {("tcp6", f"0000000000000000FFFF00000100007F:{port:04X}")}
        assert first.uri.startswith("bolt://127.0.0.1:")
        assert (home / "password").read_text().strip() == first.password
        assert first.password not in repr(first)
        assert stat.S_IMODE((home / "password").stat().st_mode) == 0o600
        assert stat.S_IMODE(options.data_dir.stat().st_mode) == 0o700
        wrong = neo4j.AsyncGraphDatabase.driver(first.uri, auth=(first.username, "neo4j"))
        with pytest.raises(neo4j.exceptions.AuthError):
            await wrong.verify_connectivity()
        await wrong.close()
        # and: nobody else gets the folder
        with pytest.raises(LocalNeo4jError) as caught:
            async with private_neo4j(options, notify=_silent):
                pass
        assert str(caught.value) == f"The data folder {options.data_dir} is in use by process {os.getpid()}."

    assert said == ["Starting Neo4j 2026.08.1…"]
    assert _is_free(home)
    assert "Stopped." in first.log_file.read_text()

    began = time.monotonic()
    async with private_neo4j(replace(options, repository=_NOWHERE), notify=_silent) as second:
        assert await _ask(second, "MATCH (n:Kept) RETURN n.text") == "naïve ✓"
        assert second.password == first.password
        stopping = time.monotonic()

    assert time.monotonic() - stopping < (stopping - began) / 2
    assert capfd.readouterr() == ("", "")


async def test_kill_9_leaves_nothing_running_and_loses_nothing_acknowledged(options: LocalNeo4jOptions) -> None:
    home = options.data_dir / "neo4j"

    # given: a first start that is cut short while Neo4j makes its store
    with _user(options) as user:
        assert await _until((home / "data" / "databases" / "system").exists)
        user.kill()
    assert (home / "unfinished").exists()

    # when: the next one comes at once, goes well, and is killed while it writes
    with _user(options) as user:
        pid = _line(user)["pid"]
        assert user.stdout is not None
        while _line(user) < 20:
            pass
        user.kill()
        rest = user.stdout.read().splitlines()
        acknowledged = int(rest[-1]) if rest else 20

    # then: one more start comes at once, waits for what still ends, and finds everything
    async with private_neo4j(options, notify=_silent) as running:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        numbers = await _ask(running, "MATCH (n:Written) WITH n.number AS n ORDER BY n RETURN collect(n)")

    assert numbers[: acknowledged + 1] == list(range(acknowledged + 1))
    assert len(numbers) <= acknowledged + 2


async def test_ctrl_c_lets_the_user_finish_first(options: LocalNeo4jOptions) -> None:
    with _user(options) as user:
        running = _line(user)
        assert _line(user) == 0
        assert os.getpgid(running["pid"]) != os.getpgid(user.pid)

        os.killpg(user.pid, signal.SIGINT)

        assert await asyncio.to_thread(user.wait, 60) == 3
    assert "Stopped." in (options.data_dir / "neo4j" / "logs" / "neo4j.log").read_text()
    assert _is_free(options.data_dir / "neo4j")


async def test_a_port_that_is_taken_meanwhile_and_a_watcher_that_is_killed(options: LocalNeo4jOptions) -> None:
    home = options.data_dir / "neo4j"
    configuration = home / "conf" / "neo4j.conf"
    said: list[str] = []

    async def take_first_port() -> socket.socket:
        assert await _until(lambda: configuration.exists() and "advertised" in configuration.read_text())
        line = next(line for line in configuration.read_text().splitlines() if "bolt.listen_address" in line)
        taken = socket.create_server(("127.0.0.1", int(line.rpartition(":")[2])))
        return taken

    # given: somebody who takes the port before Neo4j does
    taking = asyncio.create_task(take_first_port())
    async with private_neo4j(options, notify=said.append) as running:
        with await taking as taken:
            # then: Neo4j has another one, and the other one heard no password
            assert int(running.uri.rpartition(":")[2]) != taken.getsockname()[1]
            taken.setblocking(False)
            with pytest.raises(BlockingIOError):
                taken.accept()
        assert said == ["Starting Neo4j 2026.08.1…"] * 2
        assert await _ask(running, "RETURN 1") == 1

        # when: the watcher is killed
        os.kill(os.getpgid(running.pid), signal.SIGKILL)

        # then: Neo4j ends with it, and that is said
        assert await _until(lambda: len(said) == 3)
        assert said[2] == f"Neo4j has ended unexpectedly; its log is {running.log_file}."
        assert await _until(lambda: _is_free(home))


async def _use_and_fail(options: LocalNeo4jOptions, notify: Callable[[str], None]) -> None:
    async with private_neo4j(options, notify=notify) as running:
        assert await _ask(running, "RETURN 1") == 1
        raise OSError("mine")


async def test_jars_that_rotted_are_fetched_again(options: LocalNeo4jOptions, tmp_path: Path) -> None:
    # given: a cache of links to the real one, but for a jar whose bytes have changed behind its time stamp
    cache = tmp_path / "cache"
    whole = Distribution(options.version, options.cache_dir)
    if whole.jars() is None:
        async with private_neo4j(options, notify=_silent):
            pass
    shutil.copytree(whole.repository.resolve(), cache / "maven", copy_function=os.symlink)
    shutil.copy2(whole.manifest, cache)
    rotten = next((cache / "maven").rglob("neo4j-server-*.jar"))
    status = rotten.stat()
    rotten.unlink()
    rotten.write_bytes(bytes(status.st_size))
    os.utime(rotten, ns=(status.st_atime_ns, status.st_mtime_ns))
    said: list[str] = []

    with MavenRepository(whole.repository) as repository:
        here = replace(options, cache_dir=cache, repository=repository.url)
        # and: a user whose own error must stay what it is
        with pytest.raises(OSError, match=r"^mine$"):
            await _use_and_fail(here, said.append)

    assert _is_free(options.data_dir / "neo4j")

    assert [line.partition("(")[0] for line in said] == [
        "Starting Neo4j 2026.08.1…",
        "Fetching Neo4j 2026.08.1 ",
        "Starting Neo4j 2026.08.1…",
    ]
    assert list(repository.requests) == [str(rotten.relative_to(cache / "maven"))]


async def _refusal(options: LocalNeo4jOptions) -> str:
    """The sentence with which a start is refused."""
    with pytest.raises(LocalNeo4jError) as caught:
        async with private_neo4j(options, notify=_silent):
            pass
    assert _is_free(options.data_dir / "neo4j")
    return str(caught.value)


async def test_a_neo4j_that_was_left_behind_is_ended(options: LocalNeo4jOptions) -> None:
    # given: what a killed Reverie leaves where the kernel doesn't end Neo4j with its watcher
    said: list[str] = []
    with _left_behind(options.data_dir / "neo4j") as left:
        # when: another one starts, and fails for a reason of its own
        with pytest.raises(LocalNeo4jError, match="Too small maximum heap"):
            async with private_neo4j(replace(options, heap="1k", stop_timeout=0.1), notify=said.append):
                pass

        assert left.wait(1) == -signal.SIGKILL
    assert said == ["Waiting for the former Neo4j of this data folder to stop…", "Starting Neo4j 2026.08.1…"]


async def test_a_start_that_takes_too_long_is_one_sentence(options: LocalNeo4jOptions) -> None:
    log = options.data_dir / "neo4j" / "logs" / "neo4j.log"

    assert await _refusal(replace(options, start_timeout=0.2)) == (
        f"Neo4j didn't answer within 0.2 seconds; its log is {log}."
    )


@pytest.mark.parametrize(
    ("heap", "page_cache", "cause"),
    [
        ("1k", "64m", "Error occurred during initialization of VM: Too small maximum heap"),
        ("much", "64m", "Invalid maximum heap size: -Xmxmuch: Error: Could not create the Java Virtual Machine."),
        ("512m", "much", "'much' is not a valid size, must be e.g. 10, 5K, 1M, 11G"),
    ],
    ids=["too little memory", "no size for Java", "no size for Neo4j"],
)
async def test_a_neo4j_that_ends_while_it_starts_is_one_sentence(
    options: LocalNeo4jOptions, heap: str, page_cache: str, cause: str
) -> None:
    log = options.data_dir / "neo4j" / "logs" / "neo4j.log"

    sentence = await _refusal(replace(options, heap=heap, page_cache=page_cache))

    assert sentence.startswith(f"Neo4j ended while it was starting ({cause}")
    assert sentence.endswith(f"); its log is {log}.")
    assert cause.partition(": ")[0] in log.read_text()


async def test_no_network_at_the_first_start_is_one_sentence(options: LocalNeo4jOptions, tmp_path: Path) -> None:
    here = replace(options, cache_dir=tmp_path / "empty", repository=_NOWHERE)

    with pytest.raises(LocalNeo4jError, match=r"^Neo4j 2026\.08\.1 has to be fetched once, and \S+ can't be reached"):
        async with private_neo4j(here, notify=_silent):
            pass


async def test_a_folder_that_cannot_be_written_is_one_sentence(options: LocalNeo4jOptions, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(LocalNeo4jError) as caught:
        async with private_neo4j(replace(options, data_dir=tmp_path / "file" / "data"), notify=_silent):
            pass

    assert str(caught.value) == f"Neo4j's files can't be written: {tmp_path / 'file' / 'data'}: Not a directory."


async def test_a_store_of_a_newer_neo4j_is_one_sentence(options: LocalNeo4jOptions) -> None:
    home = options.data_dir / "neo4j"
    home.mkdir(parents=True)
    (home / "version").write_text("2031.04.0\n")

    assert await _refusal(options) == (
        f"Neo4j 2026.08.1 can't open the store in {home}, which Neo4j 2031.04.0 has written: "
        "use that version or a newer one."
    )


_ON_A_SMALL_DISK = """
import asyncio, shutil, sys
from pathlib import Path
from reverie.errors import LocalNeo4jError
from reverie.local import LocalNeo4jOptions, private_neo4j

disk, cache, repository = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] or None
version = sys.argv[4]

async def fill():
    while not any(path.stat().st_size for path in disk.glob(sys.argv[5])):
        await asyncio.sleep(0.01)
    with (disk / "filler").open("wb") as filler:
        try:
            while True:
                filler.write(bytes(1 << 16))
                filler.flush()
        except OSError:
            pass

async def main():
    filling = asyncio.create_task(fill())
    options = LocalNeo4jOptions(
        data_dir=disk / "data", cache_dir=cache, version=version, repository=repository, quick=True, heap="512m"
    )
    try:
        async with private_neo4j(options, notify=lambda line: None):
            print("started")
    except LocalNeo4jError as error:
        print(error)
    filling.cancel()

asyncio.run(main())
"""


# Root needs no user name space of its own to mount in, and others may not make one everywhere.
_UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = 'mount -t tmpfs -o size=1m small "$1"'
    with tempfile.TemporaryDirectory() as folder:
        return not subprocess.run(
            [*_UNSHARE, "sh", "-c", mount, "sh", folder], capture_output=True, check=False
        ).returncode


_needs_mounts = pytest.mark.skipif(not _can_mount(), reason="a small disk takes a name space of Linux's to mount it in")


def _on_a_small_disk(disk: Path, size: str, *arguments: object) -> str:
    """What a start says whose files are on a disk of `size` that nobody else sees."""
    mount = f'mount -t tmpfs -o size={size} small "$1" && shift && exec "$@"'
    disk.mkdir()
    program = [sys.executable, "-c", _ON_A_SMALL_DISK, str(disk), *map(str, arguments)]
    ended = subprocess.run(
        [*_UNSHARE, "sh", "-c", mount, "sh", str(disk), *program], capture_output=True, text=True, check=True
    )
    assert not ended.stderr
    return str(ended.stdout.rstrip())


@_needs_mounts
def test_a_disk_that_is_too_small_is_one_sentence(tmp_path: Path, cache_dir: Path) -> None:
    disk = tmp_path / "disk"

    said = _on_a_small_disk(disk, "50m", cache_dir, "", "2026.08.1", "nothing")

    assert re.fullmatch(rf"Neo4j needs 150 MB in {disk}/data/neo4j to start, and that disk has 5\d MB left\.", said)


@_needs_mounts
def test_a_disk_that_is_too_small_to_fetch_is_one_sentence(tmp_path: Path) -> None:
    disk = tmp_path / "disk"

    said = _on_a_small_disk(disk, "100m", disk / "cache", _NOWHERE, "2026.08.1", "nothing")

    assert re.fullmatch(rf"Neo4j 2026\.08\.1 needs 236 MB in {disk}/cache, and that disk has 10\d MB left\.", said)


@_needs_mounts
def test_a_disk_that_fills_up_while_neo4j_starts_is_one_sentence(tmp_path: Path, cache_dir: Path) -> None:
    disk = tmp_path / "disk"

    said = _on_a_small_disk(disk, "160m", cache_dir, "", "2026.08.1", "data/neo4j/logs/debug.log")

    assert said == f"There is no space left on the disk of {disk}/data/neo4j."


@_needs_mounts
def test_a_disk_that_fills_up_while_fetching_is_one_sentence(tmp_path: Path) -> None:
    disk = tmp_path / "disk"

    with MavenRepository(small_distribution(size=1_000_000), delay=0.1) as repository:
        said = _on_a_small_disk(disk, "80m", disk / "cache", repository.url, VERSION, "cache/maven/**/*.jar.part")

    assert said == f"There is no space left on the disk of {disk}/cache."
