"""Filters as Cypher: predicates from a closed vocabulary, values as parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reverie.domain.beliefs import BeliefFilter, EpistemicStatus, HalfLives
from reverie.domain.changes import BeliefChangeFilter
from reverie.domain.clock import to_ms
from reverie.domain.episodes import EpisodeFilter
from reverie.domain.events import EventFilter
from reverie.domain.facts import FactFilter
from reverie.domain.memories import MemoryFilter
from reverie.domain.names import normal_form
from reverie.graph.records import STEP

_OWN = "{x}.tenant = $t"
_LIVING = "{x}.expiresAt > $now"
_SOURCED = (
    "(NOT EXISTS {{ ({x})-[:EXTRACTED_FROM]->(old:Memory) WHERE old.expiresAt <= $now }} "
    "OR EXISTS {{ ({x})-[:EXTRACTED_FROM]->(source:Memory) WHERE source.expiresAt > $now }})"
)
"""A fact goes with its last source."""
SOME_EXPIRED = "EXISTS { MATCH (gone:Memory) WHERE gone.tenant = $t AND gone.expiresAt <= $now }"
"""Whether the tenant has expired memories that wait to be erased: seldom, and then what hangs on them is looked at."""


def visible(label: str, x: str) -> str:
    """The predicate that a node `x` of this label is the tenant's, and has not expired."""
    parts = {"Memory": (_OWN, _LIVING), "Fact": (_OWN, _SOURCED)}.get(label, (_OWN,))
    return " AND ".join(parts).format(x=x)


def visible_if_some(label: str, x: str) -> str:
    """As `visible`, where the variable `some` holds SOME_EXPIRED: cheaper for facts."""
    return f"{_OWN} AND (NOT some OR {_SOURCED})".format(x=x) if label == "Fact" else visible(label, x)


def visible_any(x: str) -> str:
    """As `visible`, for a node of any label."""
    return f"{_OWN} AND coalesce({_LIVING}, true) AND (NOT {{x}}:Fact OR {_SOURCED})".format(x=x)


@dataclass(frozen=True, slots=True)
class Where:
    """Predicates over the alias x, with their parameters. `start` matches the nodes to come from, where that is cheaper
    than reading the tenant's whole list; the predicates hold all the same."""

    predicates: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    start: str | None = None

    def values(self) -> Mapping[str, Any]:
        return {name: dict(value) if name == "half_lives" else value for name, value in self.parameters}


NOTHING = Where()

_COLUMNS: dict[str, str] = {
    "memory_types": "x.memoryType IN $f_memory_types",
    "min_importance": "x.importance >= $f_min_importance",
    "conversation_id": "x.conversationId = $f_conversation_id",
    "subject_id": "x.subjectId = $f_subject_id",
    "agent_id": "x.agentId = $f_agent_id",
    "user_id": "x.userId = $f_user_id",
    "created_after": "x.createdAt >= $f_created_after",
    "created_before": "x.createdAt < $f_created_before",
    "event_after": "x.happenedAt >= $f_event_after",
    "event_before": "x.happenedAt < $f_event_before",
}
"""What the vector index can decide by itself, as it carries these properties."""
_EDGES: dict[str, str] = {
    "topic_ids": "EXISTS { (x)-[:HAS_TOPIC]->(ft:Topic) WHERE ft.tenant = $t AND ft.id IN $f_topic_ids }",
    "entity_ids": "EXISTS { (x)-[:MENTIONS]->(fe:Entity) WHERE fe.tenant = $t AND fe.id IN $f_entity_ids }",
}
_FACT_STARTS: dict[str, str] = {
    "subject": "MATCH (x:Fact {tenant: $t, subjectForm: $f_subject})",
    "object": "MATCH (x:Fact {tenant: $t, objectForm: $f_object})",
}
_STARTS: dict[str, str] = {
    "conversation_id": "MATCH (s:Conversation&Node {id: $f_conversation_id, tenant: $t})<-[:BELONGS_TO]-(x:Memory)",
    "topic_ids": "MATCH (s:Topic&Node WHERE s.id IN $f_topic_ids AND s.tenant = $t)<-[:HAS_TOPIC]-(x:Memory)",
    "entity_ids": "MATCH (s:Entity&Node WHERE s.id IN $f_entity_ids AND s.tenant = $t)<-[:MENTIONS]-(x:Memory)",
    "subject_id": "MATCH (x:Memory {tenant: $t, subjectId: $f_subject_id})",
}


_EVENT: dict[str, str] = {
    "thread_id": "x.threadId = $f_thread_id",
    "user_id": "x.userId = $f_user_id",
    "agent_id": "x.agentId = $f_agent_id",
    "event_types": "x.eventType IN $f_event_types",
    "occurred_after": "x.occurredAt >= $f_occurred_after",
    "occurred_before": "x.occurredAt < $f_occurred_before",
}
_EVENT_STARTS: dict[str, str] = {
    "thread_id": "MATCH (x:Event {tenant: $t, threadId: $f_thread_id})",
    "user_id": "MATCH (x:Event {tenant: $t, userId: $f_user_id})",
}
_EPISODE: dict[str, str] = {
    "thread_id": "x.threadId = $f_thread_id",
    "user_id": "x.userId = $f_user_id",
    "agent_id": "x.agentId = $f_agent_id",
    "consolidation_statuses": "x.consolidationStatus IN $f_consolidation_statuses",
    "outcomes": "x.outcome IN $f_outcomes",
}
_EPISODE_STARTS: dict[str, str] = {
    "thread_id": "MATCH (x:Episode {tenant: $t, threadId: $f_thread_id})",
    "user_id": "MATCH (x:Episode {tenant: $t, userId: $f_user_id})",
}


def memory_where(wanted: MemoryFilter | None) -> Where:
    """The predicates of a memory filter, over x."""
    return _where(wanted, {**_COLUMNS, **_EDGES}, _STARTS)


def event_where(wanted: EventFilter | None) -> Where:
    """The predicates of an event filter, over x."""
    return _where(wanted, _EVENT, _EVENT_STARTS)


def episode_where(wanted: EpisodeFilter | None) -> Where:
    """The predicates of an episode filter, over x."""
    return _where(wanted, _EPISODE, _EPISODE_STARTS)


def _where(wanted: object, texts: Mapping[str, str], starts: Mapping[str, str]) -> Where:
    """The predicates of a filter's fields, by their names; parameters have the names with `f_` before them."""
    if wanted is None:
        return NOTHING
    asked = {name: _plain(getattr(wanted, name)) for name in texts}
    asked = {name: value for name, value in asked.items() if value is not None}
    start = next((name for name in starts if name in asked), None)
    return Where(
        tuple(texts[name] for name in asked),
        tuple((f"f_{name}", value) for name, value in asked.items()),
        None if start is None else starts[start],
    )


def index_can_decide(wanted: MemoryFilter) -> bool:
    """Whether the vector index decides this filter alone."""
    return wanted.topic_ids is None and wanted.entity_ids is None


_BELIEF_COLUMNS: dict[str, str] = {
    "subject_id": "x.subjectId = $f_subject_id",
    "keys": "x.key IN $f_keys",
    "domains": "x.domain IN $f_domains",
    "belief_types": "x.beliefType IN $f_belief_types",
    "epistemic_statuses": "x.epistemicStatus IN $f_epistemic_statuses",
    "as_of": "x.validFrom <= $f_as_of AND x.validTo > $f_as_of",
}
_BELIEF_STARTS: dict[str, str] = {"subject_id": "MATCH (x:Belief {tenant: $t, subjectId: $f_subject_id})"}


def confidence(base: str, reinforced_at: str, at: str) -> str:
    """Cypher for how sure a belief x is at an instant within its time: `domain.beliefs.faded`, with the half-lives in `$half_lives`."""
    age = f"CASE WHEN {at} > {reinforced_at} THEN {at} - {reinforced_at} ELSE 0 END"
    return (
        f"CASE WHEN $half_lives[x.beliefType] IS NULL THEN {base} "
        f"ELSE {base} * 2.0 ^ (-1.0 * ({age}) / ($half_lives[x.beliefType] * 86400000)) END"
    )


def belief_where(wanted: BeliefFilter | None, half_lives: HalfLives) -> Where:
    """The predicates of a belief filter, over x; ACTIVE versions alone unless it asks for others or for an instant.

    `$at` is the instant of which confidence is told where the filter names none.
    """
    wanted = wanted or BeliefFilter()
    if wanted.epistemic_statuses is None and wanted.as_of is None:
        wanted = replace(wanted, epistemic_statuses=(EpistemicStatus.ACTIVE,))
    where = _where(wanted, _BELIEF_COLUMNS, _BELIEF_STARTS)
    if wanted.min_confidence is None:
        return where
    if wanted.as_of is None:
        ended = "CASE WHEN x.validTo < $at THEN x.validTo ELSE $at END"
        sure = confidence("x.base", "x.reinforcedAt", ended)
    else:
        sure = confidence(f"x.stepBases[{STEP}]", f"x.stepReinforced[{STEP}]", "$f_as_of")
    parameters = (
        ("f_min_confidence", wanted.min_confidence),
        ("half_lives", tuple((kind.value, days) for kind, days in half_lives.items())),
    )
    return replace(
        where,
        predicates=(*where.predicates, f"{sure} >= $f_min_confidence"),
        parameters=(*where.parameters, *parameters),
    )


_CHANGE: dict[str, str] = {
    "subject_ids": "x.subjectId IN $f_subject_ids",
    "keys": "x.key IN $f_keys",
    "domains": "x.domain IN $f_domains",
    "belief_types": "x.beliefType IN $f_belief_types",
    "kinds": "x.kind IN $f_kinds",
}


def change_where(wanted: BeliefChangeFilter) -> Where:
    """The predicates of a filter of the change log, over x."""
    return _where(wanted, _CHANGE, {})


def entity_where(type_: str | None) -> Where:
    """The predicates of an entity's type, over x."""
    return NOTHING if type_ is None else Where(("x.type = $f_type",), (("f_type", type_),))


def fact_where(wanted: FactFilter) -> Where:
    """The predicates of a fact filter, over x."""
    parts: list[tuple[str, str, Any]] = []
    start = next((text for name, text in _FACT_STARTS.items() if getattr(wanted, name) is not None), None)
    for name in ("subject", "predicate", "object"):
        value = getattr(wanted, name)
        if value is not None:
            parts.append((f"x.{name}Form = $f_{name}", f"f_{name}", normal_form(value)))
    if wanted.min_confidence is not None:
        parts.append(("x.confidence >= $f_min_confidence", "f_min_confidence", wanted.min_confidence))
    return Where(tuple(part[0] for part in parts), tuple(part[1:] for part in parts), start)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_ms(value)
    return tuple(str(member) for member in value) if isinstance(value, tuple) else value
