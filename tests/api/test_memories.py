"""Memories over the API: written, read along their relations, changed, related, deleted."""

import asyncio
from typing import Any

from tests.conftest import Api
from tests.stored import counted, stored

from reverie.resources import Resources

CREATE = """
mutation($input: CreateMemoryInput!) {
  createMemory(input: $input) {
    memory {
      id content importance memoryType enrichment
      topics { nodes { name memories { totalCount nodes { content entities { nodes {
        name facts { nodes { subject predicate object } } } } } } } }
    }
    errors { code path }
  }
}
"""
MEMORY = """
  id content memoryType importance subjectId agentId expiresAt metadata eventTime createdAt updatedAt enrichment
  conversation { id } topics { nodes { name } } entities { nodes { name type } }
  facts { nodes { subject predicate object confidence } }
  related { edges { node { content } relation weight outgoing } }
"""
READ = f"query($id: ID!) {{ memory(id: $id) {{ {MEMORY} }} }}"
LISTED = """
{ memories(first: 200, orderBy: {field: CREATED_AT, direction: ASC}) { totalCount nodes { id content } } }
"""
RELATED = """
query($id: ID!) { memory(id: $id) { related { totalCount edges { node { content } relation weight outgoing } } } }
"""


async def created(api: Api, content: str = "Ann rolled the release back", **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "createMemory", "CreateMemoryInput", f"memory {{ {MEMORY} }}", {"content": content, **given}
    )
    assert payload["errors"] == []
    memory: dict[str, Any] = payload["memory"]
    return memory


async def updated(api: Api, memory_id: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "updateMemory", "UpdateMemoryInput", f"memory {{ {MEMORY} }}", {"id": memory_id, **given}
    )
    assert payload["errors"] == []
    memory: dict[str, Any] = payload["memory"]
    return memory


async def deleted(api: Api, memory_id: str) -> dict[str, Any]:
    return await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory_id})


async def related(api: Api, from_id: str, to_id: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "relateMemories",
        "RelateMemoriesInput",
        "memory { content } related { content }",
        {"fromId": from_id, "toId": to_id, **given},
    )
    assert payload["errors"] == []
    return payload


async def unrelated(api: Api, from_id: str, to_id: str, **given: Any) -> dict[str, Any]:
    return await api.mutate("unrelate", "UnrelateInput", "removed", {"fromId": from_id, "toId": to_id, **given})


async def edges(api: Api, memory_id: str) -> list[tuple[str, str, float, bool]]:
    found = (await api(RELATED, id=memory_id))["memory"]["related"]["edges"]
    return [(edge["node"]["content"], edge["relation"], edge["weight"], edge["outgoing"]) for edge in found]


async def test_a_memory_is_written_and_read_four_levels_deep(api: Api) -> None:
    written = await api(
        CREATE,
        input={
            "content": "Ann rolled the release back",
            "topics": [{"name": "Deployment"}],
            "entities": [{"name": "Ann", "type": "PERSON"}],
            "facts": [{"subject": "Ann", "predicate": "rolled back", "object": "the release"}],
            "importance": 0.9,
        },
    )

    memory = written["createMemory"]["memory"]
    assert written["createMemory"]["errors"] == []
    assert (memory["importance"], memory["memoryType"], memory["enrichment"]) == (0.9, "EPISODIC", "PENDING")
    assert memory["topics"]["nodes"] == [
        {
            "name": "Deployment",
            "memories": {
                "totalCount": 1,
                "nodes": [
                    {
                        "content": "Ann rolled the release back",
                        "entities": {
                            "nodes": [
                                {
                                    "name": "Ann",
                                    "facts": {
                                        "nodes": [
                                            {"subject": "Ann", "predicate": "rolled back", "object": "the release"}
                                        ]
                                    },
                                }
                            ]
                        },
                    }
                ],
            },
        }
    ]


async def test_every_field_comes_back_as_it_was_given(api: Api) -> None:
    conversation = await api.mutate(
        "createConversation", "CreateConversationInput", "conversation { id }", {"title": "Incident"}
    )
    topic = await api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "Rollback"})
    earlier = await created(api, "an earlier one")
    content = " kept to the letter,\n with blanks and ünïcödé 🚀 "
    metadata = {"source": "chat", "n": [1, 2.5, -3e-7, True, None], "deep": {"ключ": {"": "空"}}}

    memory = await created(
        api,
        content,
        memoryType="PROCEDURAL",
        importance=1,
        subjectId="user-7",
        agentId="pair-programmer",
        eventTime="2026-03-01T10:00:00+02:00",
        expiresAt="2999-12-31T23:59:59.123456789Z",
        metadata=metadata,
        conversationId=conversation["conversation"]["id"],
        topics=[{"id": topic["topic"]["id"]}, {"name": "Deployment"}, {"name": " deployment "}],
        entities=[{"name": "Ann", "type": "PERSON"}, {"name": "helm", "type": "TOOL"}],
        facts=[{"subject": "Ann", "predicate": "uses", "object": "helm", "confidence": 0.25}],
        relatedTo=[earlier["id"], earlier["id"]],
        enrich=False,
    )

    assert memory == {
        "id": memory["id"],
        "createdAt": memory["updatedAt"],
        "updatedAt": memory["createdAt"],
        "content": content,
        "memoryType": "PROCEDURAL",
        "importance": 1.0,
        "subjectId": "user-7",
        "agentId": "pair-programmer",
        "eventTime": "2026-03-01T08:00:00.000Z",
        "expiresAt": "2999-12-31T23:59:59.123Z",
        "metadata": metadata,
        "enrichment": "DONE",
        "conversation": {"id": conversation["conversation"]["id"]},
        "topics": {"nodes": [{"name": "Deployment"}, {"name": "Rollback"}]},
        "entities": {"nodes": [{"name": "Ann", "type": "PERSON"}, {"name": "helm", "type": "TOOL"}]},
        "facts": {"nodes": [{"subject": "Ann", "predicate": "uses", "object": "helm", "confidence": 0.25}]},
        "related": {
            "edges": [{"node": {"content": "an earlier one"}, "relation": "related", "weight": 1.0, "outgoing": True}]
        },
    }
    assert (await api(READ, id=memory["id"]))["memory"] == memory


async def test_what_is_absent_or_null_takes_its_default(api: Api) -> None:
    absent = await created(api)
    null = await created(
        api,
        memoryType=None,
        importance=None,
        conversationId=None,
        topics=None,
        entities=None,
        facts=None,
        relatedTo=None,
        subjectId=None,
        agentId=None,
        eventTime=None,
        expiresAt=None,
        metadata=None,
        enrich=None,
        clientMutationKey=None,
    )

    for memory in (absent, null):
        own = {name: memory.pop(name) for name in ("id", "createdAt", "updatedAt", "content")}
        assert own["createdAt"] == own["updatedAt"]
        assert memory == {
            "memoryType": "EPISODIC",
            "importance": 0.5,
            "subjectId": None,
            "agentId": None,
            "expiresAt": None,
            "metadata": None,
            "eventTime": None,
            "enrichment": "PENDING",
            "conversation": None,
            "topics": {"nodes": []},
            "entities": {"nodes": []},
            "facts": {"nodes": []},
            "related": {"edges": []},
        }


async def test_the_caps_themselves_are_allowed(api: Api) -> None:
    earlier = await created(api)

    memory = await created(
        api,
        "é" * 100_000,
        importance=0,
        subjectId="s" * 200,
        topics=[{"name": f"topic {number}"} for number in range(200)],
        relatedTo=[earlier["id"]] * 200,
        facts=[{"subject": "s" * 1_000, "predicate": "p", "object": str(number)} for number in range(200)],
    )

    assert (len(memory["content"]), memory["importance"]) == (100_000, 0.0)
    counts = await api(
        "query($id: ID!) { memory(id: $id) { topics { totalCount } facts { totalCount } related { totalCount } } }",
        id=memory["id"],
    )
    assert counts["memory"] == {
        "topics": {"totalCount": 200},
        "facts": {"totalCount": 200},
        "related": {"totalCount": 1},
    }


async def test_a_batch_of_a_thousand_is_written_in_its_order(api: Api) -> None:
    contents = [f"memory {number}" for number in range(1_000)]

    payload = await api.mutate(
        "createMemories",
        "CreateMemoriesInput",
        "memories { id content }",
        {"memories": [{"content": content, "topics": [{"name": "Bulk"}]} for content in contents]},
    )

    assert payload["errors"] == []
    assert [memory["content"] for memory in payload["memories"]] == contents
    ids = [memory["id"] for memory in payload["memories"]]
    assert ids == sorted(set(ids))
    listed = (await api(LISTED))["memories"]
    assert (listed["totalCount"], listed["nodes"]) == (1_000, payload["memories"][:200])
    assert (await api('{ topic(name: "bulk") { memories { totalCount } } }'))["topic"] == {
        "memories": {"totalCount": 1_000}
    }


async def test_an_empty_batch_writes_nothing(api: Api, resources: Resources) -> None:
    payload = await api.mutate("createMemories", "CreateMemoriesInput", "memories { id }", {"memories": []})

    assert payload == {"memories": [], "errors": []}
    assert await stored(resources.graph, api.tenant) == []


async def test_an_absent_field_keeps_its_value(api: Api) -> None:
    before = await created(
        api,
        memoryType="SEMANTIC",
        importance=0.75,
        subjectId="user-7",
        agentId="scribe",
        eventTime="2026-03-01T10:00:00Z",
        expiresAt="2999-01-01T00:00:00Z",
        metadata={"a": 1},
        topics=[{"name": "Deployment"}],
        entities=[{"name": "Ann", "type": "PERSON"}],
        facts=[{"subject": "Ann", "predicate": "is", "object": "here"}],
    )
    await asyncio.sleep(0.002)

    after = await updated(api, before["id"], importance=0.25)

    assert after.pop("updatedAt") > before.pop("updatedAt")
    assert after == {**before, "importance": 0.25}


async def test_each_field_can_be_changed(api: Api) -> None:
    conversation = await api.mutate(
        "createConversation", "CreateConversationInput", "conversation { id }", {"title": "Incident"}
    )
    before = await created(
        api,
        topics=[{"name": "Deployment"}, {"name": "Release"}],
        entities=[{"name": "Ann", "type": "PERSON"}, {"name": "helm", "type": "TOOL"}],
    )
    named = await api('{ topic(name: "release") { id } entity(name: "helm") { id } }')

    after = await updated(
        api,
        before["id"],
        content="Bob fixed it",
        memoryType="PROCEDURAL",
        importance=0.1,
        conversationId=conversation["conversation"]["id"],
        addTopics=[{"name": "Hotfix"}, {"name": "DEPLOYMENT"}],
        removeTopicIds=[named["topic"]["id"]],
        addEntities=[{"name": "Bob", "type": "PERSON"}, {"name": "ann"}],
        removeEntityIds=[named["entity"]["id"]],
        eventTime="2026-04-01T00:00:00Z",
        expiresAt="2999-01-01T00:00:00Z",
        metadata={"b": [2]},
    )

    changed = {name: value for name, value in after.items() if value != before[name]}
    assert changed.pop("updatedAt") >= before["updatedAt"]
    assert changed == {
        "content": "Bob fixed it",
        "memoryType": "PROCEDURAL",
        "importance": 0.1,
        "conversation": {"id": conversation["conversation"]["id"]},
        "topics": {"nodes": [{"name": "Deployment"}, {"name": "Hotfix"}]},
        "entities": {"nodes": [{"name": "Ann", "type": "PERSON"}, {"name": "Bob", "type": "PERSON"}]},
        "eventTime": "2026-04-01T00:00:00.000Z",
        "expiresAt": "2999-01-01T00:00:00.000Z",
        "metadata": {"b": [2]},
    }
    assert (await api(READ, id=before["id"]))["memory"] == after


async def test_null_clears_what_can_be_cleared(api: Api) -> None:
    conversation = await api.mutate(
        "createConversation", "CreateConversationInput", "conversation { id }", {"title": "Incident"}
    )
    before = await created(
        api,
        conversationId=conversation["conversation"]["id"],
        eventTime="2026-03-01T10:00:00Z",
        expiresAt="2999-01-01T00:00:00Z",
        metadata={"a": 1},
    )

    after = await updated(api, before["id"], conversationId=None, eventTime=None, expiresAt=None, metadata=None)

    assert {**after, "updatedAt": None} == {
        **before,
        "updatedAt": None,
        "conversation": None,
        "eventTime": None,
        "expiresAt": None,
        "metadata": None,
    }
    filtered = await api(
        "query($id: ID!) { memories(filter: {conversationId: $id}) { totalCount } }",
        id=conversation["conversation"]["id"],
    )
    assert filtered["memories"]["totalCount"] == 0


async def test_taking_away_what_a_memory_does_not_have_changes_nothing(api: Api) -> None:
    before = await created(api, topics=[{"name": "Deployment"}])
    other = await api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "Release"})

    after = await updated(api, before["id"], removeTopicIds=[other["topic"]["id"]])

    assert after["topics"] == {"nodes": [{"name": "Deployment"}]}


async def test_a_deleted_memory_is_gone_from_everywhere_and_can_be_added_again(api: Api, resources: Resources) -> None:
    given: dict[str, Any] = {
        "topics": [{"name": "Deployment"}],
        "entities": [{"name": "Ann", "type": "PERSON"}],
        "facts": [{"subject": "Ann", "predicate": "is", "object": "here"}],
    }
    first = await created(api, **given)
    neighbour = await created(api, "the neighbour", relatedTo=[first["id"]])

    assert await deleted(api, first["id"]) == {"deletedId": first["id"], "errors": []}

    assert (await api(READ, id=first["id"]))["memory"] is None
    assert await edges(api, neighbour["id"]) == []
    left = await api(
        '{ memories { totalCount } facts { totalCount } search(query: "rolled", mode: KEYWORD) { nodes { __typename } }'
        ' topic(name: "Deployment") { memories { totalCount } } entity(name: "Ann") { facts { totalCount } } }'
    )
    assert left == {
        "memories": {"totalCount": 1},
        "facts": {"totalCount": 0},
        "search": {"nodes": []},
        "topic": {"memories": {"totalCount": 0}},
        "entity": {"facts": {"totalCount": 0}},
    }
    again = await deleted(api, first["id"])
    assert [(error["code"], error["path"]) for error in again["errors"]] == [("NOT_FOUND", ["id"])]

    second = await created(api, **given)

    assert second["id"] != first["id"]
    assert (second["topics"], second["facts"]) == (first["topics"], first["facts"])
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Memory"], counts["Topic"], counts["Entity"], counts["Fact"]) == (2, 1, 1, 1)


async def test_a_memory_that_has_expired_is_as_if_deleted(api: Api) -> None:
    expired = await created(api, "gone already", expiresAt="2020-01-01T00:00:00Z", topics=[{"name": "Old"}])
    expiring = await created(api, "goes now", topics=[{"name": "Old"}])
    other = await created(api, "stays")
    # the mutation answers with what it wrote, though nobody will read it again
    assert expired["content"] == "gone already"
    assert (await updated(api, expiring["id"], expiresAt="2020-01-01T00:00:00Z"))["content"] == "goes now"

    for memory in (expired, expiring):
        assert (await api(READ, id=memory["id"]))["memory"] is None
        for answer in (
            await deleted(api, memory["id"]),
            await api.mutate(
                "updateMemory", "UpdateMemoryInput", "memory { id }", {"id": memory["id"], "expiresAt": None}
            ),
            await api.mutate(
                "createMemory", "CreateMemoryInput", "memory { id }", {"content": "x", "relatedTo": [memory["id"]]}
            ),
            await api.mutate(
                "createFact",
                "CreateFactInput",
                "fact { id }",
                {"subject": "a", "predicate": "b", "object": "c", "memoryIds": [memory["id"]]},
            ),
            await api.mutate(
                "relateMemories",
                "RelateMemoriesInput",
                "memory { id }",
                {"fromId": other["id"], "toId": memory["id"]},
            ),
        ):
            assert [error["code"] for error in answer["errors"]] == ["NOT_FOUND"]
    assert [memory["content"] for memory in (await api(LISTED))["memories"]["nodes"]] == ["stays"]
    assert (await api('{ topic(name: "Old") { memories { totalCount } } }'))["topic"]["memories"]["totalCount"] == 0


async def test_memories_are_related_and_both_ends_show_it(api: Api) -> None:
    cause, effect = await created(api, "the cause"), await created(api, "the effect")

    payload = await related(api, cause["id"], effect["id"], relation=" led   to ", weight=2.5)

    assert (payload["memory"], payload["related"]) == ({"content": "the cause"}, {"content": "the effect"})
    assert await edges(api, cause["id"]) == [("the effect", "led to", 2.5, True)]
    assert await edges(api, effect["id"]) == [("the cause", "led to", 2.5, False)]


async def test_the_same_relation_again_sets_its_weight(api: Api) -> None:
    cause, effect = await created(api, "the cause"), await created(api, "the effect")

    await related(api, cause["id"], effect["id"])
    await related(api, cause["id"], effect["id"], weight=0)
    await related(api, cause["id"], effect["id"], relation="led to", weight=3)
    await related(api, effect["id"], cause["id"], relation=None, weight=None)

    assert await edges(api, cause["id"]) == [
        ("the effect", "led to", 3.0, True),
        ("the effect", "related", 1.0, False),
        ("the effect", "related", 0.0, True),
    ]


async def test_relations_are_taken_away_whichever_way_they_point(api: Api) -> None:
    one, two, three = [await created(api, content) for content in ("one", "two", "three")]
    for relation in ("related", "led to"):
        await related(api, one["id"], two["id"], relation=relation)
        await related(api, two["id"], one["id"], relation=relation)
    await related(api, one["id"], three["id"])

    assert await unrelated(api, two["id"], one["id"], relation=" led  to") == {"removed": 2, "errors": []}
    assert await unrelated(api, two["id"], one["id"], relation="never drawn") == {"removed": 0, "errors": []}
    assert len(await edges(api, two["id"])) == 2
    assert await unrelated(api, one["id"], two["id"]) == {"removed": 2, "errors": []}

    assert await edges(api, two["id"]) == []
    assert await edges(api, one["id"]) == [("three", "related", 1.0, True)]
