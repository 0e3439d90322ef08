"""Fetching Neo4j, from a real repository on this machine."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.maven_repository import VERSION, MavenRepository, small_distribution

from reverie.errors import LocalNeo4jError
from reverie.local import LocalNeo4jOptions
from reverie.local.distribution import Distribution, FetchCancelledError, fetch_neo4j

_FETCH = f"""
import sys, threading
from pathlib import Path
from reverie.local.distribution import Distribution, fetch_neo4j
fetch_neo4j(
    Distribution("{VERSION}", Path(sys.argv[1])),
    repository=sys.argv[2], notify=print, progress=False, cancelled=threading.Event(),
)
print("done")
"""
_SERVER_JAR = f"org/neo4j/app/neo4j-server/{VERSION}/neo4j-server-{VERSION}.jar"
_PART = "org/example/part-0/1.0/part-0-1.0.jar"

Fetch = Callable[[str | None], list[Path]]


@pytest.fixture
def repository() -> Iterator[MavenRepository]:
    """A repository that has a small Neo4j."""
    with MavenRepository(small_distribution()) as repository:
        yield repository


@pytest.fixture
def distribution(tmp_path: Path) -> Distribution:
    """The small Neo4j in a cache that is empty."""
    return Distribution(VERSION, tmp_path / "cache")


@pytest.fixture
def fetch(distribution: Distribution) -> Fetch:
    """Fetches the small Neo4j from a repository's address."""
    return lambda url: fetch_neo4j(
        distribution, repository=url, notify=lambda _: None, progress=False, cancelled=threading.Event()
    )


def _jars(repository: MavenRepository) -> dict[str, bytes]:
    assert isinstance(repository.files, dict)
    return {path: content for path, content in repository.files.items() if path.endswith(".jar")}


def test_every_jar_arrives_and_a_second_start_asks_nobody(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    expected = _jars(repository)

    found = fetch(repository.url)

    assert {str(path): (distribution.repository / path).read_bytes() for path in found} == expected
    assert all(repository.requests[path] == 1 for path in expected)
    before = repository.requests.copy()
    assert fetch(repository.url) == found
    assert repository.requests == before


def test_a_complete_cache_needs_neither_the_resolver_nor_http(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    fetch(repository.url)
    script = f"{_FETCH}\nprint(sorted({{'jgo', 'requests'}} & set(sys.modules)))"

    ended = subprocess.run(
        [sys.executable, "-c", script, distribution.cache_dir, "http://127.0.0.1:1"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout == "done\n[]\n"


def test_versions_share_the_jars_that_they_have_in_common(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    assert isinstance(repository.files, dict)
    newer = {path.replace(VERSION, "2026.99.2"): content for path, content in repository.files.items()}
    fetch(repository.url)
    repository.requests.clear()
    repository.files |= {
        path: content.replace(VERSION.encode(), b"2026.99.2") if path.endswith(".pom") else content
        for path, content in newer.items()
    }

    fetch_neo4j(
        Distribution("2026.99.2", distribution.cache_dir),
        repository=repository.url,
        notify=lambda _: None,
        progress=False,
        cancelled=threading.Event(),
    )

    assert sorted(path for path in repository.requests if path.endswith(".jar")) == [
        "org/neo4j/app/neo4j-server/2026.99.2/neo4j-server-2026.99.2.jar",
        "org/neo4j/neo4j/2026.99.2/neo4j-2026.99.2.jar",
    ]


def test_the_default_version_is_listed_with_checksums_and_needs_no_look_up(
    repository: MavenRepository, tmp_path: Path
) -> None:
    version = LocalNeo4jOptions(data_dir=tmp_path, cache_dir=tmp_path).version

    with pytest.raises(LocalNeo4jError, match=r"can't be fetched: http://127\.0\.0\.1:\d+/\S+\.jar answers 404\.$"):
        fetch_neo4j(
            Distribution(version, tmp_path),
            repository=repository.url,
            notify=lambda _: None,
            progress=False,
            cancelled=threading.Event(),
        )

    assert {Path(path).suffix for path in repository.requests} == {".jar"}


@pytest.mark.parametrize("damage", [b"", b"garbage"], ids=["emptied", "shortened"])
def test_a_jar_of_another_size_is_fetched_again(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch, damage: bytes
) -> None:
    fetch(repository.url)
    repository.requests.clear()
    (distribution.repository / _PART).write_bytes(damage)

    fetch(repository.url)

    assert (distribution.repository / _PART).read_bytes() == _jars(repository)[_PART]
    assert list(repository.requests) == [_PART]


def test_a_jar_that_was_written_to_is_fetched_again(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    fetch(repository.url)
    damaged = distribution.repository / _PART
    damaged.write_bytes(bytes(damaged.stat().st_size))
    later = distribution.manifest.stat().st_mtime + 10
    os.utime(damaged, (later, later))

    fetch(repository.url)

    assert damaged.read_bytes() == _jars(repository)[_PART]


def test_a_jar_that_rotted_in_its_place_is_found_by_reading(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    fetch(repository.url)
    assert not distribution.discard_damaged()
    damaged = distribution.repository / _PART
    damaged.write_bytes(bytes(damaged.stat().st_size))
    os.utime(damaged, (0, 0))

    assert distribution.discard_damaged()

    assert not damaged.exists()
    fetch(repository.url)
    assert damaged.read_bytes() == _jars(repository)[_PART]


def test_a_missing_jar_and_an_illegible_manifest_heal(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    fetch(repository.url)
    (distribution.repository / _SERVER_JAR).unlink()
    distribution.manifest.write_text("half a li")

    fetch(repository.url)

    assert (distribution.repository / _SERVER_JAR).read_bytes() == _jars(repository)[_SERVER_JAR]


def test_a_transfer_that_breaks_off_is_tried_again(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    repository.cut[_PART] = 2

    fetch(repository.url)

    assert (distribution.repository / _PART).read_bytes() == _jars(repository)[_PART]
    assert repository.requests[_PART] == 3


def test_what_is_not_what_its_checksum_says_is_refused(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    repository.spoil.add(_PART)

    with pytest.raises(LocalNeo4jError, match=rf"{_PART} isn't what its checksum says"):
        fetch(repository.url)

    assert not (distribution.repository / _PART).exists()
    assert not distribution.manifest.exists()
    repository.spoil.clear()
    assert len(fetch(repository.url)) == len(_jars(repository))


def test_a_fetch_that_was_killed_goes_on_with_what_is_missing(
    repository: MavenRepository, distribution: Distribution, fetch: Fetch
) -> None:
    repository.delay = 0.05
    killed = subprocess.Popen([sys.executable, "-c", _FETCH, distribution.cache_dir, repository.url])
    deadline = time.monotonic() + 30
    while not any(distribution.repository.rglob("*.jar")) and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    whole = {str(path.relative_to(distribution.repository)) for path in distribution.repository.rglob("*.jar")}
    assert whole
    assert whole < _jars(repository).keys()
    repository.requests.clear()

    found = fetch(repository.url)

    assert {str(path) for path in found} == _jars(repository).keys()
    assert not whole & repository.requests.keys()


def test_two_processes_fetch_once(repository: MavenRepository, distribution: Distribution) -> None:
    repository.delay = 0.02
    command = [sys.executable, "-c", _FETCH, str(distribution.cache_dir), repository.url]

    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in both]

    assert all(output.endswith("done\n") for output in outputs)
    assert sum("Fetching" in output for output in outputs) == 1
    assert {repository.requests[path] for path in _jars(repository)} == {1}


def test_a_fetch_can_be_cancelled(repository: MavenRepository, distribution: Distribution, fetch: Fetch) -> None:
    repository.delay = 0.5
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    began = time.monotonic()

    with pytest.raises(FetchCancelledError):
        fetch_neo4j(distribution, repository=repository.url, notify=lambda _: None, progress=False, cancelled=cancelled)

    assert time.monotonic() - began < 3
    repository.delay = 0
    assert len(fetch(repository.url)) == len(_jars(repository))


def test_progress_is_shown_on_standard_error_alone(
    repository: MavenRepository, distribution: Distribution, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []

    fetch_neo4j(distribution, repository=repository.url, notify=said.append, progress=True, cancelled=threading.Event())

    assert said == [f"Looking up the parts of Neo4j {VERSION}…", f"Fetching Neo4j {VERSION} (2 MB, once)…"]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Neo4j" in shown.err


@pytest.mark.parametrize("version", [VERSION, "2026.08.1"], ids=["looked up", "listed"])
def test_no_network_is_one_sentence(tmp_path: Path, version: str) -> None:
    with pytest.raises(LocalNeo4jError) as caught:
        fetch_neo4j(
            Distribution(version, tmp_path),
            repository="http://127.0.0.1:1",
            notify=lambda _: None,
            progress=False,
            cancelled=threading.Event(),
        )

    assert str(caught.value) == (
        f"Neo4j {version} has to be fetched once, and http://127.0.0.1:1 can't be reached: "
        "check this machine's network connection or proxy settings."
    )


def test_a_version_that_does_not_exist_is_one_sentence(repository: MavenRepository, tmp_path: Path) -> None:
    with pytest.raises(LocalNeo4jError, match=r"^Neo4j 2026\.98\.7 can't be fetched: \S+ answers 404\.$"):
        fetch_neo4j(
            Distribution("2026.98.7", tmp_path),
            repository=repository.url,
            notify=lambda _: None,
            progress=False,
            cancelled=threading.Event(),
        )
