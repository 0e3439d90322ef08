"""Two transactions, one of which waits for what the other takes away: what held before the lock is looked at again."""

from typing import Any

import pytest
from tests.conftest import Api
from tests.meeting import Work, meanwhile
from tests.recording import message, record
from tests.stored import counted

from reverie.domain.clock import now_ms
from reverie.graph import conversations, documents, facts, memories, topics
from reverie.graph.conversations import ConversationDeletion
from reverie.graph.writes import Write, Writer
from reverie.resources import Resources
from reverie.services.documents import read_some

MANY = 60
"""Edges that make a node dense for Neo4j: then who draws or removes one more waits for no lock of the node."""


def writing(writer: Writer, tenant: str, draft: object) -> Work:
    """One write, to be carried out in a transaction of the test's own."""
    return lambda transaction: writer(transaction, [Write(tenant, 0, "test", draft, now_ms())])


async def made(api: Api, field: str, thing: str, given: dict[str, Any]) -> str:
    payload = await api.mutate(field, f"{field[0].upper()}{field[1:]}Input", f"{thing} {{ id }}", given)
    assert payload["errors"] == []
    return str(payload[thing]["id"])


async def many_memories(api: Api, **given: Any) -> list[str]:
    members = [{"content": f"note {number}", "enrich": False, **given} for number in range(MANY)]
    payload = await api.mutate("createMemories", "CreateMemoriesInput", "memories { id }", {"memories": members})
    assert payload["errors"] == []
    return [memory["id"] for memory in payload["memories"]]


async def test_a_name_is_taken_while_its_topic_is_deleted(api: Api, resources: Resources) -> None:
    old = await made(api, "createTopic", "topic", {"name": "harbour"})

    new = await meanwhile(
        resources,
        writing(topics.delete_topics, api.tenant, old),
        lambda: made(api, "createTopic", "topic", {"name": "harbour"}),
    )

    assert await api('{ topic(name: "harbour") { id } }') == {"topic": {"id": new}}
    assert (await counted(resources.graph, api.tenant))["Name"] == 1


async def test_a_document_is_sent_again_while_it_is_deleted(api: Api, resources: Resources) -> None:
    given = {"title": "Harbour", "text": "The harbour gate is shut at night."}
    old = await made(api, "createDocument", "document", given)

    new = await meanwhile(
        resources,
        writing(documents.delete_documents, api.tenant, old),
        lambda: made(api, "createDocument", "document", given),
    )

    assert new != old
    assert (await counted(resources.graph, api.tenant))["Document"] == 1


async def test_a_vector_is_not_kept_that_knows_a_memory_which_is_deleted(api: Api, resources: Resources) -> None:
    talk = await made(api, "createConversation", "conversation", {"title": "harbour"})
    first = await made(api, "createMemory", "memory", {"content": "the secret", "conversationId": talk})

    second = await meanwhile(
        resources,
        writing(memories.delete_memories, api.tenant, first),
        lambda: made(api, "createMemory", "memory", {"content": "yes", "conversationId": talk}),
    )

    read = "MATCH (m:Memory&Node {id: $id}) RETURN [m.saidAfter, m:Unembedded OR m.embedding IS NOT NULL]"
    assert await resources.graph.read(read, id=second) == [None, True]


MOVE = """
MATCH (m:Memory&Node {id: $id})-[r:BELONGS_TO]->(:Conversation) MATCH (c:Conversation&Node {id: $to})
SET m.conversationId = $to, m.place = 1 DELETE r CREATE (m)-[:BELONGS_TO]->(c)
"""


async def test_a_memory_moves_out_of_a_conversation_that_is_deleted(api: Api, resources: Resources) -> None:
    old, new = [await made(api, "createConversation", "conversation", {"title": title}) for title in ("old", "new")]
    kept, *_ = await many_memories(api, conversationId=old)

    payload = await meanwhile(
        resources,
        lambda transaction: transaction.run(MOVE, id=kept, to=new),
        lambda: api.mutate(
            "deleteConversation",
            "DeleteConversationInput",
            "deletedId deletedMemories",
            {"id": old, "deleteMemories": True},
        ),
    )

    assert payload == {"deletedId": old, "deletedMemories": MANY - 1, "errors": []}
    found = await api("query($id: ID!) { node(id: $id) { ... on Memory { conversation { id } } } }", id=kept)
    assert found == {"node": {"conversation": {"id": new}}}


async def test_a_document_mentions_what_an_entity_was_merged_into(
    api: Api, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, other = [
        await made(api, "createEntity", "entity", {"name": name, "type": "PERSON"}) for name in ("Ann", "Anna")
    ]
    document = await made(api, "createDocument", "document", {"title": "Harbour", "text": "Ann shut the gate."})
    look_up, merged = documents.entities_by_form, list[str]()

    async def and_merge(*given: Any) -> Any:
        found = await look_up(*given)
        if not merged:
            merged.append(await made(api, "mergeEntities", "entity", {"intoId": other, "fromIds": [ann]}))
        return found

    monkeypatch.setattr("reverie.graph.documents.entities_by_form", and_merge)
    while await read_some(resources):
        pass

    assert merged == [other]
    read = "MATCH (:Document&Node {id: $id})<-[:PART_OF]-(c:Chunk) RETURN collect([(c)-[:MENTIONS]->(e) | e.id])"
    assert await resources.graph.read(read, id=document) == [[other]]


REMOVE_TOPIC = """
MATCH (m:Memory&Node {id: $id}) SET m.lockedAt = $now
WITH m MATCH (m)-[r:HAS_TOPIC]->(:Topic) DELETE r
"""


async def test_a_topic_is_taken_from_a_memory_while_it_is_merged(api: Api, resources: Resources) -> None:
    into = await made(api, "createTopic", "topic", {"name": "harbour"})
    freed, *_ = await many_memories(api, topics=[{"name": "port"}])
    port = (await api('{ topic(name: "port") { id } }'))["topic"]["id"]

    survivor = await meanwhile(
        resources,
        lambda transaction: transaction.run(REMOVE_TOPIC, id=freed, now=now_ms()),
        lambda: made(api, "mergeTopics", "topic", {"intoId": into, "fromIds": [port]}),
    )

    assert survivor == into
    found = await api("query($id: ID!) { node(id: $id) { ... on Topic { memories { totalCount } } } }", id=into)
    assert found == {"node": {"memories": {"totalCount": MANY - 1}}}


async def test_a_conversation_is_deleted_while_its_thread_goes_on(api: Api, resources: Resources) -> None:
    talk = await made(api, "createConversation", "conversation", {"title": "harbour", "threadId": "t"})

    events = await meanwhile(
        resources,
        writing(conversations.delete_conversations, api.tenant, ConversationDeletion(talk)),
        lambda: record(api, message("the gate is shut")),
    )

    assert [event["content"] for event in events] == ["the gate is shut"]
    assert events[0]["conversation"]["threadId"] == "t"
    assert events[0]["conversation"]["id"] != talk


async def test_a_fact_is_changed_while_it_is_deleted(api: Api, resources: Resources) -> None:
    given = {"subject": "harbour", "predicate": "has", "object": "gate"}
    fact = await made(api, "createFact", "fact", given)

    payload = await meanwhile(
        resources,
        writing(facts.delete_facts, api.tenant, fact),
        lambda: api.mutate("updateFact", "UpdateFactInput", "fact { id }", {"id": fact, "object": "crane"}),
    )

    assert payload["fact"] is None
    assert [error["code"] for error in payload["errors"]] == ["NOT_FOUND"]
