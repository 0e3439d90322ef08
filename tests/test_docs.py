"""The documentation holds: what it names is there, what is there it names, and its examples give the answers shown."""

import ast
import asyncio
import json
import re
import shlex
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import graphql
import pytest
from strawberry.types import ExecutionResult
from tests.conftest import Api

import reverie
from reverie.__main__ import cli
from reverie.ai.rules_extractor import RulesExtractor
from reverie.api.context import Context
from reverie.api.schema import schema, sdl
from reverie.api.types.enums import InputErrorCode
from reverie.domain import policy
from reverie.domain.beliefs import BeliefChangeKind, BeliefType, EpistemicStatus
from reverie.domain.documents import DocumentPolicy, DocumentStatus
from reverie.domain.dreaming import HALF_LIVES
from reverie.domain.episodes import ConsolidationStatus
from reverie.domain.events import Event, EventType
from reverie.errors import ConfigurationError
from reverie.intake.links import LinkPolicy
from reverie.resources import Resources, document_policy, link_policy
from reverie.services.changes import make_follower
from reverie.settings import Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
COMMANDS = {"run": "pip install . && reverie serve", "test": "pip install -e '.[dev]' && pytest"}


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """What stands under a heading, down to the next one of its level or above."""
    level = heading.split(" ", maxsplit=1)[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of every table, their heads left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if not (below.startswith("| ---") or line.startswith("| ---")):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def code(text: str) -> str:
    return text.removeprefix("`").removesuffix("`")


# ---------------------------------------------------------------- commands and settings


@pytest.mark.parametrize("name", COMMANDS)
def test_readme_has_the_two_commands_where_ci_reads_them(name: str) -> None:
    assert f"<!-- {name} -->\n```sh\n{COMMANDS[name]}\n```\n" in README

    read = subprocess.run([ROOT / ".ci" / "readme-command", name], capture_output=True, text=True, check=True)

    assert read.stdout == f"{COMMANDS[name]}\n"


def test_a_command_that_readme_lacks_is_an_error() -> None:
    read = subprocess.run([ROOT / ".ci" / "readme-command", "walk"], capture_output=True, text=True, check=False)

    assert (read.returncode, read.stdout) == (1, "")
    assert read.stderr == "README.md has no command after <!-- walk -->\n"


def test_every_command_is_documented() -> None:
    documented = {code(cells[0]) for cells in rows(section(page("configuration.md"), "## Commands"))}

    assert documented == {f"reverie {name}" for name in cli.commands}


def test_every_setting_is_documented_with_its_variable_flag_and_default() -> None:
    documented = {}
    for cells in rows(page("configuration.md")):
        if len(cells) == 4:
            variable, flag, default, meaning = cells
            documented[code(variable)] = (code(flag), code(default))
            assert meaning.endswith("."), variable
    expected = {}
    for member in fields(Settings):
        default = "none" if member.default is None else str(member.default)
        if member.default is MISSING:
            default = f"the platform's user {member.name.removesuffix('_dir')} folder"
        expected[member.metadata["variable"]] = (f"--{member.name.replace('_', '-')}", default)

    assert documented == expected


def test_every_flag_of_every_command_is_documented() -> None:
    documented = {code(cells[1]) for cells in rows(page("configuration.md")) if len(cells) == 4}
    flags = {flag for command in cli.commands.values() for parameter in command.params for flag in parameter.opts}

    assert flags == documented


def test_every_variable_for_installing_and_testing_is_documented() -> None:
    sources = [*(ROOT / "tests").rglob("*.py"), ROOT / "src" / "explorer" / "hatch_build.py", ROOT / ".ci" / "run"]
    used = {
        name
        for source in sources
        for name in re.findall(r"\bREVERIE_(?:TEST|SKIP)_[A-Z0-9_]*[A-Z0-9]", source.read_text())
    }

    assert {"REVERIE_SKIP_EXPLORER", "REVERIE_TEST_CACHE_DIR", "REVERIE_TEST_NEO4J_URI"} <= used
    assert {name for name in used if f"`{name}" not in page("contributing.md")} == set()


# ---------------------------------------------------------------- errors


def request_codes() -> set[str]:
    """The codes in the source of what answers requests: its texts that are all capitals."""
    found = set()
    for name in ("api/errors.py", "web/http.py", "web/bodies.py", "web/uploads.py", "web/websocket.py"):
        tree = ast.parse((ROOT / "src" / "reverie" / name).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and re.fullmatch(r"[A-Z]{2,}(_[A-Z]+)*", str(node.value)):
                found.add(str(node.value))
    # the methods of HTTP
    return found - {"GET", "POST"}


def headed(text: str) -> set[str]:
    return set(re.findall(r"^### `([A-Z_]+)`$", text, re.MULTILINE))


def test_every_error_code_is_documented() -> None:
    errors = page("errors.md")

    assert headed(section(errors, "## In a payload")) == {member.value for member in InputErrorCode}
    assert headed(section(errors, "## Of a request")) == request_codes()


ERROR_EXAMPLES = [
    pytest.param(heading, name, example, id=f"{heading}, {name}")
    for heading in ("In a payload", "Of a request")
    for name in sorted(headed(section(page("errors.md"), f"## {heading}")))
    for example in blocks(section(section(page("errors.md"), f"## {heading}"), f"### `{name}`"), "graphql")
]


@pytest.mark.parametrize(("heading", "name", "example"), ERROR_EXAMPLES)
async def test_the_example_of_an_error_gives_it(api: Api, heading: str, name: str, example: str) -> None:
    if heading == "Of a request":
        assert [error["extensions"]["code"] for error in await api.errors(example)] == [name]
    else:
        *before, last = (await api(example)).values()

        assert [payload["errors"] for payload in before] == [[] for _ in before]
        assert [error["code"] for error in last["errors"]] == [name]


async def test_the_examples_of_errors_are_answers(api: Api) -> None:
    in_payload, of_request = (
        blocks(section(page("errors.md"), f"## {heading}"), "json") for heading in ("In a payload", "Of a request")
    )
    payload, request = json.loads(in_payload[0]), json.loads(of_request[0])

    refused = await api.mutate("createMemory", "CreateMemoryInput", "", {"content": "too important", "importance": 1.5})
    answer = await api.raw("{ memories(first: 1000) { nodes { id } } }")

    assert refused["errors"] == [payload]
    assert answer.pop("errors")[0].pop("extensions").keys() == request.pop("errors")[0].pop("extensions").keys()
    assert answer == request


def test_the_caps_are_those_of_the_policy() -> None:
    caps = section(page("errors.md"), "### `TOO_LARGE`")

    for text in (
        f"{policy.CONTENT_MOST:,} characters of content",
        f"{policy.METADATA_MOST:,} bytes of metadata",
        f"{policy.NAME_MOST:,} characters of a name",
        f"{policy.TITLE_MOST:,} of a title",
        f"{policy.PHRASE_MOST:,} of each part of a fact",
        f"{policy.BATCH_MOST:,} memories or events in a batch",
        f"{policy.EVENT_MOST:,} bytes of an event's content",
        f"{policy.REFERENCES_MOST:,} members in a list of references",
        f"{policy.DOCUMENT_TEXT_MOST:,} characters of a document's text",
    ):
        assert text in caps


def test_the_sentence_of_a_failed_start_is_said_so() -> None:
    with pytest.raises(ConfigurationError) as failed:
        Settings.read({"REVERIE_PORT": "x"})

    assert f"`{failed.value}`" in section(page("errors.md"), "## When a command can't start")


# ---------------------------------------------------------------- pages and links


def anchor(heading: str) -> str:
    """The anchor that a heading gets where Markdown is shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


LINKS = [
    pytest.param(source, target, id=f"{source.relative_to(ROOT)}: {target}")
    for source in PAGES
    for target in dict.fromkeys(re.findall(r"\]\(([^)\s]+)\)", source.read_text(encoding="utf-8")))
    if not re.match(r"https?://", target)
]


@pytest.mark.parametrize(("source", "target"), LINKS)
def test_every_link_leads_to_a_file_and_its_heading(source: Path, target: str) -> None:
    path, _, fragment = target.partition("#")
    file = (source.parent / path).resolve() if path else source

    assert file.is_file()
    assert file.is_relative_to(ROOT)
    if fragment:
        headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert fragment in {anchor(heading) for heading in headings}


def test_the_index_leads_to_every_page() -> None:
    linked = {
        (DOCS / target.partition("#")[0]).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", page("index.md"))
    }

    assert {found.resolve() for found in DOCS.rglob("*.md") if found.name != "index.md"} <= linked


def test_the_rooms_are_those_that_are_drawn() -> None:
    package = Path(reverie.__file__).parent
    rooms = {
        found.stem
        for found in package.iterdir()
        if (found.suffix == ".py" and found.name != "__init__.py") or (found / "__init__.py").is_file()
    }
    drawn = {
        code(name) for cells in rows(section(page("architecture.md"), "## Rooms")) for name in cells[0].split(" · ")
    }

    assert drawn == rooms


def test_the_release_notes_tell_of_this_version() -> None:
    assert re.search(rf"^## {re.escape(reverie.__version__)}\b", page("release-notes.md"), re.MULTILINE)


# ---------------------------------------------------------------- the first steps

SCHEMA = graphql.build_schema(sdl())


def curled() -> tuple[str, dict[str, str], dict[str, Any]]:
    """The address, headers and body of README's curl command."""
    (line,) = (block for block in blocks(README, "sh") if block.startswith("curl "))
    words = shlex.split(line)
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    (address,) = (word for word in words if word.startswith("http"))
    return address, headers, json.loads(words[words.index("-d") + 1])


OTHER_PAGES = {source.name: source.read_text(encoding="utf-8") for source in PAGES if source.name != "errors.md"}


@pytest.mark.parametrize(
    "example", [*(block for text in OTHER_PAGES.values() for block in blocks(text, "graphql")), curled()[2]["query"]]
)
def test_every_example_fits_the_schema(example: str) -> None:
    assert graphql.validate(SCHEMA, graphql.parse(example)) == []


def test_the_addresses_are_those_of_the_default_settings() -> None:
    settings = Settings.read({})
    address = f"http://{settings.host}:{settings.port}"

    assert curled()[0] == f"{address}/graphql"
    assert set(re.findall(r"http://[\w.:]+", README)) == {address}


async def changes(resources: Resources, tenant: str, subscription: str, **variables: Any) -> AsyncGenerator[Any, None]:
    """What a subscription of the documentation is told, as it stands there."""
    context = Context(resources, tenant, "request", make_follower(resources))
    stream = await schema.stream(subscription, variable_values=variables, context_value=context)
    async with aclosing(stream) as results:
        async for result in results:
            assert isinstance(result, ExecutionResult)
            assert result.errors is None
            assert result.data is not None
            yield result.data["beliefChanges"]
    await context.follower.close()


@pytest.mark.usefixtures("worker")
async def test_the_first_steps_give_the_answers_shown(api: Api, resources: Resources) -> None:
    remember, learn, believed, subscription, nested, search = blocks(README, "graphql")
    learned, walk = (json.loads(block) for block in blocks(README, "json"))
    content = walk["data"]["topic"]["memories"]["nodes"][0]["content"]

    written = (await api(remember))["createMemory"]
    async with aclosing(changes(resources, api.tenant, subscription)) as told, asyncio.timeout(60):
        checkpoint = await anext(told)
        dreamt = await api(learn)
        created, superseded = await anext(told), await anext(told)
    known = await api.raw(believed)
    walked = await api.raw(nested)
    found = (await api(search))["search"]["edges"]
    _, headers, body = curled()
    curl = (await api.client.post("/graphql", content=json.dumps(body), headers=headers)).json()

    assert written["errors"] == []
    assert written["memory"]["id"]
    dream = dreamt["dream"].pop("dream")
    # the first episode was over when the second began, and may have been read before anybody asked
    assert 1 <= dream["episodes"] == dream["done"] <= 2
    assert dreamt == {field: {"errors": []} for field in ("recordEvents", "closeEpisode", "dream")}
    assert known == learned
    assert checkpoint.keys() == {"cursor"}
    assert (created["kind"], created["belief"]["value"], created["previous"]) == ("CREATED", "tabs", None)
    assert (superseded["kind"], superseded["belief"]["value"]) == ("SUPERSEDED", "spaces")
    assert superseded["previous"] == {"value": "tabs"}
    assert walked == walk
    (hit,) = (edge for edge in found if edge["node"].get("content") == content)
    assert (hit["keywordRank"], hit["highlights"]) == (None, [])
    assert hit["semanticRank"] in (1, 2)
    assert curl["data"]["search"]["edges"][0] == {"keywordRank": 1, "highlights": [content]}

    # and: each cursor resumes where it says
    for cursor, rest in (
        (checkpoint["cursor"], [created, superseded]),
        (created["cursor"], [superseded]),
    ):
        resumed = subscription.replace("filter:", f'after: "{cursor}", filter:')
        async with aclosing(changes(resources, api.tenant, resumed)) as told, asyncio.timeout(60):
            await anext(told)
            again = [await anext(told) for _ in rest]
        assert [one["cursor"] for one in again] == [one["cursor"] for one in rest]


# ---------------------------------------------------------------- documents


def test_the_curl_of_an_upload_is_one() -> None:
    (line,) = (block for block in blocks(page("documents.md"), "sh") if block.startswith("curl "))
    words = shlex.split(line.replace("\\\n", " "))
    parts = dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "-F")
    operations = json.loads(parts["operations"])

    assert graphql.validate(SCHEMA, graphql.parse(operations["query"])) == []
    assert json.loads(parts["map"]) == {"0": ["variables.file"]}
    assert operations["variables"] == {"file": None}
    assert parts["0"].startswith("@")
    assert "GraphQL-Require-Preflight: 1" in words


def test_the_limits_of_documents_are_those_of_the_policies() -> None:
    text = page("documents.md")

    for told in (
        f"{policy.DOCUMENT_TEXT_MOST:,} characters",
        f"{policy.READABLE_MOST:,} characters",
        f"takes more than {DocumentPolicy().parse_seconds:g} s to read",
        f"takes more than {DocumentPolicy().parse_memory} MB of memory",
    ):
        assert told in text
    assert (document_policy(Settings.read({})), link_policy(Settings.read({}))) == (DocumentPolicy(), LinkPolicy())
    assert {status for status in DocumentStatus if status.value not in text} == set()


# ---------------------------------------------------------------- beliefs and dreaming

ANSWERED = r"^```graphql\n([^`]*)^```\n\n```json\n([^`]*)^```$"
RESIDENCE = '{ beliefs(filter: {subjectId: "jonas", keys: ["residence"]}) { nodes { id } } }'


@pytest.mark.usefixtures("worker")
async def test_the_examples_of_beliefs_give_the_answers_shown(api: Api, resources: Resources) -> None:
    text = page("beliefs.md")
    shown = {before: json.loads(answer) for before, answer in re.findall(ANSWERED, text, re.MULTILINE | re.DOTALL)}
    assert len(shown) == len(blocks(text, "json")) == 2
    begin = (await api("{ changesCursor }"))["changesCursor"]
    for example in blocks(text, "graphql"):
        if example.startswith("subscription"):
            async with aclosing(changes(resources, api.tenant, example, after=begin)) as told, asyncio.timeout(60):
                kinds = [(await anext(told)).get("kind") for _ in range(4)]
            # the checkpoint, and all but the first entry
            assert kinds == [None, "SUPERSEDED", "RETRACTED", "SUPERSEDED"]
            continue
        variables = {}
        if "$belief" in example:
            variables["belief"] = (await api(RESIDENCE))["beliefs"]["nodes"][0]["id"]

        answer = await api.raw(example, **variables)

        assert "errors" not in answer, answer
        if example in shown:
            assert answer == shown[example]
        if example.startswith("mutation"):
            assert [payload["errors"] for payload in answer["data"].values()] == [[] for _ in answer["data"]]
    # and: at the end, the subject is forgotten
    assert (await api(RESIDENCE))["beliefs"]["nodes"] == []


async def test_the_rules_understand_what_is_said_to_be_understood() -> None:
    documented = list(rows(section(page("beliefs.md"), "## What the rules understand")))
    assert len(documented) > 10
    for said, beliefs, kind in documented:
        now = datetime.now(UTC)
        event = Event("e1", EventType.USER_MESSAGE, said, said, "thread", "alex", None, now, now)
        reading = await RulesExtractor().read_episode([event], [])
        found = [(f"`{one.key}` = {one.value}", one.kind.name) for one in reading.statements]
        assert found == [(belief, kind) for belief in beliefs.split(", ")], said


def test_the_half_lives_are_those_of_the_settings() -> None:
    documented = list(rows(section(page("beliefs.md"), "### Confidence fades")))
    settings = Settings.read({})

    for type_, half_life, setting in documented:
        days = HALF_LIVES[BeliefType(code(type_))]
        assert half_life == ("never fades" if days is None else f"{days:g} days")
        if days is not None:
            (member,) = (one for one in fields(Settings) if one.metadata["variable"] == code(setting))
            assert getattr(settings, member.name) == days
    assert {BeliefType(code(cells[0])) for cells in documented} == set(BeliefType)


@pytest.mark.parametrize("members", [EpistemicStatus, BeliefChangeKind, ConsolidationStatus])
def test_every_status_and_kind_of_change_is_told_of(members: type[StrEnum]) -> None:
    assert {member for member in members if member.value not in page("beliefs.md")} == set()
