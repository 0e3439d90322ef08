"""Entities: made, changed, merged, deleted and related."""

from collections.abc import Sequence

from reverie.domain.entities import Entity, EntityChange, EntityDraft, check_entity, check_entity_change
from reverie.domain.relating import RelationDraft, Unrelation, check_relation, check_unrelation
from reverie.graph import entities, relating
from reverie.resources import Resources
from reverie.services.topics import check_merge
from reverie.services.writing import check_id, read_back, write, write_one


async def create_entity(resources: Resources, tenant: str, draft: EntityDraft, key: str | None) -> Entity:
    """Makes an entity; AlreadyExists when another of its type has one of its names."""
    draft = check_entity(draft)
    return await write_one(resources, tenant, "createEntity", entities.create_entities, draft, key, Entity)


async def update_entity(resources: Resources, tenant: str, change: EntityChange, key: str | None) -> Entity:
    """Changes what was given of an entity; names it no longer has lead nowhere."""
    check_id(change.id, "entity")
    change = check_entity_change(change)
    return await write_one(resources, tenant, "updateEntity", entities.update_entities, change, key, Entity)


async def merge_entities(
    resources: Resources, tenant: str, into_id: str, from_ids: Sequence[str], key: str | None
) -> Entity:
    """Merges entities into one, which keeps every edge and, as aliases, every name."""
    merge = check_merge(into_id, from_ids)
    return await write_one(resources, tenant, "mergeEntities", entities.merge_entities, merge, key, Entity)


async def delete_entity(resources: Resources, tenant: str, entity_id: str, key: str | None) -> str:
    """Deletes an entity; memories and facts stay."""
    check_id(entity_id, "entity")
    done = await write(resources, tenant, "deleteEntity", entities.delete_entities, entity_id, key)
    return str(done["deletedId"])


async def relate_entities(
    resources: Resources, tenant: str, draft: RelationDraft, key: str | None
) -> tuple[Entity, Entity]:
    """Relates two entities, or gives their relation another weight; both of them."""
    draft = check_relation(draft)
    done = await write(resources, tenant, "relateEntities", relating.relate_entities, draft, key)
    entity, related = await read_back(resources, tenant, [done["entity"], done["related"]], Entity)
    return entity, related


async def unrelate(
    resources: Resources, tenant: str, from_id: str, to_id: str, relation: str | None, key: str | None
) -> int:
    """Takes the relations between two memories, topics or entities away, whichever way they point; how many."""
    wanted = check_unrelation(Unrelation(from_id, to_id, relation))
    return int((await write(resources, tenant, "unrelate", relating.unrelate, wanted, key))["removed"])
