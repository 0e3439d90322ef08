"""Connections: the shape of every page, and the fields that lead along the graph's relations."""

from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import strawberry
from strawberry import UNSET

from reverie.api.context import Info
from reverie.api.reads import (
    Connected,
    related_beliefs_page,
    related_entities_page,
    related_memories_page,
    related_one,
    related_page,
)
from reverie.api.types.filters import BeliefFilter, MemoryFilter, MemoryOrder
from reverie.api.types.given import given_or_none
from reverie.domain.entities import EntityType
from reverie.domain.pages import PageArgs

if TYPE_CHECKING:
    from reverie.api.types.beliefs import Belief, BeliefChange
    from reverie.api.types.communities import Community
    from reverie.api.types.conversations import Conversation
    from reverie.api.types.documents import Chunk, Document
    from reverie.api.types.entities import Entity, RelatedEntityConnection
    from reverie.api.types.episodes import Episode
    from reverie.api.types.events import Event
    from reverie.api.types.facts import Fact
    from reverie.api.types.memories import Memory, RelatedMemoryConnection
    from reverie.api.types.topics import RelatedTopicConnection, Topic

T = TypeVar("T")

First = Annotated[int | None, strawberry.argument(description="How many from the start: 0 to 200, 20 unless given.")]
After = Annotated[str | None, strawberry.argument(description="A cursor: only what comes after it.")]
Last = Annotated[int | None, strawberry.argument(description="How many from the end, instead of first.")]
Before = Annotated[str | None, strawberry.argument(description="A cursor: only what comes before it.")]
Filter = Annotated[MemoryFilter | None, strawberry.argument(description="Only memories for which all of this holds.")]
WantedBeliefs = Annotated[
    BeliefFilter | None, strawberry.argument(description="Only versions for which all of this holds.")
]
TypeOfEntity = Annotated[EntityType | None, strawberry.argument(description="Only entities of this type.")]
Ordering = Annotated[MemoryOrder | None, strawberry.argument(description="How to sort; newest first unless given.")]


@strawberry.type(description="Where a page lies in its connection.")
class PageInfo:
    has_next_page: bool = strawberry.field(description="Whether more follows.")
    has_previous_page: bool = strawberry.field(description="Whether something comes before.")
    start_cursor: str | None = strawberry.field(description="The cursor of the first member, null on an empty page.")
    end_cursor: str | None = strawberry.field(description="The cursor of the last member, null on an empty page.")


@strawberry.type(description="One member of a connection.")
class Edge(Generic[T]):
    cursor: str = strawberry.field(description="Leads on from this member: pass it to after or before.")
    node: T = strawberry.field(description="The member itself.")


async def total_count(root: strawberry.Parent[Connected]) -> int:
    return await root.count()


def total_count_field() -> Any:
    return strawberry.field(
        resolver=total_count, description="How many members there are in all; counted only when selected."
    )


@strawberry.type(description="One page of a connection.")
class Connection(Generic[T]):
    edges: list[Edge[T]] = strawberry.field(description="The members with their cursors.")
    nodes: list[T] = strawberry.field(description="The members alone.")
    page_info: PageInfo = strawberry.field(description="Where this page lies.")
    total_count: int | None = total_count_field()


MemoryConnection = Connection[Annotated["Memory", strawberry.lazy("reverie.api.types.memories")]]
ConversationConnection = Connection[Annotated["Conversation", strawberry.lazy("reverie.api.types.conversations")]]
TopicConnection = Connection[Annotated["Topic", strawberry.lazy("reverie.api.types.topics")]]
FactConnection = Connection[Annotated["Fact", strawberry.lazy("reverie.api.types.facts")]]
EntityConnection = Connection[Annotated["Entity", strawberry.lazy("reverie.api.types.entities")]]
CommunityConnection = Connection[Annotated["Community", strawberry.lazy("reverie.api.types.communities")]]
EventConnection = Connection[Annotated["Event", strawberry.lazy("reverie.api.types.events")]]
EpisodeConnection = Connection[Annotated["Episode", strawberry.lazy("reverie.api.types.episodes")]]
BeliefConnection = Connection[Annotated["Belief", strawberry.lazy("reverie.api.types.beliefs")]]
BeliefChangeConnection = Connection[Annotated["BeliefChange", strawberry.lazy("reverie.api.types.beliefs")]]
DocumentConnection = Connection[Annotated["Document", strawberry.lazy("reverie.api.types.documents")]]
ChunkConnection = Connection[Annotated["Chunk", strawberry.lazy("reverie.api.types.documents")]]
LazyBelief = Annotated["Belief", strawberry.lazy("reverie.api.types.beliefs")]
LazyEpisode = Annotated["Episode", strawberry.lazy("reverie.api.types.episodes")]
LazyConversation = Annotated["Conversation", strawberry.lazy("reverie.api.types.conversations")]
LazyDocument = Annotated["Document", strawberry.lazy("reverie.api.types.documents")]
LazyEntity = Annotated["Entity", strawberry.lazy("reverie.api.types.entities")]
LazyCommunity = Annotated["Community", strawberry.lazy("reverie.api.types.communities")]
LazyRelatedMemories = Annotated["RelatedMemoryConnection", strawberry.lazy("reverie.api.types.memories")]
LazyRelatedTopics = Annotated["RelatedTopicConnection", strawberry.lazy("reverie.api.types.topics")]
LazyRelatedEntities = Annotated["RelatedEntityConnection", strawberry.lazy("reverie.api.types.entities")]


def page_args(first: int | None, after: str | None, last: int | None, before: str | None) -> PageArgs:
    """The arguments of a connection, absent and null being the same."""
    return PageArgs(given_or_none(first), given_or_none(after), given_or_none(last), given_or_none(before))


def related(owner: str, name: str, description: str) -> Any:
    """A field that leads along one relation of the table, page by page."""

    async def resolve(
        root: strawberry.Parent[Any],
        info: Info,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> Any:
        return await related_page(info.context, owner, name, root.id, page_args(first, after, last, before))

    return strawberry.field(resolver=resolve, description=description)


def related_memories(owner: str, description: str) -> Any:
    """A field that leads to memories, filtered and sorted as the caller likes."""

    async def resolve(
        root: strawberry.Parent[Any],
        info: Info,
        filter: Filter = UNSET,
        order_by: Ordering = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> Any:
        return await related_memories_page(
            info.context,
            owner,
            root.id,
            page_args(first, after, last, before),
            filter.to_domain() if filter else None,
            order_by.to_domain() if order_by else None,
        )

    return strawberry.field(resolver=resolve, description=description)


def related_entities(owner: str, description: str) -> Any:
    """A field that leads to entities, of one type where asked."""

    async def resolve(
        root: strawberry.Parent[Any],
        info: Info,
        type: TypeOfEntity = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> Any:
        args = page_args(first, after, last, before)
        return await related_entities_page(info.context, owner, root.id, args, type.value if type else None)

    return strawberry.field(resolver=resolve, description=description)


def related_beliefs(owner: str, description: str) -> Any:
    """A field that leads to beliefs, filtered as the caller likes."""

    async def resolve(
        root: strawberry.Parent[Any],
        info: Info,
        filter: WantedBeliefs = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> Any:
        wanted = filter.to_domain() if filter else None
        return await related_beliefs_page(info.context, owner, root.id, page_args(first, after, last, before), wanted)

    return strawberry.field(resolver=resolve, description=description)


def one(owner: str, name: str, description: str) -> Any:
    """A field that leads along a relation with at most one member."""

    async def resolve(root: strawberry.Parent[Any], info: Info) -> Any:
        return await related_one(info.context, owner, name, root.id)

    return strawberry.field(resolver=resolve, description=description)


async def _embedding(root: strawberry.Parent[Any], info: Info) -> list[float] | None:
    return await info.context.loaders.vector(root.id)


def embedding_field() -> Any:
    return strawberry.field(resolver=_embedding, description="Its vector, of unit length; null until it is embedded.")
