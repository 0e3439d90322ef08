"""Entities, as callers see and write them."""

from typing import Any

import strawberry
from strawberry import UNSET

from reverie.api.types.connections import (
    BeliefConnection,
    Connection,
    FactConnection,
    LazyRelatedEntities,
    MemoryConnection,
    PageInfo,
    related,
    related_beliefs,
    related_memories,
    total_count_field,
)
from reverie.api.types.given import kept, members
from reverie.api.types.nodes import Node
from reverie.domain import entities as domain
from reverie.domain import unset
from reverie.domain.checks import Checks
from reverie.domain.entities import EntityType
from reverie.domain.pages import Edge as PageEdge

NAME = "What it is called: 1 to 200 characters, unique within its type, letter case and width aside."
TYPE = "What kind of thing it is."
ALIASES = "Its further names."


@strawberry.type(description="A person, tool, project or other thing that memories mention.")
class Entity(Node):
    name: str = strawberry.field(description="What it is called.")
    type: EntityType = strawberry.field(description=TYPE)
    aliases: list[str] = strawberry.field(description=ALIASES)
    memories: MemoryConnection = related_memories("Entity", "The memories that mention it.")
    beliefs: BeliefConnection = related_beliefs(
        "Entity", "The beliefs about one of its names, those that began last first; ACTIVE ones alone unless asked for."
    )
    facts: FactConnection = related("Entity", "facts", "The facts about it, in the order they were written.")
    related: LazyRelatedEntities = related(
        "Entity", "related", "Entities related to it, whichever way, strongest first."
    )

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Entity, cls))


def _related_node(root: strawberry.Parent[PageEdge[domain.RelatedEntity]]) -> Any:
    return root.node.entity


def _relation(root: strawberry.Parent[PageEdge[domain.RelatedEntity]]) -> str:
    return root.node.relation


def _weight(root: strawberry.Parent[PageEdge[domain.RelatedEntity]]) -> float:
    return root.node.weight


def _outgoing(root: strawberry.Parent[PageEdge[domain.RelatedEntity]]) -> bool:
    return root.node.outgoing


def _related_nodes(root: strawberry.Parent[Connection[Any]]) -> Any:
    return [related_entity.entity for related_entity in root.nodes]


@strawberry.type(description="A relation between two entities, seen from one of them.")
class RelatedEntityEdge:
    cursor: str = strawberry.field(description="Leads on from this member: pass it to after or before.")
    node: Entity = strawberry.field(resolver=_related_node, description="The entity at the other end.")
    relation: str = strawberry.field(resolver=_relation, description="How they are related.")
    weight: float = strawberry.field(resolver=_weight, description="How strongly.")
    outgoing: bool = strawberry.field(resolver=_outgoing, description="Whether the relation points to the other end.")


@strawberry.type(description="One page of related entities.")
class RelatedEntityConnection:
    edges: list[RelatedEntityEdge] = strawberry.field(description="The members with their cursors.")
    nodes: list[Entity] = strawberry.field(resolver=_related_nodes, description="The members alone.")
    page_info: PageInfo = strawberry.field(description="Where this page lies.")
    total_count: int | None = total_count_field()


@strawberry.input(description="An entity to make.")
class CreateEntityInput:
    name: str = strawberry.field(description=NAME)
    type: EntityType = strawberry.field(description=TYPE)
    aliases: list[str] | None = strawberry.field(default=UNSET, description=ALIASES)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.EntityDraft:
        return domain.EntityDraft(self.name, self.type, members(self.aliases))


@strawberry.input(description="What of an entity is to change; what is absent keeps its value.")
class UpdateEntityInput:
    id: strawberry.ID = strawberry.field(description="The entity.")
    name: str | None = strawberry.field(default=UNSET, description=NAME)
    type: EntityType | None = strawberry.field(default=UNSET, description=TYPE)
    aliases: list[str] | None = strawberry.field(default=UNSET, description="All its further names; null: none.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.EntityChange:
        checks = Checks()
        for name in ("name", "type"):
            if getattr(self, name) is None:
                checks.bad("can't be cleared", (name,))
        checks.done()
        return domain.EntityChange(
            id=self.id,
            name=kept(self.name),  # type: ignore[arg-type]  # null was refused above
            type=kept(self.type),  # type: ignore[arg-type]  # null was refused above
            aliases=unset.UNSET if self.aliases is UNSET else members(self.aliases),
        )


@strawberry.input(description="Entities to merge.")
class MergeEntitiesInput:
    into_id: strawberry.ID = strawberry.field(description="The one that stays, with every edge and every name.")
    from_ids: list[strawberry.ID] = strawberry.field(description="Those that go into it.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")


@strawberry.input(description="An entity to delete.")
class DeleteEntityInput:
    id: strawberry.ID = strawberry.field(description="The entity.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")
