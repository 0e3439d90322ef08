"""Communities, as callers see them."""

import strawberry

from reverie.api.types.connections import MemoryConnection, TopicConnection, related
from reverie.api.types.nodes import Node
from reverie.domain import communities as domain
from reverie.domain.communities import CommunityAlgorithm


@strawberry.type(description="A group of topics that occur together.")
class Community(Node):
    name: str = strawberry.field(description="A name made from its topics'.")
    algorithm: CommunityAlgorithm = strawberry.field(description="How it was found.")
    size: int = strawberry.field(description="How many topics it has.")
    topics: TopicConnection = related("Community", "topics", "Its topics, by name.")
    memories: MemoryConnection = related("Community", "memories", "The memories of its topics, newest first.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Community, cls))
