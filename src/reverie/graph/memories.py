"""Memories in Neo4j: created many at a time, changed, deleted, related, found near each other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from reverie.domain.checks import Path
from reverie.domain.clock import NEVER_MS, to_ms
from reverie.domain.ids import new_id
from reverie.domain.memories import EnrichmentStatus, MemoryBatch, MemoryChange, MemoryDraft, SimilarMemory
from reverie.domain.policy import CONTEXT_MOST
from reverie.domain.unset import given
from reverie.errors import NotFound, Refusal, Refusals
from reverie.graph.facts import FactRow, write_facts
from reverie.graph.names import ENTITY, TOPIC, NamedRefs, Resolved, refuse_unknown, resolve
from reverie.graph.records import MEMORY, whole
from reverie.graph.store import Graph, Raced, Transaction
from reverie.graph.words import words_of
from reverie.graph.writes import Outcome, Write


@dataclass(slots=True)
class _Rows:
    """What one transaction writes for its memories, gathered over all of them."""

    memories: list[dict[str, Any]] = field(default_factory=list)
    topics: dict[str, int] = field(default_factory=dict)
    entities: dict[str, int] = field(default_factory=dict)
    conversations: dict[str, int] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)
    contexts: set[tuple[str, str]] = field(default_factory=set)
    related: list[tuple[str, str, str]] = field(default_factory=list)
    facts: list[FactRow] = field(default_factory=list)


FOUND_MEMORIES = """
UNWIND $rows AS k MATCH (m:Memory&Node {id: k[1]}) WHERE m.tenant = k[0] AND m.expiresAt > $now
RETURN collect(DISTINCT [k[0], k[1]])
"""
FOUND_CONVERSATIONS = """
UNWIND $rows AS k MATCH (c:Conversation&Node {id: k[1]}) WHERE c.tenant = k[0]
RETURN collect(DISTINCT [k[0], k[1]])
"""
CREATE_MEMORIES = """
CALL () { UNWIND $topics AS i OPTIONAL MATCH (n:Topic&Node {id: i}) RETURN collect(CASE WHEN n IS NULL THEN [] ELSE [n] END) AS topics }
CALL () { UNWIND $entities AS i OPTIONAL MATCH (n:Entity&Node {id: i}) RETURN collect(CASE WHEN n IS NULL THEN [] ELSE [n] END) AS entities }
CALL () { UNWIND $conversations AS i OPTIONAL MATCH (n:Conversation&Node {id: i}) RETURN collect(CASE WHEN n IS NULL THEN [] ELSE [n] END) AS conversations }
CALL () { UNWIND $contexts AS k OPTIONAL MATCH (n:Memory&Node {id: k[0]}) SET n.lockedAt = $now
  RETURN collect(CASE WHEN n.content IS NULL OR right(n.content, $most) <> k[1] THEN k END) AS gone }
FOREACH (place IN range(0, size($counts) - 1) | FOREACH (c IN conversations[place] |
  SET c.updatedAt = CASE WHEN c.updatedAt < $now THEN $now ELSE c.updatedAt END, c.places = coalesce(c.places, 0) + $counts[place]))
FOREACH (row IN $rows |
  CREATE (m:Memory:Node) SET m = row.properties
  FOREACH (_ IN CASE WHEN row.context IN gone THEN [1] ELSE [] END | SET m.embedding = null, m.saidAfter = null)
  FOREACH (_ IN CASE WHEN m.embedding IS NULL THEN [1] ELSE [] END | SET m:Unembedded)
  FOREACH (place IN row.topics | FOREACH (t IN topics[place] | CREATE (m)-[:HAS_TOPIC]->(t)))
  FOREACH (place IN row.entities | FOREACH (e IN entities[place] | CREATE (m)-[:MENTIONS]->(e)))
  FOREACH (place IN row.conversations | FOREACH (c IN conversations[place] |
    CREATE (m)-[:BELONGS_TO]->(c) SET m.place = c.places - $counts[place] + row.turn)))
RETURN all(found IN topics + entities + conversations WHERE found <> [])
"""
"""Whether all was there to be connected: each topic, entity and conversation is looked up once, and rows name it by its place.

A memory's own `place` is its turn in its conversation, counted from 1 under the conversation's lock. A vector that knows
of a memory that is gone by now, or says something else, isn't kept.
"""
CONNECT_CONVERSATIONS = """
UNWIND $rows AS k MATCH (m:Memory&Node {id: k[0]}) MATCH (c:Conversation&Node {id: k[1]})
SET c.updatedAt = CASE WHEN c.updatedAt < $now THEN $now ELSE c.updatedAt END, c.places = coalesce(c.places, 0) + 1
SET m.place = c.places
CREATE (m)-[:BELONGS_TO]->(c) RETURN count(*)
"""
CONNECT_MEMORIES = """
UNWIND $rows AS k MATCH (m:Memory&Node {id: k[0]}) MATCH (o:Memory&Node {id: k[1]})
CREATE (m)-[:RELATED_TO {id: k[2], relation: 'related', weight: 1.0, tenant: m.tenant}]->(o) RETURN count(*)
"""


async def create_memories(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Writes the batches of all writes (drafts: MemoryBatch), each whole or not at all; outcome: `memories`, their ids."""
    batches: list[MemoryBatch] = [write.draft for write in writes]
    now = writes[0].now
    refused: list[list[Refusal]] = [[] for _ in writes]
    await _check_ids(transaction, writes, refused, now)
    refs = NamedRefs()
    for place, (write, batch) in enumerate(zip(writes, batches, strict=True)):
        for index, draft in enumerate(batch.drafts):
            refs.add_draft(place, write.tenant, draft, ("memories", index) if batch.batched else ())
    resolved = await resolve(transaction, refs, refused, writes)
    rows = _Rows()
    for place, (write, batch) in enumerate(zip(writes, batches, strict=True)):
        if not refused[place]:
            own = set(batch.ids)
            for draft, memory_id, vector in zip(batch.drafts, batch.ids, batch.vectors, strict=True):
                said_after = batch.said_after.get(memory_id)
                _gather(rows, write, draft, memory_id, vector, resolved, said_after)
                if said_after is not None and said_after[0] not in own:
                    rows.memories[-1]["context"] = list(said_after)
                    rows.contexts.add(said_after)
    complete = await transaction.run(
        CREATE_MEMORIES,
        rows=rows.memories,
        topics=list(rows.topics),
        entities=list(rows.entities),
        conversations=list(rows.conversations),
        contexts=[list(context) for context in sorted(rows.contexts)],
        most=CONTEXT_MOST,
        counts=[rows.turns[conversation] for conversation in rows.conversations],
        now=now,
    )
    if not complete:
        raise Raced
    await _connect(transaction, CONNECT_MEMORIES, rows.related)
    await write_facts(transaction, rows.facts)
    return [
        Refusals(refused[place]) if refused[place] else {"memories": batch.ids} for place, batch in enumerate(batches)
    ]


async def _check_ids(transaction: Transaction, writes: Sequence[Write], refused: list[list[Refusal]], now: int) -> None:
    memories, conversations = [], []
    for place, write in enumerate(writes):
        batch: MemoryBatch = write.draft
        for index, draft in enumerate(batch.drafts):
            path: Path = ("memories", index) if batch.batched else ()
            for at, related in enumerate(draft.related_to):
                memories.append((place, write.tenant, related, (*path, "relatedTo", at)))
            if draft.conversation_id is not None:
                conversations.append((place, write.tenant, draft.conversation_id, (*path, "conversationId")))
    await _refuse_missing(transaction, FOUND_MEMORIES, memories, refused, "no memory has this id", now=now)
    await _refuse_missing(transaction, FOUND_CONVERSATIONS, conversations, refused, "no conversation has this id")


async def _refuse_missing(
    transaction: Transaction,
    statement: str,
    wanted: list[tuple[int, str, str, Path]],
    refused: list[list[Refusal]],
    message: str,
    **parameters: Any,
) -> None:
    if not wanted:
        return
    pairs = sorted({(tenant, wanted_id) for _, tenant, wanted_id, _ in wanted})
    found = {
        tuple(pair) for pair in await transaction.run(statement, rows=[list(pair) for pair in pairs], **parameters)
    }
    for place, tenant, wanted_id, path in wanted:
        if (tenant, wanted_id) not in found:
            refused[place].append(NotFound(message, path))


def _gather(
    rows: _Rows,
    write: Write,
    draft: MemoryDraft,
    memory_id: str,
    vector: list[float] | None,
    resolved: Resolved,
    said_after: tuple[str, str] | None,
) -> None:
    if draft.conversation_id is not None:
        rows.turns[draft.conversation_id] += 1
    rows.memories.append(
        {
            "properties": memory_properties(write, draft, memory_id, vector)
            | {"saidAfter": None if said_after is None else said_after[0]},
            "topics": _places(rows.topics, [resolved.topic(write.tenant, ref) for ref in draft.topics]),
            "entities": _places(rows.entities, [resolved.entity(write.tenant, ref) for ref in draft.entities]),
            "conversations": _places(rows.conversations, filter(None, [draft.conversation_id])),
            "turn": rows.turns[draft.conversation_id] if draft.conversation_id is not None else None,
        }
    )
    rows.related.extend((memory_id, related, new_id()) for related in dict.fromkeys(draft.related_to))
    rows.facts.extend(
        FactRow(write.tenant, write.number, new_id(), fact, write.now, (memory_id,), ()) for fact in draft.facts
    )


def _places(known: dict[str, int], ids: Iterable[str]) -> list[int]:
    """The places of ids among all that the transaction connects to, each once; an unknown one takes the next."""
    return sorted({known.setdefault(wanted, len(known)) for wanted in ids})


def memory_properties(write: Write, draft: MemoryDraft, memory_id: str, vector: list[float] | None) -> dict[str, Any]:
    """The node's properties; the order of events falls back to when the memory was written."""
    event = None if draft.event_time is None else to_ms(draft.event_time)
    return {
        "id": memory_id,
        "tenant": write.tenant,
        "content": draft.content,
        "words": words_of(write.number, "Memory", draft.content),
        "memoryType": draft.memory_type.value,
        "importance": draft.importance,
        "conversationId": draft.conversation_id,
        "subjectId": draft.subject_id,
        "agentId": draft.agent_id,
        "expiresAt": NEVER_MS if draft.expires_at is None else to_ms(draft.expires_at),
        "metadata": None if draft.metadata is None else orjson.dumps(draft.metadata).decode(),
        "eventTime": event,
        "happenedAt": write.now if event is None else event,
        "createdAt": write.now,
        "updatedAt": write.now,
        "enrichment": (EnrichmentStatus.PENDING if draft.enrich else EnrichmentStatus.DONE).value,
        "unread": None if draft.enrich else True,
        "embedding": vector,
    }


async def _connect(transaction: Transaction, statement: str, rows: Iterable[Any], **parameters: Any) -> None:
    wanted = [list(row) for row in rows]
    if wanted and await transaction.run(statement, rows=wanted, **parameters) != len(wanted):
        raise Raced


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """A checked change, with the new content's vector where the embedder was in time, and the memory that the vector
    knows of, with its words."""

    change: MemoryChange
    vector: list[float] | None = None
    said_after: tuple[str, str] | None = None


LOCK_MEMORY = """
MATCH (m:Memory&Node {id: $id}) WHERE m.tenant = $t AND m.expiresAt > $now
SET m.lockedAt = $now RETURN m.createdAt
"""
SET_MEMORY = """
MATCH (m:Memory&Node {id: $id}) SET m += $properties
FOREACH (_ IN CASE WHEN $unembedded THEN [1] ELSE [] END | SET m:Unembedded)
FOREACH (_ IN CASE WHEN $embedded THEN [1] ELSE [] END | REMOVE m:Unembedded)
FOREACH (_ IN CASE WHEN $reworded AND m.unread IS NULL THEN [1] ELSE [] END |
  SET m.enrichment = 'PENDING', m.enrichFailures = null, m.notBefore = null, m.owner = null, m.leaseUntil = null)
"""
"""A new content is read anew, by whoever takes it next, unless the memory is one that nobody was to read."""
LAST_WORDS = "MATCH (m:Memory&Node {id: $id}) RETURN right(m.content, $most)"
LEAVE_CONVERSATION = "MATCH (m:Memory&Node {id: $id})-[r:BELONGS_TO]->(:Conversation) SET m.place = null DELETE r"
FORGET_CONTEXT = """
MATCH (s:Memory) WHERE s.tenant = $t AND s.saidAfter = $id SET s:Unembedded, s.embedding = null, s.saidAfter = null
"""
"""A vector knows what was said before its memory: when that changes, or goes, it is made anew."""
ADD_TOPICS = """
UNWIND $ids AS i MATCH (m:Memory&Node {id: $id}) MATCH (t:Topic&Node {id: i}) MERGE (m)-[:HAS_TOPIC]->(t) RETURN count(*)
"""
ADD_ENTITIES = """
UNWIND $ids AS i MATCH (m:Memory&Node {id: $id}) MATCH (e:Entity&Node {id: i}) MERGE (m)-[:MENTIONS]->(e) RETURN count(*)
"""
REMOVE_TOPICS = "MATCH (m:Memory&Node {id: $id})-[r:HAS_TOPIC]->(t:Topic) WHERE t.id IN $ids DELETE r"
REMOVE_ENTITIES = "MATCH (m:Memory&Node {id: $id})-[r:MENTIONS]->(e:Entity) WHERE e.id IN $ids DELETE r"


async def update_memories(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Carries out changes (drafts: MemoryUpdate) one after the other; outcome: `memory`, its id."""
    return [await _update_memory(transaction, write) for write in writes]


async def _update_memory(transaction: Transaction, write: Write) -> Outcome:
    update: MemoryUpdate = write.draft
    change = update.change
    created = await transaction.run(LOCK_MEMORY, id=change.id, t=write.tenant, now=write.now)
    if created is None:
        return Refusals([NotFound("no memory has this id", ("id",))])
    refused: list[list[Refusal]] = [[]]
    moved = change.conversation_id if given(change.conversation_id) else None
    if moved is not None:
        await _refuse_missing(
            transaction,
            FOUND_CONVERSATIONS,
            [(0, write.tenant, moved, ("conversationId",))],
            refused,
            "no conversation has this id",
        )
    for kind, leaving, name in (
        (TOPIC, change.remove_topic_ids, "removeTopicIds"),
        (ENTITY, change.remove_entity_ids, "removeEntityIds"),
    ):
        refused[0].extend(await refuse_unknown(transaction, write.tenant, kind, leaving, (name,)))
    refs = NamedRefs()
    refs.add(0, write.tenant, change.add_topics, change.add_entities, ("addTopics",), ("addEntities",))
    resolved = await resolve(transaction, refs, refused, [write])
    if refused[0]:
        return Refusals(refused[0])
    if update.said_after is not None and not await _still_says(transaction, write, *update.said_after):
        update = replace(update, vector=None, said_after=None)
    properties = _changed(write, update, created)
    await transaction.run(
        SET_MEMORY,
        id=change.id,
        properties=properties,
        unembedded=given(change.content) and update.vector is None,
        embedded=update.vector is not None,
        reworded=given(change.content),
    )
    if given(change.content):
        await transaction.run(FORGET_CONTEXT, t=write.tenant, id=change.id)
    if given(change.conversation_id):
        await transaction.run(LEAVE_CONVERSATION, id=change.id)
        if moved is not None:
            await _connect(transaction, CONNECT_CONVERSATIONS, [(change.id, moved)], now=write.now)
    topics = sorted({resolved.topic(write.tenant, ref) for ref in change.add_topics})
    entities = sorted({resolved.entity(write.tenant, ref) for ref in change.add_entities})
    for statement, ids in ((ADD_TOPICS, topics), (ADD_ENTITIES, entities)):
        if ids and await transaction.run(statement, id=change.id, ids=ids) != len(ids):
            raise Raced
    if change.remove_topic_ids:
        await transaction.run(REMOVE_TOPICS, id=change.id, ids=list(change.remove_topic_ids))
    if change.remove_entity_ids:
        await transaction.run(REMOVE_ENTITIES, id=change.id, ids=list(change.remove_entity_ids))
    return {"memory": change.id}


async def _still_says(transaction: Transaction, write: Write, memory_id: str, words: str) -> bool:
    """Locks a memory; whether it is there, and still ends in these words."""
    locked = await transaction.run(LOCK_MEMORY, id=memory_id, t=write.tenant, now=write.now)
    return locked is not None and await transaction.run(LAST_WORDS, id=memory_id, most=CONTEXT_MOST) == words


def _changed(write: Write, update: MemoryUpdate, created: int) -> dict[str, Any]:
    change = update.change
    properties: dict[str, Any] = {"updatedAt": write.now}
    if given(change.content):
        properties["content"] = change.content
        properties["embedTries"] = None
        properties["words"] = words_of(write.number, "Memory", change.content)
        properties["embedding"] = update.vector
        properties["saidAfter"] = None if update.said_after is None else update.said_after[0]
    if given(change.memory_type):
        properties["memoryType"] = change.memory_type.value
    if given(change.importance):
        properties["importance"] = change.importance
    if given(change.conversation_id):
        properties["conversationId"] = change.conversation_id
    if given(change.event_time):
        event = None if change.event_time is None else to_ms(change.event_time)
        properties["eventTime"] = event
        properties["happenedAt"] = created if event is None else event
    if given(change.expires_at):
        properties["expiresAt"] = NEVER_MS if change.expires_at is None else to_ms(change.expires_at)
    if given(change.metadata):
        properties["metadata"] = None if change.metadata is None else orjson.dumps(change.metadata).decode()
    return properties


DELETE_MEMORIES = """
UNWIND $rows AS k MATCH (m:Memory&Node {id: k[1]}) WHERE m.tenant = k[0] AND m.expiresAt > $now
SET m.updatedAt = $now
WITH collect(DISTINCT m) AS gone
CALL (gone) {
  UNWIND gone AS m MATCH (s:Memory) WHERE s.tenant = m.tenant AND s.saidAfter = m.id
  SET s:Unembedded, s.embedding = null, s.saidAfter = null
}
CALL (gone) {
  UNWIND gone AS m MATCH (f:Fact)-[:EXTRACTED_FROM]->(m)
  SET f.lockedAt = $now
  WITH DISTINCT f
  WHERE NOT EXISTS { (f)-[:EXTRACTED_FROM]->(other:Memory) WHERE NOT other IN gone }
  RETURN collect(f) AS facts
}
WITH gone, facts, [m IN gone | [m.tenant, m.id]] AS ids
FOREACH (f IN facts | DETACH DELETE f)
FOREACH (m IN gone | DETACH DELETE m)
RETURN ids
"""


async def delete_memories(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Deletes memories (drafts: ids), each with the facts whose only source it was; outcome: `deletedId`."""
    rows = sorted({(write.tenant, write.draft) for write in writes})
    gone = {
        tuple(pair)
        for pair in await transaction.run(DELETE_MEMORIES, rows=[list(row) for row in rows], now=writes[0].now)
    }
    outcomes: list[Outcome] = []
    for write in writes:
        here = (write.tenant, write.draft) in gone
        outcomes.append({"deletedId": write.draft} if here else Refusals([NotFound("no memory has this id", ("id",))]))
        # of two deletes of one memory in this transaction, only the first found it
        gone.discard((write.tenant, write.draft))
    return outcomes


SIMILAR_MEMORIES = f"""
CYPHER 25
UNWIND range(0, size($ids) - 1) AS place MATCH (n:Memory&Node {{id: $ids[place]}})
WHERE n.tenant = $t AND n.embedding IS NOT NULL
CALL (n) {{
  MATCH (x:Memory) SEARCH x IN (VECTOR INDEX memory_embedding FOR n.embedding WHERE x.tenant = $t AND x.expiresAt > $now LIMIT $depth) SCORE AS score
  WITH x, score WHERE x.id <> n.id AND score >= $least
  WITH x, score ORDER BY score DESC, x.id LIMIT $limit
  RETURN collect([score, {MEMORY.row("x")}]) AS near
}}
RETURN collect([place, near])
"""


@whole
async def similar_by_memory(
    graph: Graph, tenant: str, first: int, least: float, ids: Sequence[str], *, now: int
) -> list[list[SimilarMemory] | None]:
    """The nearest memories of each memory, None for one without a vector. One statement."""
    # asked for no deeper, a large index loses true neighbours
    depth = max(200, first + 1)
    found = dict(
        await graph.read(SIMILAR_MEMORIES, t=tenant, ids=list(ids), now=now, depth=depth, limit=first, least=least)
    )
    return [
        [SimilarMemory(score, MEMORY.value(row)) for score, row in found[place]] if place in found else None
        for place in range(len(ids))
    ]
