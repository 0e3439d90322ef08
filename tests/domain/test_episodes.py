"""How events fall into episodes, in whatever order and batches they come, and what closing an episode writes."""

from collections.abc import Iterable, Sequence
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain import policy
from reverie.domain.episodes import (
    Arrival,
    ConsolidationStatus,
    EpisodeClosing,
    EpisodeOutcome,
    Run,
    Said,
    Segmented,
    check_closing,
    close,
    segment,
)
from reverie.domain.events import EventType
from reverie.errors import Refusals

GAP, MOST = 10, 4
OPEN, PENDING = ConsolidationStatus.OPEN, ConsolidationStatus.PENDING
TAKEN = (ConsolidationStatus.PROCESSING, ConsolidationStatus.CONSOLIDATED, ConsolidationStatus.FAILED)
USER, AGENT, TOOL, LOG = EventType.USER_MESSAGE, EventType.AGENT_RESPONSE, EventType.TOOL_CALL, EventType.SYSTEM_LOG


class Thread:
    """A thread as the store keeps it: every event in its run, and runs that the worker may take."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.taken: dict[str, Run] = {}
        self.events: dict[str, Arrival] = {}
        self.members: dict[str, str] = {}
        self._events, self._runs = count(), count()

    def record(self, times: Iterable[int], users: Iterable[str | None] = ()) -> Segmented:
        """Records a batch of events that occurred at these times."""
        users = [*users]
        batch = [
            Arrival(f"v{next(self._events):06}", at, users[place] if users else None) for place, at in enumerate(times)
        ]
        found = segment(
            batch,
            self.runs.values(),
            idle_gap=GAP,
            most=MOST,
            now=len(self.events),
            make_id=lambda: f"e{next(self._runs):06}",
        )
        self.runs = found.runs
        self.events.update((event.id, event) for event in batch)
        assert found.members.keys() == {event.id for event in batch}
        assert not found.members.keys() & self.members.keys()
        self.members.update(found.members)
        return found

    def take(self, run_id: str) -> None:
        """What the worker does: from then on the run takes nothing."""
        self.taken[run_id] = self.runs.pop(run_id)

    @property
    def all(self) -> dict[str, Run]:
        return self.runs | self.taken

    def times(self, run_id: str) -> list[int]:
        return sorted(self.events[event].at for event, run in self.members.items() if run == run_id)

    def shape(self) -> list[tuple[list[int], ConsolidationStatus]]:
        """The runs by their events' times, earliest first."""
        return sorted((self.times(run.id), run.status) for run in self.all.values())

    def check(self) -> None:
        """What holds whatever came: no event is lost, and no run too long, or interrupted."""
        assert set(self.members) == set(self.events)
        assert set(self.members.values()) == set(self.all)
        for run in self.all.values():
            times = self.times(run.id)
            assert 1 <= len(times) == run.size <= MOST
            assert (run.started_at, run.span_end) == (times[0], times[-1])
            assert all(later - earlier <= GAP for earlier, later in pairwise(times))


TIMES = st.lists(st.integers(0, 120), max_size=40)
CUTS = st.lists(st.integers(1, 8), min_size=1, max_size=40)


def batches(times: Sequence[int], sizes: Sequence[int]) -> Iterable[Sequence[int]]:
    start = 0
    for size in [*sizes, *[8] * len(times)]:
        if start < len(times):
            yield times[start : start + size]
            start += size


@given(TIMES, CUTS)
def test_in_order_the_runs_are_the_same_however_events_are_batched(times: list[int], sizes: list[int]) -> None:
    ordered = sorted(times)
    at_once, in_batches = Thread(), Thread()
    at_once.record(ordered)
    for batch in batches(ordered, sizes):
        in_batches.record(batch)

    assert in_batches.shape() == at_once.shape()
    in_batches.check()


@given(TIMES, CUTS)
def test_in_order_runs_are_apart_by_more_than_the_gap_or_full(times: list[int], sizes: list[int]) -> None:
    thread = Thread()
    for batch in batches(sorted(times), sizes):
        thread.record(batch)

    runs = sorted(thread.runs.values(), key=lambda run: (run.started_at, run.id))
    for earlier, later in pairwise(runs):
        assert later.started_at - earlier.span_end > GAP or earlier.size == MOST
        assert earlier.status is PENDING
    assert [run.status for run in runs[-1:]] == ([OPEN] if times else [])


@given(TIMES, CUTS, st.data())
def test_in_any_order_nothing_is_lost_and_no_run_too_long(
    times: list[int], sizes: list[int], data: st.DataObject
) -> None:
    thread = Thread()
    for batch in batches(times, sizes):
        before = dict(thread.taken)
        thread.record(batch)
        thread.check()
        # given: a worker that takes any of what is over, at any moment
        over = sorted(run.id for run in thread.runs.values() if run.status is PENDING)
        for run_id in data.draw(st.lists(st.sampled_from(over), unique=True) if over else st.just([])):
            thread.take(run_id)
        assert before.items() <= thread.taken.items()


@given(TIMES, CUTS)
def test_a_run_is_never_open_again_nor_goes(times: list[int], sizes: list[int]) -> None:
    thread = Thread()
    for batch in batches(times, sizes):
        before = dict(thread.runs)
        thread.record(batch)
        for key, run in before.items():
            after = thread.runs[key]
            assert after.size >= run.size
            assert (run.status, after.status) != (PENDING, OPEN)


@given(TIMES)
def test_nothing_recorded_changes_nothing(times: list[int]) -> None:
    thread = Thread()
    thread.record(times)
    before = dict(thread.runs)

    assert thread.record([]) == Segmented(before, {})


def test_a_pause_as_long_as_the_gap_is_none() -> None:
    thread = Thread()
    thread.record([0, GAP])
    assert thread.shape() == [([0, GAP], OPEN)]

    thread.record([2 * GAP + 1])

    assert thread.shape() == [([0, GAP], PENDING), ([2 * GAP + 1], OPEN)]


def test_the_event_after_the_last_that_fits_opens_another() -> None:
    thread = Thread()
    thread.record([0, 1, 2, 3])
    assert thread.shape() == [([0, 1, 2, 3], OPEN)]

    thread.record([3])

    assert thread.shape() == [([0, 1, 2, 3], PENDING), ([3], OPEN)]


def test_a_late_event_joins_what_is_over_but_not_yet_taken() -> None:
    thread = Thread()
    thread.record([20, 22, 50])

    thread.record([21])
    thread.record([20 - GAP])
    thread.record([22 + GAP])

    assert thread.shape() == [([10, 20, 21, 22], PENDING), ([32], OPEN), ([50], OPEN)]


def test_of_two_that_are_near_a_late_event_joins_the_earlier() -> None:
    thread = Thread()
    thread.record([0, 15])

    thread.record([7])

    assert thread.shape() == [([0, 7], PENDING), ([15], OPEN)]


def test_a_late_event_that_fits_nowhere_opens_its_own() -> None:
    thread = Thread()
    thread.record([100])

    thread.record([50])
    assert thread.shape() == [([50], OPEN), ([100], OPEN)]
    thread.record([52, 53])

    assert thread.shape() == [([50, 52, 53], OPEN), ([100], OPEN)]


@pytest.mark.parametrize("late", [18, 20, 21, 22, 25])
def test_what_the_worker_took_takes_nothing_more(late: int) -> None:
    thread = Thread()
    thread.record([20, 22, 50])
    thread.take("e000000")

    thread.record([late])

    assert thread.shape() == sorted([([20, 22], PENDING), ([late], OPEN), ([50], OPEN)])


def test_what_a_caller_ended_takes_what_is_late_and_nothing_that_comes_after() -> None:
    ended = Run("a", 20, 24, 2, PENDING, 0, ended=True)

    found = segment(
        [Arrival("before", 12), Arrival("within", 22), Arrival("after", 25)],
        [ended],
        idle_gap=GAP,
        most=MOST,
        now=0,
        make_id=lambda: "b",
    )

    assert found.members == {"before": "a", "within": "a", "after": "b"}
    assert found.runs["b"].status is OPEN


def test_a_batch_is_sorted_by_time_and_then_by_arrival() -> None:
    thread = Thread()
    thread.record([100, 0, 1, 2, 1, 1])

    assert thread.shape() == [([0, 1, 1, 1], PENDING), ([2], PENDING), ([100], OPEN)]


def test_the_one_user_is_named_and_several_are_none() -> None:
    thread = Thread()
    thread.record([0, 1], [None, "ann"])
    (run,) = thread.runs.values()
    assert (run.user_id, run.agent_id) == ("ann", None)

    thread.record([2], ["ann"])
    assert [run.user_id for run in thread.runs.values()] == ["ann"]
    thread.record([3], ["bob"])

    (run,) = thread.runs.values()
    assert run.user_id is None
    assert run.user_ids == ("ann", "bob")


def said(*lines: tuple[EventType, str]) -> list[Said]:
    return [Said(place, f"v{place}", event_type, text) for place, (event_type, text) in enumerate(lines)]


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([(USER, "Hi"), (AGENT, "Hello")], EpisodeOutcome.COMPLETED),
        ([(AGENT, "Hello"), (USER, "Why does it fail?")], EpisodeOutcome.ABANDONED),
        ([(USER, "Why does it fail?"), (TOOL, "run tests"), (LOG, "done")], EpisodeOutcome.ABANDONED),
        ([(USER, "Let me talk to a human"), (AGENT, "One moment")], EpisodeOutcome.ESCALATED),
        ([(USER, "It fails"), (AGENT, "I'll transfer you to our support team")], EpisodeOutcome.ESCALATED),
        ([(USER, "Help"), (AGENT, "I am escalating this ticket")], EpisodeOutcome.ESCALATED),
        ([(USER, "I need to speak with a real person")], EpisodeOutcome.ESCALATED),
        ([(USER, "Let me talk to a human"), (AGENT, "Why?"), (USER, "It's broken")], EpisodeOutcome.ABANDONED),
        ([(USER, "My manager speaks French"), (AGENT, "Noted")], EpisodeOutcome.COMPLETED),
        ([(LOG, "started"), (TOOL, "talk to a human")], EpisodeOutcome.COMPLETED),
        ([], EpisodeOutcome.COMPLETED),
    ],
)
def test_how_it_went_is_told_from_what_was_spoken(lines: list[tuple[EventType, str]], outcome: EpisodeOutcome) -> None:
    assert close(said(*lines), None).outcome is outcome
    for given_ in EpisodeOutcome:
        assert close(said(*lines), given_).outcome is given_


def test_the_summary_is_extracts_and_the_tags_are_its_telling_words() -> None:
    closing = close(
        said(
            (USER, "Hi there."),
            (LOG, "heap 512 MB heap heap heap heap"),
            (USER, "I prefer tabs for indentation in Makefiles. What do you think?"),
            (AGENT, "Tabs it is: Makefiles need tabs anyway."),
        ),
        None,
    )

    assert closing.summary == ("I prefer tabs for indentation in Makefiles. … Tabs it is: Makefiles need tabs anyway.")
    assert closing.tags[:2] == ("tabs", "makefiles")
    assert "heap" not in closing.tags
    assert len(closing.tags) <= policy.TAGS_MOST


def test_where_nobody_spoke_the_log_is_summed_up() -> None:
    assert close(said((LOG, "disk full on db7"), (TOOL, "")), None).summary == "disk full on db7"


def test_of_what_can_not_be_read_there_is_no_summary() -> None:
    assert close(said((TOOL, ""), (LOG, "  ")), None)[:2] == (None, ())


def test_where_no_word_tells_the_beginning_is_the_summary() -> None:
    assert close(said((USER, "who are  you"), (AGENT, "?!")), None)[:2] == ("who are you ?!", ())


@given(st.lists(st.tuples(st.sampled_from(EventType), st.text(max_size=600)), max_size=20))
def test_whatever_was_said_closing_stays_within_its_bounds(lines: list[tuple[EventType, str]]) -> None:
    closing = close(said(*lines), None)

    assert closing == close(reversed(said(*lines)), None)
    assert len(closing.tags) == len(set(closing.tags)) <= policy.TAGS_MOST
    assert all(len(tag) > 1 for tag in closing.tags)
    assert closing.summary is None or 0 < len(closing.summary) <= policy.SUMMARY_MOST * (policy.PASSAGE_MOST + 3)


@pytest.mark.parametrize("closing", [EpisodeClosing(), EpisodeClosing("a", "b"), EpisodeClosing(thread_id=" ")])
def test_a_closing_that_names_no_episode_or_two_is_refused(closing: EpisodeClosing) -> None:
    with pytest.raises(Refusals):
        check_closing(closing)


def test_a_closing_that_names_one_is_taken() -> None:
    for closing in (EpisodeClosing("a"), EpisodeClosing(thread_id="t", outcome=EpisodeOutcome.ESCALATED)):
        assert check_closing(closing) is closing
