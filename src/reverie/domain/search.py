"""Searching: what is asked, and what a hit tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reverie.domain import policy
from reverie.domain.beliefs import Belief, belief_text
from reverie.domain.checks import Checks
from reverie.domain.conversations import Conversation
from reverie.domain.documents import Chunk
from reverie.domain.entities import Entity
from reverie.domain.episodes import Episode
from reverie.domain.facts import Fact
from reverie.domain.memories import Memory, MemoryFilter, check_memory_filter
from reverie.domain.topics import Topic


class SearchMode(StrEnum):
    HYBRID = "HYBRID"
    SEMANTIC = "SEMANTIC"
    KEYWORD = "KEYWORD"


class SearchKind(StrEnum):
    MEMORY = "MEMORY"
    BELIEF = "BELIEF"
    FACT = "FACT"
    ENTITY = "ENTITY"
    TOPIC = "TOPIC"
    CONVERSATION = "CONVERSATION"
    EPISODE = "EPISODE"
    CHUNK = "CHUNK"


VECTOR_KINDS = (SearchKind.MEMORY, SearchKind.TOPIC, SearchKind.BELIEF, SearchKind.EPISODE, SearchKind.CHUNK)
"""Kinds that carry a vector."""
_MEMORY_ONLY = frozenset({SearchKind.MEMORY})
_DATED = frozenset({SearchKind.MEMORY, SearchKind.BELIEF, SearchKind.FACT, SearchKind.CONVERSATION})
_HAVING = {
    "memory_types": _MEMORY_ONLY,
    "min_importance": _MEMORY_ONLY,
    "conversation_id": _MEMORY_ONLY,
    "topic_ids": _MEMORY_ONLY,
    "entity_ids": _MEMORY_ONLY,
    "subject_id": frozenset({SearchKind.MEMORY, SearchKind.BELIEF, SearchKind.CHUNK}),
    "agent_id": frozenset({SearchKind.MEMORY, SearchKind.EPISODE}),
    "user_id": frozenset({SearchKind.EPISODE}),
    "event_after": _MEMORY_ONLY,
    "event_before": _MEMORY_ONLY,
    "created_after": _DATED,
    "created_before": _DATED,
}
"""Which kinds have what a field of the filter asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which things; a field that a kind lacks excludes that kind."""

    kinds: tuple[SearchKind, ...] | None = None
    memory: MemoryFilter = field(default_factory=MemoryFilter)

    def searched(self) -> tuple[SearchKind, ...]:
        """The kinds that can hold every field that is set."""
        asked = tuple(SearchKind) if self.kinds is None else tuple(dict.fromkeys(self.kinds))
        able = [kinds for name, kinds in _HAVING.items() if getattr(self.memory, name) is not None]
        return tuple(kind for kind in asked if all(kind in kinds for kinds in able))


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both arms of a search found, best first: (id, score) each, with the things by id that were read.

    `places` are the conversation and the turn in it of those that have them, `naming` those that mention an entity
    which the question names.
    """

    semantic: list[tuple[str, float]]
    keyword: list[tuple[str, float]]
    found: Mapping[str, object]
    places: dict[str, tuple[str, int]]
    naming: frozenset[str]


def check_search(query: str, wanted: SearchFilter) -> None:
    """Refusals when the query is too long or the filter can't be."""
    checks = Checks()
    checks.short(query, ("query",), policy.QUERY_MOST)
    checks.done()
    check_memory_filter(wanted.memory)


def embedded_text(thing: object, before: str | None) -> str:
    """What a thing's vector is made of: what is searched of it, after what was said before it."""
    return after(searched_text(thing), before)


def after(text: str, before: str | None) -> str:
    """A text after what was said before it."""
    return f"{before}\n{text}" if before else text


def happened_at(thing: object) -> datetime | None:
    """When what a hit tells of happened: of a memory its event, or when it was written; of most kinds nothing."""
    if isinstance(thing, Memory):
        return thing.event_time or thing.created_at
    return thing.started_at if isinstance(thing, Episode) else None


def searched_text(thing: object) -> str:
    """What of a thing is found by word and by meaning, and what a hit's highlights are cut from; "" for nothing."""
    match thing:
        case Memory():
            text = thing.content
        case Fact():
            text = f"{thing.subject} {thing.predicate} {thing.object}"
        case Conversation():
            text = thing.title
        case Topic():
            text = thing.name
        case Belief():
            text = belief_text(thing.subject_id, thing.key, thing.value)
        case Episode():
            text = "" if thing.summary is None else thing.summary
        case Chunk():
            text = thing.text
        case Entity():
            text = "\n".join((thing.name, *thing.aliases))
        case _:
            raise TypeError(f"{type(thing).__name__} is no search result")
    return text
