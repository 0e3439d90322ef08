"""Vectors of what is written: at once where the embedder is in time, otherwise afterwards, never of an old text."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from tests.conftest import DIMENSIONS, Api, caller
from tests.openai_server import Call, Fault, OpenAIServer, bag_of_words, cut, garbage, slow
from tests.stored import counted

from reverie.resources import Resources, open_resources
from reverie.services.embedding import embed_all, embed_waiting
from reverie.settings import Settings

PATIENCE = 2.0
READ = "query($id: ID!) { memory(id: $id) { content embedding similar { score } } }"
LISTED = "{ memories { nodes { id } } }"
SEARCH = """
query($words: String!, $mode: SearchMode!) { search(query: $words, mode: $mode) { nodes { ... on Memory { id } } } }
"""
TOPIC = "query($name: String!) { topic(name: $name) { id embedding } }"
DOWN = Fault(status=503, headers={"x-should-retry": "false"}, body={"error": {"message": "no"}})
REFUSED = Fault(status=400, body={"error": {"message": "this text is refused", "code": "invalid_prompt"}})


@pytest_asyncio.fixture(scope="module")
async def impatient(settings: Settings, resources: Resources) -> AsyncIterator[Resources]:
    """Resources whose writes wait two seconds for their vectors, with nothing left to embed by earlier tests."""
    async with open_resources(replace(settings, embedding_timeout=PATIENCE)) as opened:
        await embed_all(opened)
        yield opened


@pytest_asyncio.fixture
async def api(impatient: Resources, tenant: str) -> AsyncIterator[Api]:
    async with caller(impatient, tenant) as client:
        yield Api(client, tenant)


@pytest.fixture
def provider(openai_server: OpenAIServer) -> Iterator[OpenAIServer]:
    """The provider of the vectors, in good health again afterwards."""
    healthy = openai_server.fault_for
    yield openai_server
    openai_server.fault_for = healthy
    openai_server.faults.clear()


def whenever(fault: Fault, text: str = "") -> Callable[[Call], Fault | None]:
    """The fault for every request that asks for a text with this in it."""
    return lambda call: fault if any(text in given for given in call.inputs) else None


def vector(text: str) -> Any:
    """What the provider makes of a text."""
    return pytest.approx(bag_of_words(text, DIMENSIONS), abs=1e-6)


async def create(api: Api, content: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "createMemory", "CreateMemoryInput", "memory { id embedding }", {"content": content, **given}
    )
    assert payload["errors"] == []
    memory: dict[str, Any] = payload["memory"]
    return memory


async def update(api: Api, memory_id: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "updateMemory", "UpdateMemoryInput", "memory { id embedding }", {"id": memory_id, **given}
    )
    assert payload["errors"] == []
    memory: dict[str, Any] = payload["memory"]
    return memory


async def embedding(api: Api, memory_id: str) -> Any:
    return (await api(READ, id=memory_id))["memory"]["embedding"]


async def found(api: Api, words: str, mode: str) -> list[str]:
    return [node["id"] for node in (await api(SEARCH, words=words, mode=mode))["search"]["nodes"]]


async def waiting(api: Api, resources: Resources) -> int:
    """How many of the tenant's nodes wait for their vector."""
    return (await counted(resources.graph, api.tenant))["Unembedded"]


async def test_the_vector_is_there_at_once(api: Api, impatient: Resources) -> None:
    first = await create(api, f"{api.tenant} deployed")
    batch = await api.mutate(
        "createMemories",
        "CreateMemoriesInput",
        "memories { embedding }",
        {"memories": [{"content": f"{api.tenant} {number}"} for number in range(100)]},
    )
    topic = await api.mutate("createTopic", "CreateTopicInput", "topic { embedding }", {"name": f"topic {api.tenant}"})

    assert first["embedding"] == vector(f"{api.tenant} deployed")
    assert [memory["embedding"] for memory in batch["memories"]] == [
        vector(f"{api.tenant} {number}") for number in range(100)
    ]
    assert topic["topic"]["embedding"] == vector(f"topic {api.tenant}")
    assert await waiting(api, impatient) == 0


@pytest.mark.parametrize("fault", [DOWN, slow(30), cut(), garbage()], ids=["down", "slow", "cut", "garbage"])
async def test_a_provider_in_trouble_refuses_no_memory(
    fault: Fault, api: Api, provider: OpenAIServer, impatient: Resources
) -> None:
    provider.fault_for = whenever(fault)
    content = f"{api.tenant} says ECONNREFUSED"
    began = time.monotonic()

    memory = await create(api, content)

    assert time.monotonic() - began < 10, "the write waits for its vector no longer than it may"
    assert memory["embedding"] is None
    assert await api(READ, id=memory["id"]) == {"memory": {"content": content, "embedding": None, "similar": None}}
    assert await api(LISTED) == {"memories": {"nodes": [{"id": memory["id"]}]}}
    assert await found(api, "econnrefused", "KEYWORD") == [memory["id"]]
    assert await found(api, "econnrefused", "HYBRID") == [memory["id"]]

    provider.fault_for = lambda _: None
    await embed_all(impatient)

    assert await embedding(api, memory["id"]) == vector(content)
    assert await found(api, content, "SEMANTIC") == [memory["id"]]
    assert await waiting(api, impatient) == 0


async def test_without_an_embedder_memories_are_found_by_word(settings: Settings, tenant: str) -> None:
    async with (
        open_resources(replace(settings, embedder="none")) as resources,
        caller(resources, tenant) as client,
    ):
        api = Api(client, tenant)
        memory = await create(api, "says ECONNREFUSED")

        assert memory["embedding"] is None
        assert await found(api, "econnrefused", "HYBRID") == [memory["id"]]


async def test_a_text_that_is_refused_holds_up_no_other(api: Api, provider: OpenAIServer, impatient: Resources) -> None:
    provider.fault_for = whenever(REFUSED, "poison")
    contents = [f"{api.tenant} poison" if number == 17 else f"{api.tenant} {number}" for number in range(40)]

    batch = await api.mutate(
        "createMemories",
        "CreateMemoriesInput",
        "memories { id embedding }",
        {"memories": [{"content": content} for content in contents]},
    )

    assert [memory["embedding"] for memory in batch["memories"]] == [
        None if "poison" in content else vector(content) for content in contents
    ]
    # what comes later and has to wait isn't hindered by it either
    provider.faults.append(DOWN)
    later = await create(api, f"{api.tenant} later")
    assert later["embedding"] is None
    await embed_all(impatient)
    assert await embedding(api, later["id"]) == vector(f"{api.tenant} later")
    assert await waiting(api, impatient) == 1

    cured = await update(api, batch["memories"][17]["id"], content=f"{api.tenant} cured")

    assert cured["embedding"] == vector(f"{api.tenant} cured")
    assert await waiting(api, impatient) == 0


async def test_a_new_content_gets_a_new_vector(api: Api) -> None:
    memory = await create(api, f"{api.tenant} before")

    after = await update(api, memory["id"], content=f"{api.tenant} after")

    assert after["embedding"] == vector(f"{api.tenant} after")
    assert await embedding(api, memory["id"]) == after["embedding"]


async def test_other_changes_keep_the_vector_and_ask_for_none(api: Api, provider: OpenAIServer) -> None:
    memory = await create(api, f"{api.tenant} before")
    asked = len(provider.calls)

    after = await update(api, memory["id"], importance=1, metadata={"a": 1})

    assert after == memory
    assert len(provider.calls) == asked


async def test_a_changed_content_never_keeps_the_old_vector(
    api: Api, provider: OpenAIServer, impatient: Resources
) -> None:
    memory = await create(api, f"{api.tenant} before")
    provider.fault_for = whenever(DOWN)

    after = await update(api, memory["id"], content=f"{api.tenant} after")

    assert after["embedding"] is None
    assert (await found(api, "before", "KEYWORD"), await found(api, "after", "KEYWORD")) == ([], [memory["id"]])
    await embed_all(impatient)
    assert await embedding(api, memory["id"]) is None

    provider.fault_for = lambda _: None
    await embed_all(impatient)
    assert await embedding(api, memory["id"]) == vector(f"{api.tenant} after")


@pytest.mark.parametrize("in_time", [True, False], ids=["new-vector-in-time", "new-vector-late"])
async def test_a_vector_of_a_text_that_has_changed_meanwhile_is_dropped(
    in_time: bool, api: Api, provider: OpenAIServer, impatient: Resources
) -> None:
    # given: an old text whose vector is on its way
    provider.faults.append(DOWN)
    memory = await create(api, f"{api.tenant} old text")
    provider.fault_for = whenever(slow(1.0), "old text")
    asked = len(provider.calls)
    embedding_old = asyncio.create_task(embed_all(impatient))
    await provider.until_called(asked + 1)

    # when: the text changes before it arrives
    if not in_time:
        provider.fault_for = whenever(DOWN)
    after = await update(api, memory["id"], content=f"{api.tenant} new")
    await embedding_old

    # then
    expected = vector(f"{api.tenant} new")
    assert after["embedding"] == (expected if in_time else None)
    assert await embedding(api, memory["id"]) == after["embedding"]
    provider.fault_for = lambda _: None
    await embed_all(impatient)
    assert await embedding(api, memory["id"]) == expected


async def test_what_is_deleted_while_its_vector_is_on_its_way_stays_deleted(
    api: Api, provider: OpenAIServer, impatient: Resources
) -> None:
    provider.faults.append(DOWN)
    memory = await create(api, f"{api.tenant} short-lived")
    provider.fault_for = whenever(slow(0.3))
    asked = len(provider.calls)
    running = asyncio.create_task(embed_all(impatient))
    await provider.until_called(asked + 1)

    await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory["id"]})
    await running

    assert await api(READ, id=memory["id"]) == {"memory": None}
    assert await counted(impatient.graph, api.tenant) == {}


async def test_topics_get_their_vectors_too(api: Api, provider: OpenAIServer, impatient: Resources) -> None:
    name = f"topic of {api.tenant}"
    await create(api, f"{api.tenant} names it", topics=[{"name": name}])
    made = (await api(TOPIC, name=name))["topic"]
    assert made["embedding"] is None
    await embed_all(impatient)
    assert (await api(TOPIC, name=name))["topic"]["embedding"] == vector(name)

    renamed = await api.mutate(
        "updateTopic", "UpdateTopicInput", "topic { embedding }", {"id": made["id"], "name": f"renamed {name}"}
    )
    assert renamed["topic"]["embedding"] == vector(f"renamed {name}")

    provider.faults.append(DOWN)
    late = await api.mutate(
        "updateTopic", "UpdateTopicInput", "topic { embedding }", {"id": made["id"], "name": f"late {name}"}
    )
    assert late["topic"]["embedding"] is None
    await embed_all(impatient)
    assert (await api(TOPIC, name=f"late {name}"))["topic"]["embedding"] == vector(f"late {name}")


async def test_the_loop_embeds_what_was_written_without_a_vector(
    api: Api, provider: OpenAIServer, impatient: Resources
) -> None:
    loop = asyncio.create_task(embed_waiting(impatient))
    try:
        provider.faults.append(DOWN)
        memory = await create(api, f"{api.tenant} rings")
        assert memory["embedding"] is None

        async with asyncio.timeout(30):
            while await embedding(api, memory["id"]) is None:  # noqa: ASYNC110 - only the store tells
                await asyncio.sleep(0.05)

        assert await embedding(api, memory["id"]) == vector(f"{api.tenant} rings")
    finally:
        loop.cancel()
        await asyncio.wait([loop])
