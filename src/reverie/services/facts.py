"""Facts: written, changed, deleted."""

from reverie.domain.facts import Fact, FactBatch, FactChange, check_fact_batch, check_fact_change
from reverie.graph import facts
from reverie.resources import Resources
from reverie.services.writing import check_id, write, write_one


async def create_fact(resources: Resources, tenant: str, batch: FactBatch, key: str | None) -> Fact:
    """Writes a fact; what its subject and object name is linked where one entity has that name."""
    batch = check_fact_batch(batch)
    return await write_one(resources, tenant, "createFact", facts.create_facts, batch, key, Fact)


async def update_fact(resources: Resources, tenant: str, change: FactChange, key: str | None) -> Fact:
    """Changes what was given of a fact, and links it anew."""
    check_id(change.id, "fact")
    change = check_fact_change(change)
    return await write_one(resources, tenant, "updateFact", facts.update_facts, change, key, Fact)


async def delete_fact(resources: Resources, tenant: str, fact_id: str, key: str | None) -> str:
    """Deletes a fact; its id."""
    check_id(fact_id, "fact")
    return str((await write(resources, tenant, "deleteFact", facts.delete_facts, fact_id, key))["deletedId"])
