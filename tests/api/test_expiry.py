"""A memory that expired is as deleted everywhere, with the facts of which it was the only source."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.conftest import Api, caller

from reverie.domain.ids import new_id
from reverie.resources import Resources

SELECTED = "memory { id conversation { id } topics { nodes { id } } entities { nodes { id } } facts { nodes { id } } }"
CREATE_COMMUNITY = """
MATCH (t:Topic {id: $topic}) CREATE (t)-[:BELONGS_TO]->(:Community:Node {id: $id, tenant: t.tenant, name: 'group',
  form: 'group', algorithm: 'LEIDEN', size: 1})
"""
EXPIRE = "MATCH (m:Memory {id: $id}) SET m.expiresAt = $at"


@dataclass
class World:
    """A memory that expired and one that lives, which share a topic, an entity, a conversation and a fact."""

    api: Api
    gone: str
    living: str
    conversation: str
    topic: str
    lonely_topic: str
    entity: str
    community: str
    gone_fact: str
    shared_fact: str
    free_fact: str


@pytest_asyncio.fixture(scope="module")
async def world(resources: Resources) -> AsyncIterator[World]:
    tenant = f"expiry-{uuid4().hex[:12]}"
    async with caller(resources, tenant) as client:
        api = Api(client, tenant)
        made = await api.mutate(
            "createConversation", "CreateConversationInput", "conversation { id }", {"title": "harbour talk"}
        )
        conversation = made["conversation"]["id"]
        shared = {
            "conversationId": conversation,
            "topics": [{"name": "harbour"}],
            "entities": [{"name": "Ann", "type": "PERSON"}],
        }
        fact = {"subject": "Ann", "predicate": "watches", "object": "zeppelins"}
        gone = (
            await api.mutate(
                "createMemory",
                "CreateMemoryInput",
                SELECTED,
                {
                    **shared,
                    "content": "the harbour crane fell on zeppelins",
                    "topics": [{"name": "harbour"}, {"name": "accidents"}],
                    "facts": [fact],
                },
            )
        )["memory"]
        living = (
            await api.mutate(
                "createMemory",
                "CreateMemoryInput",
                SELECTED,
                {**shared, "content": "the harbour crane was mended", "relatedTo": [gone["id"]]},
            )
        )["memory"]
        facts = []
        for sources in ([gone["id"], living["id"]], []):
            given = {"subject": "Ann", "predicate": "sees", "object": "zeppelins", "memoryIds": sources}
            facts.append((await api.mutate("createFact", "CreateFactInput", "fact { id }", given))["fact"]["id"])
        topic, lonely = living["topics"]["nodes"][0]["id"], gone["topics"]["nodes"][0]["id"]
        community = new_id()
        await resources.graph.execute(CREATE_COMMUNITY, topic=topic, id=community)
        await resources.graph.execute(EXPIRE, id=gone["id"], at=1)
        yield World(
            api,
            gone["id"],
            living["id"],
            conversation,
            topic,
            lonely,
            living["entities"]["nodes"][0]["id"],
            community,
            gone["facts"]["nodes"][0]["id"],
            *facts,
        )


async def ids(world: World, text: str) -> Any:
    """The one field of an answer, its nodes as their ids alone."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return value["id"] if value.keys() == {"id"} else {name: plain(member) for name, member in value.items()}
        return [plain(member) for member in value] if isinstance(value, list) else value

    (found,) = (await world.api(text)).values()
    return plain(found)


async def test_it_is_nowhere_by_its_id(world: World) -> None:
    found = await world.api(
        "query($id: ID!, $fact: ID!) {"
        " node(id: $id) { id } nodes(ids: [$id, $fact]) { id } memory(id: $id) { id } fact(id: $fact) { id }"
        "}",
        id=world.gone,
        fact=world.gone_fact,
    )

    assert found == {"node": None, "nodes": [None, None], "memory": None, "fact": None}


async def test_it_is_in_no_list_and_no_count(world: World) -> None:
    assert await ids(world, "{ memories { nodes { id } totalCount } }") == {"nodes": [world.living], "totalCount": 1}
    assert await ids(world, f'{{ memories(filter: {{topicIds: ["{world.lonely_topic}"]}}) {{ totalCount }} }}') == {
        "totalCount": 0
    }
    assert await ids(world, "{ facts { nodes { id } totalCount } }") == {
        "nodes": [world.free_fact, world.shared_fact],
        "totalCount": 2,
    }
    assert await ids(world, '{ facts(subject: "ann", predicate: "watches") { totalCount } }') == {"totalCount": 0}


@pytest.mark.parametrize("noun", ["topic", "entity", "conversation", "community"])
async def test_no_relation_leads_to_it(world: World, noun: str) -> None:
    found = await ids(
        world, f'{{ {noun}(id: "{getattr(world, noun)}") {{ memories {{ nodes {{ id }} totalCount }} }} }}'
    )

    assert found == {"memories": {"nodes": [world.living], "totalCount": 1}}


async def test_what_hangs_on_it_alone_is_gone_too(world: World) -> None:
    facts = await ids(world, f'{{ entity(id: "{world.entity}") {{ facts {{ nodes {{ id }} totalCount }} }} }}')
    topics = await ids(
        world, f'{{ conversation(id: "{world.conversation}") {{ topics {{ nodes {{ id }} totalCount }} }} }}'
    )
    lonely = await ids(world, f'{{ topic(id: "{world.lonely_topic}") {{ id memories {{ totalCount }} }} }}')

    assert facts == {"facts": {"nodes": [world.shared_fact, world.free_fact], "totalCount": 2}}
    assert topics == {"topics": {"nodes": [world.topic], "totalCount": 1}}
    assert lonely == {"id": world.lonely_topic, "memories": {"totalCount": 0}}


async def test_a_fact_with_another_source_stays_without_it(world: World) -> None:
    found = await ids(world, f'{{ fact(id: "{world.shared_fact}") {{ id memories {{ nodes {{ id }} totalCount }} }} }}')

    assert found == {"id": world.shared_fact, "memories": {"nodes": [world.living], "totalCount": 1}}


async def test_nothing_is_related_or_similar_to_it(world: World) -> None:
    found = await world.api(
        "query($id: ID!) { memory(id: $id) {"
        " related { nodes { id } totalCount } facts { nodes { id } totalCount } similar(first: 200) { memory { id } }"
        "} }",
        id=world.living,
    )

    assert found["memory"] == {
        "related": {"nodes": [], "totalCount": 0},
        "facts": {"nodes": [{"id": world.shared_fact}], "totalCount": 1},
        "similar": [],
    }


@pytest.mark.parametrize("mode", ["HYBRID", "SEMANTIC", "KEYWORD"])
async def test_no_search_finds_it(world: World, mode: str) -> None:
    text = """query($mode: SearchMode) {
      search(query: "crane zeppelins", mode: $mode, first: 200) { nodes { ... on Node { id } } }
    }"""
    found = {node["id"] for node in (await world.api(text, mode=mode))["search"]["nodes"]}

    assert world.living in found
    assert not found & {world.gone, world.gone_fact}
    assert (mode == "SEMANTIC") is not found.issuperset({world.shared_fact, world.free_fact})


async def test_it_counts_for_no_order(world: World) -> None:
    # "accidents" has one memory in the store, and "quiet" none at all: to a caller they are the same
    made = await world.api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "quiet"})
    order = sorted([world.lonely_topic, made["topic"]["id"]], reverse=True)

    found = await ids(world, "{ topics(orderBy: {field: MEMORIES, direction: DESC}) { nodes { id } } }")

    assert found == {"nodes": [world.topic, *order]}


@pytest.mark.parametrize(
    ("field", "input_type", "refs"),
    [
        ("updateMemory", "UpdateMemoryInput", {"id": "gone", "content": None}),
        ("deleteMemory", "DeleteMemoryInput", {"id": "gone"}),
        ("relateMemories", "RelateMemoriesInput", {"fromId": "living", "toId": "gone"}),
        ("unrelate", "UnrelateInput", {"fromId": "gone", "toId": "living"}),
        ("createFact", "CreateFactInput", {"memoryIds": "gone", "subject": None, "predicate": None, "object": None}),
        ("updateFact", "UpdateFactInput", {"id": "gone_fact", "subject": None}),
        ("deleteFact", "DeleteFactInput", {"id": "gone_fact"}),
    ],
)
async def test_no_mutation_finds_it(world: World, field: str, input_type: str, refs: dict[str, str | None]) -> None:
    given = {name: "text" if ref is None else getattr(world, ref) for name, ref in refs.items()}
    if "memoryIds" in given:
        given["memoryIds"] = [given["memoryIds"]]

    payload = await world.api.mutate(field, input_type, "", given)

    assert [error["code"] for error in payload["errors"]] == ["NOT_FOUND"]


async def test_it_goes_at_its_time(api: Api) -> None:
    at = datetime.now(UTC) + timedelta(seconds=1.5)
    given = {"content": "short-lived zeppelin", "expiresAt": at.isoformat()}
    memory = (await api.mutate("createMemory", "CreateMemoryInput", "memory { id expiresAt }", given))["memory"]
    text = """query($id: ID!) {
      memory(id: $id) { id } memories { totalCount } search(query: "zeppelin") { nodes { __typename } }
    }"""

    before = await api(text, id=memory["id"])
    seen_at = datetime.now(UTC)
    await asyncio.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds() + 0.01))
    after = await api(text, id=memory["id"])

    if seen_at < at:
        assert (before["memory"], before["memories"]["totalCount"]) == ({"id": memory["id"]}, 1)
        assert len(before["search"]["nodes"]) == 1
    assert after == {"memory": None, "memories": {"totalCount": 0}, "search": {"nodes": []}}


async def test_it_can_be_kept_after_all(api: Api) -> None:
    at = (datetime.now(UTC) + timedelta(seconds=60)).isoformat()
    given = {"content": "kept", "expiresAt": at}
    memory = (await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", given))["memory"]

    change = {"id": memory["id"], "expiresAt": None}
    kept = await api.mutate("updateMemory", "UpdateMemoryInput", "memory { expiresAt }", change)

    assert kept["memory"] == {"expiresAt": None}
