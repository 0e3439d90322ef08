"""Erasing all of one subject, in steps that can be taken again: what a step left over, the next takes."""

from collections import Counter
from collections.abc import Sequence

from reverie.domain.clock import EARLIEST_MS
from reverie.graph.conversations import TITLE_THREADS, thread_titled
from reverie.graph.documents import DELETE_DOCUMENT
from reverie.graph.episodes import LOCK_EPISODES, write_closings
from reverie.graph.memories import DELETE_MEMORIES
from reverie.graph.store import Graph, Transaction

STEP = 500
"""Nodes of one kind that one transaction takes."""

TAKE_SUBJECT = """
MERGE (l:Lease {tenant: $t, subject: $subject}) SET l.owner = $token, l.until = $until
"""
DROP_SUBJECT = "MATCH (l:Lease {tenant: $t, subject: $subject}) DELETE l"
OWN_EPISODES = """
MATCH (e:Episode {tenant: $t, userId: $subject}) WITH e LIMIT $limit
OPTIONAL MATCH (e)-[:IN_THREAD]->(c:Conversation)
RETURN collect([e.id, c.id])
"""
LOCK_CONVERSATIONS = "UNWIND $ids AS i MATCH (c:Conversation&Node {id: i}) SET c.lockedAt = $now"
DELETE_EPISODES = """
UNWIND $ids AS i MATCH (e:Episode&Node {id: i}) WHERE e.tenant = $t AND e.userId = $subject
WITH collect(e) AS gone
CALL (gone) { UNWIND gone AS e MATCH (v:Event)-[:PART_OF]->(e) RETURN collect(v) AS events }
WITH gone, events, size(gone) AS episodes, size(events) AS count
FOREACH (v IN events | DETACH DELETE v)
FOREACH (e IN gone | DETACH DELETE e)
RETURN [episodes, count]
"""
OTHER_EVENTS = """
MATCH (v:Event {tenant: $t, userId: $subject}) WITH v LIMIT $limit
OPTIONAL MATCH (v)-[:PART_OF]->(e:Episode) OPTIONAL MATCH (v)-[:IN_THREAD]->(c:Conversation)
RETURN collect([v.id, e.id, c.id])
"""
DELETE_EVENTS = """
UNWIND $ids AS i MATCH (v:Event&Node {id: i})
WITH collect(v) AS gone, size(collect(v)) AS count
FOREACH (v IN gone | DETACH DELETE v)
RETURN count
"""
SHRINK_EPISODES = """
UNWIND $ids AS i MATCH (e:Episode&Node {id: i})
CALL (e) {
  MATCH (v:Event)-[:PART_OF]->(e)
  RETURN count(v) AS size, collect(DISTINCT v.userId)[0..2] AS users, collect(DISTINCT v.agentId)[0..2] AS agents, min(v.occurredAt) AS first, max(v.occurredAt) AS last
}
SET e.size = size, e.userIds = users, e.agentIds = agents,
  e.agentId = CASE WHEN size(agents) = 1 THEN agents[0] END, e.userId = CASE WHEN size(users) = 1 THEN users[0] END
SET e.startedAt = coalesce(first, e.startedAt), e.spanEnd = coalesce(last, e.spanEnd)
REMOVE e:Unembedded
SET e.summary = null, e.words = null, e.embedding = null, e.tags = [], e.outcome = null, e.endedAt = CASE WHEN e.endedAt IS NULL THEN null ELSE e.spanEnd END
// whoever reads it now has read what is being forgotten: its lease is lost, and it is read again
WITH i, e, size, CASE WHEN e.consolidationStatus = 'PROCESSING' THEN 'PENDING' ELSE e.consolidationStatus END AS status
SET e.owner = null, e.leaseUntil = null
FOREACH (_ IN CASE WHEN size = 0 THEN [1] ELSE [] END | DETACH DELETE e)
RETURN collect(CASE WHEN size > 0 AND status <> 'OPEN' THEN [i, status] END)
"""
RESTORE_STATUS = "UNWIND $rows AS row MATCH (e:Episode&Node {id: row[0]}) SET e.consolidationStatus = row[1]"
EMPTY_CONVERSATIONS = """
UNWIND $ids AS i MATCH (c:Conversation&Node {id: i}) SET c.lockedAt = $now
WITH c WHERE c.madeByServer AND NOT EXISTS { (c)--() }
WITH collect(c) AS gone, size(collect(c)) AS count
FOREACH (c IN gone | DELETE c)
RETURN count
"""
NAMED_BY_US = """
UNWIND $ids AS i MATCH (c:Conversation&Node {id: i}) WHERE c.madeByServer RETURN collect([i, c.threadId])
"""
SLOTS = "MATCH (s:Slot) WHERE s.tenant = $t AND s.subjectId = $subject AND s.key >= '' WITH s LIMIT $limit RETURN collect(s.id)"
DELETE_SLOTS = """
UNWIND $ids AS i MATCH (s:Slot {id: i}) SET s.lockedAt = $now
WITH collect(s) AS slots
CALL (slots) { UNWIND slots AS s MATCH (s)<-[:VERSION_OF]-(b:Belief) RETURN collect(b) AS beliefs }
CALL (slots) { UNWIND slots AS s MATCH (s)<-[:EVIDENCE_FOR]-(e:Evidence) RETURN collect(e) AS evidence }
CALL (slots) { UNWIND slots AS s MATCH (s)<-[:CHANGE_OF]-(x:Change) RETURN collect(x) AS changes }
FOREACH (x IN changes | SET x = {tenant: x.tenant, number: x.number} REMOVE x:Node)
WITH slots, beliefs, evidence, size(beliefs) AS count
FOREACH (b IN beliefs | DETACH DELETE b)
FOREACH (e IN evidence | DETACH DELETE e)
FOREACH (s IN slots | DETACH DELETE s)
RETURN count
"""
MEMORIES = """
MATCH (m:Memory {tenant: $t, subjectId: $subject}) WITH m LIMIT $limit
RETURN collect([m.id, [(m)-[:HAS_TOPIC]->(x:Topic) | x.id], [(m)-[:MENTIONS]->(x:Entity) | x.id]])
"""


async def take_subject(graph: Graph, tenant: str, subject: str, token: str, until: int) -> None:
    """Keeps workers from reading what is left of a subject."""
    await graph.write(TAKE_SUBJECT, t=tenant, subject=subject, token=token, until=until)


async def drop_subject(graph: Graph, tenant: str, subject: str) -> None:
    """Takes the last sign of a subject away."""
    await graph.write(DROP_SUBJECT, t=tenant, subject=subject)


async def forget_episodes(graph: Graph, tenant: str, number: int, subject: str, now: int) -> Counter[str]:
    """Erases the episodes whose one user the subject is, with all of their events; how many of each."""
    gone: Counter[str] = Counter()
    while rows := await graph.read(OWN_EPISODES, t=tenant, subject=subject, limit=STEP // 10):

        async def work(transaction: Transaction, rows: Sequence[Sequence[str]] = rows) -> Counter[str]:
            ids, conversations = sorted({row[0] for row in rows}), sorted({row[1] for row in rows if row[1]})
            # in the order in which events are recorded: the thread's conversation, then its episodes
            await transaction.run(LOCK_CONVERSATIONS, ids=conversations, now=now)
            await transaction.run(LOCK_EPISODES, ids=ids, now=now)
            # one that another user joined meanwhile is no longer the subject's own
            episodes, events = await transaction.run(DELETE_EPISODES, ids=ids, t=tenant, subject=subject)
            await _settle_conversations(transaction, conversations, number, now)
            return Counter(EPISODE=episodes, EVENT=events)

        gone += await graph.transact(work)
    return gone


async def forget_events(graph: Graph, tenant: str, number: int, subject: str, now: int) -> Counter[str]:
    """Erases the subject's events in episodes with others, whose summaries are made anew of what is left."""
    gone: Counter[str] = Counter()
    while rows := await graph.read(OTHER_EVENTS, t=tenant, subject=subject, limit=STEP):

        async def work(transaction: Transaction, rows: Sequence[Sequence[str]] = rows) -> Counter[str]:
            episodes = sorted({row[1] for row in rows if row[1]})
            conversations = sorted({row[2] for row in rows if row[2]})
            await transaction.run(LOCK_CONVERSATIONS, ids=conversations, now=now)
            await transaction.run(LOCK_EPISODES, ids=episodes, now=now)
            events = await transaction.run(DELETE_EVENTS, ids=sorted(row[0] for row in rows))
            left = await transaction.run(SHRINK_EPISODES, ids=episodes)
            await write_closings(transaction, [row[0] for row in left])
            await transaction.run(RESTORE_STATUS, rows=left)
            await _settle_conversations(transaction, conversations, number, now)
            return Counter(EVENT=events)

        gone += await graph.transact(work)
    return gone


async def _settle_conversations(transaction: Transaction, ids: Sequence[str], number: int, now: int) -> None:
    """Conversations that the server made: away where nothing is left, with the thread's own name where something is."""
    await transaction.run(EMPTY_CONVERSATIONS, ids=list(ids), now=now)
    left = await transaction.run(NAMED_BY_US, ids=list(ids))
    if left:
        rows = [[key, thread_titled(number, thread)] for key, thread in left]
        await transaction.run(TITLE_THREADS, rows=rows)


async def forget_beliefs(graph: Graph, tenant: str, subject: str, now: int) -> Counter[str]:
    """Erases beliefs with their evidence; their log entries keep tenant and number alone."""
    gone: Counter[str] = Counter()
    while ids := await graph.read(SLOTS, t=tenant, subject=subject, limit=STEP // 10):
        gone += Counter(BELIEF=await graph.write(DELETE_SLOTS, ids=sorted(ids), now=now))
    return gone


async def forget_memories(graph: Graph, tenant: str, subject: str) -> tuple[Counter[str], set[str], set[str]]:
    """Erases memories with the facts that only they told; how many, and the topics and the entities they had."""
    gone: Counter[str] = Counter()
    topics: set[str] = set()
    entities: set[str] = set()
    while rows := await graph.read(MEMORIES, t=tenant, subject=subject, limit=STEP):
        # expired ones too, which a caller's own deletion wouldn't find
        doomed = [[tenant, row[0]] for row in rows]
        gone += Counter(MEMORY=len(await graph.write(DELETE_MEMORIES, rows=doomed, now=EARLIEST_MS - 1)))
        topics.update(topic for row in rows for topic in row[1])
        entities.update(entity for row in rows for entity in row[2])
    return gone, topics, entities


DOCUMENTS = """
MATCH (d:Document {tenant: $t, subjectId: $subject}) WITH d LIMIT $limit
CALL (d) { OPTIONAL MATCH (d)<-[:PART_OF]-(:Chunk)-[:MENTIONS]->(e:Entity) RETURN collect(DISTINCT e.id) AS entities }
RETURN collect([d.id, entities])
"""


async def forget_documents(graph: Graph, tenant: str, subject: str, now: int) -> tuple[Counter[str], set[str]]:
    """Erases documents with their chunks, each in a transaction of its own; how many, and the entities they mentioned."""
    gone: Counter[str] = Counter()
    entities: set[str] = set()
    while rows := await graph.read(DOCUMENTS, t=tenant, subject=subject, limit=STEP // 10):
        for key, mentioned in sorted(rows):
            chunks = await graph.write(DELETE_DOCUMENT, id=key, t=tenant, now=now)
            if chunks is not None:
                gone += Counter(DOCUMENT=1, CHUNK=chunks)
            entities.update(mentioned)
    return gone, entities
