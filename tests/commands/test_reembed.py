"""`reverie reembed` as a process: from one embedder to another and back, cut off in the middle, or refused."""

import os
import pty
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.commands.program import REVERIE, environment, finished, openai_variables, running
from tests.commands.test_command_line import refusal
from tests.openai_server import EMBEDDINGS, Call, Fault, OpenAIServer, slow

from reverie.domain.memories import MemoryDraft
from reverie.domain.search import SearchMode
from reverie.domain.topics import TopicRef
from reverie.graph.schema import read_record
from reverie.graph.store import Graph
from reverie.local import LocalNeo4j
from reverie.resources import open_resources
from reverie.services.embedding import embed_all
from reverie.services.memories import create_memories
from reverie.services.search import search
from reverie.settings import Settings

TENANT = "t"
OPENAI, LOCAL = "openai:text-embedding-3-small", "local:multilingual-e5-small-q4"
MEMORIES = 70
TEXTS = MEMORIES + 3
"""The memories and their topics: two rounds of embedding."""


@pytest.fixture
def variables(blank_neo4j: LocalNeo4j, openai_server: OpenAIServer) -> dict[str, str]:
    """An own store, with vectors from OpenAI's server."""
    return {
        "NEO4J_URI": blank_neo4j.uri,
        "NEO4J_PASSWORD": blank_neo4j.password,
        "REVERIE_NEO4J_TIMEOUT": "120",
        **openai_variables(openai_server),
    }


@pytest_asyncio.fixture
async def graph(variables: dict[str, str]) -> AsyncIterator[Graph]:
    """The store, filled with memories whose vectors are OpenAI's."""
    async with open_resources(Settings.read(variables)) as resources:
        drafts = [
            MemoryDraft(
                content=f"note {number}: the crane {number} was oiled", topics=(TopicRef(name=f"topic {number % 3}"),)
            )
            for number in range(MEMORIES)
        ]
        await create_memories(resources, TENANT, drafts, None)
        await embed_all(resources)
        yield resources.graph


async def vectors_of(graph: Graph) -> dict[str, list[float] | None]:
    """The vectors by the text that each was made of."""
    rows = await graph.read(
        "MATCH (n:Memory|Topic) RETURN collect([coalesce(n.content, n.name), n.embedding, n:Unembedded])"
    )
    assert all((vector is None) == waiting for _, vector, waiting in rows)
    return {text: vector for text, vector, _ in rows}


async def recorded(graph: Graph) -> tuple[str | None, int | None]:
    record = await read_record(graph)
    assert record is not None
    return record.embedder, record.dimensions


async def found_by_meaning(variables: dict[str, str], text: str) -> str:
    async with open_resources(Settings.read(variables)) as resources:
        hits = await search(resources, TENANT, text, mode=SearchMode.SEMANTIC, first=1)
    return str(hits.edges[0].node.content)


async def test_it_switches_to_the_local_model_and_back_with_all_vectors_anew(
    variables: dict[str, str], graph: Graph, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    before = await vectors_of(graph)
    assert len(before) == TEXTS
    text = "note 7: the crane 7 was oiled"

    # when: from OpenAI to the local model; the flag goes before the variable
    calls = len(openai_server.calls)
    done = finished(tmp_path, "reembed", "--embedder", "local", **variables)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"Making vectors with {LOCAL} ({OPENAI} before)." in done.stderr
    assert f"{TEXTS} vectors were made." in done.stderr
    # then: nothing was sent away, all is new, and search by meaning works
    assert len(openai_server.calls) == calls
    assert await recorded(graph) == (LOCAL, 384)
    assert {len(vector or ()) for vector in (await vectors_of(graph)).values()} == {384}
    assert await found_by_meaning({**variables, "REVERIE_EMBEDDER": "local"}, text) == text
    # and: the former settings are refused
    assert "`reverie reembed`" in refusal(tmp_path, "serve", "--port", "0", **variables)

    # when: back again
    done = finished(tmp_path, "reembed", **variables)
    assert done.returncode == 0, done.stderr
    assert await recorded(graph) == (OPENAI, 64)
    after = await vectors_of(graph)
    assert {text: rounded(vector) for text, vector in after.items()} == {
        text: rounded(vector) for text, vector in before.items()
    }
    assert await found_by_meaning(variables, text) == text


def rounded(vector: list[float] | None) -> list[float]:
    return [round(number, 5) for number in vector or ()]


@pytest.mark.parametrize("requests", [2, 3], ids=["as the first vectors are asked for", "in the middle"])
async def test_cut_off_and_started_again_it_heals(
    requests: int, variables: dict[str, str], graph: Graph, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    changed = {**variables, "REVERIE_EMBEDDING_DIMENSIONS": "48"}
    sent: list[Call] = []

    def answer(call: Call) -> Fault | None:
        if call.path == EMBEDDINGS and call.body.get("dimensions") == 48:
            sent.append(call)
            # the first asks whether anybody is there
            return slow(600) if len(sent) == requests else None
        return None

    openai_server.fault_for = answer
    try:
        with running(tmp_path, "reembed", **changed) as program:
            program.until("Vectors")
            await openai_server.until_called(len(openai_server.calls))
            while len(sent) < requests:
                await openai_server.until_called(len(openai_server.calls) + 1)
            program.send(signal.SIGKILL)
            assert program.ended() == -signal.SIGKILL
    finally:
        openai_server.fault_for = lambda _: None
    # then: no vector of the former kind is left beside new ones
    assert {len(vector) for vector in (await vectors_of(graph)).values() if vector is not None} <= {48}
    assert await recorded(graph) == (OPENAI, 48)

    done = finished(tmp_path, "reembed", **changed)

    assert done.returncode == 0, done.stderr
    assert f"{TEXTS} vectors were made." in done.stderr
    assert {len(vector or ()) for vector in (await vectors_of(graph)).values()} == {48}
    text = "note 66: the crane 66 was oiled"
    assert await found_by_meaning(changed, text) == text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"OPENAI_API_KEY": "sk-wrong"}, "401"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "failed"),
        ({"REVERIE_EMBEDDING_MODEL": "no-such-model"}, "404"),
        ({"REVERIE_EMBEDDER": "none"}, "REVERIE_EMBEDDER is none"),
        ({"OPENAI_API_KEY": ""}, "OPENAI_API_KEY is not set"),
    ],
    ids=str,
)
async def test_an_embedder_that_does_not_work_is_refused_before_anything_is_changed(
    change: dict[str, str], words: str, variables: dict[str, str], graph: Graph, tmp_path: Path
) -> None:
    before = await vectors_of(graph)

    done = finished(tmp_path, "reembed", **{**variables, **change})

    assert done.returncode == 1
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith("reverie: ")
    assert words in sentence
    assert "Traceback" not in done.stderr
    assert await vectors_of(graph) == before
    assert await recorded(graph) == (OPENAI, 64)


@pytest.mark.usefixtures("graph")
def test_a_terminal_sees_a_bar(variables: dict[str, str], tmp_path: Path) -> None:
    terminal, other_end = pty.openpty()
    with subprocess.Popen(
        [*REVERIE, "reembed"], env=environment(tmp_path, **variables, TERM="xterm"), cwd=tmp_path, stderr=other_end
    ) as process:
        os.close(other_end)
        shown = b""
        try:
            while part := os.read(terminal, 4096):
                shown += part
        except OSError:
            # Linux says so when the other end is gone
            pass
        os.close(terminal)
    assert process.returncode == 0, shown
    assert b"Vectors  [####" in shown
    assert f"{TEXTS}/{TEXTS}".encode() in shown


async def test_ctrl_c_ends_it_without_a_word_too_many(
    variables: dict[str, str], graph: Graph, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    before = await vectors_of(graph)
    calls = len(openai_server.calls)
    openai_server.faults.append(slow(600))
    with running(tmp_path, "reembed", **variables) as program:
        # when: it waits for the answer to whether anybody is there
        await openai_server.until_called(calls + 1)
        program.press_ctrl_c()

        assert program.ended() == 1
        assert program.said.splitlines()[-1] == "Aborted!"
        assert "Traceback" not in program.said
    assert await vectors_of(graph) == before
