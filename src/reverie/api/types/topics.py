"""Topics, as callers see and write them."""

from typing import Annotated, Any

import strawberry
from strawberry import UNSET

from reverie.api.context import Info
from reverie.api.types.connections import (
    Connection,
    LazyCommunity,
    LazyRelatedTopics,
    MemoryConnection,
    PageInfo,
    embedding_field,
    related,
    related_memories,
    total_count_field,
)
from reverie.api.types.given import given_or
from reverie.api.types.nodes import Node
from reverie.domain import topics as domain
from reverie.domain.communities import CommunityAlgorithm
from reverie.domain.pages import Edge as PageEdge

NAME = "What it is called: 1 to 200 characters, unique by letters, case and width aside."


async def _community(
    root: strawberry.Parent[domain.Topic],
    info: Info,
    algorithm: Annotated[
        CommunityAlgorithm | None, strawberry.argument(description="By which algorithm.")
    ] = CommunityAlgorithm.LEIDEN,
) -> Any:
    return await info.context.loaders.community(given_or(algorithm, CommunityAlgorithm.LEIDEN).value, root.id)


@strawberry.type(description="What memories are about.")
class Topic(Node):
    name: str = strawberry.field(description="What it is called.")
    embedding: list[float] | None = embedding_field()
    community: LazyCommunity | None = strawberry.field(
        resolver=_community, description="The community it belongs to, by one algorithm."
    )
    memories: MemoryConnection = related_memories("Topic", "The memories that have it.")
    related: LazyRelatedTopics = related("Topic", "related", "Topics related to it, strongest first.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Topic, cls))


def _related_node(root: strawberry.Parent[PageEdge[domain.RelatedTopic]]) -> Any:
    return root.node.topic


def _weight(root: strawberry.Parent[PageEdge[domain.RelatedTopic]]) -> float:
    return root.node.weight


def _related_nodes(root: strawberry.Parent[Connection[Any]]) -> Any:
    return [related_topic.topic for related_topic in root.nodes]


@strawberry.type(description="A relation between two topics, seen from one of them.")
class RelatedTopicEdge:
    cursor: str = strawberry.field(description="Leads on from this member: pass it to after or before.")
    node: Topic = strawberry.field(resolver=_related_node, description="The topic at the other end.")
    weight: float = strawberry.field(resolver=_weight, description="How strongly.")


@strawberry.type(description="One page of related topics.")
class RelatedTopicConnection:
    edges: list[RelatedTopicEdge] = strawberry.field(description="The members with their cursors.")
    nodes: list[Topic] = strawberry.field(resolver=_related_nodes, description="The members alone.")
    page_info: PageInfo = strawberry.field(description="Where this page lies.")
    total_count: int | None = total_count_field()


@strawberry.input(description="A topic to make.")
class CreateTopicInput:
    name: str = strawberry.field(description=NAME)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")


@strawberry.input(description="A topic's new name.")
class UpdateTopicInput:
    id: strawberry.ID = strawberry.field(description="The topic.")
    name: str = strawberry.field(description=NAME)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")


@strawberry.input(description="Topics to merge.")
class MergeTopicsInput:
    into_id: strawberry.ID = strawberry.field(description="The one that stays, with all memories, relations and names.")
    from_ids: list[strawberry.ID] = strawberry.field(description="Those that go into it.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")


@strawberry.input(description="A topic to delete.")
class DeleteTopicInput:
    id: strawberry.ID = strawberry.field(description="The topic.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")
