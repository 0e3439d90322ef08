"""Fills a store with the demo's data, through the same use cases that callers have."""

import asyncio
from datetime import UTC, datetime
from typing import NamedTuple

from reverie.demo.data import demo_conversations, demo_entities, demo_entity_relations
from reverie.demo.episodes import past_events
from reverie.domain.communities import Detection
from reverie.domain.conversations import ConversationDraft
from reverie.domain.entities import EntityDraft, EntityRef
from reverie.domain.episodes import EpisodeClosing
from reverie.domain.facts import FactDraft
from reverie.domain.memories import MemoryDraft
from reverie.domain.relating import RelationDraft
from reverie.domain.topics import TopicRef
from reverie.resources import Resources
from reverie.services.communities import detect_communities
from reverie.services.conversations import create_conversation
from reverie.services.embedding import embed_all
from reverie.services.entities import create_entity, relate_entities
from reverie.services.episodes import close_episode
from reverie.services.events import record_events
from reverie.services.memories import create_memories, relate_memories


class Filled(NamedTuple):
    """How much was written."""

    memories: int
    events: int


async def fill(resources: Resources, tenant: str) -> Filled:
    """Writes the story, its last day being the working day before today; all its episodes are over."""
    entities = demo_entities()
    made = await asyncio.gather(
        *(create_entity(resources, tenant, EntityDraft(e.name, e.type, e.aliases), None) for e in entities)
    )
    ids = {entity.name: entity.id for entity in made}
    await asyncio.gather(
        *(
            relate_entities(resources, tenant, RelationDraft(ids[r.source], ids[r.target], r.relation, r.weight), None)
            for r in demo_entity_relations()
        )
    )
    now = datetime.now(UTC)
    story = demo_conversations(now)
    conversations = await asyncio.gather(
        *(create_conversation(resources, tenant, ConversationDraft(c.title, c.thread_id), None) for c in story)
    )
    told = [(told, thread.id) for thread, c in zip(conversations, story, strict=True) for told in c.memories]
    memories = await create_memories(
        resources,
        tenant,
        [
            MemoryDraft(
                content=memory.content,
                memory_type=memory.memory_type,
                importance=memory.importance,
                conversation_id=conversation,
                topics=tuple(TopicRef(name=name) for name in memory.topics),
                entities=tuple(EntityRef(name=name, type=type_) for name, type_ in memory.entities),
                facts=tuple(FactDraft(f.subject, f.predicate, f.object, f.confidence) for f in memory.facts),
                subject_id=memory.subject_id,
                agent_id=memory.agent_id,
                event_time=memory.at,
                metadata=None if memory.metadata is None else dict(memory.metadata),
                enrich=False,
            )
            for memory, conversation in told
        ],
        None,
    )
    by_key = {memory.key: written.id for (memory, _), written in zip(told, memories, strict=True)}
    await asyncio.gather(
        *(
            relate_memories(resources, tenant, RelationDraft(by_key[memory.key], by_key[other]), None)
            for memory, _ in told
            for other in memory.related_to
        )
    )
    await embed_all(resources)
    await detect_communities(resources, tenant, Detection())
    events = past_events(now)
    await record_events(resources, tenant, events, None)
    # the last of each thread would grow until it has been idle for the gap, and that since now
    for thread_id in dict.fromkeys(event.thread_id for event in events):
        await close_episode(resources, tenant, EpisodeClosing(thread_id=thread_id), None)
    return Filled(len(memories), len(events))
