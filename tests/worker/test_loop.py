"""The worker's loop: it outlives Neo4j's outages and its own failures, and leaves nothing behind when it stops."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from tests.conftest import LEAVE_ALONE, Api
from tests.openai_server import CHAT, OpenAIServer, slow
from tests.tcp_proxy import TcpProxy

from reverie.ai.openai_extractor import OpenAIExtractor, OpenAIExtractorOptions
from reverie.graph.dreaming import everything_owed
from reverie.resources import Resources, open_resources
from reverie.settings import Settings
from reverie.worker.loop import work

EPISODES = "{ episodes { nodes { consolidationStatus attempts failure beliefs { nodes { value evidenceCount } } } } }"
SPOIL = "MATCH (v:Event) WHERE v.tenant = $t AND v.id > '' SET v.eventType = 'NO SUCH TYPE'"
AGE = "MATCH (e:Episode) WHERE e.tenant = $t AND e.id > '' SET e.recordedAt = 0"
WORKERS = "MATCH (w:Worker) RETURN collect(w.id)"
DEAD = "CREATE (:Worker {id: $id, seenAt: 0})"


@dataclass
class Way:
    """A worker's resources over a way to Neo4j that can break, and the model that it asks."""

    resources: Resources
    proxy: TcpProxy
    neo4j: tuple[str, int]
    model: OpenAIServer

    def breaks(self) -> None:
        self.proxy.target = None
        self.proxy.cut()

    def returns(self) -> None:
        self.proxy.target = self.neo4j

    async def at_the_model(self, times: int = 1) -> None:
        """Until it has been asked that often."""
        async with asyncio.timeout(60):
            while sum(call.path == CHAT for call in self.model.calls) < times:  # noqa: ASYNC110 - another thread
                await asyncio.sleep(0.01)


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest_asyncio.fixture
async def way(settings: Settings, resources: Resources, model: OpenAIServer) -> AsyncIterator[Way]:
    await resources.graph.execute(LEAVE_ALONE)
    address = urlsplit(str(settings.neo4j_uri))
    neo4j = (str(address.hostname), int(address.port or 0))
    extractor = OpenAIExtractor(OpenAIExtractorOptions(api_key=model.api_key, base_url=model.base_url))
    async with TcpProxy() as proxy:
        proxy.target = neo4j
        behind = replace(settings, neo4j_uri=f"bolt://127.0.0.1:{proxy.port}", neo4j_timeout=10.0)
        async with open_resources(behind) as opened:
            dreaming = replace(opened.dreaming, lease=5_000)
            yield Way(replace(opened, extractor=extractor, dreaming=dreaming), proxy, neo4j, model)
            proxy.target = neo4j
    await extractor.close()


@asynccontextmanager
async def working(resources: Resources) -> "AsyncIterator[asyncio.Task[None]]":
    task = asyncio.create_task(work(resources))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def tell(api: Api, *threads: str) -> None:
    events = [
        {
            "eventType": "USER_MESSAGE",
            "content": "I prefer tabs for indentation",
            "threadId": thread,
            "userId": f"user of {thread}",
        }
        for thread in threads
    ]
    await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": events})
    for thread in threads:
        await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", {"threadId": thread})


async def learned(api: Api, worker: "asyncio.Task[None]") -> list[dict[str, Any]]:
    """The tenant's episodes, as soon as all of them are read; each must have left one piece of evidence."""
    async with asyncio.timeout(90):
        while True:
            assert not worker.done(), worker
            nodes: list[dict[str, Any]] = (await api(EPISODES))["episodes"]["nodes"]
            if all(node["consolidationStatus"] == "CONSOLIDATED" for node in nodes):
                break
            await asyncio.sleep(0.05)
    for node in nodes:
        assert node["failure"] is None
        assert node["beliefs"]["nodes"] == [{"value": "tabs", "evidenceCount": 1}]
    return nodes


async def test_an_outage_while_it_rests_is_outlived(api: Api, way: Way) -> None:
    async with working(way.resources) as worker:
        await tell(api, "before")
        await learned(api, worker)
        way.breaks()
        await asyncio.sleep(2.5)
        way.returns()
        await tell(api, "after")

        assert [node["attempts"] for node in await learned(api, worker)] == [1, 1]


async def test_an_outage_while_it_reads_leaves_the_episode_to_its_lease(api: Api, way: Way) -> None:
    way.model.faults.append(slow(1.0))
    async with working(way.resources) as worker:
        await tell(api, "thread")
        await way.at_the_model()
        way.breaks()
        await asyncio.sleep(2.0)
        way.returns()

        (node,) = await learned(api, worker)

        assert node["attempts"] == 2


async def test_what_fails_does_not_end_the_rest(api: Api, other_api: Api, way: Way, resources: Resources) -> None:
    # given: an idle episode that can't be closed, since what it says is broken
    event = {"eventType": "USER_MESSAGE", "content": "broken", "threadId": "broken", "userId": "robin"}
    await other_api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": [event]})
    await resources.graph.execute(SPOIL, t=other_api.tenant)
    await resources.graph.execute(AGE, t=other_api.tenant)

    async with working(way.resources) as worker:
        await asyncio.sleep(0.5)
        await tell(api, "whole")
        created = await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", {"content": "Harbor deploys"})

        await learned(api, worker)
        query = "query($id: ID!) { memory(id: $id) { enrichment } }"
        async with asyncio.timeout(60):
            while (await api(query, id=created["memory"]["id"]))["memory"]["enrichment"] != "DONE":  # noqa: ASYNC110 - only this tells
                await asyncio.sleep(0.05)

        assert not worker.done()
    await resources.graph.execute(LEAVE_ALONE)


async def test_workers_that_died_long_ago_are_forgotten(way: Way, resources: Resources, tenant: str) -> None:
    await resources.graph.execute(DEAD, id=tenant)

    async with working(way.resources), asyncio.timeout(60):
        while tenant in await resources.graph.read(WORKERS):  # noqa: ASYNC110 - only the store tells
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("neo4j_is", ["there", "away", "silent"])
async def test_stopping_it_leaves_no_task_and_no_episode_in_hand(
    neo4j_is: str, api: Api, way: Way, resources: Resources
) -> None:
    way.model.fault_for = lambda call: slow(60) if call.path == CHAT else None
    others = await resources.graph.read(WORKERS)
    before = asyncio.all_tasks()
    worker = asyncio.create_task(work(way.resources))
    await tell(api, "first", "second", "third")
    await way.at_the_model(3)
    if neo4j_is == "away":
        way.breaks()
    if neo4j_is == "silent":
        way.proxy.hold()

    began = time.monotonic()
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker

    # five seconds for what it had in hand, and five to take its leave
    assert time.monotonic() - began < 20
    # the proxy's own, and what ends generators that were collected meanwhile, are nobody's work
    others_work = ("TcpProxy", "async_generator_athrow")
    left = {task for task in asyncio.all_tasks() - before if not any(name in repr(task) for name in others_work)}
    assert left == set()
    way.proxy.release()
    pending, failed = await everything_owed(resources.graph)
    assert (pending, failed) == (3, failed)
    if neo4j_is == "there":
        nodes = (await api(EPISODES))["episodes"]["nodes"]
        assert {node["consolidationStatus"] for node in nodes} == {"PENDING"}
        assert set(await resources.graph.read(WORKERS)) <= set(others)
    way.returns()
    await resources.graph.execute(LEAVE_ALONE)
