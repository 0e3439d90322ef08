"""Filters as Cypher: predicates from a closed vocabulary, values as parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reverie.domain.clock import to_ms
from reverie.domain.facts import FactFilter
from reverie.domain.memories import MemoryFilter
from reverie.domain.names import normal_form

VISIBLE = "{x}.tenant = $t AND {x}.expiresAt > $now"
"""A memory of the tenant that has not expired."""


@dataclass(frozen=True, slots=True)
class Where:
    """Predicates over the alias x, with their parameters. `start` names the nodes to come from, where that is cheaper
    than reading the tenant's whole list; its own predicate is then not among the others."""

    predicates: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    start: str | None = None

    def values(self) -> Mapping[str, Any]:
        return dict(self.parameters)


NOTHING = Where()

_COLUMNS: dict[str, str] = {
    "memory_types": "x.memoryType IN $f_memory_types",
    "min_importance": "x.importance >= $f_min_importance",
    "conversation_id": "x.conversationId = $f_conversation_id",
    "subject_id": "x.subjectId = $f_subject_id",
    "agent_id": "x.agentId = $f_agent_id",
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
_STARTS: dict[str, str] = {
    "conversation_id": "MATCH (s:Conversation&Node {id: $f_conversation_id, tenant: $t})<-[:BELONGS_TO]-(x:Memory)",
    "topic_ids": "MATCH (s:Topic&Node WHERE s.id IN $f_topic_ids AND s.tenant = $t)<-[:HAS_TOPIC]-(x:Memory) WITH DISTINCT x",
    "entity_ids": "MATCH (s:Entity&Node WHERE s.id IN $f_entity_ids AND s.tenant = $t)<-[:MENTIONS]-(x:Memory) WITH DISTINCT x",
    "subject_id": "MATCH (x:Memory {tenant: $t, subjectId: $f_subject_id})",
}


def memory_where(wanted: MemoryFilter | None) -> Where:
    """The predicates of a memory filter, over x."""
    if wanted is None:
        return NOTHING
    asked = {name: _plain(getattr(wanted, name)) for name in (*_COLUMNS, *_EDGES)}
    asked = {name: value for name, value in asked.items() if value is not None}
    start = next((name for name in _STARTS if name in asked), None)
    texts = {**_COLUMNS, **_EDGES}
    return Where(
        tuple(texts[name] for name in asked),
        tuple((f"f_{name}", value) for name, value in asked.items()),
        None if start is None else _STARTS[start],
    )


def index_can_decide(wanted: MemoryFilter) -> bool:
    """Whether the vector index decides this filter alone."""
    return wanted.topic_ids is None and wanted.entity_ids is None


def entity_where(type_: str | None) -> Where:
    """The predicates of an entity's type, over x."""
    return NOTHING if type_ is None else Where(("x.type = $f_type",), (("f_type", type_),))


def fact_where(wanted: FactFilter) -> Where:
    """The predicates of a fact filter, over x."""
    parts: list[tuple[str, str, Any]] = []
    for name in ("subject", "predicate", "object"):
        value = getattr(wanted, name)
        if value is not None:
            parts.append((f"x.{name}Form = $f_{name}", f"f_{name}", normal_form(value)))
    if wanted.min_confidence is not None:
        parts.append(("x.confidence >= $f_min_confidence", "f_min_confidence", wanted.min_confidence))
    return Where(tuple(part[0] for part in parts), tuple(part[1:] for part in parts))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_ms(value)
    return tuple(str(member) for member in value) if isinstance(value, tuple) else value
