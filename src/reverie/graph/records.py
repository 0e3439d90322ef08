"""What each label keeps, as positional lists: the columns that reads return, and the values made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from reverie.domain.clock import from_ms, from_ms_or_none
from reverie.domain.communities import Community, CommunityAlgorithm
from reverie.domain.conversations import Conversation
from reverie.domain.entities import Entity, EntityType
from reverie.domain.facts import Fact
from reverie.domain.memories import EnrichmentStatus, Memory, MemoryType
from reverie.domain.topics import Topic

Row = list[Any]


@dataclass(frozen=True, slots=True)
class Label:
    """A node label: its columns in order, and the value made of a row of them."""

    name: str
    columns: tuple[str, ...]
    value: Callable[[Row], Any]

    def row(self, alias: str) -> str:
        """The Cypher list of this label's columns."""
        return "[" + ", ".join(f"{alias}.{column}" for column in self.columns) + "]"


def _memory(row: Row) -> Memory:
    return Memory(
        row[0],
        row[1],
        MemoryType(row[2]),
        row[3],
        row[4],
        row[5],
        from_ms_or_none(row[6]),
        None if row[7] is None else orjson.loads(row[7]),
        from_ms_or_none(row[8]),
        from_ms(row[9]),
        from_ms(row[10]),
        EnrichmentStatus(row[11]),
    )


def _conversation(row: Row) -> Conversation:
    return Conversation(row[0], row[1], row[2], from_ms(row[3]), from_ms(row[4]))


def _topic(row: Row) -> Topic:
    return Topic(row[0], row[1])


def _fact(row: Row) -> Fact:
    return Fact(row[0], row[1], row[2], row[3], row[4], from_ms(row[5]))


def _entity(row: Row) -> Entity:
    return Entity(row[0], row[1], EntityType(row[2]), tuple(row[3]))


def _community(row: Row) -> Community:
    return Community(row[0], row[1], CommunityAlgorithm(row[2]), row[3])


MEMORY = Label(
    "Memory",
    (
        "id",
        "content",
        "memoryType",
        "importance",
        "subjectId",
        "agentId",
        "expiresAt",
        "metadata",
        "eventTime",
        "createdAt",
        "updatedAt",
        "enrichment",
    ),
    _memory,
)
CONVERSATION = Label("Conversation", ("id", "title", "threadId", "createdAt", "updatedAt"), _conversation)
TOPIC = Label("Topic", ("id", "name"), _topic)
FACT = Label("Fact", ("id", "subject", "predicate", "object", "confidence", "createdAt"), _fact)
ENTITY = Label("Entity", ("id", "name", "type", "aliases"), _entity)
COMMUNITY = Label("Community", ("id", "name", "algorithm", "size"), _community)

LABELS = (MEMORY, CONVERSATION, TOPIC, FACT, ENTITY, COMMUNITY)
BY_NAME = {label.name: label for label in LABELS}


def any_row(alias: str) -> str:
    """Cypher for the row of a node of any label: the label's place in LABELS, then its columns."""
    cases = " ".join(
        f"WHEN {alias}:{label.name} THEN [{place}] + {label.row(alias)}" for place, label in enumerate(LABELS)
    )
    return f"CASE {cases} END"


def any_value(row: Row) -> Any:
    """The value of a row that `any_row` made."""
    return LABELS[row[0]].value(row[1:])
