"""A tenant with many memories and events, written once for the session: plans, searches, isolation are tried on it."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from reverie.domain.beliefs import BeliefUpsert
from reverie.domain.clock import now_ms
from reverie.domain.conversations import ConversationDraft
from reverie.domain.dreaming import DreamingPolicy
from reverie.domain.entities import EntityRef, EntityType
from reverie.domain.events import EventBatch, EventDraft, EventType
from reverie.domain.facts import FactDraft
from reverie.domain.ids import new_id
from reverie.domain.memories import MemoryBatch, MemoryDraft, MemoryType
from reverie.domain.topics import TopicRef
from reverie.graph import conversations, memories
from reverie.graph.beliefs import Upsert, write_beliefs
from reverie.graph.events import record_events
from reverie.graph.schema import await_words
from reverie.graph.writes import Write
from reverie.resources import Resources

MEMORIES, TOPICS, ENTITIES, CONVERSATIONS, COMMUNITIES, EVENTS = 20_000, 200, 500, 50, 20, 4_000
BELIEFS, DOCUMENTS = 2_000, 1_000
BATCH = 2_000
MARK = "crowdmark"
"""A word in every text of the crowd's, and in no other tenant's."""
COMMON = "harbour"
"""A word that the crowd's memories share with other tenants'."""

CREATE_COMMUNITIES = """
MATCH (t:Topic) WHERE t.tenant = $t AND t.form >= '' AND t.id > ''
SET t.counted = COUNT { (t)<-[:HAS_TOPIC]-() }
WITH t ORDER BY t.id WITH collect(t) AS topics
UNWIND range(0, size($ids) - 1) AS place
CREATE (c:Community:Node {id: $ids[place], tenant: $t, name: $mark + ' group ' + place, form: $mark + ' group ' + place,
  algorithm: 'LEIDEN', size: size(topics) / size($ids)})
WITH topics, place, c
FOREACH (n IN range(0, size(topics) - 1) | FOREACH (t IN CASE WHEN n % size($ids) = place THEN [topics[n]] ELSE [] END |
  CREATE (t)-[:BELONGS_TO]->(c)))
"""
"""Groups of a known size, which no algorithm would find; the worker sees nothing that changed since."""

CREATE_DOCUMENTS = """
UNWIND range(0, size($ids) - 1) AS place
CREATE (d:Document:Node {id: $ids[place], tenant: $t, title: $mark + ' document ' + place, source: 'TEXT',
  mediaType: 'text/plain', sizeBytes: place, status: 'FAILED', failure: 'none has a text', contentKey: $ids[place],
  subjectId: $mark + '-subject-' + (place % 40), createdAt: $now + place, attempts: 1})
"""


@dataclass(frozen=True)
class Crowd:
    """The tenant and the ids of its memories, in the order they were written."""

    tenant: str
    memories: list[str]


async def fill_crowd(resources: Resources) -> Crowd:
    """Writes the crowd with synthetic vectors, through the product's own writers."""
    tenant = f"crowd-{uuid4().hex[:12]}"
    number = await resources.tenant_number(tenant)
    assert resources.embedder is not None
    dimensions = resources.embedder.dimensions
    chance = random.Random(20_000)  # noqa: S311 - no secret

    def write(field: str, draft: object, weight: int) -> Write:
        return Write(tenant, number, field, draft, now_ms(), None, weight)

    threads = [
        write("createConversation", ConversationDraft(f"{MARK} thread {n}", f"{MARK}-{n}"), 1)
        for n in range(CONVERSATIONS)
    ]
    made = await resources.graph.transact(lambda transaction: conversations.create_conversations(transaction, threads))
    conversation_ids = [str(outcome["conversation"]) for outcome in made if isinstance(outcome, dict)]

    ids = [new_id() for _ in range(MEMORIES)]
    for start in range(0, MEMORIES, BATCH):
        places = range(start, start + BATCH)
        batch = MemoryBatch(
            tuple(_draft(place, ids, conversation_ids, chance) for place in places),
            True,
            ids[start : start + BATCH],
            [[chance.gauss(0, 1) for _ in range(dimensions)] for _ in places],
        )
        one = [write("createMemories", batch, BATCH)]
        await resources.graph.transact(lambda transaction, one=one: memories.create_memories(transaction, one))  # type: ignore[misc]  # mypy can't infer a lambda's default
    for start in range(0, EVENTS, BATCH):
        events = EventBatch(tuple(_event(place) for place in range(start, start + BATCH)), DreamingPolicy().idle_gap)
        lived = [write("recordEvents", events, BATCH)]
        await resources.graph.transact(lambda transaction, lived=lived: record_events(transaction, lived))  # type: ignore[misc]  # as above
    half_lives = DreamingPolicy().half_lives
    held = [
        write("upsertBelief", Upsert(BeliefUpsert(f"{MARK}-user-{n % 40}", f"likes.{n // 80}", f"{n}"), half_lives), 1)
        for n in range(BELIEFS)
    ]
    await resources.graph.transact(lambda transaction: write_beliefs(transaction, held))
    community_ids = [new_id() for _ in range(COMMUNITIES)]
    await resources.graph.execute(CREATE_COMMUNITIES, t=tenant, ids=community_ids, mark=MARK)
    document_ids = [new_id() for _ in range(DOCUMENTS)]
    await resources.graph.execute(CREATE_DOCUMENTS, t=tenant, ids=document_ids, mark=MARK, now=now_ms())
    await await_words(resources.graph)
    return Crowd(tenant, ids)


def _draft(place: int, ids: list[str], conversation_ids: list[str], chance: random.Random) -> MemoryDraft:
    """Every fourth memory hangs together with others, and every twentieth has a fact."""
    connected, turn = place % 4 == 0, place // 4
    return MemoryDraft(
        content=f"{MARK} note {place}: the {COMMON} crane {place % 97} was checked",
        memory_type=list(MemoryType)[place % 3],
        importance=round(chance.random(), 3),
        conversation_id=conversation_ids[turn % CONVERSATIONS] if connected else None,
        topics=(TopicRef(name=f"{MARK} topic {turn % TOPICS}"),) if connected else (),
        entities=(EntityRef(name=f"{MARK} entity {turn % ENTITIES}", type=EntityType.TOOL),) if connected else (),
        facts=(FactDraft(f"{MARK} entity {turn % ENTITIES}", "was seen in", f"{MARK} hall {place}"),)
        if place % 20 == 0
        else (),
        related_to=(ids[place - BATCH],) if place >= BATCH and place % 100 == 0 else (),
        subject_id=f"{MARK}-subject-{place % 40}",
        agent_id=f"{MARK}-agent-{place % 4}",
    )


def _event(place: int) -> EventDraft:
    """Every thread has an event every 10 minutes, and after four of them a pause of an hour."""
    turn = place // CONVERSATIONS
    return EventDraft(
        list(EventType)[place % 4],
        f"{MARK} line {place}: is the {COMMON} crane {place % 97} checked?",
        f"{MARK}-{place % CONVERSATIONS}",
        user_id=f"{MARK}-user-{place % 40}",
        agent_id=f"{MARK}-agent-{place % 4}",
        occurred_at=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=10 * turn + 50 * (turn // 4)),
    )
