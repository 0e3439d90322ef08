"""Memories: what an agent chose to write down."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from reverie.domain import policy
from reverie.domain.checks import Checks, Path
from reverie.domain.entities import EntityRef, check_entity_ref
from reverie.domain.facts import FactDraft, check_fact
from reverie.domain.topics import TopicRef, check_topic_ref
from reverie.domain.unset import UNSET, Unset, given


class MemoryType(StrEnum):
    EPISODIC = "EPISODIC"
    SEMANTIC = "SEMANTIC"
    PROCEDURAL = "PROCEDURAL"


class EnrichmentStatus(StrEnum):
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    DONE = "DONE"
    FAILED = "FAILED"


class MemoryOrderField(StrEnum):
    CREATED_AT = "CREATED_AT"
    UPDATED_AT = "UPDATED_AT"
    EVENT_TIME = "EVENT_TIME"
    IMPORTANCE = "IMPORTANCE"


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it stands; its vector is read apart."""

    id: str
    content: str
    memory_type: MemoryType
    importance: float
    subject_id: str | None
    agent_id: str | None
    expires_at: datetime | None
    metadata: dict[str, Any] | None
    event_time: datetime | None
    created_at: datetime
    updated_at: datetime
    enrichment: EnrichmentStatus


@dataclass(frozen=True, slots=True)
class RelatedMemory:
    """A memory at the other end of a RELATED_TO."""

    memory: Memory
    relation: str
    weight: float
    outgoing: bool


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """A memory near by vector; `score` is the cosine similarity brought to 0 to 1."""

    score: float
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDraft:
    """A memory as a caller wants it."""

    content: str
    memory_type: MemoryType = MemoryType.EPISODIC
    importance: float = 0.5
    conversation_id: str | None = None
    topics: tuple[TopicRef, ...] = ()
    entities: tuple[EntityRef, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    related_to: tuple[str, ...] = ()
    subject_id: str | None = None
    agent_id: str | None = None
    event_time: datetime | None = None
    expires_at: datetime | None = None
    metadata: dict[str, Any] | None = None
    enrich: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """What of a memory is to change; what is UNSET keeps its value, None clears it."""

    id: str
    content: str | Unset = UNSET
    memory_type: MemoryType | Unset = UNSET
    importance: float | Unset = UNSET
    conversation_id: str | Unset | None = UNSET
    add_topics: tuple[TopicRef, ...] = ()
    remove_topic_ids: tuple[str, ...] = ()
    add_entities: tuple[EntityRef, ...] = ()
    remove_entity_ids: tuple[str, ...] = ()
    event_time: datetime | Unset | None = UNSET
    expires_at: datetime | Unset | None = UNSET
    metadata: dict[str, Any] | Unset | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """Which memories; every field that is set must hold. After is inclusive, before exclusive; ids mean any of them.

    A search looks at other kinds by the same fields; `user_id` is one that only episodes have.
    """

    memory_types: tuple[MemoryType, ...] | None = None
    min_importance: float | None = None
    conversation_id: str | None = None
    topic_ids: tuple[str, ...] | None = None
    entity_ids: tuple[str, ...] | None = None
    subject_id: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    event_after: datetime | None = None
    event_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class MemoryOrder:
    field: MemoryOrderField = MemoryOrderField.CREATED_AT
    descending: bool = True


@dataclass(slots=True)
class MemoryBatch:
    """Checked drafts with what was made for them beforehand: ids, and vectors where the embedder was in time.

    `said_after` tells, by id, after which memory of its conversation one was said, and which words of that one its
    vector knows of.
    """

    drafts: tuple[MemoryDraft, ...]
    batched: bool
    ids: list[str] = field(default_factory=list)
    vectors: list[list[float] | None] = field(default_factory=list)
    said_after: dict[str, tuple[str, str]] = field(default_factory=dict)


def check_memory(draft: MemoryDraft, checks: Checks, path: Path = ()) -> MemoryDraft:
    """The draft with its references in their stored form; what is wrong with it goes to `checks`."""
    checks.text(draft.content, (*path, "content"), policy.CONTENT_MOST)
    checks.unit(draft.importance, (*path, "importance"))
    checks.label(draft.subject_id, (*path, "subjectId"))
    checks.label(draft.agent_id, (*path, "agentId"))
    checks.metadata(draft.metadata, (*path, "metadata"))
    for name, members in (
        ("topics", draft.topics),
        ("entities", draft.entities),
        ("facts", draft.facts),
        ("relatedTo", draft.related_to),
    ):
        checks.few(members, (*path, name))
    return MemoryDraft(
        content=draft.content,
        memory_type=draft.memory_type,
        importance=draft.importance,
        conversation_id=draft.conversation_id,
        topics=tuple(check_topic_ref(ref, checks, (*path, "topics", i)) for i, ref in enumerate(draft.topics)),
        entities=tuple(check_entity_ref(ref, checks, (*path, "entities", i)) for i, ref in enumerate(draft.entities)),
        facts=tuple(check_fact(fact, checks, (*path, "facts", i)) for i, fact in enumerate(draft.facts)),
        related_to=draft.related_to,
        subject_id=draft.subject_id,
        agent_id=draft.agent_id,
        event_time=draft.event_time,
        expires_at=draft.expires_at,
        metadata=draft.metadata,
        enrich=draft.enrich,
    )


def check_memories(drafts: tuple[MemoryDraft, ...]) -> tuple[MemoryDraft, ...]:
    """The checked members of a batch; Refusals names each fault by the member's place."""
    checks = Checks()
    checks.few(drafts, ("memories",), policy.BATCH_MOST)
    checks.done()
    checked = tuple(check_memory(draft, checks, ("memories", index)) for index, draft in enumerate(drafts))
    checks.done()
    return checked


def check_memory_change(change: MemoryChange) -> MemoryChange:
    """The change with its references in their stored form; Refusals when it can't be made."""
    checks = Checks()
    if given(change.content):
        checks.text(change.content, ("content",), policy.CONTENT_MOST)
    if given(change.importance):
        checks.unit(change.importance, ("importance",))
    if given(change.metadata):
        checks.metadata(change.metadata, ("metadata",))
    for name, members in (
        ("addTopics", change.add_topics),
        ("removeTopicIds", change.remove_topic_ids),
        ("addEntities", change.add_entities),
        ("removeEntityIds", change.remove_entity_ids),
    ):
        checks.few(members, (name,))
    topics = tuple(check_topic_ref(ref, checks, ("addTopics", i)) for i, ref in enumerate(change.add_topics))
    entities = tuple(check_entity_ref(ref, checks, ("addEntities", i)) for i, ref in enumerate(change.add_entities))
    checks.done()
    return MemoryChange(
        id=change.id,
        content=change.content,
        memory_type=change.memory_type,
        importance=change.importance,
        conversation_id=change.conversation_id,
        add_topics=topics,
        remove_topic_ids=change.remove_topic_ids,
        add_entities=entities,
        remove_entity_ids=change.remove_entity_ids,
        event_time=change.event_time,
        expires_at=change.expires_at,
        metadata=change.metadata,
    )


def check_memory_filter(wanted: MemoryFilter, path: Path = ("filter",)) -> MemoryFilter:
    """The filter itself; Refusals when a range is reversed or a value can't be."""
    checks = Checks()
    checks.span(wanted.created_after, wanted.created_before, path, ("createdAfter", "createdBefore"))
    checks.span(wanted.event_after, wanted.event_before, path, ("eventAfter", "eventBefore"))
    if wanted.min_importance is not None:
        checks.unit(wanted.min_importance, (*path, "minImportance"))
    for name, ids in (("topicIds", wanted.topic_ids), ("entityIds", wanted.entity_ids)):
        if ids is not None:
            checks.few(ids, (*path, name))
    checks.done()
    return wanted
