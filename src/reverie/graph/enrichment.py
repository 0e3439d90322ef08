"""Enrichment and sweeping in Neo4j: memories taken to be read, what was found in them, and what is left of the dead."""

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.domain.clock import EARLIEST_MS
from reverie.domain.entities import EntityRef, EntityType
from reverie.domain.extraction import MemoryReading
from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.domain.topics import TopicRef
from reverie.errors import Refusal
from reverie.graph.facts import FactRow, write_facts
from reverie.graph.memories import ADD_ENTITIES, ADD_TOPICS, DELETE_MEMORIES
from reverie.graph.names import OF_FORM, NamedRefs, drop, lock_names_of, resolve
from reverie.graph.store import Graph, Raced, Transaction
from reverie.graph.topics import delete_bare, leave_communities
from reverie.graph.writes import Write


@dataclass(frozen=True, slots=True)
class MemoryWork:
    """A memory that is this owner's to read until its lease runs out."""

    id: str
    tenant: str
    number: int
    content: str
    failures: int
    """How often reading it has failed by now."""
    token: str


WAITING_MEMORIES = """
CALL () {
  MATCH (m:Memory) WHERE m.enrichment = 'PENDING' AND m.createdAt > 0 AND coalesce(m.notBefore, 0) <= $now
  RETURN m ORDER BY m.createdAt LIMIT $limit
UNION
  MATCH (m:Memory) WHERE m.enrichment = 'PROCESSING' AND m.createdAt > 0 AND m.leaseUntil < $now
  RETURN m ORDER BY m.createdAt LIMIT $limit
}
WITH m WHERE m.expiresAt > $now AND ($embedded = false OR NOT m:Unembedded OR m.createdAt < $patience)
WITH m LIMIT $limit RETURN collect(m.id)
"""
TAKE_MEMORIES = """
UNWIND $ids AS i MATCH (m:Memory&Node {id: i}) SET m.lockedAt = $now
WITH m WHERE m.enrichment = 'PENDING' OR (m.enrichment = 'PROCESSING' AND m.leaseUntil < $now)
SET m.enrichment = 'PROCESSING', m.owner = $token, m.leaseUntil = $until
WITH m MATCH (t:Tenant {name: m.tenant})
RETURN collect([m.id, m.tenant, t.number, m.content, coalesce(m.enrichFailures, 0), $token])
"""


async def take_memories(
    graph: Graph, now: int, lease: int, limit: int, *, embedded: bool, patience: int
) -> list[MemoryWork]:
    """Takes memories that wait to be read, oldest first; with `embedded`, those without a vector only from an age on."""
    ids = await graph.read(WAITING_MEMORIES, now=now, limit=limit, embedded=embedded, patience=now - patience)
    if not ids:
        return []
    rows = await graph.write(TAKE_MEMORIES, ids=sorted(ids), now=now, token=new_id(), until=now + lease)
    return [MemoryWork(*row) for row in rows]


RENEW_MEMORIES = """
UNWIND $ids AS i MATCH (m:Memory&Node {id: i}) SET m.lockedAt = $now
WITH m WHERE m.owner = $token AND m.enrichment = 'PROCESSING' SET m.leaseUntil = $until
"""


async def renew_memories(graph: Graph, works: Sequence[MemoryWork], now: int, lease: int) -> None:
    """Moves the deadline of memories that were taken together, as far as they still are their owner's."""
    ids = sorted(one.id for one in works)
    await graph.write(RENEW_MEMORIES, ids=ids, token=works[0].token, now=now, until=now + lease)


ENTITIES_NAMED = f"UNWIND $forms AS form MATCH {OF_FORM} RETURN collect(DISTINCT [e.name, e.type])"


async def entities_named(graph: Graph, tenant: str, forms: Sequence[str]) -> list[tuple[str, EntityType]]:
    """Name and type of the entities that have any of these names, in their normal form."""
    found = await graph.read(ENTITIES_NAMED, t=tenant, forms=list(forms))
    return [(name, EntityType(type_)) for name, type_ in found]


HELD_MEMORY = """
MATCH (m:Memory&Node {id: $id}) SET m.lockedAt = $now
WITH m WHERE m.owner = $token AND m.enrichment = 'PROCESSING' AND m.content = $content
RETURN [(f:Fact)-[:EXTRACTED_FROM]->(m) | [f.subjectForm, f.predicateForm, f.objectForm]]
"""
END_MEMORY = "MATCH (m:Memory&Node {id: $id}) SET m += $properties, m.owner = null, m.leaseUntil = null"
RELATE_SIMILAR = """
UNWIND $rows AS row
MATCH (m:Memory&Node {id: $id}) MATCH (o:Memory&Node {id: row[0]})
WHERE NOT EXISTS { (m)-[:RELATED_TO]-(o) }
MERGE (m)-[r:RELATED_TO {relation: 'similar'}]-(o)
ON CREATE SET r.id = row[1], r.weight = row[2], r.tenant = m.tenant
"""


async def enrich_memory(
    graph: Graph, work: MemoryWork, reading: MemoryReading, similar: Sequence[tuple[str, float]], now: int
) -> bool:
    """Writes what was found in a memory, all in one transaction; False where it changed meanwhile, or is another's."""
    write = Write(work.tenant, work.number, "enrichment", None, now)
    topics = tuple(TopicRef(name=name) for name in reading.topics)
    entities = tuple(EntityRef(name=name, type=type_) for name, type_ in reading.entities)

    async def apply(transaction: Transaction) -> bool:
        told = await transaction.run(HELD_MEMORY, id=work.id, token=work.token, content=work.content, now=now)
        if told is None:
            return False
        refs, refused = NamedRefs(), list[list[Refusal]]([[]])
        refs.add(0, work.tenant, topics, entities, ("topics",), ("entities",))
        resolved = await resolve(transaction, refs, refused, [write])
        for statement, ids in (
            (ADD_TOPICS, sorted({resolved.topic(work.tenant, ref) for ref in topics})),
            (ADD_ENTITIES, sorted({resolved.entity(work.tenant, ref) for ref in entities})),
        ):
            if ids and await transaction.run(statement, id=work.id, ids=ids) != len(ids):
                raise Raced
        known = {tuple(forms) for forms in told}
        facts = [
            FactRow(work.tenant, work.number, new_id(), fact, now, (work.id,), ())
            for fact in reading.facts
            if (normal_form(fact.subject), normal_form(fact.predicate), normal_form(fact.object)) not in known
        ]
        await write_facts(transaction, facts)
        if similar:
            rows = [[other, new_id(), score] for other, score in sorted(similar)]
            await transaction.run(RELATE_SIMILAR, id=work.id, rows=rows)
        await transaction.run(END_MEMORY, id=work.id, properties={"enrichment": "DONE", "enrichFailures": None})
        return True

    return await graph.transact(apply)


FAIL_MEMORY = """
MATCH (m:Memory&Node {id: $id}) SET m.lockedAt = $now
WITH m WHERE m.owner = $token AND m.enrichment = 'PROCESSING'
SET m.enrichFailures = coalesce(m.enrichFailures, 0) + $failure, m.owner = null, m.leaseUntil = null
SET m.notBefore = $now + $pause
SET m.enrichment = CASE WHEN m.enrichFailures >= $attempts THEN 'FAILED' ELSE 'PENDING' END
"""


async def return_memory(graph: Graph, work: MemoryWork, now: int, *, failed: bool, attempts: int, pause: int) -> None:
    """Puts a memory back among those that wait; one that failed for the last time is FAILED."""
    await graph.write(
        FAIL_MEMORY, id=work.id, token=work.token, now=now, failure=int(failed), attempts=attempts, pause=pause
    )


EXPIRED_MEMORIES = """
MATCH (t:Tenant) CALL (t) {
  MATCH (m:Memory) WHERE m.tenant = t.name AND m.expiresAt <= $now RETURN m.id AS id LIMIT $limit
}
WITH t, id LIMIT $limit RETURN collect([t.name, id])
"""


STILL_EXPIRED = """
UNWIND $ids AS i MATCH (m:Memory&Node {id: i}) SET m.lockedAt = $now
WITH m WHERE m.expiresAt <= $now RETURN collect([m.tenant, m.id])
"""


async def erase_expired(graph: Graph, now: int, limit: int) -> int:
    """Erases memories whose time is over, with the facts that only they told; how many."""
    rows = sorted(await graph.read(EXPIRED_MEMORIES, now=now, limit=limit))

    async def work(transaction: Transaction) -> int:
        # one whose life was prolonged meanwhile stays
        still = await transaction.run(STILL_EXPIRED, ids=[row[1] for row in rows], now=now)
        return len(await transaction.run(DELETE_MEMORIES, rows=still, now=EARLIEST_MS - 1))

    return await graph.transact(work) if rows else 0


_ALONE = (
    "COUNT { (n)--() } = COUNT { (n)<-[:NAMES]-() } "
    "+ CASE WHEN n:Topic THEN COUNT { (n)-[:BELONGS_TO|RELATED_TO]-() } ELSE 0 END"
)
"""Nothing leads to it but its names. What topics occur together in is told by memories, and holds none of them."""


def _orphans(label: str) -> str:
    return (
        f"MATCH (n:{label}) WHERE n.madeByServer = true AND n.id > $after AND n.createdAt < $before "
        "WITH n ORDER BY n.id LIMIT $limit "
        f"WITH collect(n) AS seen RETURN [[n IN seen WHERE {_ALONE} "
        "| [n.tenant, n.id]], seen[-1].id]"
    )


ORPHANS = {"Topic": _orphans("Topic"), "Entity": _orphans("Entity")}
STILL_ORPHANS = f"""
UNWIND $ids AS i MATCH (n:Node {{id: i}}) SET n.lockedAt = $now
WITH n WHERE n.madeByServer = true AND {_ALONE}
RETURN collect(n.id)
"""


async def sweep_orphans(graph: Graph, label: str, after: str, now: int, *, grace: int, limit: int) -> tuple[int, str]:
    """Looks at some topics or entities the server made, in the order of ids after one, and takes away what has no edge.

    Returns how many went, and the id to go on from; "" where the end was reached. Those younger than `grace`
    milliseconds are left, since their maker may be about to use them.
    """
    orphans, last = await graph.read(ORPHANS[label], after=after, before=now - grace, limit=limit)
    gone = await delete_orphans(graph, label, [(tenant, node_id) for tenant, node_id in orphans], now)
    return gone, last or ""


async def delete_orphans(graph: Graph, label: str, nodes: Sequence[tuple[str, str]], now: int) -> int:
    """Takes those of these topics or entities away that are still without any edge, under their locks; how many."""

    async def work(transaction: Transaction) -> int:
        still = set(await transaction.run(STILL_ORPHANS, ids=sorted(node_id for _, node_id in nodes), now=now))
        doomed = sorted(node for node in nodes if node[1] in still)
        for tenant in sorted({tenant for tenant, _ in doomed}):
            ids = [node_id for owner, node_id in doomed if owner == tenant]
            names = await lock_names_of(transaction, tenant, ids)
            await drop(transaction, [key for keys in names.values() for key in keys])
            if label == "Topic":
                await leave_communities(transaction, ids, now)
            await delete_bare(transaction, ids)
        return len(still)

    return await graph.transact(work) if nodes else 0
