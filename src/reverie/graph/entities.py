"""Entities in Neo4j: made, changed, merged, deleted, each under the locks of its names."""

from collections.abc import Sequence
from typing import Any

from reverie.domain.checks import Path
from reverie.domain.entities import EntityChange, EntityDraft, distinct_names
from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.domain.unset import given
from reverie.errors import NotFound, Refusals
from reverie.graph.names import (
    ENTITY,
    NameKey,
    claim,
    drop,
    entity_key,
    give,
    lock_names_of,
    name_words,
    named_properties,
)
from reverie.graph.store import Graph, Transaction
from reverie.graph.topics import DELETE_NODES, Merge, held_sources, lock_merged, move_common, refuse_merge
from reverie.graph.writes import Outcome, Write

ENTITIES_BY_NAME = """
MATCH (x:Name {tenant: $t, kind: 'Entity', form: $form})-[:NAMES]->(n:Entity) WHERE x.type >= '' AND ($type IS NULL OR x.type = $type)
RETURN collect(DISTINCT n.id)
"""


async def entities_by_name(graph: Graph, tenant: str, name: str, type_: str | None) -> list[str]:
    """The ids of the entities that a name leads to: of one type, or of any."""
    return list(await graph.read(ENTITIES_BY_NAME, t=tenant, form=normal_form(name), type=type_))


CREATE_ENTITY = "CREATE (n:Entity:Node) SET n = $properties"


async def create_entities(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Makes entities (drafts: EntityDraft); outcome: `entity`, its id."""
    outcomes: list[Outcome] = []
    for write in writes:
        draft: EntityDraft = write.draft
        aliases = distinct_names(draft.aliases, (draft.name,))
        keys = [
            (entity_key(write.tenant, draft.name, draft.type.value), ("name",)),
            *_alias_keys(write.tenant, draft.type.value, draft.aliases),
        ]
        refused = await claim(transaction, keys, None)
        if refused:
            outcomes.append(Refusals(refused))
            continue
        node_id = new_id()
        properties = named_properties(write, ENTITY, node_id, draft.name, aliases=aliases)
        properties |= {"type": draft.type.value, "aliases": list(aliases)}
        await transaction.run(CREATE_ENTITY, properties=properties)
        await give(transaction, [key for key, _ in keys], node_id)
        outcomes.append({"entity": node_id})
    return outcomes


def _alias_keys(tenant: str, type_: str, aliases: Sequence[str]) -> list[tuple[NameKey, Path]]:
    return [(entity_key(tenant, alias, type_), ("aliases", at)) for at, alias in enumerate(aliases)]


ENTITY_NAMES = "MATCH (n:Entity&Node {id: $id}) WHERE n.tenant = $t RETURN [n.name, n.type, n.aliases]"
SET_ENTITY = "MATCH (n:Entity&Node {id: $id}) SET n += $properties"


async def update_entities(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Changes entities (drafts: EntityChange); names it no longer has lead nowhere; outcome: `entity`, its id."""
    return [await _update_entity(transaction, write) for write in writes]


async def _update_entity(transaction: Transaction, write: Write) -> Outcome:
    change: EntityChange = write.draft
    names = (await lock_names_of(transaction, write.tenant, [change.id])).get(change.id, [])
    row = await transaction.run(ENTITY_NAMES, id=change.id, t=write.tenant)
    if row is None:
        return _missing()
    name = change.name if given(change.name) else row[0]
    type_ = change.type.value if given(change.type) else row[1]
    listed = list(change.aliases if given(change.aliases) else row[2])
    aliases = distinct_names(listed, (name,))
    # names that came from entities of other types go on leading here for as long as they are among the aliases
    forms = {normal_form(alias) for alias in aliases}
    merged = [key for key in names if key[3] != row[1] and key[2] in forms]
    elsewhere = {key[2] for key in merged} - {key[2] for key in names if key[3] == row[1]}
    keys: list[tuple[NameKey, Path]] = [
        (entity_key(write.tenant, name, type_), ("name",) if given(change.name) else ("type",)),
        *(
            (key, path if given(change.aliases) else ("type",))
            for key, path in _alias_keys(write.tenant, type_, listed)
            if key[2] not in elsewhere
        ),
    ]
    refused = await claim(transaction, keys, change.id)
    if refused:
        return Refusals(refused)
    wanted = [*(key for key, _ in keys), *merged]
    await give(transaction, wanted, change.id)
    await drop(transaction, [key for key in names if key not in wanted])
    properties = _named(write, name, type_, aliases)
    await transaction.run(SET_ENTITY, id=change.id, properties=properties)
    return {"entity": change.id}


def _named(write: Write, name: str, type_: str, aliases: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        "form": normal_form(name),
        "type": type_,
        "aliases": list(aliases),
        "words": name_words(write.number, ENTITY, name, aliases),
        "updatedAt": write.now,
    }


ALL_NAMES = (
    "MATCH (n:Entity&Node) WHERE n.id IN $ids AND n.tenant = $t RETURN collect([n.id, n.name, n.type, n.aliases])"
)
MOVE_MEMORIES_OF_ENTITIES = f"{held_sources('Entity', 'MENTIONS')} DELETE old MERGE (m)-[:MENTIONS]->(into)"
MOVE_ABOUT = f"""
{held_sources("Entity", "ABOUT")}
WITH into, m, old, old.byCaller AS byCaller
DELETE old MERGE (m)-[r:ABOUT]->(into) SET r.byCaller = coalesce(r.byCaller, false) OR coalesce(byCaller, false)
"""
MOVE_SUBJECTS = f"{held_sources('Entity', 'HAS_SUBJECT')} DELETE old MERGE (m)-[:HAS_SUBJECT]->(into)"
MOVE_OBJECTS = f"{held_sources('Entity', 'HAS_OBJECT')} DELETE old MERGE (m)-[:HAS_OBJECT]->(into)"


async def merge_entities(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Merges entities (drafts: Merge): the survivor keeps every edge and, as aliases, every name; outcome: `entity`."""
    return [await _merge_entities(transaction, write) for write in writes]


async def _merge_entities(transaction: Transaction, write: Write) -> Outcome:
    merge: Merge = write.draft
    gone = list(dict.fromkeys(merge.from_ids))
    await lock_merged(transaction, write, [merge.into_id, *gone])
    rows = {row[0]: row for row in await transaction.run(ALL_NAMES, ids=[merge.into_id, *gone], t=write.tenant)}
    refused = refuse_merge(merge, set(rows), "entity")
    if refused:
        return Refusals(refused)
    for statement in (MOVE_MEMORIES_OF_ENTITIES, MOVE_ABOUT, MOVE_SUBJECTS, MOVE_OBJECTS):
        await transaction.run(statement, into=merge.into_id, ids=gone, now=write.now)
    await move_common(transaction, write, merge.into_id, gone)
    _, name, type_, aliases = rows[merge.into_id]
    every = [*aliases, *(known for merged in gone for known in (rows[merged][1], *rows[merged][3]))]
    await transaction.run(
        SET_ENTITY, id=merge.into_id, properties=_named(write, name, type_, distinct_names(every, (name,)))
    )
    return {"entity": merge.into_id}


async def delete_entities(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Deletes entities (drafts: ids) with their names; outcome: `deletedId`."""
    outcomes: list[Outcome] = []
    for write in writes:
        names = await lock_names_of(transaction, write.tenant, [write.draft])
        if await transaction.run(ENTITY_NAMES, id=write.draft, t=write.tenant) is None:
            outcomes.append(_missing())
            continue
        await drop(transaction, names.get(write.draft, []))
        await transaction.run(DELETE_NODES, ids=[write.draft])
        outcomes.append({"deletedId": write.draft})
    return outcomes


def _missing() -> Refusals:
    return Refusals([NotFound("no entity has this id", ("id",))])
