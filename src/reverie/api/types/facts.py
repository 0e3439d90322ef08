"""Facts, as callers see and write them."""

from datetime import datetime
from typing import Any

import strawberry
from strawberry import UNSET

from reverie.api.types.connections import EntityConnection, LazyEntity, MemoryConnection, one, related
from reverie.api.types.given import given_or, kept, members
from reverie.api.types.nodes import Node
from reverie.domain import facts as domain
from reverie.domain.checks import Checks

SUBJECT = "What it is about; an entity's name links it to that entity."
PREDICATE = "What it says of the subject."
OBJECT = "What the subject is said to be, have or do; linked as the subject is."
CONFIDENCE = "How sure it is, 0 to 1."


@strawberry.type(description="A statement read from memories: subject, predicate, object.")
class Fact(Node):
    subject: str = strawberry.field(description="What it is about.")
    predicate: str = strawberry.field(description=PREDICATE)
    object: str = strawberry.field(description="What the subject is said to be, have or do.")
    confidence: float = strawberry.field(description=CONFIDENCE)
    created_at: datetime = strawberry.field(description="When it was written.")
    subject_entity: LazyEntity | None = one("Fact", "subjectEntity", "The entity that the subject names.")
    object_entity: LazyEntity | None = one("Fact", "objectEntity", "The entity that the object names.")
    about: EntityConnection = related("Fact", "about", "The entities it is about, by name.")
    memories: MemoryConnection = related("Fact", "memories", "The memories it was read from, newest first.")

    @classmethod
    def is_type_of(cls, value: Any, info: Any) -> bool:
        return isinstance(value, (domain.Fact, cls))


@strawberry.input(description="A fact to write.")
class CreateFactInput:
    subject: str = strawberry.field(description=SUBJECT)
    predicate: str = strawberry.field(description=PREDICATE)
    object: str = strawberry.field(description=OBJECT)
    confidence: float | None = strawberry.field(default=1.0, description=CONFIDENCE)
    memory_ids: list[strawberry.ID] | None = strawberry.field(default=UNSET, description="Memories it was read from.")
    about_entity_ids: list[strawberry.ID] | None = strawberry.field(
        default=UNSET, description="Entities it is about, beside those its texts name."
    )
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.FactBatch:
        fact = domain.FactDraft(self.subject, self.predicate, self.object, given_or(self.confidence, 1.0))
        return domain.FactBatch(fact, members(self.memory_ids), members(self.about_entity_ids))


@strawberry.input(description="What of a fact is to change; what is absent keeps its value.")
class UpdateFactInput:
    id: strawberry.ID = strawberry.field(description="The fact.")
    subject: str | None = strawberry.field(default=UNSET, description=SUBJECT)
    predicate: str | None = strawberry.field(default=UNSET, description=PREDICATE)
    object: str | None = strawberry.field(default=UNSET, description=OBJECT)
    confidence: float | None = strawberry.field(default=UNSET, description=CONFIDENCE)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.FactChange:
        checks = Checks()
        for name in ("subject", "predicate", "object", "confidence"):
            if getattr(self, name) is None:
                checks.bad("can't be cleared", (name,))
        checks.done()
        return domain.FactChange(
            id=self.id,
            subject=kept(self.subject),  # type: ignore[arg-type]  # null was refused above
            predicate=kept(self.predicate),  # type: ignore[arg-type]  # null was refused above
            object=kept(self.object),  # type: ignore[arg-type]  # null was refused above
            confidence=kept(self.confidence),  # type: ignore[arg-type]  # null was refused above
        )


@strawberry.input(description="A fact to delete.")
class DeleteFactInput:
    id: strawberry.ID = strawberry.field(description="The fact.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")
