"""Memories, as callers see and write them."""

from datetime import datetime
from typing import Annotated, Any

import strawberry
from strawberry import UNSET
from strawberry.scalars import JSON

from reverie.api.context import Info
from reverie.api.types.connections import (
    Connection,
    EntityConnection,
    FactConnection,
    LazyConversation,
    LazyRelatedMemories,
    PageInfo,
    TopicConnection,
    embedding_field,
    one,
    related,
    related_entities,
    total_count_field,
)
from reverie.api.types.given import as_object, given_or, given_or_none, kept, members
from reverie.api.types.nodes import Node
from reverie.api.types.refs import EntityRef, FactDraft, TopicRef
from reverie.domain import memories as domain
from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.domain.memories import EnrichmentStatus, MemoryType
from reverie.domain.pages import Edge as PageEdge
from reverie.errors import BadInput

MEMORY_TYPE = "What kind of memory it is."
IMPORTANCE = "How much it matters, 0 to 1."
SUBJECT_ID = "Whom it is about or belongs to, by the caller's own id; null: the tenant itself."
AGENT_ID = "Which agent wrote it, by the caller's own id."
EVENT_TIME = "When it happened, where that is known."
EXPIRES_AT = "From then on it is as if deleted; null: never."
METADATA = "The caller's own JSON object, kept as it came."


async def _similar(
    root: strawberry.Parent[domain.Memory],
    info: Info,
    first: Annotated[int | None, strawberry.argument(description="How many: 0 to 200.")] = 10,
    min_score: Annotated[
        float | None, strawberry.argument(description="Only memories at least this near, 0 to 1.")
    ] = UNSET,
) -> Any:
    first = given_or(first, 10)
    if not 0 <= first <= policy.PAGE_MOST:
        raise BadInput(f"first: must be from 0 to {policy.PAGE_MOST}, not {first}", ("first",))
    least = given_or(min_score, 0.0)
    checks = Checks()
    checks.unit(least, ("minScore",))
    checks.done()
    return await info.context.loaders.similar(first, least, root.id)


@strawberry.type(description="What an agent chose to write down.")
class Memory(Node):
    content: str = strawberry.field(description="The text itself.")
    memory_type: MemoryType = strawberry.field(description=MEMORY_TYPE)
    importance: float = strawberry.field(description=IMPORTANCE)
    subject_id: str | None = strawberry.field(description=SUBJECT_ID)
    agent_id: str | None = strawberry.field(description=AGENT_ID)
    expires_at: datetime | None = strawberry.field(description=EXPIRES_AT)
    metadata: JSON | None = strawberry.field(description=METADATA)
    event_time: datetime | None = strawberry.field(description=EVENT_TIME)
    created_at: datetime = strawberry.field(description="When it was written.")
    updated_at: datetime = strawberry.field(description="When it was last changed.")
    embedding: list[float] | None = embedding_field()
    enrichment: EnrichmentStatus = strawberry.field(
        description="How far the search for its topics, entities and facts has come."
    )
    conversation: LazyConversation | None = one("Memory", "conversation", "The conversation it belongs to.")
    topics: TopicConnection = related("Memory", "topics", "Its topics, by name.")
    entities: EntityConnection = related_entities("Memory", "The entities it mentions, by name.")
    facts: FactConnection = related("Memory", "facts", "The facts read from it, in the order they were written.")
    related: LazyRelatedMemories = related(
        "Memory", "related", "Memories related to it, whichever way, strongest first."
    )
    similar: list["SimilarMemory"] | None = strawberry.field(
        resolver=_similar, description="The nearest memories by vector, itself left out; null without a vector."
    )

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Memory, cls))


@strawberry.type(description="A memory that is near another by vector.")
class SimilarMemory:
    score: float = strawberry.field(description="Cosine similarity, brought from -1…1 to 0…1.")
    memory: Memory = strawberry.field(description="The memory.")


def _related_node(root: strawberry.Parent[PageEdge[domain.RelatedMemory]]) -> Any:
    return root.node.memory


def _relation(root: strawberry.Parent[PageEdge[domain.RelatedMemory]]) -> str:
    return root.node.relation


def _weight(root: strawberry.Parent[PageEdge[domain.RelatedMemory]]) -> float:
    return root.node.weight


def _outgoing(root: strawberry.Parent[PageEdge[domain.RelatedMemory]]) -> bool:
    return root.node.outgoing


def _related_nodes(root: strawberry.Parent[Connection[Any]]) -> Any:
    return [related_memory.memory for related_memory in root.nodes]


@strawberry.type(description="A relation between two memories, seen from one of them.")
class RelatedMemoryEdge:
    cursor: str = strawberry.field(description="Leads on from this member: pass it to after or before.")
    node: Memory = strawberry.field(resolver=_related_node, description="The memory at the other end.")
    relation: str = strawberry.field(resolver=_relation, description="How they are related.")
    weight: float = strawberry.field(resolver=_weight, description="How strongly.")
    outgoing: bool = strawberry.field(resolver=_outgoing, description="Whether the relation points to the other end.")


@strawberry.type(description="One page of related memories.")
class RelatedMemoryConnection:
    edges: list[RelatedMemoryEdge] = strawberry.field(description="The members with their cursors.")
    nodes: list[Memory] = strawberry.field(resolver=_related_nodes, description="The members alone.")
    page_info: PageInfo = strawberry.field(description="Where this page lies.")
    total_count: int | None = total_count_field()


@strawberry.input(description="A memory to write.")
class CreateMemoryInput:
    content: str = strawberry.field(description="The text: 1 to 100,000 characters.")
    memory_type: MemoryType | None = strawberry.field(default=MemoryType.EPISODIC, description=MEMORY_TYPE)
    importance: float | None = strawberry.field(default=0.5, description=IMPORTANCE)
    conversation_id: strawberry.ID | None = strawberry.field(
        default=UNSET, description="The conversation it belongs to."
    )
    topics: list[TopicRef] | None = strawberry.field(default=UNSET, description="Its topics; new names are made.")
    entities: list[EntityRef] | None = strawberry.field(
        default=UNSET, description="The entities it mentions; new names with a type are made."
    )
    facts: list[FactDraft] | None = strawberry.field(default=UNSET, description="Facts that are read from it.")
    related_to: list[strawberry.ID] | None = strawberry.field(default=UNSET, description="Memories it is related to.")
    subject_id: str | None = strawberry.field(default=UNSET, description=SUBJECT_ID)
    agent_id: str | None = strawberry.field(default=UNSET, description=AGENT_ID)
    event_time: datetime | None = strawberry.field(default=UNSET, description=EVENT_TIME)
    expires_at: datetime | None = strawberry.field(default=UNSET, description=EXPIRES_AT)
    metadata: JSON | None = strawberry.field(default=UNSET, description=METADATA)
    enrich: bool | None = strawberry.field(
        default=True, description="Find topics, entities and facts in the background."
    )
    client_mutation_key: str | None = strawberry.field(
        default=UNSET, description="Idempotency key; refused inside a batch, which has one of its own."
    )

    def to_domain(self) -> domain.MemoryDraft:
        return domain.MemoryDraft(
            content=self.content,
            memory_type=given_or(self.memory_type, MemoryType.EPISODIC),
            importance=given_or(self.importance, 0.5),
            conversation_id=given_or_none(self.conversation_id),
            topics=tuple(ref.to_domain() for ref in members(self.topics)),
            entities=tuple(ref.to_domain() for ref in members(self.entities)),
            facts=tuple(fact.to_domain() for fact in members(self.facts)),
            related_to=members(self.related_to),
            subject_id=given_or_none(self.subject_id),
            agent_id=given_or_none(self.agent_id),
            event_time=given_or_none(self.event_time),
            expires_at=given_or_none(self.expires_at),
            metadata=as_object(given_or_none(self.metadata)),
            enrich=given_or(self.enrich, True),
        )


@strawberry.input(description="Memories to write together.")
class CreateMemoriesInput:
    memories: list[CreateMemoryInput] = strawberry.field(description="At most 1,000.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> list[domain.MemoryDraft]:
        checks = Checks()
        for index, memory in enumerate(self.memories):
            if given_or_none(memory.client_mutation_key) is not None:
                checks.bad("belongs to the batch, not to its members", ("memories", index, "clientMutationKey"))
        checks.done()
        return [memory.to_domain() for memory in self.memories]


@strawberry.input(description="What of a memory is to change; what is absent keeps its value, null clears it.")
class UpdateMemoryInput:
    id: strawberry.ID = strawberry.field(description="The memory.")
    content: str | None = strawberry.field(default=UNSET, description="The text: 1 to 100,000 characters.")
    memory_type: MemoryType | None = strawberry.field(default=UNSET, description=MEMORY_TYPE)
    importance: float | None = strawberry.field(default=UNSET, description=IMPORTANCE)
    conversation_id: strawberry.ID | None = strawberry.field(
        default=UNSET, description="The conversation it is to belong to."
    )
    add_topics: list[TopicRef] | None = strawberry.field(default=UNSET, description="Topics it is to have too.")
    remove_topic_ids: list[strawberry.ID] | None = strawberry.field(
        default=UNSET, description="Topics it is no longer to have."
    )
    add_entities: list[EntityRef] | None = strawberry.field(default=UNSET, description="Entities it is to mention too.")
    remove_entity_ids: list[strawberry.ID] | None = strawberry.field(
        default=UNSET, description="Entities it is no longer to mention."
    )
    event_time: datetime | None = strawberry.field(default=UNSET, description=EVENT_TIME)
    expires_at: datetime | None = strawberry.field(default=UNSET, description=EXPIRES_AT)
    metadata: JSON | None = strawberry.field(default=UNSET, description=METADATA)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.MemoryChange:
        checks = Checks()
        for name, value in (
            ("content", self.content),
            ("memoryType", self.memory_type),
            ("importance", self.importance),
        ):
            if value is None:
                checks.bad("can't be cleared", (name,))
        checks.done()
        return domain.MemoryChange(
            id=self.id,
            content=kept(self.content),  # type: ignore[arg-type]  # null was refused above
            memory_type=kept(self.memory_type),  # type: ignore[arg-type]  # null was refused above
            importance=kept(self.importance),  # type: ignore[arg-type]  # null was refused above
            conversation_id=kept(self.conversation_id),
            add_topics=tuple(ref.to_domain() for ref in members(self.add_topics)),
            remove_topic_ids=members(self.remove_topic_ids),
            add_entities=tuple(ref.to_domain() for ref in members(self.add_entities)),
            remove_entity_ids=members(self.remove_entity_ids),
            event_time=kept(self.event_time),
            expires_at=kept(self.expires_at),
            metadata=kept(as_object(self.metadata)),
        )


@strawberry.input(description="A memory to delete.")
class DeleteMemoryInput:
    id: strawberry.ID = strawberry.field(description="The memory.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")
