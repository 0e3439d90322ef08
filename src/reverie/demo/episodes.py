"""What the demo's people said to their assistants, read from `story/episodes.toml` as events to be recorded."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reverie.demo.data import read_story, workdays_before
from reverie.domain.events import EventDraft, EventType

BETWEEN = timedelta(minutes=1)
"""Between two events of an episode of the past."""


@dataclass(frozen=True, slots=True)
class LiveEpisode:
    """An episode that happens while the demo runs: `seconds` after its server began. Its events have no time yet."""

    seconds: float
    events: tuple[EventDraft, ...]


def past_events(now: datetime) -> list[EventDraft]:
    """The events of the weeks before `now`, which has an offset, thread by thread and oldest first.

    They are counted back in working days, as the memories of the story.
    """
    today = now.astimezone(UTC).date()
    found = []
    for thread_id, thread in _story()["past"].items():
        for episode in thread["episodes"]:
            began = datetime.combine(workdays_before(today, episode["day"]), episode["at"], UTC)
            for place, event in enumerate(_events(thread_id, thread, episode["events"])):
                found.append(replace(event, occurred_at=began + place * BETWEEN))
    return found


def live_episodes() -> list[LiveEpisode]:
    """The episodes that happen while the demo runs, in their order."""
    return [
        LiveEpisode(episode["seconds"], tuple(_events(episode["thread_id"], episode, episode["events"])))
        for episode in _story()["live"]
    ]


def _story() -> dict[str, Any]:
    return read_story("episodes.toml")


def _events(thread_id: str, speakers: dict[str, Any], events: list[list[Any]]) -> Iterator[EventDraft]:
    for event_type, content in events:
        yield EventDraft(
            EventType(event_type), content, thread_id, user_id=speakers["user_id"], agent_id=speakers["agent_id"]
        )
