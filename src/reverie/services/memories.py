"""Memories: written, changed, deleted and related."""

from collections.abc import Sequence

from reverie.domain.checks import Checks
from reverie.domain.ids import new_id
from reverie.domain.memories import (
    Memory,
    MemoryBatch,
    MemoryChange,
    MemoryDraft,
    check_memories,
    check_memory,
    check_memory_change,
)
from reverie.domain.relating import RelationDraft, check_relation
from reverie.domain.unset import given
from reverie.graph import memories, relating
from reverie.resources import Resources
from reverie.services.embedding import embed, ring
from reverie.services.writing import check_id, read_back, write, write_one


async def create_memory(resources: Resources, tenant: str, draft: MemoryDraft, key: str | None) -> Memory:
    """Writes one memory; durable, listed and found by word when this returns."""
    checks = Checks()
    draft = check_memory(draft, checks)
    checks.done()
    return (await _create(resources, tenant, "createMemory", (draft,), key, batched=False))[0]


async def create_memories(
    resources: Resources, tenant: str, drafts: Sequence[MemoryDraft], key: str | None
) -> list[Memory]:
    """Writes a batch of memories, all or none, in order."""
    checked = check_memories(tuple(drafts))
    if not checked:
        return []
    return await _create(resources, tenant, "createMemories", checked, key, batched=True)


async def _create(
    resources: Resources, tenant: str, field: str, drafts: tuple[MemoryDraft, ...], key: str | None, *, batched: bool
) -> list[Memory]:
    vectors = await embed(resources, [draft.content for draft in drafts])
    batch = MemoryBatch(drafts, batched, [new_id() for _ in drafts], vectors)
    writer = memories.create_memories
    done = await write(resources, tenant, field, writer, batch, key, weight=len(drafts), asked=drafts)
    ring(resources, vectors)
    return await read_back(resources, tenant, done["memories"], Memory)


async def update_memory(resources: Resources, tenant: str, change: MemoryChange, key: str | None) -> Memory:
    """Changes what was given of a memory; a new content gets a new vector."""
    check_id(change.id, "memory")
    change = check_memory_change(change)
    vector = (await embed(resources, [change.content]))[0] if given(change.content) else None
    update = memories.MemoryUpdate(change, vector)
    writer = memories.update_memories
    memory = await write_one(resources, tenant, "updateMemory", writer, update, key, Memory, asked=change)
    if given(change.content):
        ring(resources, [vector])
    return memory


async def delete_memory(resources: Resources, tenant: str, memory_id: str, key: str | None) -> str:
    """Deletes a memory, with the facts whose only source it was; its id."""
    check_id(memory_id, "memory")
    done = await write(resources, tenant, "deleteMemory", memories.delete_memories, memory_id, key)
    return str(done["deletedId"])


async def relate_memories(
    resources: Resources, tenant: str, draft: RelationDraft, key: str | None
) -> tuple[Memory, Memory]:
    """Relates two memories, or gives their relation another weight; both of them."""
    draft = check_relation(draft)
    done = await write(resources, tenant, "relateMemories", relating.relate_memories, draft, key)
    memory, related = await read_back(resources, tenant, [done["memory"], done["related"]], Memory)
    return memory, related
