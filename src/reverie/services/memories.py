"""Memories: written, changed, deleted and related."""

from collections.abc import Sequence

from reverie.domain.checks import Checks
from reverie.domain.clock import now_ms
from reverie.domain.ids import new_id, well_formed
from reverie.domain.memories import (
    Memory,
    MemoryBatch,
    MemoryChange,
    MemoryDraft,
    check_memories,
    check_memory,
    check_memory_change,
)
from reverie.domain.policy import CONTEXT_MOST
from reverie.domain.relating import RelationDraft, check_relation
from reverie.domain.search import after
from reverie.domain.unset import given
from reverie.graph import embeddings, memories, relating
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
    ids = [new_id() for _ in drafts]
    texts, said_after = await _in_context(resources, tenant, drafts, ids)
    vectors = await embed(resources, texts)
    batch = MemoryBatch(drafts, batched, ids, vectors, said_after)
    writer = memories.create_memories
    done = await write(resources, tenant, field, writer, batch, key, weight=len(drafts), asked=drafts)
    ring(resources, vectors)
    return await read_back(resources, tenant, done["memories"], Memory)


async def _in_context(
    resources: Resources, tenant: str, drafts: Sequence[MemoryDraft], ids: Sequence[str]
) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """What the drafts' vectors are made of, each after what was said before it, and which memory said what of that.

    Another that is written to the conversation at the same time may come between.
    """
    if resources.embedder is None:
        return [draft.content for draft in drafts], {}
    conversations = {draft.conversation_id for draft in drafts if draft.conversation_id is not None}
    known = [conversation for conversation in conversations if well_formed(conversation)]
    last = await embeddings.last_said(resources.graph, tenant, known, now_ms()) if known else {}
    texts: list[str] = []
    said_after: dict[str, tuple[str, str]] = {}
    for draft, memory_id in zip(drafts, ids, strict=True):
        before = None if draft.conversation_id is None else last.get(draft.conversation_id)
        texts.append(after(draft.content, None if before is None else before[1]))
        if before is not None:
            said_after[memory_id] = before
        if draft.conversation_id is not None:
            last[draft.conversation_id] = (memory_id, draft.content[-CONTEXT_MOST:])
    return texts, said_after


async def update_memory(resources: Resources, tenant: str, change: MemoryChange, key: str | None) -> Memory:
    """Changes what was given of a memory; a new content gets a new vector."""
    check_id(change.id, "memory")
    change = check_memory_change(change)
    vector, before = None, None
    if given(change.content):
        before = await embeddings.said_before(resources.graph, tenant, change.id, now_ms())
        (vector,) = await embed(resources, [after(change.content, None if before is None else before[1])])
    update = memories.MemoryUpdate(change, vector, before)
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
