"""Facts in Neo4j: written with their sources, and linked to the entities they name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.domain.facts import FactBatch, FactChange, FactDraft
from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.domain.unset import given
from reverie.errors import NotFound, Refusal, Refusals
from reverie.graph.filters import visible
from reverie.graph.names import owners_by_form
from reverie.graph.store import Raced, Transaction
from reverie.graph.words import words_of
from reverie.graph.writes import Outcome, Write


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact to write, with its sources and the entities named by the caller."""

    tenant: str
    number: int
    id: str
    fact: FactDraft
    now: int
    memory_ids: tuple[str, ...]
    about_ids: tuple[str, ...]


CREATE_FACTS = """
UNWIND $rows AS row CREATE (f:Fact:Node) SET f = row
"""
CONNECT_SOURCES = """
UNWIND $rows AS k MATCH (f:Fact&Node {id: k[0]}) MATCH (m:Memory&Node {id: k[1]})
CREATE (f)-[:EXTRACTED_FROM]->(m) RETURN count(*)
"""
CONNECT_SUBJECTS = """
UNWIND $rows AS k MATCH (f:Fact&Node {id: k[0]}) MATCH (e:Entity&Node {id: k[1]})
MERGE (f)-[:HAS_SUBJECT]->(e) RETURN count(*)
"""
CONNECT_OBJECTS = """
UNWIND $rows AS k MATCH (f:Fact&Node {id: k[0]}) MATCH (e:Entity&Node {id: k[1]})
MERGE (f)-[:HAS_OBJECT]->(e) RETURN count(*)
"""
CONNECT_ABOUT = """
UNWIND $rows AS k MATCH (f:Fact&Node {id: k[0]}) MATCH (e:Entity&Node {id: k[1]})
MERGE (f)-[r:ABOUT]->(e) SET r.byCaller = k[2] RETURN count(*)
"""


async def write_facts(transaction: Transaction, facts: Sequence[FactRow]) -> None:
    """Writes facts; a subject or object that is one known entity's name is linked to it."""
    if not facts:
        return
    await transaction.run(CREATE_FACTS, rows=[_properties(row) for row in facts])
    await _connect(transaction, CONNECT_SOURCES, [(row.id, memory) for row in facts for memory in row.memory_ids])
    await _link(transaction, [(row.tenant, row.id, row.fact.subject, row.fact.object, row.about_ids) for row in facts])


async def _link(transaction: Transaction, facts: Sequence[tuple[str, str, str, str, tuple[str, ...]]]) -> None:
    asked = {(tenant, normal_form(name)) for tenant, _, subject, obj, _ in facts for name in (subject, obj)}
    owners = await owners_by_form(transaction, sorted(asked))
    subjects: set[tuple[str, str]] = set()
    objects: set[tuple[str, str]] = set()
    about: dict[tuple[str, str], bool] = {}
    for tenant, fact_id, subject, obj, about_ids in facts:
        about.update(((fact_id, entity), True) for entity in about_ids)
        for name, links in ((subject, subjects), (obj, objects)):
            known = owners.get((tenant, normal_form(name)), set())
            # a name that several entities share says nothing about which is meant
            if len(known) == 1:
                entity = next(iter(known))
                links.add((fact_id, entity))
                about.setdefault((fact_id, entity), False)
    await _connect(transaction, CONNECT_SUBJECTS, sorted(subjects))
    await _connect(transaction, CONNECT_OBJECTS, sorted(objects))
    await _connect(transaction, CONNECT_ABOUT, [(*ends, by_caller) for ends, by_caller in sorted(about.items())])


async def _connect(transaction: Transaction, statement: str, rows: Iterable[tuple[str | bool, ...]]) -> None:
    wanted = [list(row) for row in rows]
    if wanted and await transaction.run(statement, rows=wanted) != len(wanted):
        raise Raced


def _properties(row: FactRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "tenant": row.tenant,
        "createdAt": row.now,
        **_content(row.number, row.fact.subject, row.fact.predicate, row.fact.object, row.fact.confidence),
    }


def _content(number: int, subject: str, predicate: str, obj: str, confidence: float) -> dict[str, Any]:
    return {
        "subject": subject,
        "predicate": predicate,
        "object": obj,
        "subjectForm": normal_form(subject),
        "predicateForm": normal_form(predicate),
        "objectForm": normal_form(obj),
        "confidence": confidence,
        "words": words_of(number, "Fact", f"{subject} {predicate} {obj}"),
    }


LOCK_SOURCES = """
UNWIND $ids AS i MATCH (n:Node {id: i}) WHERE n.tenant = $t AND (n:Entity OR n:Memory AND n.expiresAt > $now)
FOREACH (m IN CASE WHEN n:Memory THEN [n] ELSE [] END | SET m.lockedAt = $now)
RETURN collect([i, n:Memory])
"""


async def create_facts(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Writes facts (drafts: FactBatch); outcome: `fact`, its id."""
    return [await _create_fact(transaction, write) for write in writes]


async def _create_fact(transaction: Transaction, write: Write) -> Outcome:
    batch: FactBatch = write.draft
    ids = sorted({*batch.memory_ids, *batch.about_entity_ids})
    # the memories are locked: one that goes meanwhile must take this fact along, or not be found
    found = {(i, memory) for i, memory in await transaction.run(LOCK_SOURCES, ids=ids, t=write.tenant, now=write.now)}
    refused: list[Refusal] = [
        NotFound(f"no {what} has this id", (name, at))
        for name, what, wanted, memory in (
            ("memoryIds", "memory", batch.memory_ids, True),
            ("aboutEntityIds", "entity", batch.about_entity_ids, False),
        )
        for at, wanted_id in enumerate(wanted)
        if (wanted_id, memory) not in found
    ]
    if refused:
        return Refusals(refused)
    row = FactRow(
        write.tenant,
        write.number,
        new_id(),
        batch.fact,
        write.now,
        tuple(dict.fromkeys(batch.memory_ids)),
        tuple(dict.fromkeys(batch.about_entity_ids)),
    )
    await write_facts(transaction, [row])
    return {"fact": row.id}


LOCK_FACT = f"""
MATCH (f:Fact&Node {{id: $id}}) WHERE {visible("Fact", "f")} SET f.lockedAt = $now
RETURN [f.subject, f.predicate, f.object, f.confidence, [(f)-[r:ABOUT]->(e:Entity) WHERE r.byCaller | e.id]]
"""
SET_FACT = """
MATCH (f:Fact&Node {id: $id}) SET f += $properties
WITH f OPTIONAL MATCH (f)-[r:HAS_SUBJECT|HAS_OBJECT|ABOUT]->(:Entity) DELETE r
"""


async def update_facts(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Changes facts (drafts: FactChange); what their texts name is linked anew; outcome: `fact`, its id."""
    return [await _update_fact(transaction, write) for write in writes]


async def _update_fact(transaction: Transaction, write: Write) -> Outcome:
    change: FactChange = write.draft
    row = await transaction.run(LOCK_FACT, id=change.id, t=write.tenant, now=write.now)
    # one that was deleted while its lock was waited for has nothing left
    if row is None or row[0] is None:
        return Refusals([NotFound("no fact has this id", ("id",))])
    subject = change.subject if given(change.subject) else row[0]
    predicate = change.predicate if given(change.predicate) else row[1]
    obj = change.object if given(change.object) else row[2]
    confidence = change.confidence if given(change.confidence) else row[3]
    await transaction.run(
        SET_FACT, id=change.id, properties=_content(write.number, subject, predicate, obj, confidence)
    )
    # entities that the caller named stay; those that only the old texts named go
    await _link(transaction, [(write.tenant, change.id, subject, obj, tuple(row[4]))])
    return {"fact": change.id}


DELETE_FACT = f"""
MATCH (f:Fact&Node {{id: $id}}) WHERE {visible("Fact", "f")} WITH f, f.id AS id DETACH DELETE f RETURN id
"""


async def delete_facts(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Deletes facts (drafts: ids); outcome: `deletedId`."""
    outcomes: list[Outcome] = []
    for write in writes:
        found = await transaction.run(DELETE_FACT, id=write.draft, t=write.tenant, now=write.now)
        outcomes.append(Refusals([NotFound("no fact has this id", ("id",))]) if found is None else {"deletedId": found})
    return outcomes
