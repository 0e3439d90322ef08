"""The command line: what it tells of itself, what it takes, and how it says that it can't."""

import re
import socket
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.commands.program import finished

from reverie import __version__
from reverie.__main__ import cli
from reverie.settings import Settings

SETTINGS = {member.name: member for member in fields(Settings)}
PLACELESS = {"schema"}
"""Commands that take no settings."""


def refusal(folder: Path, *arguments: str, **variables: str) -> str:
    """The one sentence with which a command says that it can't."""
    done = finished(folder, *arguments, **variables)
    assert done.returncode == 1, done
    assert done.stdout == ""
    sentence = re.fullmatch(r"reverie: (.+)\n", done.stderr)
    assert sentence is not None, done.stderr
    return sentence[1]


def test_help_names_every_command() -> None:
    told = CliRunner().invoke(cli, ["--help"])

    assert told.exit_code == 0
    for name, command in cli.commands.items():
        assert re.search(rf"^  {name} +\w", told.output, re.MULTILINE)
        assert command.help
    assert {"serve", "setup", "reembed", "demo", "schema"} <= set(cli.commands)


@pytest.mark.parametrize("name", [name for name in cli.commands if name not in PLACELESS])
def test_help_names_every_flag_with_its_variable_and_default(name: str) -> None:
    told = CliRunner().invoke(cli, [name, "--help"])

    assert told.exit_code == 0
    text = " ".join(told.output.split())
    flags = [option for option in cli.commands[name].params if isinstance(option, click.Option)]
    assert flags
    for option in flags:
        setting = SETTINGS[str(option.name)]
        assert option.opts == [f"--{setting.name.replace('_', '-')}"]
        # hyphens in a default may be at the end of a line
        shown = re.escape(setting.metadata["help"]) + rf" \[{setting.metadata['variable']}(; ([^\]]+))?\]"
        found = re.search(rf"{option.opts[0]} VALUE {shown}", text)
        assert found is not None, (option.opts, text)
        if isinstance(setting.default, str | int | float):
            assert (found[2] or "").replace("- ", "-") == str(setting.default)


def test_every_setting_is_a_flag_of_serve() -> None:
    assert {option.name for option in cli.commands["serve"].params} == set(SETTINGS)


def test_the_demo_has_no_flags_for_what_it_makes_itself() -> None:
    flags = {option.name for option in cli.commands["demo"].params}

    assert flags.isdisjoint({"data_dir", "api_keys", "neo4j_uri", "neo4j_username", "neo4j_password", "neo4j_database"})


def test_it_is_a_module_and_tells_its_version(tmp_path: Path) -> None:
    done = finished(tmp_path, "--version")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"reverie, version {__version__}\n", "")


def test_schema_prints_the_schema(tmp_path: Path) -> None:
    done = finished(tmp_path, "schema")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (Path(__file__).parents[2] / "schema.graphql").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--no-such-flag"], "No such option '--no-such-flag'"),
        (["serve", "--port"], "Option '--port' requires an argument"),
        (["serve", "extra"], "unexpected extra argument"),
        (["serv"], "No such command 'serv'"),
        (["demo", "--data-dir", "x"], "No such option '--data-dir'"),
        ([], "Commands:"),
    ],
)
def test_what_it_does_not_know_is_refused(arguments: list[str], words: str) -> None:
    told = CliRunner().invoke(cli, arguments)

    assert told.exit_code == 2
    assert words in told.output


@pytest.mark.parametrize(
    ("arguments", "variables", "sentence"),
    [
        (["serve", "--port", "eighty"], {}, "REVERIE_PORT: 'eighty' is not a whole number"),
        (["serve"], {"REVERIE_PORT": "80000"}, "REVERIE_PORT: 80000 is no port"),
        (["setup"], {"REVERIE_NEO4J_TIMEOUT": "soon"}, "REVERIE_NEO4J_TIMEOUT: 'soon' is not a number"),
        (
            ["serve", "--log-level", "loud"],
            {},
            "REVERIE_LOG_LEVEL: 'loud' is none of debug, info, warning, error",
        ),
        (
            ["reembed"],
            {"REVERIE_EMBEDDER": "openai"},
            "REVERIE_EMBEDDER is openai, but OPENAI_API_KEY is not set",
        ),
        (["serve"], {"REVERIE_API_KEYS": '{"k":'}, "REVERIE_API_KEYS: no JSON (unexpected end of data)"),
        # the flag goes before its variable: what is wrong with the variable doesn't count
        (
            ["serve", "--embedder", "none", "--host", "0.0.0.0"],  # noqa: S104 - what must be refused
            {"REVERIE_EMBEDDER": "magic", "REVERIE_HOST": "127.0.0.1"},
            "REVERIE_HOST: 0.0.0.0 can be reached from other machines, which needs REVERIE_API_KEYS",
        ),
        # the demo has no keys, whatever is set, and so it is for this machine alone
        (
            ["demo", "--host", "0.0.0.0"],  # noqa: S104 - what must be refused
            {"REVERIE_API_KEYS": '{"k": "acme"}'},
            "REVERIE_HOST: 0.0.0.0 can be reached from other machines, which needs REVERIE_API_KEYS",
        ),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    arguments: list[str], variables: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, *arguments, **variables) == sentence
    # and: nothing was begun
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        sentence = refusal(tmp_path, "serve", "--port", str(port), "--data-dir", "store")

    assert sentence == (
        f"port {port} of 127.0.0.1 is in use by another program; choose another with --port or REVERIE_PORT"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "words"),
    [("203.0.113.7", "203.0.113.7:0 can't be listened on: "), ("no such host", "'no such host' is no address")],
)
def test_an_address_of_another_machine_is_one_sentence(host: str, words: str, tmp_path: Path) -> None:
    keys = '{"k": "acme"}'

    assert words in refusal(tmp_path, "serve", "--host", host, "--port", "0", "--api-keys", keys)
