"""Real services for the whole session, and a tenant of its own for each test."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest
import pytest_asyncio
from neo4j import AsyncGraphDatabase
from starlette.applications import Starlette
from tests.crowd import Crowd, fill_crowd
from tests.openai_server import OpenAIServer
from tests.redis_server import RedisServer, redis_server

from reverie.local import LocalNeo4j, LocalNeo4jOptions, default_cache_dir, private_neo4j
from reverie.local.distribution import Distribution, fetch_neo4j
from reverie.resources import Resources, open_resources
from reverie.services.changes import make_follower
from reverie.settings import Settings
from reverie.web.app import create_app
from reverie.worker.loop import work

DIMENSIONS = 64

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell that starts this session in the background has it ignore Ctrl-C, and so would the programs it tests
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Where Neo4j's jars are kept between test sessions; they are there, so that programs under test fetch nothing."""
    given = os.environ.get("REVERIE_TEST_CACHE_DIR")
    folder = Path(given) if given else default_cache_dir()
    distribution = Distribution(LocalNeo4jOptions(data_dir=folder, cache_dir=folder).version, folder)
    fetch_neo4j(distribution, repository=None, notify=print, progress=False, cancelled=threading.Event())
    return folder


@pytest_asyncio.fixture(scope="session")
async def neo4j(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncIterator[LocalNeo4j]:
    """The session's own Neo4j, or the one that REVERIE_TEST_NEO4J_URI names (without a password, for quick turns)."""
    running_already = os.environ.get("REVERIE_TEST_NEO4J_URI")
    if running_already:
        yield LocalNeo4j(running_already, "neo4j", "none", Path(os.devnull), 0)
        return
    cache_dir = request.getfixturevalue("cache_dir")
    options = LocalNeo4jOptions(
        data_dir=tmp_path_factory.mktemp("neo4j"), cache_dir=cache_dir, heap="768m", page_cache="128m", quick=True
    )
    async with private_neo4j(options, notify=lambda _: None) as running:
        yield running


@pytest_asyncio.fixture(scope="session")
async def spare_neo4j(tmp_path_factory: pytest.TempPathFactory, cache_dir: Path) -> AsyncIterator[LocalNeo4j]:
    """A second Neo4j, for tests that are about a whole store: see `blank_neo4j`."""
    options = LocalNeo4jOptions(
        data_dir=tmp_path_factory.mktemp("spare"), cache_dir=cache_dir, heap="512m", page_cache="64m", quick=True
    )
    async with private_neo4j(options, notify=lambda _: None) as running:
        yield running


@pytest_asyncio.fixture
async def blank_neo4j(spare_neo4j: LocalNeo4j) -> LocalNeo4j:
    """A Neo4j of the test's own, in which there is nothing, neither data nor constraints nor indexes."""
    auth = (spare_neo4j.username, spare_neo4j.password)
    async with AsyncGraphDatabase.driver(spare_neo4j.uri, auth=auth) as driver:
        await driver.execute_query("MATCH (n) DETACH DELETE n")
        for kind in ("CONSTRAINT", "INDEX"):
            found = await driver.execute_query(f"SHOW {kind} YIELD name, type WHERE type <> 'LOOKUP' RETURN name")
            for record in found.records:
                await driver.execute_query(f"DROP {kind} {record['name']} IF EXISTS")
    return spare_neo4j


@pytest.fixture(scope="session")
def openai_server() -> Iterator[OpenAIServer]:
    """The paid model, as a real HTTP server."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The session's own Redis."""
    with redis_server(str(tmp_path_factory.mktemp("redis"))) as running:
        yield running


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of the test's own, to be killed."""
    with redis_server(str(tmp_path)) as running:
        yield running


@pytest.fixture(scope="session")
def settings(neo4j: LocalNeo4j, openai_server: OpenAIServer) -> Settings:
    """Settings for the session's services."""
    return Settings.read(
        {
            "NEO4J_URI": neo4j.uri,
            "NEO4J_USERNAME": neo4j.username,
            "NEO4J_PASSWORD": neo4j.password,
            "REVERIE_EMBEDDER": "openai",
            "REVERIE_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "REVERIE_EMBEDDING_TIMEOUT": "10",
            "REVERIE_EXTRACTOR": "rules",
            "OPENAI_API_KEY": openai_server.api_key,
            "OPENAI_BASE_URL": openai_server.base_url,
        }
    )


@pytest_asyncio.fixture(scope="session")
async def resources(settings: Settings) -> AsyncIterator[Resources]:
    """What a server of these settings holds open."""
    async with open_resources(settings) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session")
async def crowd(resources: Resources) -> Crowd:
    """A tenant of 20,000 memories, written when first asked for."""
    return await fill_crowd(resources)


LEAVE_ALONE = """
MATCH (e:Episode) WHERE e.consolidationStatus IN ['OPEN', 'PENDING', 'PROCESSING']
SET e.consolidationStatus = 'CONSOLIDATED'
WITH count(*) AS episodes
CALL () { MATCH (m:Memory) WHERE m.enrichment IN ['PENDING', 'PROCESSING'] SET m.enrichment = 'DONE' }
MATCH (d:Document) WHERE d.status = 'PENDING' SET d.status = 'FAILED', d.failure = 'left alone'
"""


@pytest_asyncio.fixture
async def worker(resources: Resources) -> AsyncIterator[None]:
    """A worker beside the test, which finds nothing of earlier tests to do."""
    await resources.graph.execute(LEAVE_ALONE)
    working = asyncio.create_task(work(resources))
    yield
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


@pytest.fixture
def tenant() -> str:
    """A tenant that nobody else has."""
    return f"tenant-{uuid4().hex[:12]}"


@dataclass
class Api:
    """A caller of the API with its own key, as one tenant."""

    client: httpx.AsyncClient
    tenant: str

    async def raw(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """The whole answer, whatever its status."""
        answer = await self.client.post("/graphql", json={"query": query, "variables": variables})
        found: dict[str, Any] = answer.json()
        return found

    async def __call__(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """The data of an answer that must have no errors."""
        found = await self.raw(query, **variables)
        assert "errors" not in found, found
        data: dict[str, Any] = found["data"]
        return data

    async def mutate(self, field: str, input_type: str, selection: str, input_: dict[str, Any]) -> dict[str, Any]:
        """The payload of one mutation, its errors among it."""
        data = await self(
            f"mutation($input: {input_type}!) {{ {field}(input: $input) {{ {selection} "
            "errors { code message path existingId } } }",
            input=input_,
        )
        payload: dict[str, Any] = data[field]
        return payload

    async def errors(self, query: str, /, **variables: Any) -> list[dict[str, Any]]:
        """The errors of an answer that must have some."""
        found = await self.raw(query, **variables)
        assert found.get("errors"), found
        errors: list[dict[str, Any]] = found["errors"]
        return errors


def app_of(resources: Resources, keys: dict[str, str]) -> Starlette:
    """The application over resources that are open already."""
    app = create_app(Settings.read({"REVERIE_API_KEYS": orjson.dumps(keys).decode()}))
    app.state.resources = resources
    app.state.follower = make_follower(resources)
    return app


@pytest_asyncio.fixture
async def api(resources: Resources, tenant: str) -> AsyncIterator[Api]:
    """The API as seen by the test's tenant."""
    async with caller(resources, tenant) as client:
        yield Api(client, tenant)


@pytest_asyncio.fixture
async def other_api(resources: Resources) -> AsyncIterator[Api]:
    """The API as seen by another tenant."""
    other = f"other-{uuid4().hex[:12]}"
    async with caller(resources, other) as client:
        yield Api(client, other)


def caller(resources: Resources, tenant: str) -> httpx.AsyncClient:
    """A client of the application that is one tenant."""
    key = uuid4().hex
    transport = httpx.ASGITransport(app=app_of(resources, {key: tenant}))
    return httpx.AsyncClient(
        transport=transport, base_url="http://reverie.test", headers={"authorization": f"Bearer {key}"}, timeout=60
    )
