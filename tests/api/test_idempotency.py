"""clientMutationKey: the same key returns the first result and writes once, for every mutation."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from graphql import GraphQLInputObjectType, build_schema, get_named_type
from tests.conftest import Api
from tests.meeting import meanwhile
from tests.recording import message, record
from tests.stored import counted, stored

from reverie.api.schema import sdl
from reverie.domain.clock import now_ms
from reverie.graph.commits import FORGET_RECEIPTS, LOCK_RECEIPTS, WRITE_RECEIPTS
from reverie.graph.store import Transaction
from reverie.resources import Resources
from reverie.services.writing import forget_keys
from reverie.worker import tasks

AGE = """
MATCH (r:Receipt) WHERE r.tenant = $t AND r.field >= '' AND r.key >= ''
SET r.createdAt = r.createdAt - $milliseconds
"""
DAYS_7 = 7 * 24 * 60 * 60 * 1000

Ids = dict[str, str]
Case = tuple[str, str, Callable[[Ids], dict[str, Any]], Callable[[Ids], dict[str, Any]]]
"""A mutation, what is selected of its payload, an input, and another input for the same key."""

CASES: list[Case] = [
    ("createMemory", "memory { id content }", lambda _: {"content": "a"}, lambda _: {"content": "b"}),
    (
        "createMemories",
        "memories { id content }",
        lambda _: {"memories": [{"content": "a"}, {"content": "b"}]},
        lambda _: {"memories": [{"content": "b"}, {"content": "a"}]},
    ),
    (
        "updateMemory",
        "memory { id content updatedAt }",
        lambda ids: {"id": ids["memory"], "content": "changed"},
        lambda ids: {"id": ids["memory"], "importance": 0.5},
    ),
    ("deleteMemory", "deletedId", lambda ids: {"id": ids["memory"]}, lambda ids: {"id": ids["other memory"]}),
    (
        "relateMemories",
        "memory { id } related { id }",
        lambda ids: {"fromId": ids["memory"], "toId": ids["other memory"], "weight": 2},
        lambda ids: {"fromId": ids["memory"], "toId": ids["other memory"], "weight": 3},
    ),
    (
        "createConversation",
        "conversation { id title }",
        lambda _: {"title": "Standup"},
        lambda _: {"title": "Standup", "threadId": "t"},
    ),
    (
        "updateConversation",
        "conversation { id title }",
        lambda ids: {"id": ids["conversation"], "title": "Retro"},
        lambda ids: {"id": ids["conversation"], "title": "Review"},
    ),
    (
        "deleteConversation",
        "deletedId deletedMemories",
        lambda ids: {"id": ids["conversation"]},
        lambda ids: {"id": ids["conversation"], "deleteMemories": True},
    ),
    (
        "createDocument",
        "document { id title }",
        lambda _: {"title": "Gates", "text": "They are green."},
        lambda _: {"title": "Gates", "text": "They are red."},
    ),
    ("deleteDocument", "deletedId", lambda ids: {"id": ids["document"]}, lambda ids: {"id": ids["memory"]}),
    ("createTopic", "topic { id name }", lambda _: {"name": "New"}, lambda _: {"name": "Newer"}),
    (
        "updateTopic",
        "topic { id name }",
        lambda ids: {"id": ids["topic"], "name": "New"},
        lambda ids: {"id": ids["topic"], "name": "Newer"},
    ),
    (
        "mergeTopics",
        "topic { id name }",
        lambda ids: {"intoId": ids["topic"], "fromIds": [ids["other topic"]]},
        lambda ids: {"intoId": ids["other topic"], "fromIds": [ids["topic"]]},
    ),
    ("deleteTopic", "deletedId", lambda ids: {"id": ids["topic"]}, lambda ids: {"id": ids["other topic"]}),
    (
        "createFact",
        "fact { id subject }",
        lambda _: {"subject": "a", "predicate": "b", "object": "c"},
        lambda _: {"subject": "a", "predicate": "b", "object": "c", "confidence": 0.5},
    ),
    (
        "updateFact",
        "fact { id subject }",
        lambda ids: {"id": ids["fact"], "subject": "changed"},
        lambda ids: {"id": ids["fact"], "object": "changed"},
    ),
    ("deleteFact", "deletedId", lambda ids: {"id": ids["fact"]}, lambda ids: {"id": ids["memory"]}),
    (
        "createEntity",
        "entity { id name }",
        lambda _: {"name": "New", "type": "TOOL"},
        lambda _: {"name": "New", "type": "PLACE"},
    ),
    (
        "updateEntity",
        "entity { id name aliases }",
        lambda ids: {"id": ids["entity"], "aliases": ["a"]},
        lambda ids: {"id": ids["entity"], "aliases": []},
    ),
    (
        "mergeEntities",
        "entity { id name aliases }",
        lambda ids: {"intoId": ids["entity"], "fromIds": [ids["other entity"]]},
        lambda ids: {"intoId": ids["other entity"], "fromIds": [ids["entity"]]},
    ),
    ("deleteEntity", "deletedId", lambda ids: {"id": ids["entity"]}, lambda ids: {"id": ids["other entity"]}),
    (
        "relateEntities",
        "entity { id } related { id }",
        lambda ids: {"fromId": ids["entity"], "toId": ids["other entity"]},
        lambda ids: {"fromId": ids["other entity"], "toId": ids["entity"]},
    ),
    (
        "unrelate",
        "removed",
        lambda ids: {"fromId": ids["related memory"], "toId": ids["memory"]},
        lambda ids: {"fromId": ids["related memory"], "toId": ids["memory"], "relation": "related"},
    ),
    (
        "recordEvents",
        "events { id text }",
        lambda _: {"events": [message("a"), message("b")]},
        lambda _: {"events": [message("a"), message("c")]},
    ),
    (
        "closeEpisode",
        "episode { id outcome }",
        lambda _: {"threadId": "chat"},
        lambda _: {"threadId": "chat", "outcome": "ABANDONED"},
    ),
    (
        "upsertBelief",
        "belief { id version } change { id kind }",
        lambda _: {"subjectId": "ann", "key": "likes.tea", "value": "green"},
        lambda _: {"subjectId": "ann", "key": "likes.tea", "value": "black"},
    ),
    (
        "retractBelief",
        "belief { id epistemicStatus } change { id kind }",
        lambda ids: {"id": ids["belief"]},
        lambda ids: {"id": ids["belief"], "reason": "misheard"},
    ),
]
WORLD = """
mutation {
  memory: createMemory(input: {content: "one"}) { memory { id } }
  otherMemory: createMemory(input: {content: "two"}) { memory { id } }
  conversation: createConversation(input: {title: "Standup", threadId: "standup"}) { conversation { id } }
  topic: createTopic(input: {name: "Deployment"}) { topic { id } }
  otherTopic: createTopic(input: {name: "Release"}) { topic { id } }
  entity: createEntity(input: {name: "Ann", type: PERSON}) { entity { id } }
  otherEntity: createEntity(input: {name: "Bob", type: PERSON}) { entity { id } }
  belief: upsertBelief(input: {subjectId: "bob", key: "likes.tea", value: "green"}) { belief { id } }
  document: createDocument(input: {title: "Harbour", text: "It has gates."}) { document { id } }
  fact: createFact(input: {subject: "Ann", predicate: "knows", object: "Bob"}) { fact { id } }
}
"""


async def world(api: Api) -> Ids:
    """One of everything that mutations work on."""
    made = await api(WORLD)
    ids = {
        "memory": made["memory"]["memory"]["id"],
        "other memory": made["otherMemory"]["memory"]["id"],
        "conversation": made["conversation"]["conversation"]["id"],
        "topic": made["topic"]["topic"]["id"],
        "other topic": made["otherTopic"]["topic"]["id"],
        "entity": made["entity"]["entity"]["id"],
        "other entity": made["otherEntity"]["entity"]["id"],
        "fact": made["fact"]["fact"]["id"],
        "document": made["document"]["document"]["id"],
        "belief": made["belief"]["belief"]["id"],
    }
    in_conversation = {"content": "three", "conversationId": ids["conversation"], "relatedTo": [ids["memory"]]}
    payload = await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", in_conversation)
    await record(api, message("hello", "chat"))
    return ids | {"related memory": payload["memory"]["id"]}


def keyed(api: Api, mutation: str, selection: str, key: str = "k") -> Callable[[dict[str, Any]], Awaitable[Any]]:
    input_type = f"{mutation[0].upper()}{mutation[1:]}Input"
    return lambda input_: api.mutate(mutation, input_type, selection, {**input_, "clientMutationKey": key})


def refusals(payload: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [(error["code"], error["path"]) for error in payload["errors"]]


@pytest.mark.parametrize(
    ("mutation", "selection", "given", "otherwise"), CASES, ids=[mutation for mutation, *_ in CASES]
)
async def test_the_same_key_returns_the_first_result_and_writes_once(
    mutation: str,
    selection: str,
    given: Callable[[Ids], dict[str, Any]],
    otherwise: Callable[[Ids], dict[str, Any]],
    api: Api,
    second_server: Api,
    resources: Resources,
) -> None:
    ids = await world(api)
    first = await keyed(api, mutation, selection)(given(ids))
    assert first["errors"] == []
    before = await stored(resources.graph, api.tenant)

    for server in (api, second_server):
        assert await keyed(server, mutation, selection)(given(ids)) == first
        assert refusals(await keyed(server, mutation, selection)(otherwise(ids))) == [
            ("CONFLICT", ["clientMutationKey"])
        ]

    assert await stored(resources.graph, api.tenant) == before


def test_every_mutation_is_here() -> None:
    mutations = build_schema(sdl()).mutation_type
    assert mutations is not None
    keyed = set()
    for name, field in mutations.fields.items():
        input_type = get_named_type(field.args["input"].type)
        assert isinstance(input_type, GraphQLInputObjectType)
        if "clientMutationKey" in input_type.fields:
            keyed.add(name)
    # a file, and a page to read, come with the tests of documents
    assert {mutation for mutation, *_ in CASES} == keyed - {"linkDocument", "uploadDocument"}
    # these take no key: what has happened since then is to be dreamed, tried or erased again
    assert set(mutations.fields) - keyed == {"detectCommunities", "dream", "forgetSubject", "retryEpisode"}


async def test_a_key_belongs_to_its_tenant_and_its_mutation(api: Api, other_api: Api, resources: Resources) -> None:
    ours, theirs = [await keyed(caller, "createTopic", "topic { id }")({"name": "a"}) for caller in (api, other_api)]
    memory = await keyed(api, "createMemory", "memory { id }")({"content": "a"})
    other_key = await keyed(api, "createMemory", "memory { id }", "K")({"content": "b"})

    assert (ours["errors"], theirs["errors"], memory["errors"], other_key["errors"]) == ([], [], [], [])
    assert ours["topic"]["id"] != theirs["topic"]["id"]
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Receipt"], counts["Topic"], counts["Memory"]) == (3, 1, 2)


async def test_a_default_written_out_is_the_same_input(api: Api) -> None:
    create = keyed(api, "createMemory", "memory { id }")
    first = await create({"content": "a"})

    same = await create({"content": "a", "importance": 0.5, "memoryType": "EPISODIC", "topics": [], "enrich": True})

    assert same == first


async def test_an_absent_field_is_another_input_than_any_text(api: Api) -> None:
    ids = await world(api)
    update = keyed(api, "updateMemory", "memory { content }")
    await update({"id": ids["memory"]})

    for content in ("UNSET", "null", "Unset.UNSET"):
        payload = await update({"id": ids["memory"], "content": content})
        assert refusals(payload) == [("CONFLICT", ["clientMutationKey"])]


async def test_what_was_refused_is_not_remembered(api: Api, resources: Resources) -> None:
    create = keyed(api, "createMemory", "memory { id }")
    missing = {"content": "a", "conversationId": "01890000-0000-7000-8000-00000000abcd"}

    assert refusals(await create(missing)) == [("NOT_FOUND", ["conversationId"])]
    assert refusals(await create({"content": " "})) == [("BAD_INPUT", ["content"])]
    assert await stored(resources.graph, api.tenant) == []

    assert refusals(await create({"content": "a"})) == []
    assert refusals(await create(missing)) == [("CONFLICT", ["clientMutationKey"])]
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Memory"], counts["Receipt"]) == (1, 1)


async def test_what_is_gone_since_is_not_made_again(api: Api, resources: Resources) -> None:
    create = keyed(api, "createMemory", "memory { id }")
    first = await create({"content": "a"})
    await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": first["memory"]["id"]})

    again = await create({"content": "a"})

    assert refusals(again) == [("NOT_FOUND", [])]
    assert (await counted(resources.graph, api.tenant))["Memory"] == 0


async def test_a_key_is_forgotten_after_seven_days(api: Api, resources: Resources) -> None:
    create = keyed(api, "createMemory", "memory { id }")
    first = await create({"content": "a"})

    await resources.graph.execute(AGE, t=api.tenant, milliseconds=DAYS_7 - 60_000)
    assert await create({"content": "a"}) == first

    await resources.graph.execute(AGE, t=api.tenant, milliseconds=60_000)
    second = await create({"content": "b"})

    assert second["errors"] == []
    assert second["memory"]["id"] != first["memory"]["id"]
    assert await create({"content": "b"}) == second
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Memory"], counts["Receipt"]) == (2, 1)


async def test_what_was_kept_for_a_forgotten_key_is_taken_away(api: Api, resources: Resources) -> None:
    old, new = keyed(api, "createMemory", "memory { id }"), keyed(api, "createTopic", "topic { id }")
    await old({"content": "a"})
    await resources.graph.execute(AGE, t=api.tenant, milliseconds=DAYS_7)
    kept = await new({"name": "tea"})

    await tasks.forget_keys(resources)

    assert tasks.forget_keys in [task for _, task in tasks.HOUSEKEEPING]
    assert (await counted(resources.graph, api.tenant))["Receipt"] == 1
    assert await new({"name": "tea"}) == kept


async def test_a_key_that_is_used_again_while_it_is_forgotten_counts(api: Api, resources: Resources) -> None:
    create = keyed(api, "createMemory", "memory { id }")
    await create({"content": "a"})
    await resources.graph.execute(AGE, t=api.tenant, milliseconds=DAYS_7)

    async def use_again(transaction: Transaction) -> None:
        key = [api.tenant, "createMemory", "k"]
        await transaction.run(LOCK_RECEIPTS, keys=[key])
        await transaction.run(WRITE_RECEIPTS, rows=[[*key, "digest", "{}", now_ms()]])

    await meanwhile(resources, use_again, lambda: forget_keys(resources))

    assert (await counted(resources.graph, api.tenant))["Receipt"] == 1


async def test_a_key_that_is_forgotten_while_it_is_used_again_counts(api: Api, resources: Resources) -> None:
    create = keyed(api, "createMemory", "memory { id }")
    await create({"content": "a"})
    await resources.graph.execute(AGE, t=api.tenant, milliseconds=DAYS_7)

    async def forget(transaction: Transaction) -> None:
        assert await transaction.run(FORGET_RECEIPTS, oldest=now_ms() - DAYS_7, limit=100) >= 1

    again = await meanwhile(resources, forget, lambda: create({"content": "b"}))

    assert again["errors"] == []
    assert await create({"content": "b"}) == again
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Memory"], counts["Receipt"]) == (2, 1)


async def test_a_refusal_under_an_expired_key_forgets_it(api: Api, resources: Resources) -> None:
    create = keyed(api, "createMemory", "memory { id }")
    await create({"content": "a"})
    await resources.graph.execute(AGE, t=api.tenant, milliseconds=DAYS_7)

    refused = await create({"content": "b", "topics": [{"id": "x"}]})

    assert refusals(refused) == [("NOT_FOUND", ["topics", "0", "id"])]
    assert (await counted(resources.graph, api.tenant))["Receipt"] == 0
