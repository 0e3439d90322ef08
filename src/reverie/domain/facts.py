"""Facts: subject, predicate, object, as they were read from memories."""

from dataclasses import dataclass
from datetime import datetime

from reverie.domain import policy
from reverie.domain.checks import Checks, Path
from reverie.domain.unset import UNSET, Unset, given


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it stands; confidence is 0 to 1."""

    id: str
    subject: str
    predicate: str
    object: str
    confidence: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact as a caller wants it."""

    subject: str
    predicate: str
    object: str
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class FactBatch:
    """A fact with the memories it was read from and the entities it is about."""

    fact: FactDraft
    memory_ids: tuple[str, ...] = ()
    about_entity_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """What of a fact is to change; what is UNSET keeps its value."""

    id: str
    subject: str | Unset = UNSET
    predicate: str | Unset = UNSET
    object: str | Unset = UNSET
    confidence: float | Unset = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFilter:
    """Which facts; texts are compared by their normal form."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    min_confidence: float | None = None


def check_fact(fact: FactDraft, checks: Checks, path: Path = ()) -> FactDraft:
    """The fact with its parts trimmed; what is wrong goes to `checks`."""
    return FactDraft(
        checks.name(fact.subject, (*path, "subject"), policy.PHRASE_MOST),
        checks.name(fact.predicate, (*path, "predicate"), policy.PHRASE_MOST),
        checks.name(fact.object, (*path, "object"), policy.PHRASE_MOST),
        checks.unit(fact.confidence, (*path, "confidence")),
    )


def check_fact_batch(batch: FactBatch) -> FactBatch:
    """The fact with its parts trimmed; Refusals when it can't be."""
    checks = Checks()
    checks.few(batch.memory_ids, ("memoryIds",))
    checks.few(batch.about_entity_ids, ("aboutEntityIds",))
    fact = check_fact(batch.fact, checks)
    checks.done()
    return FactBatch(fact, batch.memory_ids, batch.about_entity_ids)


def check_fact_filter(wanted: FactFilter) -> FactFilter:
    """The filter itself; Refusals when a value can't be."""
    checks = Checks()
    if wanted.min_confidence is not None:
        checks.unit(wanted.min_confidence, ("minConfidence",))
    checks.done()
    return wanted


def check_fact_change(change: FactChange) -> FactChange:
    """The change with its parts trimmed; Refusals when it can't be made."""
    checks = Checks()

    def part(value: str | Unset, name: str) -> str | Unset:
        return checks.name(value, (name,), policy.PHRASE_MOST) if given(value) else UNSET

    subject, predicate, obj = (
        part(change.subject, "subject"),
        part(change.predicate, "predicate"),
        part(change.object, "object"),
    )
    if given(change.confidence):
        checks.unit(change.confidence, ("confidence",))
    checks.done()
    return FactChange(id=change.id, subject=subject, predicate=predicate, object=obj, confidence=change.confidence)
