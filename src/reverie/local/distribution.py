"""Fetches Neo4j's jars once into a cache that all data folders share, and tells whether they are whole."""

import hashlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from platformdirs import user_cache_path

from reverie.errors import LocalNeo4jError
from reverie.local.locks import try_lock

if TYPE_CHECKING:
    from requests import Response, Session

_BUNDLED_LISTS = Path(__file__).with_name("distributions")
_CONNECTIONS = 6
_TIMEOUT = (10, 20)
_ATTEMPTS = 4
_CHUNK = 1 << 16
_FREE_SPACE_MARGIN = 60_000_000
_SHA1_LENGTH = 40


class FetchCancelledError(Exception):
    """The fetch was told to end before it was done."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar: its path in a Maven repository, its size in bytes, and its SHA-256 (SHA-1 until fetched) in hex."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """Neo4j Community of one version in a cache folder.

    `neo4j-<version>.txt` in that folder lists the jars, and is written when all of them are there; the jars lie below
    `maven/` as in any Maven repository, so that versions share those that they have in common.
    """

    version: str
    cache_dir: Path

    @property
    def manifest(self) -> Path:
        return self.cache_dir / f"neo4j-{self.version}.txt"

    @property
    def repository(self) -> Path:
        return self.cache_dir / "maven"

    def jars(self) -> list[Path] | None:
        """The jars in class path order, below `repository`, or None when they have to be fetched.

        A jar counts as whole when its size is right and it is older than the manifest; a younger one is read.
        """
        listed = _read_list(self.manifest)
        if listed is None or self._damaged(listed, younger_than=self.manifest.stat().st_mtime_ns):
            return None
        return [Path(jar.path) for jar in listed]

    def discard_damaged(self) -> bool:
        """Reads every jar, removes those that aren't what they should be, and says whether there were any."""
        damaged = self._damaged(_read_list(self.manifest) or [], younger_than=-1)
        for jar in damaged:
            (self.repository / jar.path).unlink(missing_ok=True)
        return bool(damaged)

    def missing(self, listed: list[Jar]) -> list[Jar]:
        """Those of the listed jars that have to be fetched."""
        return self._damaged(listed, younger_than=-1)

    def _damaged(self, listed: list[Jar], younger_than: int) -> list[Jar]:
        def damaged(jar: Jar) -> bool:
            path = self.repository / jar.path
            try:
                status = path.stat()
                if status.st_size != jar.size:
                    return True
                return status.st_mtime_ns > younger_than and _digest(path, jar.digest) != jar.digest
            except OSError:
                return True

        return [jar for jar in listed if damaged(jar)]


def default_cache_dir() -> Path:
    """Reverie's folder on this platform for what can be fetched again."""
    return user_cache_path("reverie", appauthor=False)


def fetch_neo4j(
    distribution: Distribution,
    *,
    repository: str | None,
    notify: Callable[[str], None],
    progress: bool,
    cancelled: threading.Event,
) -> list[Path]:
    """The distribution's jars in class path order, below its repository; fetched first where any is missing or damaged.

    Only then is the network used: `repository` is the Maven repository's address, None for the public one. Blocks until
    done; ends soon with FetchCancelledError once `cancelled` is set. What was fetched whole stays for the next time.

    Raises LocalNeo4jError when the network, the version or the space is missing, and OSError for what the disk says.
    """
    if (jars := distribution.jars()) is not None:
        return jars
    distribution.cache_dir.mkdir(parents=True, exist_ok=True)
    with _alone(distribution.cache_dir, notify, cancelled):
        if (jars := distribution.jars()) is not None:
            return jars
        _Fetch(distribution, repository, notify, progress, cancelled).run()
    jars = distribution.jars()
    if jars is None:
        raise LocalNeo4jError(f"Neo4j's files in {distribution.cache_dir} change while they are being fetched.")
    return jars


@contextmanager
def _alone(cache_dir: Path, notify: Callable[[str], None], cancelled: threading.Event) -> Iterator[None]:
    """Keeps other processes from fetching into the same cache meanwhile."""
    descriptor = try_lock(cache_dir / "fetch.lock")
    if descriptor is None:
        notify("Waiting for another process that is fetching Neo4j…")
    while descriptor is None:
        if cancelled.wait(0.2):
            raise FetchCancelledError
        descriptor = try_lock(cache_dir / "fetch.lock")
    try:
        yield
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Fetch:
    """One fetch of a distribution; the caller holds the cache's lock."""

    distribution: Distribution
    repository: str | None
    notify: Callable[[str], None]
    progress: bool
    cancelled: threading.Event
    base: str = field(init=False)
    session: "Session" = field(init=False)
    failed: threading.Event = field(init=False, default_factory=threading.Event)

    def run(self) -> None:
        # Half of what this room costs at import time, and most starts fetch nothing.
        import requests  # noqa: PLC0415
        from jgo.constants import MAVEN_CENTRAL_URL  # noqa: PLC0415
        from requests.adapters import HTTPAdapter  # noqa: PLC0415
        from urllib3.util import Retry  # noqa: PLC0415

        version = self.distribution.version
        self.base = (self.repository or MAVEN_CENTRAL_URL).rstrip("/")
        retry = Retry(total=_ATTEMPTS - 1, backoff_factor=0.3, status_forcelist=(429, 500, 502, 503, 504))
        retry.raise_on_status = False
        with requests.Session() as self.session:
            for scheme in ("http://", "https://"):
                self.session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS, max_retries=retry))
            try:
                listed = _read_list(self.distribution.manifest) or _read_list(_BUNDLED_LISTS / f"neo4j-{version}.txt")
                if listed is None:
                    self.notify(f"Looking up the parts of Neo4j {version}…")
                    listed = self._look_up()
                self._download(listed)
            except requests.RequestException as error:
                raise LocalNeo4jError(
                    f"Neo4j {version} has to be fetched once, and {self.base} can't be reached: "
                    f"check this machine's network connection or proxy settings."
                ) from error

    def _look_up(self) -> list[Jar]:
        """The jars of a version that no bundled list names, as its Maven metadata says."""
        from jgo.maven import Artifact, MavenContext, PythonResolver  # noqa: PLC0415

        fetch = self

        class CheckedResolver(PythonResolver):
            """Has jgo keep a file only once it is whole and what the repository says it is."""

            def download(self, artifact: Artifact) -> Path:
                path = f"{artifact.component.path_prefix.as_posix()}/{artifact.filename}"
                return fetch._get(path, fetch._published_digest(path), lambda _: None)[0]

        context = MavenContext(CheckedResolver(), self.distribution.repository, remote_repos={"repository": self.base})
        version = self.distribution.version
        inputs, transitive = context.resolver.resolve(
            [
                context.create_dependency(f"org.neo4j.app:neo4j-server:{version}"),
                context.create_dependency(f"org.neo4j:neo4j:{version}"),
            ]
        )
        artifacts = [dependency.artifact for dependency in inputs + transitive]
        paths = sorted({f"{each.component.path_prefix.as_posix()}/{each.filename}" for each in artifacts})
        with ThreadPoolExecutor(_CONNECTIONS) as threads:
            return list(threads.map(self._describe, paths))

    def _describe(self, path: str) -> Jar:
        answer = self._ask("HEAD", path)
        return Jar(path, int(answer.headers["Content-Length"]), self._published_digest(path))

    def _published_digest(self, path: str) -> str:
        return str(self._ask("GET", f"{path}.sha1").text.split()[0])

    def _ask(self, method: str, path: str, **options: Any) -> "Response":
        if self.cancelled.is_set() or self.failed.is_set():
            raise FetchCancelledError
        answer = self.session.request(method, f"{self.base}/{path}", timeout=_TIMEOUT, **options)
        if not answer.ok:
            answer.close()
            raise LocalNeo4jError(
                f"Neo4j {self.distribution.version} can't be fetched: {answer.url} answers {answer.status_code}."
            )
        return answer

    def _download(self, listed: list[Jar]) -> None:
        missing = self.distribution.missing(listed)
        total = sum(jar.size for jar in missing)
        free = shutil.disk_usage(self.distribution.cache_dir).free
        if free < total + _FREE_SPACE_MARGIN:
            raise LocalNeo4jError(
                f"Neo4j {self.distribution.version} needs {_megabytes(total + _FREE_SPACE_MARGIN)} in "
                f"{self.distribution.cache_dir}, and that disk has {_megabytes(free)} left."
            )
        if missing:
            self.notify(f"Fetching Neo4j {self.distribution.version} ({_megabytes(total)}, once)…")
        digests = {jar.path: jar.digest for jar in listed}
        with _bar(total, shown=self.progress and bool(missing)) as advance, ThreadPoolExecutor(_CONNECTIONS) as threads:
            futures = {threads.submit(self._get, jar.path, jar.digest, advance): jar for jar in missing}
            try:
                for future in as_completed(futures):
                    _, digests[futures[future].path] = future.result()
            except BaseException:
                self.failed.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        _write_list(self.distribution.manifest, [Jar(jar.path, jar.size, digests[jar.path]) for jar in listed])

    def _get(self, path: str, digest: str, advance: Callable[[int], None]) -> tuple[Path, str]:
        """Fetches one file to its place in the cache, and gives that place and the file's SHA-256."""
        import requests  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        place = self.distribution.repository / path
        part = place.with_name(f"{place.name}.part")
        place.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(_ATTEMPTS):
            fetched = 0
            hashes = [hashlib.sha256(), _hash_of(digest)]
            try:
                with self._ask("GET", path, stream=True) as answer, part.open("wb") as file:
                    for chunk in answer.iter_content(_CHUNK):
                        if self.cancelled.is_set() or self.failed.is_set():
                            raise FetchCancelledError
                        file.write(chunk)
                        for each in hashes:
                            each.update(chunk)
                        fetched += len(chunk)
                        advance(len(chunk))
            except (requests.RequestException, HTTPError):
                # The session has tried again what failed before the first byte; here a transfer broke off.
                if fetched == 0 or attempt == _ATTEMPTS - 1:
                    raise
            else:
                if hashes[1].hexdigest() == digest:
                    part.replace(place)
                    return place, hashes[0].hexdigest()
            advance(-fetched)
        raise LocalNeo4jError(f"{self.base}/{path} isn't what its checksum says, {_ATTEMPTS} times in a row.")


@contextmanager
def _bar(total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar over `total` bytes on standard error; gives what counts bytes on, from any thread."""
    lock = threading.Lock()
    with click.progressbar(length=total, label="Neo4j", hidden=not shown, file=sys.stderr) as bar:

        def advance(count: int) -> None:
            with lock:
                bar.update(count)

        yield advance


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def _hash_of(digest: str) -> "hashlib._Hash":
    """What computes digests of the given one's kind."""
    return hashlib.new("sha1", usedforsecurity=False) if len(digest) == _SHA1_LENGTH else hashlib.sha256()


def _digest(path: Path, like: str) -> str:
    computed = _hash_of(like)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            computed.update(chunk)
    return computed.hexdigest()


def _read_list(path: Path) -> list[Jar] | None:
    """The jars that a list names, a line each (`digest size path`); None when it isn't there or isn't such a list."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Jar(place, int(size), digest) for digest, size, place in (line.split() for line in lines)] or None
    except (FileNotFoundError, ValueError):
        return None


def _write_list(path: Path, jars: list[Jar]) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text("".join(f"{jar.digest} {jar.size} {jar.path}\n" for jar in jars), encoding="utf-8")
    part.replace(path)
