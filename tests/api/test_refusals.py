"""What every mutation refuses: code, path and existing id of each error, and that nothing changed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from graphql import build_schema
from tests.conftest import Api, caller
from tests.recording import message, record
from tests.stored import stored

from reverie.api.schema import sdl
from reverie.resources import Resources

MADE = {
    "createMemory": "memory { id }",
    "createMemories": "memories { id }",
    "updateMemory": "memory { id }",
    "deleteMemory": "deletedId",
    "relateMemories": "memory { id } related { id }",
    "createConversation": "conversation { id }",
    "updateConversation": "conversation { id }",
    "deleteConversation": "deletedId deletedMemories",
    "createTopic": "topic { id }",
    "updateTopic": "topic { id }",
    "mergeTopics": "topic { id }",
    "deleteTopic": "deletedId",
    "createFact": "fact { id }",
    "updateFact": "fact { id }",
    "deleteFact": "deletedId",
    "createEntity": "entity { id }",
    "updateEntity": "entity { id }",
    "mergeEntities": "entity { id }",
    "deleteEntity": "deletedId",
    "relateEntities": "entity { id } related { id }",
    "unrelate": "removed",
    "recordEvents": "events { id }",
    "closeEpisode": "episode { id }",
    "retryEpisode": "episode { id }",
    "upsertBelief": "belief { id } change { id }",
    "retractBelief": "belief { id } change { id }",
    "createDocument": "document { id }",
    "uploadDocument": "document { id }",
    "linkDocument": "document { id }",
    "deleteDocument": "deletedId",
    "dream": "dream { id }",
    "detectCommunities": "communities { id }",
    "forgetSubject": "deleted { kind }",
}
Row = tuple[str, dict[str, Any], list[tuple[str, str] | tuple[str, str, str]]]
UNKNOWN = "01890000-0000-7000-8000-00000000abcd"
LONG = "x" * 201


@dataclass
class World:
    """A tenant with one of everything, made once: what is refused must leave it as it is."""

    api: Api
    foreign_tenant: str = ""
    ids: dict[str, str] = field(default_factory=dict)

    def filled(self, value: Any) -> Any:
        """The value with the ids of this world in the places of their names, such as <memory>."""
        if isinstance(value, str):
            return self.ids.get(value, value)
        if isinstance(value, dict):
            return {name: self.filled(member) for name, member in value.items()}
        return [self.filled(member) for member in value] if isinstance(value, list) else value

    async def make(self, name: str, mutation: str, input_: dict[str, Any]) -> None:
        payload = await self.refused(mutation, input_)
        assert payload["errors"] == []
        self.ids[f"<{name}>"] = next(made["id"] for made in payload.values() if isinstance(made, dict))

    async def refused(self, mutation: str, input_: dict[str, Any]) -> dict[str, Any]:
        input_type = f"{mutation[0].upper()}{mutation[1:]}Input"
        return await self.api.mutate(mutation, input_type, MADE[mutation], self.filled(input_))


@pytest_asyncio.fixture(scope="module")
async def world(resources: Resources) -> AsyncIterator[World]:
    tenant, foreign_tenant = f"world-{uuid4().hex[:12]}", f"foreign-{uuid4().hex[:12]}"
    async with caller(resources, tenant) as client, caller(resources, foreign_tenant) as foreign_client:
        made, foreign = World(Api(client, tenant), foreign_tenant), World(Api(foreign_client, foreign_tenant))
        for here, prefix in ((made, ""), (foreign, "foreign-")):
            await here.make(f"{prefix}conversation", "createConversation", {"title": "Standup", "threadId": "standup"})
            await here.make(f"{prefix}topic", "createTopic", {"name": "Deployment"})
            await here.make(f"{prefix}entity", "createEntity", {"name": "Ann", "type": "PERSON"})
            await here.make(f"{prefix}memory", "createMemory", {"content": "Ann is here"})
            await here.make(f"{prefix}document", "createDocument", {"title": "Gates", "text": "They are green."})
            await here.make(f"{prefix}fact", "createFact", {"subject": "Ann", "predicate": "is", "object": "here"})
            (event,) = await record(here.api, message("hello", "eventful"))
            here.ids[f"<{prefix}eventful>"] = event["conversation"]["id"]
            here.ids[f"<{prefix}episode>"] = event["episode"]["id"]
        await made.make("other-topic", "createTopic", {"name": "Release"})
        await made.make("other-entity", "createEntity", {"name": "Bob", "type": "PERSON", "aliases": ["Robert"]})
        await made.make("tool", "createEntity", {"name": "Ann", "type": "TOOL"})
        await made.make("other-memory", "createMemory", {"content": "Bob is there"})
        made.ids |= foreign.ids
        yield made


MEMORIES: list[Row] = [
    ("createMemory", {"content": " \n"}, [("BAD_INPUT", "content")]),
    ("createMemory", {"content": "x" * 100_001}, [("TOO_LARGE", "content")]),
    ("createMemory", {"content": "x", "importance": 1.5}, [("BAD_INPUT", "importance")]),
    ("createMemory", {"content": "x", "importance": -0.1}, [("BAD_INPUT", "importance")]),
    ("createMemory", {"content": "x", "subjectId": ""}, [("BAD_INPUT", "subjectId")]),
    ("createMemory", {"content": "x", "subjectId": LONG}, [("TOO_LARGE", "subjectId")]),
    ("createMemory", {"content": "x", "agentId": " "}, [("BAD_INPUT", "agentId")]),
    ("createMemory", {"content": "x", "metadata": ["a"]}, [("BAD_INPUT", "metadata")]),
    ("createMemory", {"content": "x", "metadata": {"a": "x" * 100_000}}, [("TOO_LARGE", "metadata")]),
    ("createMemory", {"content": "x", "conversationId": UNKNOWN}, [("NOT_FOUND", "conversationId")]),
    ("createMemory", {"content": "x", "relatedTo": ["<memory>", UNKNOWN]}, [("NOT_FOUND", "relatedTo.1")]),
    ("createMemory", {"content": "x", "topics": [{}]}, [("BAD_INPUT", "topics.0")]),
    (
        "createMemory",
        {"content": "x", "topics": [{"id": "<topic>", "name": "Deployment"}]},
        [("BAD_INPUT", "topics.0")],
    ),
    ("createMemory", {"content": "x", "topics": [{"name": "New"}, {"name": " "}]}, [("BAD_INPUT", "topics.1.name")]),
    ("createMemory", {"content": "x", "topics": [{"name": LONG}]}, [("TOO_LARGE", "topics.0.name")]),
    ("createMemory", {"content": "x", "topics": [{"name": "New"}, {"id": UNKNOWN}]}, [("NOT_FOUND", "topics.1.id")]),
    ("createMemory", {"content": "x", "entities": [{"type": "TOOL"}]}, [("BAD_INPUT", "entities.0")]),
    ("createMemory", {"content": "x", "entities": [{"id": "<topic>"}]}, [("NOT_FOUND", "entities.0.id")]),
    ("createMemory", {"content": "x", "entities": [{"name": "Ann"}]}, [("BAD_INPUT", "entities.0.type")]),
    ("createMemory", {"content": "x", "entities": [{"name": "Nobody"}]}, [("BAD_INPUT", "entities.0.type")]),
    (
        "createMemory",
        {"content": "x", "facts": [{"subject": "", "predicate": "is", "object": "x" * 1001, "confidence": 2}]},
        [
            ("BAD_INPUT", "facts.0.subject"),
            ("TOO_LARGE", "facts.0.object"),
            ("BAD_INPUT", "facts.0.confidence"),
        ],
    ),
    ("createMemory", {"content": "x", "topics": [{"name": "New"}] * 201}, [("TOO_LARGE", "topics")]),
    ("createMemory", {"content": "x", "entities": [{"id": "<entity>"}] * 201}, [("TOO_LARGE", "entities")]),
    ("createMemory", {"content": "x", "relatedTo": ["<memory>"] * 201}, [("TOO_LARGE", "relatedTo")]),
    (
        "createMemory",
        {"content": "x", "facts": [{"subject": "a", "predicate": "b", "object": "c"}] * 201},
        [("TOO_LARGE", "facts")],
    ),
    ("createMemory", {"content": "x", "clientMutationKey": ""}, [("BAD_INPUT", "clientMutationKey")]),
    ("createMemory", {"content": "x", "clientMutationKey": LONG}, [("TOO_LARGE", "clientMutationKey")]),
    (
        "createMemories",
        {"memories": [{"content": "a"}, {"content": ""}, {"content": "c"}, {"content": "d", "importance": 7}]},
        [("BAD_INPUT", "memories.1.content"), ("BAD_INPUT", "memories.3.importance")],
    ),
    (
        "createMemories",
        {
            "memories": [
                {"content": "a", "topics": [{"name": "New"}]},
                {"content": "b", "conversationId": "<foreign-conversation>", "topics": [{"name": "Newer"}]},
                {"content": "c", "entities": [{"name": "Ann", "type": "PERSON"}, {"id": UNKNOWN}]},
            ]
        },
        [("NOT_FOUND", "memories.1.conversationId"), ("NOT_FOUND", "memories.2.entities.1.id")],
    ),
    ("createMemories", {"memories": [{"content": "a"}] * 1001}, [("TOO_LARGE", "memories")]),
    (
        "createMemories",
        {"memories": [{"content": "a"}, {"content": "b", "clientMutationKey": "k"}]},
        [("BAD_INPUT", "memories.1.clientMutationKey")],
    ),
    (
        "createMemories",
        {"memories": [{"content": "a"}], "clientMutationKey": " "},
        [("BAD_INPUT", "clientMutationKey")],
    ),
    ("updateMemory", {"id": "<memory>", "content": None}, [("BAD_INPUT", "content")]),
    ("updateMemory", {"id": "<memory>", "content": " "}, [("BAD_INPUT", "content")]),
    ("updateMemory", {"id": "<memory>", "content": "x" * 100_001}, [("TOO_LARGE", "content")]),
    ("updateMemory", {"id": "<memory>", "memoryType": None}, [("BAD_INPUT", "memoryType")]),
    ("updateMemory", {"id": "<memory>", "importance": None}, [("BAD_INPUT", "importance")]),
    ("updateMemory", {"id": "<memory>", "importance": 1.01}, [("BAD_INPUT", "importance")]),
    ("updateMemory", {"id": "<memory>", "metadata": "text"}, [("BAD_INPUT", "metadata")]),
    ("updateMemory", {"id": "<memory>", "content": "y", "conversationId": UNKNOWN}, [("NOT_FOUND", "conversationId")]),
    (
        "updateMemory",
        {"id": "<memory>", "content": "y", "addTopics": [{"name": "New"}, {"id": UNKNOWN}]},
        [("NOT_FOUND", "addTopics.1.id")],
    ),
    (
        "updateMemory",
        {"id": "<memory>", "addTopics": [{"name": "New"}], "addEntities": [{"name": "Ann"}]},
        [("BAD_INPUT", "addEntities.0.type")],
    ),
    (
        "updateMemory",
        {"id": "<memory>", "addTopics": [{"name": "New"}], "removeTopicIds": ["<topic>", UNKNOWN]},
        [("NOT_FOUND", "removeTopicIds.1")],
    ),
    ("updateMemory", {"id": "<memory>", "removeEntityIds": ["<topic>"]}, [("NOT_FOUND", "removeEntityIds.0")]),
    ("updateMemory", {"id": "<memory>", "addTopics": [{"name": "New"}] * 201}, [("TOO_LARGE", "addTopics")]),
    ("updateMemory", {"id": "<memory>", "addEntities": [{"id": "<tool>"}] * 201}, [("TOO_LARGE", "addEntities")]),
    ("updateMemory", {"id": "<memory>", "removeTopicIds": ["<topic>"] * 201}, [("TOO_LARGE", "removeTopicIds")]),
    ("updateMemory", {"id": "<memory>", "removeEntityIds": ["<tool>"] * 201}, [("TOO_LARGE", "removeEntityIds")]),
    ("relateMemories", {"fromId": "<memory>", "toId": "<memory>"}, [("BAD_INPUT", "toId")]),
    ("relateMemories", {"fromId": "<memory>", "toId": "<other-memory>", "weight": -1}, [("BAD_INPUT", "weight")]),
    ("relateMemories", {"fromId": "<memory>", "toId": "<other-memory>", "relation": " "}, [("BAD_INPUT", "relation")]),
    ("relateMemories", {"fromId": "<memory>", "toId": "<other-memory>", "relation": LONG}, [("TOO_LARGE", "relation")]),
    ("relateMemories", {"fromId": UNKNOWN, "toId": "<entity>"}, [("NOT_FOUND", "fromId"), ("NOT_FOUND", "toId")]),
]

CONVERSATIONS: list[Row] = [
    ("createConversation", {"title": " "}, [("BAD_INPUT", "title")]),
    ("createConversation", {"title": "x" * 501}, [("TOO_LARGE", "title")]),
    ("createConversation", {"title": "x", "threadId": ""}, [("BAD_INPUT", "threadId")]),
    ("createConversation", {"title": "x", "threadId": LONG}, [("TOO_LARGE", "threadId")]),
    (
        "createConversation",
        {"title": "x", "threadId": "standup"},
        [("ALREADY_EXISTS", "threadId", "<conversation>")],
    ),
    ("updateConversation", {"id": "<conversation>", "title": ""}, [("BAD_INPUT", "title")]),
    ("updateConversation", {"id": "<conversation>", "title": "x" * 501}, [("TOO_LARGE", "title")]),
]

TOPICS: list[Row] = [
    ("createTopic", {"name": "\t"}, [("BAD_INPUT", "name")]),
    ("createTopic", {"name": LONG}, [("TOO_LARGE", "name")]),
    ("createTopic", {"name": "Deployment"}, [("ALREADY_EXISTS", "name", "<topic>")]),
    ("updateTopic", {"id": "<topic>", "name": ""}, [("BAD_INPUT", "name")]),
    ("updateTopic", {"id": "<topic>", "name": LONG}, [("TOO_LARGE", "name")]),
    ("updateTopic", {"id": "<topic>", "name": "release"}, [("ALREADY_EXISTS", "name", "<other-topic>")]),
    ("mergeTopics", {"intoId": "<topic>", "fromIds": []}, [("BAD_INPUT", "fromIds")]),
    (
        "mergeTopics",
        {"intoId": "<topic>", "fromIds": ["<other-topic>", "<topic>"]},
        [("BAD_INPUT", "fromIds.1")],
    ),
    (
        "mergeTopics",
        {"intoId": UNKNOWN, "fromIds": ["<other-topic>", "<entity>"]},
        [("NOT_FOUND", "intoId"), ("NOT_FOUND", "fromIds.1")],
    ),
    ("mergeTopics", {"intoId": "<topic>", "fromIds": ["<other-topic>"] * 201}, [("TOO_LARGE", "fromIds")]),
]

FACTS: list[Row] = [
    (
        "createFact",
        {"subject": " ", "predicate": "x" * 1001, "object": "", "confidence": -1},
        [
            ("BAD_INPUT", "subject"),
            ("TOO_LARGE", "predicate"),
            ("BAD_INPUT", "object"),
            ("BAD_INPUT", "confidence"),
        ],
    ),
    (
        "createFact",
        {
            "subject": "a",
            "predicate": "b",
            "object": "c",
            "memoryIds": ["<memory>", "<entity>"],
            "aboutEntityIds": ["<memory>", "<entity>", UNKNOWN],
        },
        [("NOT_FOUND", "memoryIds.1"), ("NOT_FOUND", "aboutEntityIds.0"), ("NOT_FOUND", "aboutEntityIds.2")],
    ),
    (
        "createFact",
        {"subject": "a", "predicate": "b", "object": "c", "memoryIds": ["<memory>"] * 201},
        [("TOO_LARGE", "memoryIds")],
    ),
    (
        "createFact",
        {"subject": "a", "predicate": "b", "object": "c", "aboutEntityIds": ["<entity>"] * 201},
        [("TOO_LARGE", "aboutEntityIds")],
    ),
    (
        "updateFact",
        {"id": "<fact>", "subject": None, "predicate": None, "object": None, "confidence": None},
        [("BAD_INPUT", "subject"), ("BAD_INPUT", "predicate"), ("BAD_INPUT", "object"), ("BAD_INPUT", "confidence")],
    ),
    (
        "updateFact",
        {"id": "<fact>", "subject": "", "predicate": " ", "object": "x" * 1001, "confidence": 1.5},
        [("BAD_INPUT", "subject"), ("BAD_INPUT", "predicate"), ("TOO_LARGE", "object"), ("BAD_INPUT", "confidence")],
    ),
]

ENTITIES: list[Row] = [
    ("createEntity", {"name": "", "type": "TOOL"}, [("BAD_INPUT", "name")]),
    ("createEntity", {"name": LONG, "type": "TOOL"}, [("TOO_LARGE", "name")]),
    (
        "createEntity",
        {"name": "New", "type": "TOOL", "aliases": ["ok", " ", LONG]},
        [("BAD_INPUT", "aliases.1"), ("TOO_LARGE", "aliases.2")],
    ),
    ("createEntity", {"name": "New", "type": "TOOL", "aliases": ["a"] * 201}, [("TOO_LARGE", "aliases")]),
    ("createEntity", {"name": "ROBERT", "type": "PERSON"}, [("ALREADY_EXISTS", "name", "<other-entity>")]),
    (
        "createEntity",
        {"name": "New", "type": "PERSON", "aliases": ["New", "N", "n", "bob", "Ann"]},
        [("ALREADY_EXISTS", "aliases.3", "<other-entity>"), ("ALREADY_EXISTS", "aliases.4", "<entity>")],
    ),
    ("updateEntity", {"id": "<entity>", "name": None, "type": None}, [("BAD_INPUT", "name"), ("BAD_INPUT", "type")]),
    ("updateEntity", {"id": "<entity>", "name": " "}, [("BAD_INPUT", "name")]),
    ("updateEntity", {"id": "<entity>", "aliases": ["ok", ""]}, [("BAD_INPUT", "aliases.1")]),
    ("updateEntity", {"id": "<entity>", "name": "bob"}, [("ALREADY_EXISTS", "name", "<other-entity>")]),
    (
        "updateEntity",
        {"id": "<entity>", "aliases": ["Anna", "anna", "robert"]},
        [("ALREADY_EXISTS", "aliases.2", "<other-entity>")],
    ),
    ("updateEntity", {"id": "<tool>", "type": "PERSON"}, [("ALREADY_EXISTS", "type", "<entity>")]),
    ("mergeEntities", {"intoId": "<entity>", "fromIds": []}, [("BAD_INPUT", "fromIds")]),
    ("mergeEntities", {"intoId": "<entity>", "fromIds": ["<entity>"]}, [("BAD_INPUT", "fromIds.0")]),
    (
        "mergeEntities",
        {"intoId": "<topic>", "fromIds": ["<tool>", UNKNOWN]},
        [("NOT_FOUND", "intoId"), ("NOT_FOUND", "fromIds.1")],
    ),
    ("mergeEntities", {"intoId": "<entity>", "fromIds": ["<tool>"] * 201}, [("TOO_LARGE", "fromIds")]),
    ("relateEntities", {"fromId": "<entity>", "toId": "<entity>"}, [("BAD_INPUT", "toId")]),
    ("relateEntities", {"fromId": "<entity>", "toId": "<tool>", "weight": -0.1}, [("BAD_INPUT", "weight")]),
    ("relateEntities", {"fromId": "<entity>", "toId": "<tool>", "relation": ""}, [("BAD_INPUT", "relation")]),
    ("relateEntities", {"fromId": "<memory>", "toId": UNKNOWN}, [("NOT_FOUND", "fromId"), ("NOT_FOUND", "toId")]),
    ("unrelate", {"fromId": "<entity>", "toId": "<tool>", "relation": " "}, [("BAD_INPUT", "relation")]),
    ("unrelate", {"fromId": "<entity>", "toId": "<tool>", "relation": LONG}, [("TOO_LARGE", "relation")]),
    ("unrelate", {"fromId": "<conversation>", "toId": "<fact>"}, [("NOT_FOUND", "fromId"), ("NOT_FOUND", "toId")]),
]

EVENTS: list[Row] = [
    (
        "recordEvents",
        {
            "events": [
                message("ok"),
                message("x", ""),
                message("x", LONG, clientEventId=" ", userId="", agentId=LONG),
                message(["x" * 100_000]),
            ]
        },
        [
            ("BAD_INPUT", "events.1.threadId"),
            ("TOO_LARGE", "events.2.threadId"),
            ("BAD_INPUT", "events.2.clientEventId"),
            ("BAD_INPUT", "events.2.userId"),
            ("TOO_LARGE", "events.2.agentId"),
            ("TOO_LARGE", "events.3.content"),
        ],
    ),
    ("recordEvents", {"events": [message("x", clientEventId=LONG)]}, [("TOO_LARGE", "events.0.clientEventId")]),
    ("recordEvents", {"events": [message("a")] * 1001}, [("TOO_LARGE", "events")]),
    ("recordEvents", {"events": [message("a")], "clientMutationKey": " "}, [("BAD_INPUT", "clientMutationKey")]),
    ("deleteConversation", {"id": "<eventful>"}, [("CONFLICT", "id")]),
    ("closeEpisode", {}, [("BAD_INPUT", "id")]),
    ("closeEpisode", {"id": None, "threadId": None, "outcome": "COMPLETED"}, [("BAD_INPUT", "id")]),
    ("closeEpisode", {"id": "<episode>", "threadId": "eventful"}, [("BAD_INPUT", "id")]),
    ("closeEpisode", {"threadId": " "}, [("BAD_INPUT", "threadId")]),
    ("closeEpisode", {"threadId": LONG}, [("TOO_LARGE", "threadId")]),
    ("closeEpisode", {"threadId": "standup"}, [("NOT_FOUND", "threadId")]),
    ("closeEpisode", {"id": "<memory>"}, [("NOT_FOUND", "id")]),
    ("retryEpisode", {"id": "<episode>"}, [("CONFLICT", "id")]),
]

GREEN = {"subjectId": "ann", "key": "likes.tea", "value": "green"}
BELIEFS: list[Row] = [
    (
        "upsertBelief",
        {"subjectId": " ", "key": "a b", "value": "", "confidence": 1.5},
        [("BAD_INPUT", "subjectId"), ("BAD_INPUT", "key"), ("BAD_INPUT", "value"), ("BAD_INPUT", "confidence")],
    ),
    ("upsertBelief", GREEN | {"validFrom": "2999-01-01T00:00:00Z"}, [("BAD_INPUT", "validFrom")]),
    ("upsertBelief", GREEN | {"domain": " "}, [("BAD_INPUT", "domain")]),
    ("upsertBelief", GREEN | {"key": LONG}, [("BAD_INPUT", "key")]),
    ("upsertBelief", GREEN | {"expectedVersion": 3}, [("CONFLICT", "expectedVersion")]),
    ("retractBelief", {"id": "<memory>"}, [("NOT_FOUND", "id")]),
    ("dream", {"episodeIds": ["<memory>"]}, [("NOT_FOUND", "episodeIds.0")]),
    ("dream", {"episodeIds": ["x"] * 201}, [("TOO_LARGE", "episodeIds")]),
    ("detectCommunities", {"resolution": 0}, [("BAD_INPUT", "resolution")]),
    ("detectCommunities", {"resolution": 1e9}, [("BAD_INPUT", "resolution")]),
    ("forgetSubject", {"subjectId": " "}, [("BAD_INPUT", "subjectId")]),
]
DOCUMENTS: list[Row] = [
    (
        "createDocument",
        {"title": " ", "text": "\n", "subjectId": ""},
        [("BAD_INPUT", "title"), ("BAD_INPUT", "text"), ("BAD_INPUT", "subjectId")],
    ),
    (
        "createDocument",
        {"title": "x" * 501, "text": "x" * 1_000_001, "subjectId": LONG},
        [("TOO_LARGE", "title"), ("TOO_LARGE", "text"), ("TOO_LARGE", "subjectId")],
    ),
    ("createDocument", {"title": "x", "text": "y", "clientMutationKey": " "}, [("BAD_INPUT", "clientMutationKey")]),
    (
        "linkDocument",
        {"url": "file:///etc/passwd", "title": "", "subjectId": " "},
        [("BAD_INPUT", "title"), ("BAD_INPUT", "url"), ("BAD_INPUT", "subjectId")],
    ),
    ("linkDocument", {"url": "http://127.0.0.1/"}, [("BAD_INPUT", "url")]),
    ("linkDocument", {"url": "http://[fd00:ec2::254]/"}, [("BAD_INPUT", "url")]),
    ("linkDocument", {"url": f"https://example.org/{'x' * 2_000}"}, [("TOO_LARGE", "url")]),
    ("deleteDocument", {"id": "<memory>"}, [("NOT_FOUND", "id")]),
]
ROWS = [*MEMORIES, *CONVERSATIONS, *TOPICS, *FACTS, *ENTITIES, *EVENTS, *BELIEFS, *DOCUMENTS]


def _named(row: Row) -> str:
    mutation, _, errors = row
    return "-".join((mutation, *(f"{error[1]}:{error[0]}" for error in errors)))


@pytest.mark.parametrize("row", ROWS, ids=map(_named, ROWS))
async def test_a_refusal_says_what_and_where_and_changes_nothing(row: Row, world: World, resources: Resources) -> None:
    mutation, input_, errors = row
    before = await stored(resources.graph, world.api.tenant)

    payload = await world.refused(mutation, input_)

    assert [(error["code"], ".".join(error["path"]), error["existingId"]) for error in payload.pop("errors")] == [
        (code, path, world.filled(existing[0]) if existing else None) for code, path, *existing in errors
    ]
    assert set(payload.values()) == {None}
    assert await stored(resources.graph, world.api.tenant) == before


LEADING_NOWHERE: list[tuple[str, str, str, dict[str, Any]]] = [
    ("updateMemory", "id", "<foreign-memory>", {"id": "?", "content": "changed"}),
    ("updateMemory", "conversationId", "<foreign-conversation>", {"id": "<memory>", "conversationId": "?"}),
    ("updateMemory", "addTopics.0.id", "<foreign-topic>", {"id": "<memory>", "addTopics": [{"id": "?"}]}),
    ("updateMemory", "addEntities.0.id", "<foreign-entity>", {"id": "<memory>", "addEntities": [{"id": "?"}]}),
    ("updateMemory", "removeTopicIds.0", "<foreign-topic>", {"id": "<memory>", "removeTopicIds": ["?"]}),
    ("updateMemory", "removeEntityIds.0", "<foreign-entity>", {"id": "<memory>", "removeEntityIds": ["?"]}),
    ("createMemory", "conversationId", "<foreign-conversation>", {"content": "x", "conversationId": "?"}),
    ("createMemory", "topics.0.id", "<foreign-topic>", {"content": "x", "topics": [{"id": "?"}]}),
    ("createMemory", "entities.0.id", "<foreign-entity>", {"content": "x", "entities": [{"id": "?"}]}),
    ("createMemory", "relatedTo.0", "<foreign-memory>", {"content": "x", "relatedTo": ["?"]}),
    ("deleteMemory", "id", "<foreign-memory>", {"id": "?"}),
    ("relateMemories", "fromId", "<foreign-memory>", {"fromId": "?", "toId": "<memory>"}),
    ("relateMemories", "toId", "<foreign-memory>", {"fromId": "<memory>", "toId": "?"}),
    ("updateConversation", "id", "<foreign-conversation>", {"id": "?", "title": "changed"}),
    ("deleteConversation", "id", "<foreign-conversation>", {"id": "?", "deleteMemories": True}),
    ("updateTopic", "id", "<foreign-topic>", {"id": "?", "name": "changed"}),
    ("mergeTopics", "intoId", "<foreign-topic>", {"intoId": "?", "fromIds": ["<topic>"]}),
    ("mergeTopics", "fromIds.0", "<foreign-topic>", {"intoId": "<topic>", "fromIds": ["?"]}),
    ("deleteTopic", "id", "<foreign-topic>", {"id": "?"}),
    (
        "createFact",
        "memoryIds.0",
        "<foreign-memory>",
        {"subject": "a", "predicate": "b", "object": "c", "memoryIds": ["?"]},
    ),
    (
        "createFact",
        "aboutEntityIds.0",
        "<foreign-entity>",
        {"subject": "a", "predicate": "b", "object": "c", "aboutEntityIds": ["?"]},
    ),
    ("updateFact", "id", "<foreign-fact>", {"id": "?", "subject": "changed"}),
    ("deleteFact", "id", "<foreign-fact>", {"id": "?"}),
    ("updateEntity", "id", "<foreign-entity>", {"id": "?", "name": "changed"}),
    ("mergeEntities", "intoId", "<foreign-entity>", {"intoId": "?", "fromIds": ["<entity>"]}),
    ("mergeEntities", "fromIds.0", "<foreign-entity>", {"intoId": "<entity>", "fromIds": ["?"]}),
    ("deleteEntity", "id", "<foreign-entity>", {"id": "?"}),
    ("relateEntities", "fromId", "<foreign-entity>", {"fromId": "?", "toId": "<entity>"}),
    ("relateEntities", "toId", "<foreign-entity>", {"fromId": "<entity>", "toId": "?"}),
    ("closeEpisode", "id", "<foreign-episode>", {"id": "?"}),
    ("retryEpisode", "id", "<foreign-episode>", {"id": "?"}),
    ("retractBelief", "id", "<foreign-memory>", {"id": "?"}),
    ("deleteDocument", "id", "<foreign-document>", {"id": "?"}),
    ("dream", "episodeIds.0", "<foreign-episode>", {"episodeIds": ["?"]}),
    ("unrelate", "fromId", "<foreign-memory>", {"fromId": "?", "toId": "<memory>"}),
    ("unrelate", "toId", "<foreign-entity>", {"fromId": "<entity>", "toId": "?"}),
]
GARBAGE = ["", "é\u2028'\"; DROP", UNKNOWN.upper(), UNKNOWN.replace("-", "")]


@pytest.mark.parametrize(
    ("mutation", "path", "foreign", "input_"), LEADING_NOWHERE, ids=[f"{row[0]}-{row[1]}" for row in LEADING_NOWHERE]
)
async def test_no_uuid_an_unknown_id_and_another_tenants_id_get_the_identical_answer(
    mutation: str, path: str, foreign: str, input_: dict[str, Any], world: World, resources: Resources
) -> None:
    foreign_tenant = world.foreign_tenant
    before = [await stored(resources.graph, tenant) for tenant in (world.api.tenant, foreign_tenant)]

    answers = [
        await world.refused(mutation, _with(input_, wanted)) for wanted in (UNKNOWN, world.ids[foreign], *GARBAGE)
    ]

    assert [(error["code"], ".".join(error["path"])) for error in answers[0]["errors"]] == [("NOT_FOUND", path)]
    assert answers == [answers[0]] * len(answers)
    assert [await stored(resources.graph, tenant) for tenant in (world.api.tenant, foreign_tenant)] == before


def _with(value: Any, wanted: str) -> Any:
    if value == "?":
        return wanted
    if isinstance(value, dict):
        return {name: _with(member, wanted) for name, member in value.items()}
    return [_with(member, wanted) for member in value] if isinstance(value, list) else value


def test_every_mutation_is_here() -> None:
    refused = {row[0] for row in ROWS} | {row[0] for row in LEADING_NOWHERE}

    mutations = build_schema(sdl()).mutation_type
    assert mutations is not None
    # files come in another kind of request, and are refused where documents are tested
    assert refused | {"uploadDocument"} == set(MADE) == set(mutations.fields)
