"""RELATED_TO between two memories, topics or entities, in Neo4j."""

from collections.abc import Sequence

from reverie.domain.ids import new_id
from reverie.domain.relating import RelationDraft, Unrelation
from reverie.errors import NotFound, Refusal, Refusals
from reverie.graph.store import Transaction
from reverie.graph.writes import Outcome, Write

LOCK_MEMORIES = """
UNWIND $ids AS i MATCH (n:Memory&Node {id: i}) WHERE n.tenant = $t AND n.expiresAt > $now SET n.lockedAt = $now
RETURN collect(n.id)
"""
LOCK_ENTITIES = """
UNWIND $ids AS i MATCH (n:Entity&Node {id: i}) WHERE n.tenant = $t SET n.lockedAt = $now
RETURN collect(n.id)
"""
LOCK_RELATABLES = """
UNWIND $ids AS i MATCH (n:Node {id: i}) WHERE n.tenant = $t AND (n:Memory AND n.expiresAt > $now OR n:Topic OR n:Entity) SET n.lockedAt = $now
RETURN collect(n.id)
"""
RELATE = """
MATCH (a:Node {id: $from}) MATCH (b:Node {id: $to})
MERGE (a)-[r:RELATED_TO {relation: $relation}]->(b)
ON CREATE SET r.id = $id, r.tenant = $t
SET r.weight = $weight
"""


async def relate_memories(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Relates memories (drafts: RelationDraft); outcome: `memory` and `related`, their ids."""
    return [await _relate(transaction, write, LOCK_MEMORIES, "memory") for write in writes]


async def relate_entities(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Relates entities (drafts: RelationDraft); outcome: `entity` and `related`, their ids."""
    return [await _relate(transaction, write, LOCK_ENTITIES, "entity") for write in writes]


async def _relate(transaction: Transaction, write: Write, lock: str, kind: str) -> Outcome:
    draft: RelationDraft = write.draft
    refused = await _lock(transaction, write, lock, draft.from_id, draft.to_id, kind)
    if refused:
        return Refusals(refused)
    parameters = {"from": draft.from_id, "to": draft.to_id, "relation": draft.relation, "weight": draft.weight}
    await transaction.run(RELATE, id=new_id(), t=write.tenant, **parameters)
    return {kind: draft.from_id, "related": draft.to_id}


async def _lock(
    transaction: Transaction, write: Write, lock: str, from_id: str, to_id: str, kind: str
) -> list[Refusal]:
    # both ends are locked in one order, so that two writers of one pair draw one edge
    found = await transaction.run(lock, ids=sorted({from_id, to_id}), t=write.tenant, now=write.now)
    return [
        NotFound(f"no {kind} has this id", (name,))
        for name, wanted in (("fromId", from_id), ("toId", to_id))
        if wanted not in found
    ]


UNRELATE = """
MATCH (a:Node {id: $from})-[r:RELATED_TO]-(b:Node {id: $to}) WHERE $relation IS NULL OR r.relation = $relation
WITH collect(r) AS edges
FOREACH (r IN edges | DELETE r)
RETURN size(edges)
"""


async def unrelate(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Takes relations away, whichever way they point (drafts: Unrelation); outcome: `removed`, a number."""
    outcomes: list[Outcome] = []
    for write in writes:
        wanted: Unrelation = write.draft
        refused = await _lock(
            transaction, write, LOCK_RELATABLES, wanted.from_id, wanted.to_id, "memory, topic or entity"
        )
        if refused:
            outcomes.append(Refusals(refused))
            continue
        parameters = {"from": wanted.from_id, "to": wanted.to_id, "relation": wanted.relation}
        outcomes.append({"removed": await transaction.run(UNRELATE, **parameters)})
    return outcomes
