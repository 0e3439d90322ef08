"""A real Maven repository on a loopback port, with faults on demand: what tests fetch small distributions from."""

import hashlib
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

VERSION = "2026.99.1"
"""A version of Neo4j that no list names, so that its parts have to be looked up."""

_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
<dependencies>{dependencies}</dependencies></project>"""
_DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</dependency>"""


def small_distribution(parts: int = 6, size: int = 200_000) -> dict[str, bytes]:
    """The files of a Neo4j whose server needs some parts, of `size` bytes each."""
    names = [("org.example", f"part-{number}", "1.0") for number in range(parts)]
    needs = {
        ("org.neo4j.app", "neo4j-server", VERSION): names[: parts // 2],
        ("org.neo4j", "neo4j", VERSION): names[parts // 2 :],
        **{name: [] for name in names},
    }
    files = {}
    for (group, artifact, version), dependencies in needs.items():
        path = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
        inner = "".join(_DEPENDENCY.format(group=g, artifact=a, version=v) for g, a, v in dependencies)
        pom = _POM.format(group=group, artifact=artifact, version=version, dependencies=inner)
        files[f"{path}.pom"] = pom.encode()
        files[f"{path}.jar"] = Random(path).randbytes(size)  # noqa: S311 - just bytes
    return files


@dataclass
class MavenRepository:
    """Serves files below `url`, those of a folder or those given, and counts what was asked for.

    `cut` says how many answers for a path break off in the middle, `spoil` which paths get wrong bytes, `delay` how
    many seconds there are between two of the ten pieces that a jar is sent in.
    """

    files: dict[str, bytes] | Path
    cut: Counter[str] = field(default_factory=Counter)
    spoil: set[str] = field(default_factory=set)
    delay: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)
    """How often each path was asked for with GET."""

    def __enter__(self) -> Self:
        repository = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                repository._answer(self, self.path.lstrip("/"), body=False)

            def do_GET(self) -> None:
                repository.requests[self.path.lstrip("/")] += 1
                repository._answer(self, self.path.lstrip("/"), body=True)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: what matters is counted."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where the repository answers."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _read(self, path: str) -> bytes | None:
        name = path.removesuffix(".sha1")
        if isinstance(self.files, Path):
            file = self.files / name
            content = file.read_bytes() if file.is_file() else None
        else:
            content = self.files.get(name)
        if content is None or name == path:
            return content
        return hashlib.sha1(content, usedforsecurity=False).hexdigest().encode()

    def _answer(self, request: BaseHTTPRequestHandler, path: str, *, body: bool) -> None:
        content = self._read(path)
        if content is None:
            request.send_error(404)
            return
        if path in self.spoil:
            content = bytes(len(content))
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if not body:
            return
        if self.cut[path] > 0:
            self.cut[path] -= 1
            request.wfile.write(content[: len(content) // 2])
            request.close_connection = True
            return
        step = max(len(content) // 10, 1) if path.endswith(".jar") else len(content)
        for start in range(0, len(content), step):
            try:
                request.wfile.write(content[start : start + step])
            except OSError:
                request.close_connection = True
                return
            time.sleep(self.delay)
