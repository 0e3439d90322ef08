"""What each label keeps, as positional lists: the columns that reads return, and the values made of them.

A statement sees what others commit while it runs: of a node that is deleted meanwhile, what it has not read yet is null.
A row that lacks what it must have is such a torn one, and the statement is run again: `whole`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import orjson

from reverie.domain.beliefs import Belief, BeliefChangeKind, BeliefType, EpistemicStatus
from reverie.domain.changes import BeliefChange
from reverie.domain.clock import from_ms, from_ms_or_none
from reverie.domain.communities import Community, CommunityAlgorithm
from reverie.domain.conversations import Conversation
from reverie.domain.documents import Chunk, Document, DocumentSource, DocumentStatus
from reverie.domain.entities import Entity, EntityType
from reverie.domain.episodes import ConsolidationStatus, Episode, EpisodeOutcome
from reverie.domain.events import Event, EventType
from reverie.domain.facts import Fact
from reverie.domain.memories import EnrichmentStatus, Memory, MemoryType
from reverie.domain.topics import Topic
from reverie.graph.store import Raced, unavailable

P = ParamSpec("P")
T = TypeVar("T")
Row = list[Any]
_MOST_TRIES = 10


def whole(read: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Runs a read again whose answer has a torn row; Unavailable when that doesn't end."""

    @wraps(read)
    async def again(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_MOST_TRIES):
            try:
                return await read(*args, **kwargs)
            except Raced as error:
                raced = error
        raise unavailable(raced) from raced

    return again


@dataclass(frozen=True, slots=True)
class Label:
    """A node label: its columns in order, and the value made of a row of them."""

    name: str
    columns: tuple[str, ...]
    made: Callable[[Row], Any]
    optional: frozenset[str] = frozenset()
    computed: tuple[tuple[str, str], ...] = ()
    """Columns that a list works out, with their Cypher over x."""
    required: tuple[int, ...] = field(init=False)
    """The places of the columns that aren't optional."""

    def __post_init__(self) -> None:
        places = tuple(place for place, column in enumerate(self.columns) if column not in self.optional)
        object.__setattr__(self, "required", places)

    def row(self, alias: str) -> str:
        """The Cypher list of this label's columns.

        They are looked up by name: of `[alias.name, …]` Neo4j compares, while it plans, what types each could have.
        """
        value = f"{alias}[c]"
        if self.computed:
            cases = " ".join(f"WHEN '{column}' THEN {cypher}" for column, cypher in self.computed)
            value = f"CASE c {cases} ELSE {value} END"
        return f"[c IN {list(self.columns)} | {value}]"

    def whole(self, row: Row) -> bool:
        """Whether a row isn't torn: what it must have is there."""
        for place in self.required:  # noqa: SIM110 - quicker than a generator: a search looks at hundreds of rows
            if row[place] is None:
                return False
        return True

    def value(self, row: Row) -> Any:
        """The value of a row; Raced for a torn one."""
        if not self.whole(row):
            raise Raced
        return self.made(row)


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


def _event(row: Row) -> Event:
    return Event(
        row[0],
        EventType(row[1]),
        orjson.loads(row[2]),
        row[3],
        row[4],
        row[5],
        row[6],
        from_ms(row[7]),
        from_ms(row[8]),
    )


def _episode(row: Row) -> Episode:
    return Episode(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        tuple(row[5]),
        None if row[6] is None else EpisodeOutcome(row[6]),
        ConsolidationStatus(row[7]),
        from_ms(row[8]),
        from_ms_or_none(row[9]),
        row[10],
        row[11],
    )


def _belief(row: Row) -> Belief:
    return Belief(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        from_ms(row[5]),
        BeliefType(row[6]),
        EpistemicStatus(row[7]),
        row[8],
        row[9],
        from_ms(row[10]),
        from_ms_or_none(row[11]),
        from_ms(row[12]),
        row[13],
    )


def _change(row: Row) -> BeliefChange:
    return BeliefChange(
        row[0],
        row[1],
        BeliefChangeKind(row[2]),
        row[3],
        row[4],
        row[5],
        BeliefType(row[6]),
        EpistemicStatus(row[7]),
        row[8],
        row[9],
        row[10],
        row[11],
        row[12],
        row[13],
        row[14],
        from_ms(row[15]),
    )


def _document(row: Row) -> Document:
    return Document(
        row[0],
        row[1],
        DocumentSource(row[2]),
        row[3],
        row[4],
        row[5],
        DocumentStatus(row[6]),
        row[7],
        row[8],
        from_ms(row[9]),
    )


def _chunk(row: Row) -> Chunk:
    return Chunk(row[0], row[1], row[2])


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
    frozenset({"subjectId", "agentId", "metadata", "eventTime"}),
)
CONVERSATION = Label("Conversation", ("id", "title", "threadId", "createdAt", "updatedAt"), _conversation)
TOPIC = Label("Topic", ("id", "name"), _topic)
FACT = Label("Fact", ("id", "subject", "predicate", "object", "confidence", "createdAt"), _fact)
ENTITY = Label("Entity", ("id", "name", "type", "aliases"), _entity)
COMMUNITY = Label("Community", ("id", "name", "algorithm", "size"), _community)
EVENT = Label(
    "Event",
    ("id", "eventType", "content", "text", "threadId", "userId", "agentId", "occurredAt", "recordedAt"),
    _event,
    frozenset({"userId", "agentId"}),
)
EPISODE = Label(
    "Episode",
    (
        "id",
        "threadId",
        "userId",
        "agentId",
        "summary",
        "tags",
        "outcome",
        "consolidationStatus",
        "startedAt",
        "endedAt",
        "attempts",
        "failure",
    ),
    _episode,
    frozenset({"userId", "agentId", "summary", "outcome", "endedAt", "failure"}),
)
BELIEF = Label(
    "Belief",
    (
        "id",
        "subjectId",
        "key",
        "value",
        "base",
        "reinforcedAt",
        "beliefType",
        "epistemicStatus",
        "domain",
        "version",
        "validFrom",
        "validTo",
        "createdAt",
        "evidenceCount",
    ),
    _belief,
)
STEP = "[i IN range(0, size(x.stepTimes) - 1) WHERE x.stepTimes[i] <= $f_as_of | i][-1]"
"""Which of a belief's steps had been reached at an instant."""
BELIEF_THEN = replace(
    BELIEF, computed=(("base", f"x.stepBases[{STEP}]"), ("reinforcedAt", f"x.stepReinforced[{STEP}]"))
)
"""A version as sure as it was at the instant asked for."""
CHANGE = Label(
    "Change",
    (
        "id",
        "number",
        "kind",
        "subjectId",
        "key",
        "domain",
        "beliefType",
        "statusAfter",
        "beliefId",
        "previousId",
        "rejectedId",
        "confidenceBefore",
        "confidenceAfter",
        "reason",
        "episodeId",
        "changedAt",
    ),
    _change,
    frozenset({"previousId", "rejectedId", "confidenceBefore", "reason", "episodeId"}),
)
DOCUMENT = Label(
    "Document",
    ("id", "title", "source", "url", "mediaType", "sizeBytes", "status", "failure", "subjectId", "createdAt"),
    _document,
    frozenset({"url", "failure", "subjectId"}),
)
CHUNK = Label("Chunk", ("id", "text", "position"), _chunk)
EVIDENCE = Label("Evidence", ("id",), lambda row: row[0])
"""On the way from a belief to its events; never returned itself."""
SLOT = Label("Slot", ("id",), lambda row: row[0])
"""One identity of beliefs, on the way from a version to the others; never returned itself."""

LABELS = (MEMORY, CONVERSATION, TOPIC, FACT, ENTITY, COMMUNITY, EVENT, EPISODE, BELIEF, CHANGE, DOCUMENT, CHUNK)
BY_NAME = {label.name: label for label in LABELS}


def any_row(alias: str) -> str:
    """Cypher for the row of a node of any label: the label's place in LABELS, and the list of its columns."""
    cases = " ".join(
        f"WHEN {alias}:{label.name} THEN [{place}, {label.row(alias)}]" for place, label in enumerate(LABELS)
    )
    return f"CASE {cases} END"


def any_whole(row: Row | None) -> bool:
    """Whether a row that `any_row` made isn't torn."""
    return row is not None and LABELS[row[0]].whole(row[1])


def any_value(row: Row | None) -> Any:
    """The value of a row that `any_row` made; Raced for a torn one."""
    if row is None:
        raise Raced
    return LABELS[row[0]].value(row[1])
