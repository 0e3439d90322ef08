"""Episodes: runs of events of one thread without a long pause."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EpisodeOutcome(StrEnum):
    COMPLETED = "COMPLETED"
    ABANDONED = "ABANDONED"
    ESCALATED = "ESCALATED"


class ConsolidationStatus(StrEnum):
    OPEN = "OPEN"
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    CONSOLIDATED = "CONSOLIDATED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode as it stands; `attempts` counts how often the worker took it."""

    id: str
    thread_id: str
    user_id: str | None
    agent_id: str | None
    summary: str | None
    tags: tuple[str, ...]
    outcome: EpisodeOutcome | None
    consolidation_status: ConsolidationStatus
    started_at: datetime
    ended_at: datetime | None
    attempts: int
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeFilter:
    """Which episodes; every field that is given must hold."""

    thread_id: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    consolidation_statuses: tuple[ConsolidationStatus, ...] | None = None
    outcomes: tuple[EpisodeOutcome, ...] | None = None
