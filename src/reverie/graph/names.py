"""Names: nodes of their own, unique by tenant, kind, form and type, that lead to their topic or entity."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reverie.domain.checks import Path
from reverie.domain.entities import EntityRef
from reverie.domain.ids import new_id
from reverie.domain.memories import MemoryDraft
from reverie.domain.names import normal_form
from reverie.domain.topics import TopicRef
from reverie.errors import AlreadyExists, BadInput, NotFound, Refusal
from reverie.graph.store import Raced, Transaction
from reverie.graph.words import words_of
from reverie.graph.writes import Write

TOPIC, ENTITY = "Topic", "Entity"
NameKey = tuple[str, str, str, str]
"""Tenant, kind, form and type; a topic's type is ""."""


def topic_key(tenant: str, name: str) -> NameKey:
    return (tenant, TOPIC, normal_form(name), "")


def entity_key(tenant: str, name: str, type_: str) -> NameKey:
    return (tenant, ENTITY, normal_form(name), type_)


FOUND_BY_ID = """
UNWIND $rows AS k MATCH (n:Node {id: k[1]}) WHERE n.tenant = k[0] AND (CASE WHEN k[2] = 'Topic' THEN n:Topic ELSE n:Entity END)
RETURN collect(DISTINCT [k[0], k[1], k[2]])
"""
OWNERS_BY_NAME = """
UNWIND $rows AS k MATCH (x:Name {tenant: k[0], kind: k[1], form: k[2], type: k[3]})-[:NAMES]->(n:Node)
RETURN collect([k, n.id])
"""
OF_FORM = "(x:Name {tenant: $t, kind: 'Entity', form: form})-[:NAMES]->(e:Entity) WHERE x.type >= ''"
"""The pattern of an entity e by a form of one of its names, whatever its type; an index needs a word on each column."""
OWNERS_BY_FORM = """
UNWIND $rows AS k MATCH (x:Name {tenant: k[0], kind: 'Entity', form: k[1]})-[:NAMES]->(n:Node) WHERE x.type >= ''
RETURN collect(DISTINCT [k, n.id])
"""
LOCK_NAMES = """
UNWIND $rows AS k
MERGE (x:Name {tenant: k[0], kind: k[1], form: k[2], type: k[3]}) SET x.locked = true
WITH k, x
OPTIONAL MATCH (x)-[:NAMES]->(n:Node)
RETURN collect([k, n.id])
"""
CREATE_TOPICS = """
UNWIND $rows AS row
MATCH (x:Name {tenant: row.key[0], kind: row.key[1], form: row.key[2], type: row.key[3]})
CREATE (n:Topic:Node:Unembedded) SET n = row.properties
CREATE (x)-[:NAMES]->(n)
"""
CREATE_ENTITIES = """
UNWIND $rows AS row
MATCH (x:Name {tenant: row.key[0], kind: row.key[1], form: row.key[2], type: row.key[3]})
CREATE (n:Entity:Node) SET n = row.properties
CREATE (x)-[:NAMES]->(n)
"""
GIVE_NAMES = """
UNWIND $rows AS k
MATCH (x:Name {tenant: k[0], kind: k[1], form: k[2], type: k[3]}) MATCH (n:Node {id: $id})
MERGE (x)-[:NAMES]->(n)
RETURN count(*)
"""
LOCK_NAMES_OF = """
MATCH (n:Node) WHERE n.id IN $ids AND n.tenant = $t
MATCH (x:Name)-[:NAMES]->(n)
WITH x, n ORDER BY x.kind, x.form, x.type
SET x.locked = true
WITH x, n
RETURN collect([[x.tenant, x.kind, x.form, x.type], n.id])
"""
DROP_NAMES = """
UNWIND $rows AS k MATCH (x:Name {tenant: k[0], kind: k[1], form: k[2], type: k[3]}) DETACH DELETE x
"""


@dataclass(slots=True)
class _Ref:
    place: int
    tenant: str
    ref: TopicRef | EntityRef
    path: Path


@dataclass(slots=True)
class NamedRefs:
    """References to topics and entities, gathered over several writes; place says whose each is."""

    refs: list[_Ref] = field(default_factory=list)

    def add(
        self,
        place: int,
        tenant: str,
        topics: Sequence[TopicRef],
        entities: Sequence[EntityRef],
        topic_path: Path,
        entity_path: Path,
    ) -> None:
        self.refs.extend(_Ref(place, tenant, ref, (*topic_path, at)) for at, ref in enumerate(topics))
        self.refs.extend(_Ref(place, tenant, ref, (*entity_path, at)) for at, ref in enumerate(entities))

    def add_draft(self, place: int, tenant: str, draft: MemoryDraft, path: Path) -> None:
        self.add(place, tenant, draft.topics, draft.entities, (*path, "topics"), (*path, "entities"))


@dataclass(slots=True)
class Resolved:
    """The ids that references lead to."""

    owners: dict[NameKey, str] = field(default_factory=dict)
    untyped: dict[tuple[str, str], str] = field(default_factory=dict)

    def topic(self, tenant: str, ref: TopicRef) -> str:
        return ref.id if ref.id is not None else self.owners[topic_key(tenant, ref.name or "")]

    def entity(self, tenant: str, ref: EntityRef) -> str:
        if ref.id is not None:
            return ref.id
        name = ref.name or ""
        if ref.type is None:
            return self.untyped[(tenant, normal_form(name))]
        return self.owners[entity_key(tenant, name, ref.type.value)]


async def resolve(
    transaction: Transaction, refs: NamedRefs, refused: list[list[Refusal]], writes: Sequence[Write]
) -> Resolved:
    """Finds what all references lead to, and makes the topics and entities that new names ask for.

    What leads nowhere is added to `refused` at its place; nothing is made for a place that is refused.
    """
    resolved = Resolved()
    await _check_ids(transaction, refs, refused)
    await _find_untyped(transaction, refs, refused, resolved)
    wanted: dict[NameKey, tuple[str, Write]] = {}
    for ref in refs.refs:
        key = _key(ref)
        if key is not None and not refused[ref.place]:
            wanted.setdefault(key, (ref.ref.name or "", writes[ref.place]))
    if not wanted:
        return resolved
    found = await transaction.run(OWNERS_BY_NAME, rows=[list(key) for key in sorted(wanted)])
    resolved.owners.update((_name_key(key), owner) for key, owner in found)
    missing = sorted(key for key in wanted if key not in resolved.owners)
    if missing:
        # only names that nobody has yet are locked, in one order for all writers
        locked = await transaction.run(LOCK_NAMES, rows=[list(key) for key in missing])
        resolved.owners.update((_name_key(key), owner) for key, owner in locked if owner is not None)
        new = [key for key in missing if key not in resolved.owners]
        for key in new:
            resolved.owners[key] = new_id()
        await _create(transaction, {key: wanted[key] for key in new}, resolved.owners)
    return resolved


async def _check_ids(transaction: Transaction, refs: NamedRefs, refused: list[list[Refusal]]) -> None:
    asked = {
        (ref.tenant, ref.ref.id, TOPIC if isinstance(ref.ref, TopicRef) else ENTITY)
        for ref in refs.refs
        if ref.ref.id is not None
    }
    if not asked:
        return
    found = {tuple(row) for row in await transaction.run(FOUND_BY_ID, rows=sorted(list(key) for key in asked))}
    for ref in refs.refs:
        kind = TOPIC if isinstance(ref.ref, TopicRef) else ENTITY
        if ref.ref.id is not None and (ref.tenant, ref.ref.id, kind) not in found:
            refused[ref.place].append(NotFound(f"no {kind.lower()} has this id", (*ref.path, "id")))


async def refuse_unknown(
    transaction: Transaction, tenant: str, kind: str, ids: Sequence[str], path: Path
) -> list[Refusal]:
    """What stands against a list of ids of one kind: each that leads nowhere."""
    if not ids:
        return []
    rows = [[tenant, wanted, kind] for wanted in dict.fromkeys(ids)]
    found = {row[1] for row in await transaction.run(FOUND_BY_ID, rows=rows)}
    return [
        NotFound(f"no {kind.lower()} has this id", (*path, at)) for at, wanted in enumerate(ids) if wanted not in found
    ]


async def _find_untyped(
    transaction: Transaction, refs: NamedRefs, refused: list[list[Refusal]], resolved: Resolved
) -> None:
    untyped = [
        ref for ref in refs.refs if isinstance(ref.ref, EntityRef) and ref.ref.name is not None and ref.ref.type is None
    ]
    if not untyped:
        return
    asked = sorted({(ref.tenant, normal_form(ref.ref.name or "")) for ref in untyped})
    owners = await owners_by_form(transaction, asked)
    for ref in untyped:
        key = (ref.tenant, normal_form(ref.ref.name or ""))
        matches = owners.get(key, set())
        if len(matches) == 1:
            resolved.untyped[key] = next(iter(matches))
        else:
            trouble = "no entity has" if not matches else f"{len(matches)} entities have"
            refused[ref.place].append(
                BadInput(f"{trouble} the name {ref.ref.name!r}: name a type too", (*ref.path, "type"))
            )


async def owners_by_form(transaction: Transaction, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], set[str]]:
    """The entities that have a name, whatever their type, by (tenant, form)."""
    owners: dict[tuple[str, str], set[str]] = {}
    for (tenant, form), owner in await transaction.run(OWNERS_BY_FORM, rows=[list(key) for key in asked]):
        owners.setdefault((tenant, form), set()).add(owner)
    return owners


def _key(ref: _Ref) -> NameKey | None:
    if ref.ref.name is None:
        return None
    if isinstance(ref.ref, TopicRef):
        return topic_key(ref.tenant, ref.ref.name)
    return None if ref.ref.type is None else entity_key(ref.tenant, ref.ref.name, ref.ref.type.value)


def _name_key(row: Sequence[str]) -> NameKey:
    return (row[0], row[1], row[2], row[3])


async def _create(transaction: Transaction, new: dict[NameKey, tuple[str, Write]], ids: dict[NameKey, str]) -> None:
    topics: list[dict[str, Any]] = []
    entities: list[dict[str, Any]] = []
    for key, (name, write) in new.items():
        properties = named_properties(write, key[1], ids[key], name, made_by_server=True)
        if key[1] == ENTITY:
            properties |= {"type": key[3], "aliases": []}
        (topics if key[1] == TOPIC else entities).append({"key": list(key), "properties": properties})
    if topics:
        await transaction.run(CREATE_TOPICS, rows=topics)
    if entities:
        await transaction.run(CREATE_ENTITIES, rows=entities)


def named_properties(
    write: Write, kind: str, node_id: str, name: str, *, aliases: Sequence[str] = (), made_by_server: bool = False
) -> dict[str, Any]:
    """What topics and entities have in common; a node made for a reference may be swept when nothing is left of it."""
    return {
        "id": node_id,
        "tenant": write.tenant,
        "name": name,
        "form": normal_form(name),
        "words": name_words(write.number, kind, name, aliases),
        "createdAt": write.now,
        "updatedAt": write.now,
        "madeByServer": made_by_server,
        "degree": 0,
    }


def name_words(number: int, kind: str, name: str, aliases: Sequence[str] = ()) -> str:
    """The indexed words of all names of a topic or an entity."""
    return words_of(number, kind, "\n".join((name, *aliases)))


async def claim(transaction: Transaction, keys: Sequence[tuple[NameKey, Path]], owner: str | None) -> list[Refusal]:
    """Locks names for `owner`; refuses each that another one has. New names lead nowhere until GIVE_NAMES."""
    rows = sorted({key for key, _ in keys})
    taken = {
        _name_key(key): found for key, found in await transaction.run(LOCK_NAMES, rows=[list(row) for row in rows])
    }
    refused: list[Refusal] = [
        AlreadyExists(f"another {key[1].lower()} has this name", path, taken[key])
        for key, path in keys
        if taken[key] is not None and taken[key] != owner
    ]
    if refused:
        await drop(transaction, [key for key in rows if taken[key] is None])
    return refused


async def give(transaction: Transaction, keys: Sequence[NameKey], owner: str) -> None:
    """Lets locked names lead to their owner; Raced where one was dropped while its lock was waited for."""
    if await transaction.run(GIVE_NAMES, rows=[list(key) for key in keys], id=owner) < len(keys):
        raise Raced


async def lock_names_of(transaction: Transaction, tenant: str, ids: Sequence[str]) -> dict[str, list[NameKey]]:
    """Locks all names that lead to some topics or entities, in order; by owner."""
    await transaction.run(LOCK_NAMES_OF, ids=list(ids), t=tenant)
    # whoever held one of these locks may have given the owner other names before letting go of it
    names: dict[str, list[NameKey]] = {}
    for key, owner in await transaction.run(LOCK_NAMES_OF, ids=list(ids), t=tenant):
        names.setdefault(owner, []).append(_name_key(key))
    return names


async def drop(transaction: Transaction, keys: Sequence[NameKey]) -> None:
    """Takes names away; whoever waits for one of them starts again."""
    if keys:
        await transaction.run(DROP_NAMES, rows=[list(key) for key in keys])
