"""Relations that callers draw between two memories, or between two entities, and take away again."""

from dataclasses import dataclass

from reverie.domain.checks import Checks


@dataclass(frozen=True, slots=True)
class RelationDraft:
    """A RELATED_TO as a caller wants it."""

    from_id: str
    to_id: str
    relation: str = "related"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Unrelation:
    """Two things that are no longer to be related: by one relation, or by any."""

    from_id: str
    to_id: str
    relation: str | None = None


def check_unrelation(wanted: Unrelation) -> Unrelation:
    """The same with its relation trimmed; Refusals when it can't be one."""
    checks = Checks()
    relation = None if wanted.relation is None else checks.name(wanted.relation, ("relation",))
    checks.done()
    return Unrelation(wanted.from_id, wanted.to_id, relation)


def check_relation(draft: RelationDraft) -> RelationDraft:
    """The draft with its relation trimmed; Refusals when it can't be."""
    checks = Checks()
    relation = checks.name(draft.relation, ("relation",))
    weight = checks.weight(draft.weight, ("weight",))
    if draft.from_id == draft.to_id:
        checks.bad("must be another one than fromId", ("toId",))
    checks.done()
    return RelationDraft(draft.from_id, draft.to_id, relation, weight)
