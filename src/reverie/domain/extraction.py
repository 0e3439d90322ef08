"""What a reader finds in an episode or a memory, and which of it counts as evidence."""

from dataclasses import dataclass, field

from reverie.domain.beliefs import BeliefType, EvidenceKind
from reverie.domain.entities import EntityType
from reverie.domain.episodes import EpisodeOutcome
from reverie.domain.facts import FactDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Something that an event says of its user: what is claimed, and the words that show it.

    `kind` is STATE, CORRECT or END. `event_id` names the event in which `quote` must occur.
    """

    event_id: str
    kind: EvidenceKind
    key: str
    value: str
    confidence: float
    belief_type: BeliefType
    domain: str
    quote: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in an episode. A summary, tags and an outcome of None leave the episode's own as they are."""

    statements: tuple[Statement, ...]
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    outcome: EpisodeOutcome | None = None
    tokens: int = 0
    """What a model was sent and answered, in its tokens."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """What was found in a memory: names of topics, named entities, facts."""

    topics: tuple[str, ...] = ()
    entities: tuple[tuple[str, EntityType], ...] = ()
    facts: tuple[FactDraft, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class KnownBelief:
    """A belief that holds already, given to a reader so that it finds the same keys again."""

    key: str
    value: str


@dataclass(slots=True)
class Dropped:
    """How many statements didn't count, by reason."""

    counts: dict[str, int] = field(default_factory=dict)

    def note(self, reason: str) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1
