"""Memories read in the background: failures, changes meanwhile, likeness, and what is swept when its time is over."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Any

import pytest
import pytest_asyncio
from tests.conftest import LEAVE_ALONE, Api
from tests.openai_server import CHAT, Fault, OpenAIServer, failing, rate_limited, refusing, slow
from tests.stored import counted

from reverie.ai.openai_extractor import OpenAIExtractor, OpenAIExtractorOptions
from reverie.domain.clock import now_ms
from reverie.domain.ids import new_id
from reverie.graph.enrichment import sweep_orphans
from reverie.resources import Resources
from reverie.services.enrichment import enrich_some, erase_expired

ROUNDS = 20
READ = """
query($id: ID!) { memory(id: $id) { enrichment facts { nodes { subject object } } topics { totalCount }
  entities { nodes { name } } related { edges { relation weight node { id } } } } }
"""
EXPIRE = "MATCH (m:Memory&Node {id: $id}) SET m.expiresAt = $at"


@dataclass
class Reader:
    """What reads memories, and the model that it asks, with what goes wrong with its next answers."""

    resources: Resources
    server: OpenAIServer
    faults: deque[Fault]

    async def read(self) -> int:
        return await enrich_some(self.resources)

    async def until_asked(self) -> None:
        async with asyncio.timeout(30):
            while not any(call.path == CHAT for call in self.server.calls):  # noqa: ASYNC110 - another thread
                await asyncio.sleep(0.01)


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest_asyncio.fixture
async def reader(resources: Resources, model: OpenAIServer) -> AsyncIterator[Reader]:
    await resources.graph.execute(LEAVE_ALONE)
    faults = deque[Fault]()
    model.fault_for = lambda call: faults.popleft() if call.path == CHAT and faults else None
    options = OpenAIExtractorOptions(api_key=model.api_key, base_url=model.base_url, max_attempts=1)
    extractor = OpenAIExtractor(options)
    dreaming = replace(resources.dreaming, first_pause=200, attempts=2)
    yield Reader(replace(resources, extractor=extractor, dreaming=dreaming), model, faults)
    await extractor.close()
    await resources.graph.execute(LEAVE_ALONE)


async def create(api: Api, content: str, **given: Any) -> str:
    payload = await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", {"content": content, **given})
    assert payload["errors"] == []
    return str(payload["memory"]["id"])


async def memory(api: Api, memory_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api(READ, id=memory_id))["memory"]
    return found


@pytest.mark.parametrize("fault", [failing(500), refusing()], ids=["500", "refusal"])
async def test_a_failure_is_tried_again_and_after_its_attempts_it_has_failed(
    fault: Fault, api: Api, reader: Reader
) -> None:
    reader.server.fault_for = lambda call: fault if call.path == CHAT and "Harbor" in call.said else None
    memory_id = await create(api, "Harbor depends on Redis")

    assert await reader.read() == 1
    assert (await memory(api, memory_id))["enrichment"] == "PENDING"
    # and: it holds up no other
    other = await create(api, "Pilot depends on Neo4j")
    await reader.read()
    assert (await memory(api, other))["enrichment"] == "DONE"
    # and: after its rest it is read for the last time
    await asyncio.sleep(0.25)
    await reader.read()
    assert sum("Harbor" in call.said for call in reader.server.calls) == 2
    found = await memory(api, memory_id)
    assert found["enrichment"] == "FAILED"
    assert (found["facts"]["nodes"], found["topics"]["totalCount"], found["entities"]["nodes"]) == ([], 0, [])
    await asyncio.sleep(0.5)
    assert await reader.read() == 0


async def test_the_provider_is_left_alone_for_as_long_as_it_asks(api: Api, reader: Reader) -> None:
    reader.faults.append(rate_limited(retry_after="2"))
    memory_id = await create(api, "Harbor depends on Redis")

    assert await reader.read() == 1
    await asyncio.sleep(0.5)
    assert await reader.read() == 0
    await asyncio.sleep(2.5)
    assert await reader.read() == 1

    found = await memory(api, memory_id)
    assert (found["enrichment"], found["facts"]["nodes"]) == ("DONE", [{"subject": "Harbor", "object": "Redis"}])


async def test_what_changed_while_it_was_read_is_read_again(api: Api, reader: Reader) -> None:
    memory_id = await create(api, "Harbor depends on Redis")
    reader.faults.append(slow(1.0))
    reading = asyncio.create_task(reader.read())
    await reader.until_asked()
    assert (await memory(api, memory_id))["enrichment"] == "PROCESSING"
    change = {"id": memory_id, "content": "Harbor depends on Neo4j"}
    await api.mutate("updateMemory", "UpdateMemoryInput", "memory { id }", change)

    assert await reading == 1

    found = await memory(api, memory_id)
    assert (found["enrichment"], found["facts"]["nodes"], found["entities"]["nodes"]) == ("PENDING", [], [])
    assert await reader.read() == 1
    found = await memory(api, memory_id)
    assert (found["enrichment"], found["facts"]["nodes"]) == ("DONE", [{"subject": "Harbor", "object": "Neo4j"}])
    assert {node["name"] for node in found["entities"]["nodes"]} == {"Harbor", "Neo4j"}


@pytest.mark.parametrize("first", ["DONE", "FAILED"])
async def test_a_new_content_is_read_anew(first: str, api: Api, reader: Reader) -> None:
    memory_id = await create(api, "Harbor depends on Redis")
    reader.faults.extend([failing(500)] * 2 if first == "FAILED" else [])
    while (await memory(api, memory_id))["enrichment"] == "PENDING":
        await reader.read()
        await asyncio.sleep(0.25)
    assert (await memory(api, memory_id))["enrichment"] == first

    change = {"id": memory_id, "content": "Harbor depends on Neo4j"}
    await api.mutate("updateMemory", "UpdateMemoryInput", "memory { id }", change)

    assert (await memory(api, memory_id))["enrichment"] == "PENDING"
    assert await reader.read() == 1
    found = await memory(api, memory_id)
    assert found["enrichment"] == "DONE"
    assert {"subject": "Harbor", "object": "Neo4j"} in found["facts"]["nodes"]


async def test_what_nobody_was_to_read_stays_unread_with_a_new_content(api: Api, reader: Reader) -> None:
    memory_id = await create(api, "Harbor depends on Redis", enrich=False)

    change = {"id": memory_id, "content": "Harbor depends on Neo4j"}
    await api.mutate("updateMemory", "UpdateMemoryInput", "memory { id }", change)

    assert (await memory(api, memory_id))["enrichment"] == "DONE"
    assert await reader.read() == 0


async def test_what_was_deleted_while_it_was_read_stays_deleted(api: Api, reader: Reader) -> None:
    memory_id = await create(api, "Harbor depends on Redis")
    reader.faults.append(slow(1.0))
    reading = asyncio.create_task(reader.read())
    await reader.until_asked()
    await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory_id})

    assert await reading == 1

    assert await counted(reader.resources.graph, api.tenant) == {}


async def test_a_reader_that_is_stopped_gives_back_what_it_has_in_hand(api: Api, reader: Reader) -> None:
    ids = [await create(api, f"Harbor depends on Redis{number}") for number in range(3)]
    reader.faults.append(slow(60))
    reading = asyncio.create_task(reader.read())
    await reader.until_asked()

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert [(await memory(api, one))["enrichment"] for one in ids] == ["PENDING"] * 3
    assert await reader.read() == 3
    assert [(await memory(api, one))["enrichment"] for one in ids] == ["DONE"] * 3


async def test_what_is_being_read_is_nobody_elses_however_long_that_takes(api: Api, reader: Reader) -> None:
    reader.resources.dreaming = replace(reader.resources.dreaming, lease=2_000)
    for number in range(3):
        await create(api, f"Harbor depends on Redis{number}")
    reader.faults.extend([slow(1.2)] * 3)
    reading = asyncio.create_task(reader.read())
    await reader.until_asked()

    taken = 0
    while not reading.done():
        taken += await enrich_some(reader.resources)
        await asyncio.sleep(0.1)

    assert (await reading, taken) == (3, 0)
    assert sum(call.path == CHAT for call in reader.server.calls) == 3


async def test_what_is_alike_is_related_once(api: Api, reader: Reader) -> None:
    first = await create(api, "the deploy of harbor failed again on friday because redis was full")
    second = await create(api, "the deploy of harbor failed again on monday because redis was full")
    other = await create(api, "a quiet walk along the river with the dog")

    # when: several read at once
    await asyncio.gather(*(enrich_some(replace(reader.resources)) for _ in range(3)))
    while await reader.read():
        pass

    found = {one: (await memory(api, one))["related"]["edges"] for one in (first, second, other)}
    (edge,) = found[first]
    assert (edge["relation"], edge["node"]["id"]) == ("similar", second)
    assert 0.8 <= edge["weight"] < 1
    assert [one["node"]["id"] for one in found[second]] == [first]
    assert found[other] == []


async def test_what_is_over_is_erased_with_the_facts_that_only_it_told(api: Api, reader: Reader) -> None:
    fact = {"subject": "Harbor", "predicate": "uses", "object": "Redis"}
    ids = [await create(api, f"memory {number}", facts=[fact], enrich=False) for number in range(3)]
    for memory_id in ids[:2]:
        await reader.resources.graph.execute(EXPIRE, id=memory_id, at=now_ms() - 1)

    while await erase_expired(reader.resources):
        pass

    counts = await counted(reader.resources.graph, api.tenant)
    assert (counts["Memory"], counts["Fact"], counts["EXTRACTED_FROM"]) == (1, 1, 1)
    assert (await memory(api, ids[2]))["facts"]["nodes"] == [{"subject": "Harbor", "object": "Redis"}]


async def test_orphans_are_swept_while_writers_use_them(api: Api, reader: Reader) -> None:
    graph, start = reader.resources.graph, new_id()
    over, found_some = asyncio.Event(), asyncio.Event()

    async def sweep() -> int:
        swept = 0
        for label in ("Topic", "Entity"):
            place = start
            while place:
                gone, place = await sweep_orphans(graph, label, place, now_ms() + 1_000, grace=0, limit=100)
                swept += gone
        return swept

    async def sweep_on() -> None:
        while not over.is_set():
            if await sweep():
                found_some.set()

    async def use(writer: int) -> None:
        for number in takewhile(lambda number: number < ROUNDS or not found_some.is_set(), count()):
            shared = number % 2
            memory_id = await create(
                api,
                f"{writer} {number}",
                topics=[{"name": f"topic {shared}"}],
                entities=[{"name": f"entity {shared}", "type": "TOOL"}],
                enrich=False,
            )
            found = await memory(api, memory_id)
            assert (found["topics"]["totalCount"], len(found["entities"]["nodes"])) == (1, 1)
            await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory_id})

    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        tasks.create_task(sweep_on())
        await asyncio.gather(*map(use, range(2)))
        over.set()
    # a last one, since the last deletes may have come after it
    await sweep()

    assert await counted(graph, api.tenant) == {}
    await create(api, "afterwards", topics=[{"name": "topic 0"}], enrich=False)
    assert (await counted(graph, api.tenant))["Topic"] == 1
