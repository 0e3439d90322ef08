"""Reads the demo's story, written down as TOML in `story/`, and dates it back from a given moment."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import Any

from reverie.domain.entities import EntityType
from reverie.domain.memories import MemoryType
from reverie.errors import BadInput

_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class DemoFact:
    """A triple read from a memory; subject and object may be names of entities. Confidence is 0 to 1."""

    subject: str
    predicate: str
    object: str
    confidence: float


@dataclass(frozen=True, slots=True)
class DemoMemory:
    """Something that an assistant of the team wrote down.

    `key` is stable and unique ("bad-rollout/crash-loop"). `at` is when it was said, in UTC. `entities` are (name, type)
    of every entity that the content mentions by its name or an alias. `related_to` holds keys of earlier memories.
    """

    key: str
    content: str
    memory_type: MemoryType
    importance: float
    at: datetime
    topics: tuple[str, ...]
    entities: tuple[tuple[str, EntityType], ...]
    facts: tuple[DemoFact, ...]
    subject_id: str | None
    agent_id: str | None
    related_to: tuple[str, ...]
    metadata: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class DemoConversation:
    """A thread of memories, oldest first."""

    thread_id: str
    title: str
    memories: tuple[DemoMemory, ...]


@dataclass(frozen=True, slots=True)
class DemoEntity:
    """Somebody or something that memories mention."""

    name: str
    type: EntityType
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoEntityRelation:
    """An edge between two entities, given by their names; weight is 0 to 1."""

    source: str
    relation: str
    target: str
    weight: float


def demo_conversations(now: datetime) -> list[DemoConversation]:
    """The team's conversations in the order they began, all of them before `now`.

    The story is told in working days, Monday to Friday, counted back from the day of `now` in UTC; the last
    conversation took place one working day before. The same `now` always gives the same answer.

    Raises:
        BadInput: `now` has no offset.
    """
    if now.tzinfo is None:
        raise BadInput("now must have an offset", ("now",))
    today = now.astimezone(UTC).date()
    mentions = [(_mention_pattern(entity), (entity.name, entity.type)) for entity in demo_entities()]
    return [
        DemoConversation(
            thread_id=thread_id,
            title=thread["title"],
            memories=tuple(_memories(thread_id, thread, today, mentions)),
        )
        for thread_id, thread in _threads()
    ]


def demo_entities() -> list[DemoEntity]:
    """Every entity that the memories mention."""
    return [
        DemoEntity(entry["name"], EntityType(entry["type"]), tuple(entry["aliases"]))
        for entry in read_story("entities.toml")["entities"]
    ]


def demo_entity_relations() -> list[DemoEntityRelation]:
    """How the entities are related to each other."""
    return [DemoEntityRelation(*row) for row in read_story("entities.toml")["relations"]]


def read_story(name: str) -> dict[str, Any]:
    """A file of the story."""
    return tomllib.loads((files("reverie.demo") / "story" / name).read_text(encoding="utf-8"))


def _threads() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("weeks-1-2.toml", "weeks-3-4.toml", "weeks-5-6.toml", "weeks-7-9.toml"):
        yield from read_story(name).items()


def _memories(
    thread_id: str, thread: dict[str, Any], today: date, mentions: list[tuple[re.Pattern[str], tuple[str, EntityType]]]
) -> Iterator[DemoMemory]:
    for key, entry in thread["memories"].items():
        day = workdays_before(today, thread["day"] - entry.get("days_later", 0))
        content = entry["content"]
        yield DemoMemory(
            key=f"{thread_id}/{key}",
            content=content,
            memory_type=MemoryType(entry.get("memory_type", "EPISODIC")),
            importance=entry.get("importance", 0.5),
            at=datetime.combine(day, entry["at"], UTC),
            topics=tuple(entry["topics"]),
            entities=tuple(entity for pattern, entity in mentions if pattern.search(content)),
            facts=tuple(DemoFact(*row) for row in entry.get("facts", ())),
            subject_id=entry.get("subject_id"),
            agent_id=thread["agent_id"],
            related_to=tuple(entry.get("related_to", ())),
            metadata=entry.get("metadata"),
        )


def _mention_pattern(entity: DemoEntity) -> re.Pattern[str]:
    # The neighbours are compared with Latin letters and digits only: Japanese sets no blanks around a name.
    # A name in small letters is an ordinary word and may begin a sentence; "Berth" and "a berth" are two things.
    names = (entity.name, *entity.aliases)
    words = "|".join(f"(?i:{re.escape(name)})" if name.islower() else re.escape(name) for name in names)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")


def workdays_before(day: date, count: int) -> date:
    """The day so many working days, Monday to Friday, before another."""
    while count > 0:
        day -= timedelta(days=1)
        if day.weekday() < _SATURDAY:
            count -= 1
    return day
