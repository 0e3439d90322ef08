"""Events: what was lived, exactly as it was received; nothing ever changes one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import orjson

from reverie.domain import policy
from reverie.domain.checks import Checks, Path
from reverie.errors import TooLarge


class EventType(StrEnum):
    USER_MESSAGE = "USER_MESSAGE"
    AGENT_RESPONSE = "AGENT_RESPONSE"
    TOOL_CALL = "TOOL_CALL"
    SYSTEM_LOG = "SYSTEM_LOG"


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it was received; `occurred_at` is the caller's clock, `recorded_at` ours."""

    id: str
    event_type: EventType
    content: Any
    text: str
    thread_id: str
    user_id: str | None
    agent_id: str | None
    occurred_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event as a caller hands it over; without `occurred_at` it happened when it is recorded."""

    event_type: EventType
    content: Any
    thread_id: str
    client_event_id: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Checked drafts to record together, with the longest pause within an episode, in milliseconds."""

    drafts: tuple[EventDraft, ...]
    idle_gap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events; every field that is given must hold."""

    thread_id: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    event_types: tuple[EventType, ...] | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None


_TEXT_FIELDS = ("text", "content", "message", "output", "input")
"""Where an object keeps its readable part, in the order in which they are looked at."""


def readable(content: Any) -> str:
    """The readable part of an event's content: a text itself, an object's text, a list's texts by lines."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(readable, content) if part)
    if isinstance(content, dict):
        return next(
            (text for text in (readable(content[name]) for name in _TEXT_FIELDS if name in content) if text), ""
        )
    return ""


def check_events(drafts: Sequence[EventDraft]) -> tuple[EventDraft, ...]:
    """The drafts themselves; Refusals that name the member and the field where one can't be."""
    checks = Checks()
    if len(drafts) > policy.BATCH_MOST:
        checks.refuse(TooLarge(f"has {len(drafts)} members, {policy.BATCH_MOST} at most", ("events",)))
        checks.done()
    for index, draft in enumerate(drafts):
        _check_event(draft, checks, ("events", index))
    checks.done()
    return tuple(drafts)


def _check_event(draft: EventDraft, checks: Checks, path: Path) -> None:
    checks.text(draft.thread_id, (*path, "threadId"), policy.NAME_MOST)
    for value, name in (
        (draft.client_event_id, "clientEventId"),
        (draft.user_id, "userId"),
        (draft.agent_id, "agentId"),
    ):
        checks.label(value, (*path, name))
    checks.json(draft.content, (*path, "content"), policy.EVENT_MOST)


def check_event_filter(wanted: EventFilter) -> EventFilter:
    """The filter itself; Refusals when a value can't be."""
    checks = Checks()
    checks.span(wanted.occurred_after, wanted.occurred_before, (), ("occurredAfter", "occurredBefore"))
    checks.done()
    return wanted


def content_text(content: Any) -> str:
    """An event's content as the store keeps it."""
    return orjson.dumps(content).decode()


def happened_at(occurred_at: datetime, recorded_at: datetime) -> datetime:
    """The time at which an event counts as evidence: one from the future must not freeze it."""
    return min(occurred_at.astimezone(UTC), recorded_at.astimezone(UTC))
