"""How dreaming is done, as values that the rules and the worker are given, and how far a dream has come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reverie.domain.beliefs import BeliefType, HalfLives

HALF_LIVES: HalfLives = {
    BeliefType.FACT: 365.0,
    BeliefType.PREFERENCE: 180.0,
    BeliefType.BELIEF: 60.0,
    BeliefType.TENET: None,
}
"""Days, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class DreamingPolicy:
    """Settings of the pipeline; times in milliseconds."""

    idle_gap: int = 30 * 60_000
    """The longest pause within an episode."""
    half_lives: Mapping[BeliefType, float | None] = field(default_factory=lambda: HALF_LIVES)
    attempts: int = 3
    """How often reading an episode, or a memory, may fail."""
    lease: int = 60_000
    """How long work is the worker's own without a sign of life."""
    first_pause: int = 4_000
    """Between a first failure and the next try; it doubles with each failure."""
    longest_pause: int = 600_000

    def pause_after(self, failures: int, asked: float | None = None) -> int:
        """Milliseconds to wait after so many failures in a row, at least one; no fewer than the `asked` seconds."""
        own = min(self.longest_pause, self.first_pause << (failures - 1))
        return own if asked is None else max(own, round(asked * 1000))


@dataclass(frozen=True, slots=True)
class Dream:
    """One run over pending episodes: how many it has, and how far it has come."""

    id: str
    episodes: int
    done: int
    failed: int
    beliefs_changed: int
    started_at: datetime
    finished_at: datetime | None
