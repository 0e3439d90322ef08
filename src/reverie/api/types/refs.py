"""References by id or name, and drafts of facts and relations, shared by several inputs."""

import strawberry
from strawberry import UNSET

from reverie.api.types.given import given_or, given_or_none
from reverie.domain import entities, facts, relating, topics
from reverie.domain.entities import EntityType

RELATION = "How they are related, in a word or two."
WEIGHT = "How strongly; at least 0."


@strawberry.input(description="A topic, by id or by name; a new name is made.")
class TopicRef:
    id: strawberry.ID | None = strawberry.field(default=UNSET, description="Its id.")
    name: str | None = strawberry.field(default=UNSET, description="Its name, or one that it was merged from.")

    def to_domain(self) -> topics.TopicRef:
        return topics.TopicRef(given_or_none(self.id), given_or_none(self.name))


@strawberry.input(
    description="An entity, by id or by name. A new name is made where a type is given; without one, the name must "
    "lead to exactly one entity."
)
class EntityRef:
    id: strawberry.ID | None = strawberry.field(default=UNSET, description="Its id.")
    name: str | None = strawberry.field(default=UNSET, description="One of its names.")
    type: EntityType | None = strawberry.field(default=UNSET, description="Its type.")

    def to_domain(self) -> entities.EntityRef:
        return entities.EntityRef(given_or_none(self.id), given_or_none(self.name), given_or_none(self.type))


@strawberry.input(description="A fact to write with its memory.")
class FactDraft:
    subject: str = strawberry.field(description="What it is about; an entity's name links it to that entity.")
    predicate: str = strawberry.field(description="What it says of the subject.")
    object: str = strawberry.field(description="What the subject is said to be, have or do; linked as the subject is.")
    confidence: float | None = strawberry.field(default=1.0, description="How sure it is, 0 to 1.")

    def to_domain(self) -> facts.FactDraft:
        return facts.FactDraft(self.subject, self.predicate, self.object, given_or(self.confidence, 1.0))


@strawberry.input(description="Two memories to relate; the same relation again sets its weight.")
class RelateMemoriesInput:
    from_id: strawberry.ID = strawberry.field(description="The memory it points from.")
    to_id: strawberry.ID = strawberry.field(description="The memory it points to.")
    relation: str | None = strawberry.field(default="related", description=RELATION)
    weight: float | None = strawberry.field(default=1.0, description=WEIGHT)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> relating.RelationDraft:
        return _relation(self)


@strawberry.input(description="Two entities to relate; the same relation again sets its weight.")
class RelateEntitiesInput:
    from_id: strawberry.ID = strawberry.field(description="The entity it points from.")
    to_id: strawberry.ID = strawberry.field(description="The entity it points to.")
    relation: str | None = strawberry.field(default="related", description=RELATION)
    weight: float | None = strawberry.field(default=1.0, description=WEIGHT)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> relating.RelationDraft:
        return _relation(self)


def _relation(given: RelateMemoriesInput | RelateEntitiesInput) -> relating.RelationDraft:
    return relating.RelationDraft(
        given.from_id, given.to_id, given_or(given.relation, "related"), given_or(given.weight, 1.0)
    )


@strawberry.input(description="Two memories, topics or entities that are no longer to be related.")
class UnrelateInput:
    from_id: strawberry.ID = strawberry.field(description="One of them.")
    to_id: strawberry.ID = strawberry.field(description="The other.")
    relation: str | None = strawberry.field(default=UNSET, description="Only this relation; all unless given.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")
