"""Episodes: runs of a thread's events without a long pause, how events fall into them, what closing one writes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import regex

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.domain.events import EventType
from reverie.domain.text import highlights, keywords, words
from reverie.errors import BadInput


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

    def takes(self, episode: Episode) -> bool:
        """Whether an episode passes."""
        return all(
            (
                self.thread_id in (None, episode.thread_id),
                self.user_id in (None, episode.user_id),
                self.agent_id in (None, episode.agent_id),
                self.consolidation_statuses is None or episode.consolidation_status in self.consolidation_statuses,
                self.outcomes is None or episode.outcome in self.outcomes,
            )
        )


@dataclass(frozen=True, slots=True)
class EpisodeClosing:
    """Which episode to close, by its id or as its thread's open one, and how it went, where the caller knows."""

    id: str | None = None
    thread_id: str | None = None
    outcome: EpisodeOutcome | None = None


def check_closing(closing: EpisodeClosing) -> EpisodeClosing:
    """The closing itself; Refusals when it doesn't name one episode."""
    checks = Checks()
    if (closing.id is None) == (closing.thread_id is None):
        checks.refuse(BadInput("takes one of id and threadId", ("id",)))
    checks.label(closing.thread_id, ("threadId",))
    checks.done()
    return closing


# ---------------------------------------------------------------- how events fall into episodes


class Arrival(NamedTuple):
    """A new event, as far as its place among episodes goes; `at` is when it occurred, in milliseconds."""

    id: str
    at: int
    user_id: str | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """An episode that is OPEN or PENDING, as far as its growth goes; times in milliseconds.

    `ended` when a caller closed it: what occurs later is no part of it. Of its users and agents two are kept, as many
    as tell one from several.
    """

    id: str
    started_at: int
    span_end: int
    size: int
    status: ConsolidationStatus
    recorded_at: int
    ended: bool = False
    user_ids: tuple[str, ...] = ()
    agent_ids: tuple[str, ...] = ()

    @property
    def user_id(self) -> str | None:
        """Its events' one user; None where there are several, or none."""
        return self.user_ids[0] if len(self.user_ids) == 1 else None

    @property
    def agent_id(self) -> str | None:
        """Its events' one agent; None where there are several, or none."""
        return self.agent_ids[0] if len(self.agent_ids) == 1 else None

    def with_event(self, arrival: Arrival, now: int) -> "Run":
        return replace(
            self,
            started_at=min(self.started_at, arrival.at),
            span_end=max(self.span_end, arrival.at),
            size=self.size + 1,
            recorded_at=max(self.recorded_at, now),
            user_ids=_two(self.user_ids, arrival.user_id),
            agent_ids=_two(self.agent_ids, arrival.agent_id),
        )

    def pending(self) -> "Run":
        return replace(self, status=ConsolidationStatus.PENDING)


def _two(known: tuple[str, ...], one: str | None) -> tuple[str, ...]:
    return known if one is None or one in known or len(known) > 1 else (*known, one)


class Segmented(NamedTuple):
    """The runs as they are with the new events, new ones among them, and the run of each new event, by ids."""

    runs: dict[str, Run]
    members: dict[str, str]


def segment(
    arrivals: Iterable[Arrival],
    runs: Iterable[Run],
    *,
    idle_gap: int,
    most: int,
    now: int,
    make_id: Callable[[], str],
) -> Segmented:
    """Puts a thread's new events into its runs, in the order in which they occurred.

    An event joins the earliest run whose span, widened by `idle_gap` on both sides, contains it, and which has fewer
    than `most` events; else it opens one. A run is over, PENDING, when an event opens another more than `idle_gap`
    after its end, or when one would have joined it had it not been full. `runs` are all of the thread's that are OPEN,
    and the PENDING ones that could take an event. Without pauses or late events, the runs don't depend on how events
    were batched.
    """
    found = {run.id: run for run in runs}
    near = set(found)
    passed: set[str] = set()
    members: dict[str, str] = {}
    for arrival in sorted(arrivals, key=lambda event: (event.at, event.id)):
        over = {key for key in near if found[key].span_end + idle_gap < arrival.at}
        near -= over
        passed |= over
        around = [found[key] for key in near if found[key].started_at - idle_gap <= arrival.at]
        for run in around:
            if run.size >= most:
                found[run.id] = run.pending()
        free = [run for run in around if run.size < most and not (run.ended and arrival.at > run.span_end)]
        if free:
            joined = min(free, key=lambda run: (run.started_at, run.id))
        else:
            joined = Run(make_id(), arrival.at, arrival.at, 0, ConsolidationStatus.OPEN, now)
            for key in passed:
                found[key] = found[key].pending()
            passed.clear()
            near.add(joined.id)
        found[joined.id] = joined.with_event(arrival, now)
        members[arrival.id] = joined.id
    return Segmented(found, members)


# ---------------------------------------------------------------- what closing one writes


class Said(NamedTuple):
    """What one event of an episode says; `at` is when it occurred, in milliseconds."""

    at: int
    id: str
    event_type: EventType
    text: str


class Closing(NamedTuple):
    """What closing an episode without a model writes: extracts alone, and how it seems to have gone."""

    summary: str | None
    tags: tuple[str, ...]
    outcome: EpisodeOutcome


_SPOKEN = (EventType.USER_MESSAGE, EventType.AGENT_RESPONSE)
_PERSON = (
    r"(?:human|(?:real|live|actual) (?:person|agent)|representative|manager|supervisor|operator|support (?:team|agent))"
)
_HANDOVER = regex.compile(
    rf"\b(?:(?:speak|talk|chat) (?:to|with)|(?:transfer|connect|hand|put|pass)\w* .{{0,40}}?\b(?:to|with|through to)) "
    rf"(?:(?:an?|the|our|your|some) )?{_PERSON}\b"
    r"|\bescalat(?:e|ed|ing) (?:this|that|it|the|my|your|to)\b"
    r"|\b(?:get|need|want) (?:me )?(?:an?|the) (?:human|(?:real|live) (?:person|agent))\b",
    regex.IGNORECASE,
)


def close(said: Iterable[Said], given: EpisodeOutcome | None) -> Closing:
    """What is written when an episode with these events ends; `given` is the outcome that a caller named.

    The summary is passages of what was spoken, else of what tools and systems wrote, that hold most of the tags;
    None where nothing can be read. The outcome, where none is given, is ABANDONED where the last word is a user's,
    ESCALATED where somebody asked for a handover, in that last word or in an answered one, else COMPLETED.
    """
    ordered = sorted(said)
    readable = [event for event in ordered if event.text.strip()]
    spoken = [event for event in readable if event.event_type in _SPOKEN] or readable
    share = policy.READ_MOST // max(len(spoken), 1)
    text = "\n".join(event.text[:share] for event in spoken)
    tags = keywords(text, policy.TAGS_MOST)
    asked = [word for tag in tags for word in words(tag)]
    passages = highlights(text, asked, policy.SUMMARY_MOST, policy.PASSAGE_MOST)
    if not passages and text:
        passages = [" ".join(text.split())[: policy.PASSAGE_MOST]]
    return Closing(" … ".join(passages) or None, tuple(tags), given or _outcome(ordered))


def _outcome(ordered: Sequence[Said]) -> EpisodeOutcome:
    spoken = [event for event in ordered if event.event_type in _SPOKEN]
    if spoken and spoken[-1].event_type is EventType.USER_MESSAGE:
        return EpisodeOutcome.ESCALATED if _HANDOVER.search(spoken[-1].text) else EpisodeOutcome.ABANDONED
    handed_over = any(_HANDOVER.search(event.text) for event in spoken)
    return EpisodeOutcome.ESCALATED if handed_over else EpisodeOutcome.COMPLETED
