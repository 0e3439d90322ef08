"""The map, as callers see it."""

from typing import Any

import strawberry
from strawberry import UNSET

from reverie.api.context import Info
from reverie.api.types.given import given_or
from reverie.api.types.nodes import Node
from reverie.domain import maps as domain
from reverie.domain.maps import GraphKind
from reverie.domain.policy import MAP_NODES


async def _node(root: strawberry.Parent[domain.GraphNode], info: Info) -> Any:
    return None if root.kind is GraphKind.SUBJECT else await info.context.loaders.node(root.key)


def _edge_key(root: strawberry.Parent[domain.GraphEdge]) -> strawberry.ID:
    return strawberry.ID(root.key)


@strawberry.type(description="A node of a map.")
class GraphNode:
    key: strawberry.ID = strawberry.field(description="The node's id, or `subject:` and a subject's id.")
    kind: GraphKind = strawberry.field(description="What kind of thing it is.")
    label: str = strawberry.field(description="A short text to write beside it, on one line.")
    weight: float = strawberry.field(
        description="Its degree in the tenant's graph: how many edges it has there, those that aren't shown among "
        "them; of a subject, how many beliefs are held about it."
    )
    node: Node | None = strawberry.field(resolver=_node, description="The thing itself; null for a subject.")


@strawberry.type(description="An edge of a map; both of its ends are among the map's nodes.")
class GraphEdge:
    key: strawberry.ID = strawberry.field(resolver=_edge_key, description="Unique on this map, and the same on others.")
    source: strawberry.ID = strawberry.field(description="The key of the node it goes from.")
    target: strawberry.ID = strawberry.field(description="The key of the node it goes to.")
    relation: str = strawberry.field(
        description="The relationship's type; HAS_BELIEF from a subject to what holds of it, LEARNED_FROM from a "
        "belief to an episode of its evidence."
    )
    weight: float = strawberry.field(
        description="The weight of a RELATED_TO, the number of quotes of a LEARNED_FROM, else 1."
    )


@strawberry.type(description="A part of the graph, to be drawn.")
class Graph:
    nodes: list[GraphNode] = strawberry.field(description="The nodes, each once.")
    edges: list[GraphEdge] = strawberry.field(description="All edges between these nodes, ten for each at most.")
    truncated: bool = strawberry.field(
        description="Whether something within reach may have been left out. False: this is all of it."
    )


@strawberry.input(description="Which part of the graph is to be drawn.")
class GraphInput:
    center_keys: list[strawberry.ID] | None = strawberry.field(
        default=UNSET,
        description="Keys of nodes to look around, at most 200; those that lead nowhere are left out. The tenant's "
        "most connected unless given.",
    )
    depth: int | None = strawberry.field(default=1, description="How many steps from the centres, 0 to 4.")
    kinds: list[GraphKind] | None = strawberry.field(
        default=UNSET,
        description="Only these kinds are shown and walked through, the centres aside; all unless given.",
    )
    limit: int | None = strawberry.field(
        default=MAP_NODES,
        description="How many nodes at most, 1 to 2,000. Of what a step reaches, that to which most leads comes first.",
    )

    def to_domain(self) -> domain.MapQuery:
        usual = domain.MapQuery()
        keys, kinds = given_or(self.center_keys, None), given_or(self.kinds, None)
        return domain.MapQuery(
            None if keys is None else tuple(keys),
            given_or(self.depth, usual.depth),
            None if kinds is None else tuple(kinds),
            given_or(self.limit, usual.limit),
        )
