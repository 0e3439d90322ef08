"""Servers and Redis killed under their subscribers, who come back by their cursors: each change once and in order."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from tests.commands.program import LIMIT, Program, asked, openai_variables, running
from tests.commands.test_stores import unused_port
from tests.following import Member
from tests.openai_server import OpenAIServer
from tests.redis_server import RedisServer

from reverie.domain.changes import log_position
from reverie.local import LocalNeo4j

SUBSCRIBERS = int(os.environ.get("REVERIE_TEST_SUBSCRIBERS", "10"))
CHANGES = int(os.environ.get("REVERIE_TEST_CHANGES", "150"))
PATIENCE = LIMIT * max(1, SUBSCRIBERS * CHANGES / 100_000)
"""Seconds for anything to be told to all."""
KEY = "key-of-the-test"
WRITERS = 8
UPSERT = """
mutation($input: UpsertBeliefInput!) { upsertBelief(input: $input) { change { id } errors { code message } } }
"""
LOG = """
query($after: String) {
  beliefChanges(first: 200, after: $after) { nodes { id cursor } pageInfo { hasNextPage endCursor } }
}
"""


@dataclass
class Site:
    """Servers of one Neo4j, each a process at an address that it keeps."""

    folder: Path
    variables: dict[str, str]

    @contextmanager
    def server(self, port: int) -> Iterator[Program]:
        with running(self.folder, "serve", "--port", str(port), **self.variables) as program:
            program.ready()
            yield program


@pytest.fixture
def site(neo4j: LocalNeo4j, openai_server: OpenAIServer, tenant: str, tmp_path: Path) -> Site:
    variables = {
        "NEO4J_URI": neo4j.uri,
        "NEO4J_USERNAME": neo4j.username,
        "NEO4J_PASSWORD": neo4j.password,
        "REVERIE_API_KEYS": orjson.dumps({KEY: tenant}).decode(),
        "REVERIE_EXTRACTOR": "rules",
        "REVERIE_WORKER": "off",
        **openai_variables(openai_server),
    }
    return Site(tmp_path, variables)


def client_at(port: int) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {KEY}"}
    limits = httpx.Limits(max_connections=WRITERS)
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=LIMIT, limits=limits)


async def write(client: httpx.AsyncClient, place: int) -> None:
    """One change. Sent again under the same key when nobody answers, as a client does that can't know what was done."""
    given = {
        "subjectId": f"subject {place % 40}",
        "key": "likes",
        "value": f"value {place}",
        "clientMutationKey": f"write {place}",
    }
    body = {"query": UPSERT, "variables": {"input": given}}
    while True:
        try:
            answer = (await client.post("/graphql", json=body)).json()
        except httpx.TransportError:
            await asyncio.sleep(0.2)
            continue
        assert answer["data"]["upsertBelief"]["errors"] == [], answer
        return


async def write_all(client: httpx.AsyncClient, places: range) -> None:
    left = iter(places)

    async def some() -> None:
        for place in left:
            await write(client, place)

    await asyncio.gather(*(some() for _ in range(WRITERS)))


async def whole_log(client: httpx.AsyncClient) -> AsyncIterator[dict[str, Any]]:
    after, more = None, True
    while more:
        page = (await asked(client, LOG, after=after))["beliefChanges"]
        for node in page["nodes"]:
            yield node
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]


async def members_at(stack: AsyncExitStack, port: int) -> list[Member]:
    """Subscribers at a server, all of whom have had their first checkpoint."""
    members = [await stack.enter_async_context(Member(f"127.0.0.1:{port}", KEY)) for _ in range(SUBSCRIBERS)]
    for member in members:
        await member.knows(lambda one: one.after is not None, PATIENCE)
    return members


async def all_know_all(client: httpx.AsyncClient, members: list[Member]) -> None:
    """Each was told what is in the log, once and in order, and came back once at the least."""
    for member in members:
        await member.knows(lambda one: len(one.changes) >= CHANGES, PATIENCE)
    logged = [(node["id"], node["cursor"]) async for node in whole_log(client)]
    assert [log_position(cursor).number for _, cursor in logged] == list(range(1, CHANGES + 1))
    for member in members:
        assert [(change["id"], change["cursor"]) for change in member.changes] == logged
        assert member.gaps == 0
        assert member.connections >= 2


async def test_with_two_servers_and_redis_of_which_redis_and_one_server_are_killed(
    site: Site, own_redis: RedisServer
) -> None:
    site.variables["REDIS_URL"] = own_redis.url
    first, second = unused_port(), unused_port()
    third = CHANGES // 3
    async with AsyncExitStack() as stack:
        stack.enter_context(site.server(first))
        with site.server(second) as program:
            client = await stack.enter_async_context(client_at(first))
            members = await members_at(stack, second)
            await write_all(client, range(third // 2))

            writing = asyncio.create_task(write_all(client, range(third // 2, third)))
            await members[0].knows(lambda one: len(one.changes) > 0, PATIENCE)
            own_redis.kill()
            await writing
            await write_all(client, range(third, third + third // 2))
            for member in members:
                await member.knows(lambda one: len(one.changes) == third + third // 2, PATIENCE)
            own_redis.start()

            writing = asyncio.create_task(write_all(client, range(third + third // 2, 2 * third)))
            await members[0].knows(lambda one: len(one.changes) > third + third // 2, PATIENCE)
            program.process.kill()
            program.ended()
            await writing
        writing = asyncio.create_task(write_all(client, range(2 * third, CHANGES)))
        stack.enter_context(site.server(second))
        await writing
        await all_know_all(client, members)


async def test_with_one_server_alone_that_is_killed_while_it_is_written_through(site: Site) -> None:
    port = unused_port()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(client_at(port))
        with site.server(port) as program:
            members = await members_at(stack, port)
            writing = asyncio.create_task(write_all(client, range(CHANGES)))
            await members[0].knows(lambda one: len(one.changes) > CHANGES // 3, PATIENCE)
            program.process.kill()
            program.ended()
        assert not writing.done()
        stack.enter_context(site.server(port))
        await writing
        await all_know_all(client, members)
