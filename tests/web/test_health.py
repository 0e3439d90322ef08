"""Health: alive as long as the process answers, ready as long as Neo4j does."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

import httpx
import pytest_asyncio
from tests.conftest import app_of

from reverie.local import LocalNeo4j
from reverie.resources import Resources, open_resources
from reverie.settings import Settings


@pytest_asyncio.fixture
async def resources(blank_neo4j: LocalNeo4j) -> AsyncIterator[Resources]:
    """What a server over a store of the test's own holds open."""
    environ = {"NEO4J_URI": blank_neo4j.uri, "NEO4J_PASSWORD": blank_neo4j.password, "REVERIE_EMBEDDER": "none"}
    async with open_resources(Settings.read(environ)) as opened:
        yield opened


@pytest_asyncio.fixture
async def client(resources: Resources) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app_of(resources, {"k": "t"}))
    async with httpx.AsyncClient(transport=transport, base_url="http://reverie.test", timeout=60) as opened:
        yield opened


async def test_it_is_ready_while_neo4j_answers(client: httpx.AsyncClient) -> None:
    answer = await client.get("/health/ready")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "neo4j": "2026.08.1", "search": "by word"}


async def test_a_neo4j_that_does_not_answer_makes_it_unready_until_it_does(
    client: httpx.AsyncClient, blank_neo4j: LocalNeo4j
) -> None:
    os.kill(blank_neo4j.pid, signal.SIGSTOP)
    try:
        # told to stop, it may answer once more until each of its threads has heard it
        await asyncio.sleep(1)
        asked = time.monotonic()
        answer = await client.get("/health/ready")
        assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
        assert time.monotonic() - asked < 30
        assert (await client.get("/health/live")).status_code == 200
    finally:
        os.kill(blank_neo4j.pid, signal.SIGCONT)

    answer = await client.get("/health/ready")
    for _ in range(60):
        if answer.status_code == 200:
            break
        answer = await client.get("/health/ready")
    assert answer.status_code == 200


async def test_a_store_that_was_taken_away_makes_it_unready(client: httpx.AsyncClient, resources: Resources) -> None:
    await resources.graph.execute("MATCH (s:Store) DETACH DELETE s")

    answer = await client.get("/health/ready")

    assert (answer.status_code, answer.json()) == (503, {"status": "unavailable", "neo4j": "is not set up"})


async def test_a_store_that_was_made_newer_meanwhile_makes_it_unready(
    client: httpx.AsyncClient, resources: Resources
) -> None:
    await resources.graph.execute("MATCH (s:Store) SET s.version = 99")

    assert (await client.get("/health/ready")).status_code == 503
