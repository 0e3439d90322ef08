"""The map over the API: what it shows around what, and that what it shows hangs together."""

import asyncio
import random
from itertools import count, takewhile
from typing import Any

import pytest
from tests.conftest import Api
from tests.recording import message, record

from reverie.domain.clock import now_ms
from reverie.domain.ids import new_id
from reverie.domain.maps import GraphKind, MapQuery
from reverie.graph.communities import weigh
from reverie.graph.maps import read_map
from reverie.resources import Resources

MAP = """
query($input: GraphInput) { graph(input: $input) { truncated
  nodes { key kind label weight node { __typename id } } edges { key source target relation weight } } }
"""
DOCUMENT = """
MATCH (e:Entity&Node {id: $entity})
CREATE (d:Document:Node {id: $document, tenant: e.tenant, title: 'The handbook', createdAt: 1})
CREATE (c:Chunk:Node {id: $chunk, tenant: e.tenant, text: 'How the crane is mended', position: 0})
CREATE (c)-[:PART_OF]->(d) CREATE (c)-[:MENTIONS]->(e)
"""
LEARN = """
MATCH (b:Belief&Node {id: $belief}) MATCH (v:Event) WHERE v.tenant = $t AND v.occurredAt > 0 AND v.id > ''
WITH b, v LIMIT 1
CREATE (:Evidence {id: $evidence, tenant: $t})-[:QUOTES]->(v)
WITH b MATCH (s:Evidence {id: $evidence}) CREATE (s)-[:SUPPORTS]->(b)
"""
Shape = set[tuple[str, str, str]]


async def drawn(api: Api, **given: Any) -> dict[str, Any]:
    """A map, every edge of which leads from a node to a node of it."""
    found: dict[str, Any] = (await api(MAP, input=given))["graph"]
    keys = [node["key"] for node in found["nodes"]]
    assert len(set(keys)) == len(keys) <= given.get("limit", 500)
    assert {end for edge in found["edges"] for end in (edge["source"], edge["target"])} <= set(keys)
    assert len({edge["key"] for edge in found["edges"]}) == len(found["edges"])
    return found


def labels(found: dict[str, Any]) -> set[str]:
    return {node["label"] for node in found["nodes"]}


def shape(found: dict[str, Any]) -> Shape:
    """The edges, by the labels of their ends."""
    by_key = {node["key"]: node["label"] for node in found["nodes"]}
    return {(by_key[edge["source"]], edge["relation"], by_key[edge["target"]]) for edge in found["edges"]}


async def written(api: Api, content: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "createMemory",
        "CreateMemoryInput",
        "memory { id topics { nodes { id name } } entities { nodes { id } } facts { nodes { id } } }",
        {"content": content, "enrich": False, **given},
    )
    assert payload["errors"] == []
    memory: dict[str, Any] = payload["memory"]
    return memory


async def harbour(api: Api) -> dict[str, str]:
    """A memory with all that a memory has, and another that shares its topic; ids by name."""
    made = await api.mutate("createConversation", "CreateConversationInput", "conversation { id }", {"title": "talk"})
    conversation = made["conversation"]["id"]
    crane = await written(
        api,
        "the crane was painted",
        conversationId=conversation,
        topics=[{"name": "cranes"}],
        entities=[{"name": "Crane 4", "type": "TOOL"}],
        facts=[{"subject": "Crane 4", "predicate": "is", "object": "red"}],
    )
    other = await written(api, "a crane fell", topics=[{"name": "cranes"}], relatedTo=[crane["id"]])
    return {
        "conversation": conversation,
        "memory": crane["id"],
        "other": other["id"],
        "topic": crane["topics"]["nodes"][0]["id"],
        "entity": crane["entities"]["nodes"][0]["id"],
        "fact": crane["facts"]["nodes"][0]["id"],
    }


async def learned(api: Api, resources: Resources) -> dict[str, str]:
    """An episode and two beliefs of one key, the second of which rests on an event of the episode too."""
    await record(api, message("I like tea", "chat", userId="sam"))
    beliefs = []
    for value in ("coffee", "tea"):
        given = {"subjectId": "sam", "key": "likes.drink", "value": value}
        beliefs.append((await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", given))["belief"]["id"])
    episode = (await api("{ episodes { nodes { id } } }"))["episodes"]["nodes"][0]["id"]
    await resources.graph.execute(LEARN, t=api.tenant, belief=beliefs[1], evidence=new_id())
    return {"old": beliefs[0], "new": beliefs[1], "episode": episode}


async def test_a_step_shows_what_a_memory_leads_to_and_what_leads_to_it(api: Api) -> None:
    ids = await harbour(api)

    found = await drawn(api, centerKeys=[ids["memory"]])

    assert shape(found) == {
        ("the crane was painted", "BELONGS_TO", "talk"),
        ("the crane was painted", "HAS_TOPIC", "cranes"),
        ("a crane fell", "HAS_TOPIC", "cranes"),
        ("a crane fell", "RELATED_TO", "the crane was painted"),
        ("the crane was painted", "MENTIONS", "Crane 4"),
        ("Crane 4 is red", "EXTRACTED_FROM", "the crane was painted"),
        ("Crane 4 is red", "ABOUT", "Crane 4"),
        ("Crane 4 is red", "HAS_SUBJECT", "Crane 4"),
    }
    assert not found["truncated"]
    first = found["nodes"][0]
    assert (first["key"], first["kind"]) == (ids["memory"], "MEMORY")
    assert first["node"] == {"__typename": "Memory", "id": ids["memory"]}
    # a conversation, a topic, an entity, a fact and another memory
    assert first["weight"] == 5.0
    weights = {edge["relation"]: edge["weight"] for edge in found["edges"]}
    assert (weights["RELATED_TO"], weights["HAS_TOPIC"]) == (1.0, 1.0)


@pytest.mark.parametrize("depth", range(5))
async def test_a_map_is_one_statement_and_its_things_another(api: Api, resources: Resources, depth: int) -> None:
    ids = await harbour(api)
    for given in ({"centerKeys": [ids["topic"]]}, {}):
        before = resources.graph.statements
        await api(
            "query($input: GraphInput) { graph(input: $input) { nodes { key } } }", input={"depth": depth, **given}
        )
        between = resources.graph.statements
        await drawn(api, depth=depth, **given)

        assert (between - before, resources.graph.statements - between) == (1, 2)


async def test_each_step_goes_further(api: Api) -> None:
    ids = await harbour(api)
    reached = [labels(await drawn(api, centerKeys=[ids["conversation"]], depth=depth)) for depth in range(4)]

    assert reached[0] == {"talk"}
    assert reached[1] == {"talk", "the crane was painted"}
    assert reached[2] == reached[1] | {"cranes", "Crane 4", "Crane 4 is red", "a crane fell"}
    assert reached[3] == reached[2]


async def test_subjects_lead_to_beliefs_and_those_to_episodes(api: Api, resources: Resources) -> None:
    ids = await learned(api, resources)

    found = await drawn(api, centerKeys=["subject:sam"], depth=2)

    assert shape(found) >= {
        ("sam", "HAS_BELIEF", "likes.drink: tea"),
        ("likes.drink: tea", "SUPERSEDES", "likes.drink: coffee"),
    }
    (subject,) = [node for node in found["nodes"] if node["kind"] == "SUBJECT"]
    assert subject == {"key": "subject:sam", "kind": "SUBJECT", "label": "sam", "weight": 1.0, "node": None}
    (learning,) = [edge for edge in found["edges"] if edge["relation"] == "LEARNED_FROM"]
    assert (learning["source"], learning["target"], learning["weight"]) == (ids["new"], ids["episode"], 1.0)
    # an ended version is nobody's any more
    assert ("sam", "HAS_BELIEF", "likes.drink: coffee") not in shape(found)

    back = await drawn(api, centerKeys=[ids["episode"]], depth=2)
    assert {"sam", "likes.drink: tea"} <= labels(back)


async def test_chunks_lead_to_what_they_mention(api: Api, resources: Resources) -> None:
    ids = await harbour(api)
    made = {"document": new_id(), "chunk": new_id()}
    await resources.graph.execute(DOCUMENT, entity=ids["entity"], **made)

    found = await read_map(resources.graph, api.tenant, MapQuery((made["document"],), 2), now=now_ms())

    by_key = {node.key: (node.kind, node.label) for node in found.nodes}
    assert by_key[made["document"]] == (GraphKind.DOCUMENT, "The handbook")
    assert by_key[made["chunk"]] == (GraphKind.CHUNK, "How the crane is mended")
    relations = {(edge.source, edge.relation, edge.target) for edge in found.edges}
    assert (made["chunk"], "PART_OF", made["document"]) in relations
    assert (made["chunk"], "MENTIONS", ids["entity"]) in relations
    whole = await read_map(resources.graph, api.tenant, MapQuery(depth=0), now=now_ms())
    assert {*made.values()} <= {node.key for node in whole.nodes}


async def test_a_small_tenant_is_shown_whole(api: Api, resources: Resources) -> None:
    await harbour(api)
    await learned(api, resources)
    found = (await api("{ graph { truncated nodes { label kind } edges { relation } } }"))["graph"]

    assert {node["kind"] for node in found["nodes"]} == {
        "MEMORY", "CONVERSATION", "TOPIC", "FACT", "ENTITY", "EPISODE", "BELIEF", "SUBJECT",
    }  # fmt: skip
    assert len(found["nodes"]) == 11
    assert not found["truncated"]
    assert len(found["edges"]) == 12


async def test_nothing_is_a_map_too(api: Api) -> None:
    assert await drawn(api) == {"nodes": [], "edges": [], "truncated": False}
    assert await drawn(api, centerKeys=[]) == {"nodes": [], "edges": [], "truncated": False}


@pytest.mark.parametrize("depth", [0, 2])
async def test_centres_that_lead_nowhere_are_left_out(api: Api, other_api: Api, depth: int) -> None:
    ids, foreign = await harbour(api), await harbour(other_api)
    await other_api.mutate(
        "upsertBelief", "UpsertBeliefInput", "belief { id }", {"subjectId": "kim", "key": "a", "value": "b"}
    )

    keys = [*foreign.values(), new_id(), "no id", "subject:kim", "subject:", ids["topic"], ids["topic"]]
    found = await drawn(api, centerKeys=keys, depth=depth)

    assert {node["key"] for node in found["nodes"]} <= set(ids.values())
    assert found["nodes"][0]["key"] == ids["topic"]
    assert (len(found["nodes"]) == 1) is (depth == 0)


async def test_kinds_are_all_that_is_shown_and_walked_through(api: Api, resources: Resources) -> None:
    ids = await harbour(api)
    await learned(api, resources)

    found = await drawn(api, centerKeys=[ids["topic"]], depth=4, kinds=["MEMORY", "ENTITY"])
    assert labels(found) == {"cranes", "the crane was painted", "a crane fell", "Crane 4"}
    none = await drawn(api, centerKeys=[ids["topic"]], depth=4, kinds=["ENTITY"])
    assert labels(none) == {"cranes"}
    assert not none["truncated"]
    assert labels(await drawn(api, kinds=["TOPIC", "SUBJECT"])) == {"cranes", "sam"}
    assert labels(await drawn(api, kinds=["BELIEF"], depth=0)) == {"likes.drink: tea", "likes.drink: coffee"}
    assert labels(await drawn(api, kinds=[])) == set()


@pytest.mark.parametrize("kind", GraphKind)
async def test_a_map_of_one_kind_has_that_kind_alone(api: Api, resources: Resources, kind: GraphKind) -> None:
    ids = await harbour(api)
    await learned(api, resources)
    await resources.graph.execute(DOCUMENT, entity=ids["entity"], document=new_id(), chunk=new_id())
    await api("mutation { detectCommunities { communities { id } } }")

    found = await read_map(resources.graph, api.tenant, MapQuery(kinds=(kind,)), now=now_ms())

    assert {node.kind for node in found.nodes} == (set() if kind is GraphKind.COMMUNITY else {kind})


async def test_expired_memories_are_neither_shown_nor_counted(api: Api) -> None:
    ids = await harbour(api)
    await written(api, "over", topics=[{"name": "cranes"}], expiresAt="2020-01-01T00:00:00Z")

    for given in ({}, {"centerKeys": [ids["topic"]], "depth": 3}):
        found = await drawn(api, **given)
        assert "over" not in labels(found)
        (topic,) = [node for node in found["nodes"] if node["kind"] == "TOPIC"]
        assert topic["weight"] == 2.0


async def test_the_limit_cuts_and_says_so(api: Api) -> None:
    (topic,) = {
        (await written(api, f"note {n}", topics=[{"name": "hub"}]))["topics"]["nodes"][0]["id"] for n in range(6)
    }

    for limit, truncated in ((6, True), (7, False), (8, False)):
        found = await drawn(api, centerKeys=[topic], depth=2, limit=limit)
        assert (len(found["nodes"]), found["truncated"]) == (min(limit, 7), truncated)
    # the newest of those that are alike come first
    assert labels(await drawn(api, centerKeys=[topic], limit=3)) == {"hub", "note 5", "note 4"}
    assert (await drawn(api, limit=6))["truncated"]
    assert not (await drawn(api, limit=7))["truncated"]
    # what lies beyond the last step isn't within reach
    assert not (await drawn(api, centerKeys=[topic], depth=0, limit=1))["truncated"]


async def test_what_most_leads_to_comes_first(api: Api) -> None:
    first = await written(api, "one", topics=[{"name": "rare"}, {"name": "shared"}])
    second = await written(api, "two", topics=[{"name": "shared"}])

    found = await drawn(api, centerKeys=[first["id"], second["id"]], limit=3)

    assert labels(found) == {"one", "two", "shared"}
    assert found["truncated"]


NOTED_BEFORE = """
MATCH (x:Topic) WHERE x.tenant = $t WITH x, x.name = 'hub' AS hub ORDER BY hub DESC, x.id LIMIT 51
SET x.degree = CASE WHEN hub THEN 3 ELSE 4 END
"""


async def test_a_large_tenant_starts_at_its_most_connected(api: Api, resources: Resources) -> None:
    memories = [
        {"content": f"note {n}", "topics": [{"name": "hub"}, {"name": f"topic {n}"}], "enrich": False}
        for n in range(300)
    ]
    payload = await api.mutate("createMemories", "CreateMemoriesInput", "errors { code }", {"memories": memories})
    assert payload["errors"] == []
    await weigh(resources.graph, api.tenant)

    for limit in (1, 50, 200):
        found = await drawn(api, depth=2, limit=limit)

        assert found["truncated"]
        assert (found["nodes"][0]["label"], found["nodes"][0]["weight"]) == ("hub", 300.0)
        assert len(found["nodes"]) == limit

    # degrees that are noted are old: fifty had more than it when the worker looked
    await resources.graph.execute(NOTED_BEFORE, t=api.tenant)
    found = await drawn(api, depth=2, limit=200)
    assert (found["nodes"][0]["label"], found["nodes"][0]["weight"]) == ("hub", 300.0)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"depth": 5}, "depth"),
        ({"depth": -1}, "depth"),
        ({"limit": 0}, "limit"),
        ({"limit": 2001}, "limit"),
        ({"centerKeys": ["x"] * 201}, "centerKeys"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(api: Api, given: dict[str, Any], path: str) -> None:
    (error,) = await api.errors(MAP, input=given)

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert path in error["message"]


@pytest.mark.parametrize("centred", [True, False], ids=["around", "whole"])
async def test_no_edge_dangles_while_what_it_leads_to_is_deleted(api: Api, resources: Resources, centred: bool) -> None:
    names, chance = count(), random.Random(3)  # noqa: S311 - no secret
    hub = (await written(api, "start", topics=[{"name": "hub"}]))["topics"]["nodes"][0]["id"]
    done, seen_enough = asyncio.Event(), asyncio.Event()
    living: list[str] = []

    async def delete_one() -> None:
        gone = living.pop(chance.randrange(len(living)))
        await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": gone})

    async def change() -> None:
        for _ in takewhile(lambda rounds: rounds < 10 or not seen_enough.is_set(), count()):
            topics = [{"name": "hub"}, {"name": f"topic {next(names)}"}]
            living.append((await written(api, "a note", topics=topics))["id"])
            if len(living) > 4:
                await delete_one()
        while living:
            await delete_one()

    async def look() -> int:
        looks = 0
        while not done.is_set():
            await drawn(api, depth=2, **({"centerKeys": [hub]} if centred else {}))
            looks += 1
            if looks > 5:
                seen_enough.set()
        return looks

    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        looking = [tasks.create_task(look()) for _ in range(2)]
        await asyncio.gather(*(change() for _ in range(3)))
        done.set()

    assert sum(task.result() for task in looking) > 5
    assert len((await drawn(api, centerKeys=[hub], depth=1))["nodes"]) == 2
