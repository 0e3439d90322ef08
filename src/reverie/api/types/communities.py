"""Communities, as callers see them."""

import strawberry

from reverie.api.types.connections import MemoryConnection, TopicConnection, related
from reverie.api.types.given import given_or
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


@strawberry.input(description="How communities are to be found.")
class DetectCommunitiesInput:
    algorithm: CommunityAlgorithm | None = strawberry.field(
        default=CommunityAlgorithm.LEIDEN, description="By which algorithm; what the others found stays."
    )
    resolution: float | None = strawberry.field(
        default=1.0,
        description="Above 0, at most 100: more makes more and smaller communities. Label propagation takes no notice.",
    )

    def to_domain(self) -> domain.Detection:
        usual = domain.Detection()
        return domain.Detection(given_or(self.algorithm, usual.algorithm), given_or(self.resolution, usual.resolution))
