"""Beliefs in Neo4j: evidence recorded under the lock of its slot, the versions it makes, and how they are read.

A slot is one identity (tenant, subject, key). Whoever records evidence locks its slots first, in sorted order, by
writing a property; then reads, folds, and writes the difference. `activeSlot` is UNIQUE and set only while a version is
ACTIVE, so that the database itself refuses a second one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from reverie.domain.beliefs import (
    Belief,
    BeliefRetraction,
    BeliefType,
    BeliefUpsert,
    Change,
    EpistemicStatus,
    Evidence,
    EvidenceKind,
    HalfLives,
    Ledger,
    StoredVersion,
    Version,
    belief_text,
)
from reverie.domain.clock import NEVER_MS, to_ms
from reverie.domain.entities import Entity
from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.errors import Conflict, NotFound, Refusals
from reverie.graph.changes import log_changes
from reverie.graph.records import BELIEF, ENTITY, whole
from reverie.graph.store import Graph, Raced, Transaction
from reverie.graph.words import words_of
from reverie.graph.writes import Outcome, Write

Identity = tuple[str, str, str]
"""Tenant, subject and key."""


@dataclass(slots=True)
class Slot:
    """One identity while its lock is held: its ledger, the database's clock, and what came of it so far."""

    id: str
    identity: Identity
    number: int
    ledger: Ledger
    clock: int
    stored: dict[str, "Stored"]
    recorded: list[Evidence]
    changes: list[Change]
    marks: set[str]


@dataclass(frozen=True, slots=True)
class Stored:
    """A version's properties and edges as they were read, to tell what is to be written."""

    properties: Mapping[str, Any]
    evidence: frozenset[str]
    replaced_by: str | None
    replaces: str | None


LOCK_SLOTS = """
UNWIND $rows AS k
MERGE (s:Slot {tenant: k[0], subjectId: k[1], key: k[2]}) ON CREATE SET s.id = k[3], s.versions = 0
SET s.lockedAt = $now
"""
READ_SLOTS = """
UNWIND range(0, size($rows) - 1) AS place
MATCH (s:Slot {tenant: $rows[place][0], subjectId: $rows[place][1], key: $rows[place][2]})
RETURN collect([
  place, s.id, s.versions, datetime.realtime().epochMillis, COLLECT { MATCH (t:Tenant {name: s.tenant}) RETURN t.number }[0],
  [(s)<-[:EVIDENCE_FOR]-(e:Evidence) | [c IN [
    'id', 'kind', 'value', 'time', 'confidence', 'beliefType', 'domain', 'episodeId', 'eventId', 'reason', 'mark'
  ] | e[c]] + [[(e)-[:SUPPORTS]->(b:Belief) | b.id][0]]],
  [(s)<-[:VERSION_OF]-(b:Belief) | [c IN [
    'id', 'version', 'foundedBy', 'value', 'beliefType', 'domain', 'epistemicStatus', 'validFrom', 'validTo', 'base',
    'reinforcedAt', 'createdAt', 'dissolved'
  ] | b[c]] + [
    b {.*, embedding: null}, [(b)-[:SUPERSEDED_BY]->(h:Belief) | h.id][0], [(b)-[:SUPERSEDES]->(h:Belief) | h.id][0]
  ]]
])
"""


async def lock_slots(
    transaction: Transaction, identities: Sequence[Identity], half_lives: HalfLives, now: int
) -> dict[Identity, Slot]:
    """Locks the slots of identities until the transaction ends, making those that are missing, and reads them."""
    wanted = sorted(set(identities))
    await transaction.run(LOCK_SLOTS, rows=[[*identity, new_id()] for identity in wanted], now=now)
    found = await transaction.run(READ_SLOTS, rows=[list(identity) for identity in wanted])
    slots = {wanted[row[0]]: _slot(wanted[row[0]], row[1:], half_lives) for row in found}
    if len(slots) != len(wanted):
        raise Raced
    return slots


def _slot(identity: Identity, row: Sequence[Any], half_lives: HalfLives) -> Slot:
    slot_id, last_number, clock, number, evidence_rows, version_rows = row
    evidence: list[Evidence] = []
    supported: dict[str | None, list[str]] = {}
    marks: set[str] = set()
    for one in evidence_rows:
        evidence.append(
            Evidence(
                id=one[0],
                kind=EvidenceKind(one[1]),
                value=one[2],
                time=one[3],
                confidence=one[4],
                belief_type=BeliefType(one[5]),
                domain=one[6],
                episode=one[7],
                event=one[8],
                reason=one[9],
            )
        )
        marks.add(one[10])
        supported.setdefault(one[11], []).append(one[0])
    versions, stored = [], {}
    for one in version_rows:
        held = supported.get(one[0], [])
        version = Version(
            one[2],
            one[3],
            BeliefType(one[4]),
            one[5],
            EpistemicStatus(one[6]),
            one[7],
            None if one[8] == NEVER_MS else one[8],
            one[9],
            one[10],
            held,
        )
        versions.append(StoredVersion(one[0], one[1], version, one[11], one[12], one[14], one[15]))
        stored[one[0]] = Stored(one[13], frozenset(held), one[14], one[15])
    versions.sort(key=lambda kept: kept.number)
    return Slot(
        slot_id, identity, number, Ledger(half_lives, evidence, versions, last_number), clock, stored, [], [], marks
    )


def record(slot: Slot, evidence: Evidence) -> list[Change]:
    """Adds a piece of evidence to a locked slot; what it changed. The same one of an event again changes nothing."""
    mark = _mark(slot.id, evidence)
    if mark is not None:
        if mark in slot.marks:
            return []
        slot.marks.add(mark)
    slot.recorded.append(evidence)
    changes = slot.ledger.record(evidence, slot.clock, new_id)
    slot.changes.extend(changes)
    return changes


def _mark(slot_id: str, evidence: Evidence) -> str | None:
    """What is unique of a piece of evidence: one for each identity, event and value."""
    if evidence.event is None:
        return None
    return f"{slot_id} {evidence.event} {blake2b(evidence.form.encode(), digest_size=16).hexdigest()}"


CREATE_EVIDENCE = """
UNWIND $rows AS row
MATCH (s:Slot {id: row.slot})
CREATE (e:Evidence) SET e = row.properties
CREATE (e)-[:EVIDENCE_FOR]->(s)
WITH e, row WHERE row.properties.eventId IS NOT NULL
MATCH (v:Event&Node {id: row.properties.eventId})
CREATE (e)-[:QUOTES]->(v)
"""
SET_BELIEFS = """
UNWIND $rows AS row MATCH (b:Belief&Node {id: row.id}) SET b += row
FOREACH (_ IN CASE WHEN row.activeSlot IS NULL THEN [1] ELSE [] END | SET b.embedding = null REMOVE b:Unembedded)
FOREACH (_ IN CASE WHEN row.activeSlot IS NULL OR b.embedding IS NOT NULL THEN [] ELSE [1] END | SET b:Unembedded)
"""
"""Only what holds is found."""
CREATE_BELIEFS = """
UNWIND $rows AS row
MATCH (s:Slot {id: row.slot})
CREATE (b:Belief:Node) SET b = row.properties
CREATE (b)-[:VERSION_OF]->(s)
FOREACH (_ IN CASE WHEN row.properties.activeSlot IS NULL THEN [] ELSE [1] END | SET b:Unembedded)
"""
COUNT_VERSIONS = "UNWIND $rows AS row MATCH (s:Slot {id: row[0]}) SET s.versions = row[1]"
MOVE_EVIDENCE = """
UNWIND $rows AS row
MATCH (e:Evidence {id: row[0]})
OPTIONAL MATCH (e)-[r:SUPPORTS]->(:Belief) DELETE r
WITH DISTINCT e, row WHERE row[1] IS NOT NULL
MATCH (b:Belief&Node {id: row[1]}) CREATE (e)-[:SUPPORTS]->(b)
"""
LINK_BELIEFS = """
UNWIND $rows AS row
MATCH (b:Belief&Node {id: row[0]})
OPTIONAL MATCH (b)-[r:SUPERSEDED_BY|SUPERSEDES]->(:Belief) DELETE r
WITH DISTINCT b, row
OPTIONAL MATCH (heir:Belief&Node {id: row[1]})
OPTIONAL MATCH (former:Belief&Node {id: row[2]})
FOREACH (_ IN CASE WHEN heir IS NULL THEN [] ELSE [1] END | CREATE (b)-[:SUPERSEDED_BY]->(heir))
FOREACH (_ IN CASE WHEN former IS NULL THEN [] ELSE [1] END | CREATE (b)-[:SUPERSEDES]->(former))
"""


async def write_slots(transaction: Transaction, slots: Sequence[Slot], now: int) -> list[list[str]]:
    """Writes what came of locked slots, the log last; the ids of each slot's entries, in order.

    Entries of several slots follow each other slot by slot.
    """
    evidence: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    made: list[dict[str, Any]] = []
    counts: list[list[Any]] = []
    moves: list[list[str | None]] = []
    links: list[list[str | None]] = []
    for slot in slots:
        if not slot.recorded:
            continue
        evidence.extend(_evidence_row(slot, one) for one in slot.recorded)
        fresh = {one.id for one in slot.recorded}
        counts.append([slot.id, slot.ledger.last_number])
        for one in slot.ledger.versions:
            before = slot.stored.get(one.id)
            properties = _properties(slot, one)
            if before is None:
                made.append({"slot": slot.id, "properties": properties})
            elif any(before.properties.get(name) != value for name, value in properties.items()):
                changed.append(properties)
            held: frozenset[str] = frozenset() if before is None else before.evidence
            moves.extend([evidence_id, one.id] for evidence_id in one.version.evidence if evidence_id not in held)
            if (one.replaced_by, one.replaces) != (
                (None, None) if before is None else (before.replaced_by, before.replaces)
            ):
                links.append([one.id, one.replaced_by, one.replaces])
        supporting = {held for one in slot.ledger.versions for held in one.version.evidence}
        for stored in slot.stored.values():
            moves.extend([evidence_id, None] for evidence_id in stored.evidence - supporting - fresh)
    # what holds no longer goes first: two versions must not be ACTIVE at once, not even within the transaction
    for statement, rows in (
        (CREATE_EVIDENCE, evidence),
        (SET_BELIEFS, [row for row in changed if row["activeSlot"] is None]),
        (SET_BELIEFS, [row for row in changed if row["activeSlot"] is not None]),
        (CREATE_BELIEFS, made),
        (COUNT_VERSIONS, counts),
        (MOVE_EVIDENCE, moves),
        (LINK_BELIEFS, links),
    ):
        if rows:
            await transaction.run(statement, rows=rows)
    by_id = {one.id: one.version for slot in slots for one in slot.ledger.versions}
    told = [(slot.identity, slot.id, change, by_id[change.belief]) for slot in slots for change in slot.changes]
    ids = iter(await log_changes(transaction, told, now))
    return [[next(ids) for _ in slot.changes] for slot in slots]


def _evidence_row(slot: Slot, one: Evidence) -> dict[str, Any]:
    return {
        "slot": slot.id,
        "properties": {
            "id": one.id,
            "tenant": slot.identity[0],
            "kind": int(one.kind),
            "value": one.value,
            "time": one.time,
            "confidence": one.confidence,
            "beliefType": one.belief_type.value,
            "domain": one.domain,
            "episodeId": one.episode,
            "eventId": one.event,
            "reason": one.reason,
            "mark": _mark(slot.id, one),
        },
    }


def _properties(slot: Slot, one: StoredVersion) -> dict[str, Any]:
    version, (tenant, subject, key) = one.version, slot.identity
    holds = version.status is EpistemicStatus.ACTIVE
    return {
        "id": one.id,
        "tenant": tenant,
        "subjectId": subject,
        "subjectForm": normal_form(subject),
        "key": key,
        "value": version.value,
        "base": version.base,
        "reinforcedAt": version.reinforced_at,
        "beliefType": version.belief_type.value,
        "epistemicStatus": version.status.value,
        "domain": version.domain,
        "version": one.number,
        "validFrom": version.valid_from,
        "validTo": NEVER_MS if version.valid_to is None else version.valid_to,
        "createdAt": one.created_at,
        "evidenceCount": len(version.evidence),
        "foundedBy": version.founded_by,
        "dissolved": one.dissolved,
        "activeSlot": slot.id if holds else None,
        "words": words_of(slot.number, "Belief", belief_text(subject, key, version.value)) if holds else None,
        "stepTimes": [step[0] for step in version.steps],
        "stepBases": [step[1] for step in version.steps],
        "stepReinforced": [step[2] for step in version.steps],
    }


@dataclass(frozen=True, slots=True)
class Upsert:
    """A checked upsert with what the fold needs to know."""

    upsert: BeliefUpsert
    half_lives: HalfLives


IDENTITIES = """
UNWIND range(0, size($rows) - 1) AS place
MATCH (b:Belief&Node {id: $rows[place][1]}) WHERE b.tenant = $rows[place][0]
RETURN collect([place, b.subjectId, b.key, b.value])
"""


@dataclass(frozen=True, slots=True)
class Retraction:
    """A checked retraction with what the fold needs to know."""

    retraction: BeliefRetraction
    half_lives: HalfLives


DROP_EMPTY = "UNWIND $ids AS i MATCH (s:Slot {id: i}) WHERE NOT EXISTS { (s)--() } DELETE s"


async def write_beliefs(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Records upserts and retractions (drafts: Upsert, Retraction) one after the other, all slots locked at once.

    Outcome: `belief` and `change`, their ids, the latter None where only the past changed.
    """
    retracted = {place: write for place, write in enumerate(writes) if isinstance(write.draft, Retraction)}
    rows = [[write.tenant, write.draft.retraction.id] for write in retracted.values()]
    values: dict[int, str] = {}
    identities: dict[int, Identity] = {
        place: (write.tenant, write.draft.upsert.subject_id, write.draft.upsert.key)
        for place, write in enumerate(writes)
        if place not in retracted
    }
    for row, subject, key, value in await transaction.run(IDENTITIES, rows=rows) if rows else []:
        place = list(retracted)[row]
        identities[place], values[place] = (writes[place].tenant, subject, key), value
    slots = await lock_slots(transaction, list(identities.values()), writes[0].draft.half_lives, writes[0].now)
    outcomes: list[Outcome] = []
    for place, write in enumerate(writes):
        if place not in identities:
            outcomes.append(Refusals([NotFound("no belief has this id", ("id",))]))
        elif place in retracted:
            outcomes.append(_retract(slots[identities[place]], write.draft.retraction, values[place]))
        else:
            outcomes.append(_upsert(slots[identities[place]], write.draft.upsert))
    await _write(transaction, slots, outcomes, writes[0].now)
    # what was refused leaves nothing behind
    empty = [slot.id for slot in slots.values() if not slot.ledger.evidence]
    if empty:
        await transaction.run(DROP_EMPTY, ids=empty)
    return outcomes


def _upsert(slot: Slot, draft: BeliefUpsert) -> Outcome:
    refused = _unexpected(slot, draft.expected_version)
    if refused is not None:
        return refused
    evidence = Evidence(
        id=new_id(),
        kind=EvidenceKind.UPSERT,
        value=draft.value,
        time=_next_time(slot) if draft.valid_from is None else to_ms(draft.valid_from),
        confidence=draft.confidence,
        belief_type=draft.belief_type,
        domain=draft.domain,
        reason=draft.reason,
    )
    if _retracted_later(slot, evidence):
        words = "this value was declared never true at a later time"
        return Refusals([Conflict(words, ("validFrom",))])
    return _recorded(slot, evidence)


def _retract(slot: Slot, draft: BeliefRetraction, value: str) -> Outcome:
    refused = _unexpected(slot, draft.expected_version)
    if refused is not None:
        return refused
    time = _next_time(slot)
    evidence = Evidence(id=new_id(), kind=EvidenceKind.RETRACT, value=value, time=time, reason=draft.reason)
    return {**_recorded(slot, evidence), "belief": draft.id}


def _unexpected(slot: Slot, expected: int | None) -> Refusals | None:
    """The refusal where another version is current than the caller expects; 0 expects none."""
    current = slot.ledger.current
    number = 0 if current is None else current.number
    if expected is None or expected == number:
        return None
    now = f"version {number} is current" if number else "none is current"
    return Refusals([Conflict(f"{now}, not version {expected}" if expected else now, ("expectedVersion",))])


def _retracted_later(slot: Slot, evidence: Evidence) -> bool:
    return any(
        one.kind is EvidenceKind.RETRACT and one.form == evidence.form and one.place > evidence.place
        for one in slot.ledger.evidence
    )


def _next_time(slot: Slot) -> int:
    """The database's clock, later than all evidence: among parallel callers, the last one's word holds."""
    latest = slot.ledger.latest
    return slot.clock if latest is None else max(slot.clock, latest + 1)


def _recorded(slot: Slot, evidence: Evidence) -> dict[str, Any]:
    first = len(slot.changes)
    changed = record(slot, evidence)
    holder = next((one.id for one in slot.ledger.versions if evidence.id in one.version.evidence), None)
    return {"belief": holder, "change": (slot.identity, first) if changed else None}


async def _write(transaction: Transaction, slots: Mapping[Identity, Slot], outcomes: list[Outcome], now: int) -> None:
    """Writes the slots, and puts the ids of log entries in the place of where they are."""
    held = list(slots.values())
    ids = dict(zip(slots, await write_slots(transaction, held, now), strict=True))
    for outcome in outcomes:
        if isinstance(outcome, dict) and outcome["change"] is not None:
            identity, place = outcome["change"]
            outcome["change"] = ids[identity][place]


CURRENT_BELIEF = f"""
MATCH (s:Slot {{tenant: $t, subjectId: $subject, key: $key}}) MATCH (b:Belief {{activeSlot: s.id}})
RETURN {BELIEF.row("b")}
"""


@whole
async def current_belief(graph: Graph, tenant: str, subject: str, key: str) -> Belief | None:
    """The version of an identity that is ACTIVE, None where none is."""
    row = await graph.read(CURRENT_BELIEF, t=tenant, subject=subject, key=key)
    return None if row is None else BELIEF.value(row)


KNOWN_BELIEFS = """
MATCH (b:Belief {tenant: $t, subjectId: $subject, epistemicStatus: 'ACTIVE'})
WITH b ORDER BY b.reinforcedAt DESC LIMIT $limit RETURN collect([b.key, b.value])
"""


async def known_beliefs(graph: Graph, tenant: str, subject: str, limit: int) -> list[tuple[str, str]]:
    """Keys and values of a subject's ACTIVE beliefs, those reinforced last first."""
    return [(key, value) for key, value in await graph.read(KNOWN_BELIEFS, t=tenant, subject=subject, limit=limit)]


ENTITIES_BY_SUBJECT = f"""
UNWIND range(0, size($forms) - 1) AS place
MATCH (x:Name {{tenant: $t, kind: 'Entity', form: $forms[place]}})-[:NAMES]->(e:Entity) WHERE x.type >= ''
WITH place, e ORDER BY e.id WITH place, collect(e)[0] AS e
RETURN collect([place, {ENTITY.row("e")}])
"""


@whole
async def entities_by_subject(graph: Graph, tenant: str, subjects: Sequence[str]) -> list[Entity | None]:
    """The entity one of whose names is the subject's id, None where there is none; the oldest of several. One statement."""
    forms = [normal_form(subject) for subject in subjects]
    found = dict(await graph.read(ENTITIES_BY_SUBJECT, t=tenant, forms=forms))
    return [ENTITY.value(found[place]) if place in found else None for place in range(len(forms))]
