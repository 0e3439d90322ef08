"""Killed in the middle of writes, whatever was acknowledged is there at the next start, whole, and nothing half."""

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.commands.program import (
    Program,
    asked,
    client_of,
    neo4j_is_gone,
    openai_variables,
    running,
    small_neo4j,
)
from tests.openai_server import OpenAIServer

WRITES = 200
CREATE = """
mutation($input: CreateMemoryInput!) { createMemory(input: $input) { memory { id content } errors { message } } }
"""
MEMORY = "id content topics(first: 9) { nodes { name } } entities(first: 9) { nodes { name } }"
READ = f"query($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on Memory {{ {MEMORY} }} }} }}"
LIST = f"""
query($after: String) {{
  memories(first: 100, after: $after) {{ totalCount nodes {{ {MEMORY} }} pageInfo {{ hasNextPage endCursor }} }}
}}
"""
FIND = """
{search}: search(query: "{word}", mode: KEYWORD, filter: {{kinds: [MEMORY]}}) {{
  nodes {{ ... on Memory {{ content }} }}
}}
"""


@dataclass
class Round:
    """One round of writes: what was sent, and the ids of what was acknowledged, by place."""

    name: str
    acknowledged: dict[int, str] = field(default_factory=dict)

    def word(self, place: int) -> str:
        return f"mark{self.name}{place:03}"

    def content(self, place: int) -> str:
        return f"{self.word(place)} was noted on the quay"

    def draft(self, place: int) -> dict[str, Any]:
        return {
            "content": self.content(place),
            "topics": [{"name": f"topic {place % 7}"}, {"name": f"{self.name} {place}"}],
            "entities": [{"name": f"crane {place % 5}", "type": "TOOL"}],
            "clientMutationKey": f"{self.name}-{place}",
        }

    async def write(self, client: httpx.AsyncClient, place: int) -> None:
        """Sends one memory, and notes its acknowledgement."""
        body = {"query": CREATE, "variables": {"input": self.draft(place)}}
        answer = (await client.post("/graphql", json=body)).json()
        assert "errors" not in answer, answer
        self.acknowledged[place] = answer["data"]["createMemory"]["memory"]["id"]


async def interrupted(server: Program, client: httpx.AsyncClient, name: str, wanted: int) -> Round:
    """Writes WRITES memories at once, and kills the server when so many are acknowledged (0: when they are sent)."""
    writes = Round(name)

    async def write(place: int) -> None:
        # a server that dies under a write leaves it unacknowledged
        with suppress(httpx.TransportError):
            await writes.write(client, place)
        if len(writes.acknowledged) == wanted:
            server.send(signal.SIGKILL)

    tasks = [asyncio.create_task(write(place)) for place in range(WRITES)]
    if not wanted:
        await asyncio.sleep(0.05)
        server.send(signal.SIGKILL)
    await asyncio.gather(*tasks)
    assert await asyncio.to_thread(server.ended) == -signal.SIGKILL
    assert wanted <= len(writes.acknowledged) < WRITES
    return writes


async def listed(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    """Every memory there is, by its content."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = (await asked(client, LIST, after=after))["memories"]
        found += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]
    assert len({memory["content"] for memory in found}) == len(found) == page["totalCount"]
    return {memory["content"]: memory for memory in found}


async def assert_whole(client: httpx.AsyncClient, rounds: list[Round]) -> None:
    """What was acknowledged is there in every way of reading; what is there is whole."""
    memories = await listed(client)
    for writes in rounds:
        ids = list(writes.acknowledged.values())
        by_id = (await asked(client, READ, ids=ids))["nodes"] if ids else []
        assert [node["content"] for node in by_id] == [writes.content(place) for place in writes.acknowledged]
        for place in range(WRITES):
            memory = memories.get(writes.content(place))
            if memory is None:
                assert place not in writes.acknowledged
                continue
            topics = {topic["name"] for topic in memory["topics"]["nodes"]}
            assert topics == {f"topic {place % 7}", f"{writes.name} {place}"}
            assert [entity["name"] for entity in memory["entities"]["nodes"]] == [f"crane {place % 5}"]
        places = list(writes.acknowledged)
        for some in (places[start : start + 20] for start in range(0, len(places), 20)):
            searches = " ".join(FIND.format(search=f"s{place}", word=writes.word(place)) for place in some)
            found = await asked(client, f"{{ {searches} }}")
            assert {place: found[f"s{place}"]["nodes"] for place in some} == {
                place: [{"content": writes.content(place)}] for place in some
            }


async def test_a_kill_loses_nothing_that_was_acknowledged(
    tmp_path: Path, cache_dir: Path, openai_server: OpenAIServer
) -> None:
    data_dir = tmp_path / "store"
    arguments = ("serve", "--port", "0", "--data-dir", str(data_dir))
    variables = {**small_neo4j(tmp_path, cache_dir), **openai_variables(openai_server)}
    rounds: list[Round] = []
    # when: killed as soon as all is sent, at the first acknowledgement, and in the middle of them
    for wanted in (0, 1, 80):
        with running(tmp_path, *arguments, **variables) as server:
            async with client_of(server.ready()) as client:
                await assert_whole(client, rounds)
                rounds.append(await interrupted(server, client, f"r{wanted}", wanted))
        if wanted == 0:
            # then: Neo4j ends by itself; the other times the next start meets it still ending
            assert await asyncio.to_thread(neo4j_is_gone, data_dir)
    with running(tmp_path, *arguments, **variables) as server:
        async with client_of(server.ready()) as client:
            await assert_whole(client, rounds)

            # and: all sent again under their keys, each is there once, and those acknowledged are the same
            for writes in rounds:
                before = dict(writes.acknowledged)
                await asyncio.gather(*(writes.write(client, place) for place in range(WRITES)))
                assert len(writes.acknowledged) == WRITES
                assert before.items() <= writes.acknowledged.items()
            assert len(await listed(client)) == WRITES * len(rounds)
            await assert_whole(client, rounds)
        server.send(signal.SIGTERM)
        assert await asyncio.to_thread(server.ended) == 0
        assert "Traceback" not in server.said
