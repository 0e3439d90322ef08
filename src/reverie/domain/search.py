"""Searching: what is asked, and what a hit tells."""

from dataclasses import dataclass, field
from enum import StrEnum

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.domain.conversations import Conversation
from reverie.domain.entities import Entity
from reverie.domain.facts import Fact
from reverie.domain.memories import Memory, MemoryFilter, check_memory_filter
from reverie.domain.topics import Topic


class SearchMode(StrEnum):
    HYBRID = "HYBRID"
    SEMANTIC = "SEMANTIC"
    KEYWORD = "KEYWORD"


class SearchKind(StrEnum):
    MEMORY = "MEMORY"
    FACT = "FACT"
    ENTITY = "ENTITY"
    TOPIC = "TOPIC"
    CONVERSATION = "CONVERSATION"


DATED_KINDS = (SearchKind.MEMORY, SearchKind.FACT, SearchKind.CONVERSATION)
"""Kinds that have a createdAt of their own."""
VECTOR_KINDS = (SearchKind.MEMORY, SearchKind.TOPIC)
"""Kinds that carry a vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which things; a field that a kind lacks excludes that kind."""

    kinds: tuple[SearchKind, ...] | None = None
    memory: MemoryFilter = field(default_factory=MemoryFilter)

    def searched(self) -> tuple[SearchKind, ...]:
        """The kinds that can hold every field that is set."""
        asked = tuple(SearchKind) if self.kinds is None else tuple(dict.fromkeys(self.kinds))
        if any(getattr(self.memory, name) is not None for name in _MEMORY_ONLY):
            return tuple(kind for kind in asked if kind is SearchKind.MEMORY)
        if self.memory.created_after is not None or self.memory.created_before is not None:
            return tuple(kind for kind in asked if kind in DATED_KINDS)
        return asked


_MEMORY_ONLY = (
    "memory_types",
    "min_importance",
    "conversation_id",
    "topic_ids",
    "entity_ids",
    "subject_id",
    "agent_id",
    "event_after",
    "event_before",
)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both arms of a search found, best first: (id, score) each, with the things by id."""

    semantic: list[tuple[str, float]]
    keyword: list[tuple[str, float]]
    found: dict[str, object]


def check_search(query: str, wanted: SearchFilter) -> None:
    """Refusals when the query is too long or the filter can't be."""
    checks = Checks()
    checks.short(query, ("query",), policy.QUERY_MOST)
    checks.done()
    check_memory_filter(wanted.memory)


def matched_text(thing: object) -> str:
    """The text of a hit that its highlights are cut from."""
    match thing:
        case Memory():
            return thing.content
        case Fact():
            return f"{thing.subject} {thing.predicate} {thing.object}"
        case Conversation():
            return thing.title
        case Topic():
            return thing.name
        case Entity():
            return "\n".join((thing.name, *thing.aliases))
        case _:
            raise TypeError(f"{type(thing).__name__} is no search result")
