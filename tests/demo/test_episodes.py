"""What the demo's people say is understood by the rules, in order, and shows each kind of change while it runs."""

import importlib.resources
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from reverie.ai.rules_extractor import RulesExtractor
from reverie.demo.data import demo_conversations
from reverie.demo.episodes import live_episodes, past_events
from reverie.domain.beliefs import BeliefChangeKind, Ledger
from reverie.domain.clock import to_ms
from reverie.domain.dreaming import HALF_LIVES
from reverie.domain.events import Event, EventDraft, EventType, check_events, readable
from reverie.domain.extraction import Dropped, KnownBelief, evidence_of
from reverie.domain.ids import new_id

NOW = datetime(2026, 3, 18, 6, 30, tzinfo=UTC)
STORY = importlib.resources.files("reverie.demo") / "story" / "episodes.toml"


def recorded(drafts: Iterable[EventDraft]) -> list[Event]:
    return [
        Event(
            str(uuid4()),
            draft.event_type,
            draft.content,
            readable(draft.content),
            draft.thread_id,
            draft.user_id,
            draft.agent_id,
            draft.occurred_at or NOW,
            draft.occurred_at or NOW,
        )
        for draft in drafts
    ]


def past_episodes(now: datetime) -> list[list[EventDraft]]:
    """The past events by episode: those of one thread, less than the idle gap apart."""
    found: list[list[EventDraft]] = []
    over = None
    for event in past_events(now):
        assert event.occurred_at is not None
        if over is None or found[-1][-1].thread_id != event.thread_id or event.occurred_at > over:
            found.append([])
        found[-1].append(event)
        over = event.occurred_at + timedelta(minutes=30)
    return found


async def dreamed(episodes: Sequence[Sequence[EventDraft]]) -> tuple[dict[tuple[str, str], Ledger], list[list[str]]]:
    """The beliefs that the rules and the fold make of episodes, and the kinds of change of each."""
    ledgers: dict[tuple[str, str], Ledger] = defaultdict(lambda: Ledger(HALF_LIVES))
    kinds = []
    for drafts in episodes:
        events = recorded(drafts)
        known = [
            KnownBelief(key, ledger.current.version.value) for (_, key), ledger in ledgers.items() if ledger.current
        ]
        dropped = Dropped()
        reading = await RulesExtractor().read_episode(events, known)
        told: list[str] = []
        for subject, key, one in evidence_of(reading, events, new_id(), dropped):
            told += [change.kind.value for change in ledgers[subject, key].record(one, to_ms(NOW), new_id)]
        assert dropped.counts == {}
        kinds.append(told)
    return ledgers, kinds


@pytest.mark.parametrize("days_on", range(7))
def test_the_past_is_in_order_within_each_thread_and_before_now(days_on: int) -> None:
    now = NOW + timedelta(days=days_on)
    began = demo_conversations(now)[0].memories[0].at
    times: dict[str, list[datetime]] = defaultdict(list)
    for event in past_events(now):
        assert event.occurred_at is not None
        assert began < event.occurred_at < now - timedelta(minutes=30)
        assert event.occurred_at.weekday() < 5
        times[event.thread_id].append(event.occurred_at)
    for thread, told in times.items():
        assert told == sorted(set(told)), thread


def test_all_of_it_can_be_recorded() -> None:
    drafts = [*past_events(NOW), *(event for episode in live_episodes() for event in episode.events)]

    assert list(check_events(drafts)) == drafts
    assert {draft.event_type for draft in drafts} == set(EventType)


async def test_every_episode_teaches_something() -> None:
    live = [[replace(event, occurred_at=NOW) for event in episode.events] for episode in live_episodes()]

    _, kinds = await dreamed([*past_episodes(NOW), *live])

    assert all(kinds), kinds
    assert {kind for told in kinds for kind in told} == {kind.value for kind in BeliefChangeKind}


async def test_what_happens_live_shows_a_belief_created_strengthened_and_superseded_within_a_minute() -> None:
    past, live = past_episodes(NOW), live_episodes()

    _, kinds = await dreamed([*past, *([replace(one, occurred_at=NOW) for one in episode.events] for episode in live)])

    first = list(zip(live, kinds[len(past) :], strict=True))
    assert [told for episode, told in first if episode.seconds < 45] == [["CREATED"], ["STRENGTHENED"], ["SUPERSEDED"]]
    assert [episode.seconds for episode in live] == sorted({episode.seconds for episode in live})


def test_users_and_agents_are_those_of_the_memories() -> None:
    memories = [memory for conversation in demo_conversations(NOW) for memory in conversation.memories]
    events = [*past_events(NOW), *(event for episode in live_episodes() for event in episode.events)]

    assert {event.user_id for event in events} <= {memory.subject_id for memory in memories}
    assert {event.agent_id for event in events} <= {memory.agent_id for memory in memories}
    assert not {event.thread_id for event in events} & {thread.thread_id for thread in demo_conversations(NOW)}


def test_the_story_has_no_field_that_nobody_reads() -> None:
    story = tomllib.loads(STORY.read_text(encoding="utf-8"))

    assert set(story) == {"past", "live"}
    for thread in story["past"].values():
        assert set(thread) == {"user_id", "agent_id", "episodes"}
        assert all(set(episode) == {"day", "at", "events"} for episode in thread["episodes"])
    for episode in story["live"]:
        assert set(episode) == {"seconds", "thread_id", "user_id", "agent_id", "events"}
