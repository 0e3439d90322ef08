"""`reverie serve` as a process: where it is found, how it stops, and what it keeps."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import httpx
import pytest
from tests.commands.program import (
    alive,
    asked,
    client_of,
    descendants,
    neo4j_id,
    neo4j_is_gone,
    openai_variables,
    running,
    small_neo4j,
)
from tests.commands.test_command_line import refusal
from tests.openai_server import OpenAIServer, slow

from reverie.local.locks import read_owner

CREATE = "mutation($input: CreateMemoryInput!) { createMemory(input: $input) { memory { id } errors { message } } }"
CONTENTS = "{ memories { nodes { content } } }"


BY_WORD = {"REVERIE_EMBEDDER": "none"}


async def contents(client: httpx.AsyncClient) -> list[str]:
    return [node["content"] for node in (await asked(client, CONTENTS))["memories"]["nodes"]]


async def test_it_says_where_to_click_finishes_what_it_was_asked_keeps_it_and_tells_when_neo4j_is_gone(
    tmp_path: Path, cache_dir: Path, openai_server: OpenAIServer
) -> None:
    data_dir = tmp_path / "store"
    arguments = ("serve", "--port", "0", "--data-dir", str(data_dir))
    variables = {**small_neo4j(tmp_path, cache_dir), **openai_variables(openai_server)}
    with running(tmp_path, *arguments, **variables) as server:
        # then: it says where to click, and that texts leave this machine
        address = server.ready()
        host = openai_server.base_url.removeprefix("http://").removesuffix("/v1")
        assert re.fullmatch(
            rf"Starting Neo4j 2026\.08\.1…\n\n"
            rf"  Reverie is ready\.  GraphiQL  {address}/graphiql\n"
            rf"                     API       {address}/graphql\n\n"
            rf"  Episodes and memories are read by gpt-4\.1-mini of {host}: their texts are sent there\.\n"
            rf"  Vectors come from {host}: the texts of memories, topics and searches are sent there\.\n"
            rf"  Stop with Ctrl-C\.\n",
            server.said,
        )
        async with client_of(address) as client:
            # and: it answers there
            assert (await client.get("/health/live")).json() == {"status": "live"}
            ready = await client.get("/health/ready")
            assert (ready.status_code, ready.json()["status"]) == (200, "ready")
            page = await client.get("/graphiql")
            assert page.status_code == 200 or (page.status_code == 404 and "no web explorer" in page.text)
            opened = await client.get("/graphql", headers={"accept": "text/html"})
            assert (opened.status_code, opened.headers["location"]) == (307, "graphiql")
            await asked(client, CREATE, input={"content": "first", "topics": [{"name": "starting"}]})

            # and: a second one is refused the folder, and a third one the port
            second = refusal(tmp_path, *arguments, **variables)
            assert second == f"The data folder {data_dir} is in use by process {read_owner(data_dir / 'reverie.lock')}."
            port = address.rpartition(":")[2]
            third = refusal(tmp_path, "serve", "--port", port, "--data-dir", "other", **variables)
            assert f"port {port} of 127.0.0.1 is in use" in third
            assert not (tmp_path / "other").exists()

            # when: it is told to stop in the middle of a request
            openai_server.faults.append(slow(1.5))
            calls = len(openai_server.calls)
            late = asyncio.create_task(asked(client, CREATE, input={"content": "in the middle"}))
            await openai_server.until_called(calls + 1)
            server.send(signal.SIGTERM)
            # then: the request is answered
            assert (await late)["createMemory"]["memory"]["id"]
        # and: it ends as told, without another word, and nothing is left
        assert await asyncio.to_thread(server.ended) == 0
        assert server.said.endswith("Stop with Ctrl-C.\n")
        assert neo4j_is_gone(data_dir, 1.0)

    with running(tmp_path, *arguments, **variables) as server:
        async with client_of(server.ready()) as client:
            assert await contents(client) == ["in the middle", "first"]

            # when: its Neo4j is gone
            os.kill(neo4j_id(data_dir), signal.SIGKILL)
            await asyncio.to_thread(server.until, f"Neo4j has ended unexpectedly; its log is {data_dir}")

            # then: it says so, to people, to whoever watches over it, and to callers
            ready = await client.get("/health/ready")
            assert (ready.status_code, ready.json()) == (503, {"status": "unavailable", "neo4j": "does not answer"})
            assert (await client.get("/health/live")).status_code == 200
            for query, given in ((CREATE, {"input": {"content": "after"}}), (CONTENTS, {})):
                answer = (await client.post("/graphql", json={"query": query, "variables": given})).json()
                (error,) = answer["errors"]
                assert (error["message"], error["extensions"]["code"]) == ("Neo4j can't be reached", "UNAVAILABLE")
        # and: Ctrl-C, which a terminal tells to the whole job, still ends it as told
        server.press_ctrl_c()
        assert await asyncio.to_thread(server.ended) == 0
        assert "Traceback" not in server.said
        assert neo4j_is_gone(data_dir, 1.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_while_it_starts_it_stops_at_once(number: int, tmp_path: Path, cache_dir: Path) -> None:
    data_dir = tmp_path / "store"
    variables = {**small_neo4j(tmp_path, cache_dir), **BY_WORD}
    with running(tmp_path, "serve", "--port", "0", "--data-dir", str(data_dir), **variables) as server:
        server.until("Starting Neo4j")
        server.send(number)

        assert server.ended() == 0
        assert server.said == "Starting Neo4j 2026.08.1…\n"
        assert neo4j_is_gone(data_dir, 1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")
async def test_killed_it_leaves_no_process_behind(tmp_path: Path, cache_dir: Path) -> None:
    data_dir = tmp_path / "store"
    # given: both kinds of children, Neo4j and the local model
    local = {"REVERIE_EMBEDDER": "local", "REVERIE_EMBEDDING_TIMEOUT": "120"}
    variables = {**small_neo4j(tmp_path, cache_dir), **local}
    with running(tmp_path, "serve", "--port", "0", "--data-dir", str(data_dir), **variables) as server:
        async with client_of(server.ready()) as client:
            await asked(client, CREATE, input={"content": "embedded here"})
        children = descendants(server.process.pid)
        assert len(alive(children)) >= 3

        server.send(signal.SIGKILL)

        assert await asyncio.to_thread(server.ended) == -signal.SIGKILL
        assert await asyncio.to_thread(neo4j_is_gone, data_dir)
        for _ in range(600):
            if not alive(children):
                break
            await asyncio.sleep(0.1)
        assert alive(children) == set()
