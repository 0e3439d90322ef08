"""The directions of imports: the contracts in pyproject.toml hold, and would not if one were broken."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# a program of its own, as the linter changes sys.path and reads the package afresh
LINT = [
    sys.executable,
    "-c",
    "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))",
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        LINT, cwd=folder, env={"PYTHONPATH": str(folder / "src")}, capture_output=True, text=True, check=False
    )


def test_every_import_keeps_to_the_contracts() -> None:
    linted = lint(ROOT)

    assert linted.returncode == 0, linted.stdout + linted.stderr


BREACHES = {
    "domain/pages.py": "from reverie.graph import store",
    "graph/store.py": "from reverie.ai import embedders",
    "local/java.py": "from reverie import __main__",
    "shelf.py": "PLACE = 1",
    "services/search.py": "from reverie.settings import Settings",
    "api/queries.py": "from reverie.graph.store import Graph",
    "api/context.py": "from reverie.ai.embedders import Embedder",
    "api/reads.py": "from reverie.intake import links",
    "intake/links.py": "from reverie.graph import store",
    "worker/tasks.py": "from reverie.api import errors",
}


def test_a_breach_of_any_rule_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "src" / "reverie"
    shutil.copytree(ROOT / "src" / "reverie", package, ignore=shutil.ignore_patterns("__pycache__", "assets"))
    for module, line in BREACHES.items():
        with (package / module).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")

    linted = lint(tmp_path)

    assert linted.returncode == 1, linted.stderr
    assert "0 kept, 5 broken" in linted.stdout
    report = " ".join(linted.stdout.split())
    for found in (
        "reverie.domain is not allowed to import reverie.graph",
        "reverie.graph is not allowed to import reverie.ai",
        "reverie.local is not allowed to import reverie.__main__",
        "- reverie.shelf",
        "reverie.services.search -> reverie.settings",
        "reverie.api.queries -> reverie.graph.store",
        "reverie.api.context -> reverie.ai.embedders",
        "reverie.api.reads -> reverie.intake.links",
        "reverie.intake is not allowed to import reverie.graph",
        "reverie.worker.tasks -> reverie.api",
    ):
        assert found in report, linted.stdout
