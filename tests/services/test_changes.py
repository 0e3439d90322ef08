"""Following the change log: every subscriber is told each entry that concerns him once, in order, whatever happens."""

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.redis_server import RedisServer
from tests.services.change_log import MemoryLog

from reverie.bus.local_bell import LocalBell
from reverie.bus.redis_bell import RedisBell
from reverie.domain.changes import (
    EVERY_CHANGE,
    BeliefChange,
    BeliefChangeFilter,
    ChangeCheckpoint,
    ChangeGap,
    LogPosition,
    log_position,
)
from reverie.errors import Unavailable
from reverie.services.changes import ChangeEvent, Follower, FollowerOptions

TENANT = "acme"
ALEX = BeliefChangeFilter(subject_ids=("alex",))
# a tick so long that what arrives was rung for, and checkpoints as soon as they are allowed
RUNG = FollowerOptions(tick=30, buffer=4, slice=3, checkpoint_every=0)
TICKING = FollowerOptions(tick=0.02, buffer=4, slice=3, checkpoint_every=0.02)


@pytest.fixture
def bell() -> LocalBell:
    return LocalBell()


@pytest.fixture
def changes(bell: LocalBell) -> MemoryLog:
    return MemoryLog(bell, TENANT)


@dataclass
class Subscriber:
    """Somebody who takes what he is told, unless he is held."""

    stream: AsyncGenerator[ChangeEvent, None]
    wanted: BeliefChangeFilter = EVERY_CHANGE
    told: list[ChangeEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reading = asyncio.Event()
        self.reading.set()
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with aclosing(self.stream) as stream:
            async for event in stream:
                self.told.append(event)
                await self.reading.wait()

    @property
    def numbers(self) -> list[int]:
        return [event.number for event in self.told if isinstance(event, BeliefChange)]

    @property
    def number(self) -> int:
        """How far he knows that he has come."""
        last = self.told[-1]
        return last.number if isinstance(last, BeliefChange) else last.position.number

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                assert not self.task.done(), self.task
                await asyncio.sleep(0.001)

    async def knows(self, number: int) -> None:
        await self.until(lambda: bool(self.told) and self.number == number)

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class Crowd:
    """The subscribers of one follower, who all leave at the end."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.members: list[Subscriber] = []

    async def join(self, wanted: BeliefChangeFilter = EVERY_CHANGE, after: LogPosition | None = None) -> Subscriber:
        member = Subscriber(self.follower.subscribe(TENANT, wanted, after), wanted)
        self.members.append(member)
        await member.until(lambda: bool(member.told))
        return member


@pytest_asyncio.fixture
async def rung(changes: MemoryLog, bell: LocalBell) -> AsyncIterator[Crowd]:
    """Subscribers of a follower that hardly ever looks unless the bell rings."""
    async for crowd in crowd_of(changes, bell, RUNG):
        yield crowd


@pytest_asyncio.fixture
async def ticking(changes: MemoryLog, bell: LocalBell) -> AsyncIterator[Crowd]:
    """Subscribers of a follower that looks all the time."""
    async for crowd in crowd_of(changes, bell, TICKING):
        yield crowd


def at_work() -> list[str]:
    """The tasks there are of a follower or of a subscriber."""
    names = [str(getattr(task.get_coro(), "__qualname__", "")) for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith(("_Reader.", "Subscriber."))]


async def crowd_of(changes: MemoryLog, bell: LocalBell, options: FollowerOptions) -> AsyncIterator[Crowd]:
    crowd = Crowd(Follower(changes, bell, options))
    yield crowd
    for member in crowd.members:
        await member.leave()
    # then: nothing is left of anybody
    await asyncio.sleep(0)
    assert crowd.follower.readers == 0
    assert bell.listeners == 0
    assert at_work() == []


# ---------------------------------------------------------------- the beginning


async def test_the_first_thing_told_is_where_it_starts(changes: MemoryLog, rung: Crowd) -> None:
    changes.append("alex", "sam")

    member = await rung.join()
    changes.append("kim")
    await member.knows(3)

    assert member.told == [ChangeCheckpoint(changes.position(2)), changes.entries[2]]


async def test_an_empty_log_starts_before_its_first_entry(changes: MemoryLog, rung: Crowd) -> None:
    member = await rung.join()
    changes.append("alex")
    await member.knows(1)

    assert member.told == [ChangeCheckpoint(changes.position(0)), changes.entries[0]]


@pytest.mark.parametrize("after", range(11))
async def test_after_a_place_comes_the_backlog_and_then_what_is_new(
    changes: MemoryLog, rung: Crowd, after: int
) -> None:
    changes.append(*["alex"] * 10)

    member = await rung.join(after=changes.position(after))
    changes.append("alex", "alex")
    await member.knows(12)

    assert member.told[0] == ChangeCheckpoint(changes.position(after))
    assert member.numbers == list(range(after + 1, 13))


async def test_a_cursor_that_was_told_goes_on_where_it_was_told(changes: MemoryLog, rung: Crowd) -> None:
    first = await rung.join()
    start = first.told[0]
    assert isinstance(start, ChangeCheckpoint)
    changes.append(*["alex"] * 5)
    await first.knows(5)

    second = await rung.join(after=log_position(start.position.cursor))
    third = await rung.join(after=log_position(start.position.at(3).cursor))
    await second.knows(5)
    await third.knows(5)

    assert second.numbers == [1, 2, 3, 4, 5]
    assert third.numbers == [4, 5]


async def test_what_was_committed_before_is_not_new_even_if_the_reader_has_not_seen_it(
    changes: MemoryLog, rung: Crowd
) -> None:
    await rung.join()
    changes.append("alex", ring=False)

    member = await rung.join()
    changes.append("sam")
    await member.knows(2)

    assert member.told == [ChangeCheckpoint(changes.position(1)), changes.entries[1]]


async def test_nobody_can_begin_while_the_log_cannot_be_read(changes: MemoryLog, bell: LocalBell) -> None:
    follower = Follower(changes, bell, RUNG)
    changes.failing = True

    with pytest.raises(Unavailable):
        await anext(follower.subscribe(TENANT))
    assert follower.readers == 0


# ---------------------------------------------------------------- filters and checkpoints


async def test_a_filter_lets_through_what_it_takes(changes: MemoryLog, rung: Crowd) -> None:
    changes.append("alex", "sam")
    member = await rung.join(ALEX, changes.position(0))
    changes.append("sam", "alex", "sam", "alex")
    await member.knows(6)

    assert member.numbers == [1, 4, 6]


async def test_a_log_that_moves_on_without_anything_for_a_filter_gives_a_checkpoint(
    changes: MemoryLog, rung: Crowd
) -> None:
    member = await rung.join(ALEX)
    changes.append("sam", "sam")
    await member.knows(2)

    assert member.told == [ChangeCheckpoint(changes.position(0)), ChangeCheckpoint(changes.position(2))]


async def test_checkpoints_are_few_and_the_last_one_comes(changes: MemoryLog, bell: LocalBell) -> None:
    options = FollowerOptions(tick=30, checkpoint_every=0.3)
    async for crowd in crowd_of(changes, bell, options):
        member = await crowd.join(ALEX)
        for _ in range(30):
            changes.append("sam")
            await asyncio.sleep(0.02)
        await member.knows(30)

        assert member.numbers == []
        assert 2 <= len(member.told) <= 5


async def test_who_is_told_something_needs_no_checkpoint(changes: MemoryLog, rung: Crowd) -> None:
    member = await rung.join()
    changes.append("alex", "sam")
    await member.knows(2)
    await asyncio.sleep(0.05)

    assert member.told[1:] == changes.entries


# ---------------------------------------------------------------- the reader


async def test_one_reader_reads_for_all(changes: MemoryLog, rung: Crowd) -> None:
    members = [await rung.join() for _ in range(50)]
    await asyncio.sleep(0.01)
    changes.heads = changes.reads = 0

    changes.append("alex")
    for member in members:
        await member.knows(1)

    assert (changes.heads, changes.reads) == (1, 1)
    assert rung.follower.readers == 1


async def test_the_reader_comes_with_the_first_and_goes_with_the_last(
    changes: MemoryLog, bell: LocalBell, rung: Crowd
) -> None:
    one, two = await rung.join(), await rung.join()
    await asyncio.sleep(0.01)
    assert (rung.follower.readers, bell.listeners) == (1, 1)

    await one.leave()
    assert rung.follower.readers == 1
    await two.leave()
    await asyncio.sleep(0.01)
    assert (rung.follower.readers, bell.listeners) == (0, 0)

    three = await rung.join()
    changes.append("alex")
    await three.knows(1)
    assert three.numbers == [1]


async def test_without_any_bell_a_tick_is_enough(changes: MemoryLog, ticking: Crowd) -> None:
    member = await ticking.join()
    changes.append("alex", ring=False)
    await member.knows(1)

    assert member.numbers == [1]


async def test_a_quiet_tick_reads_no_entries(changes: MemoryLog, ticking: Crowd) -> None:
    await ticking.join()
    await asyncio.sleep(0.2)

    assert changes.reads == 0
    assert 2 <= changes.heads <= 30


async def test_a_bell_for_what_is_known_wakes_nobody(changes: MemoryLog, rung: Crowd) -> None:
    member = await rung.join()
    changes.append("alex")
    await member.knows(1)
    before = changes.heads

    changes.append()
    await asyncio.sleep(0.05)

    assert changes.heads == before


async def test_a_log_that_fails_delays_and_loses_nothing(
    changes: MemoryLog, ticking: Crowd, caplog: pytest.LogCaptureFixture
) -> None:
    live, held = await ticking.join(), await ticking.join()
    held.reading.clear()
    changes.append("alex")
    await live.knows(1)

    changes.failing = True
    changes.append(*["alex"] * 10)
    held.reading.set()
    await asyncio.sleep(0.2)
    assert live.numbers == [1]

    changes.failing = False
    await live.knows(11)
    await held.knows(11)
    assert live.numbers == held.numbers == list(range(1, 12))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_closing_ends_the_readers_at_once(changes: MemoryLog, bell: LocalBell) -> None:
    follower = Follower(changes, bell, RUNG)
    stream = follower.subscribe(TENANT)
    await anext(stream)

    await follower.close()

    assert (follower.readers, bell.listeners) == (0, 0)
    assert at_work() == []
    await stream.aclose()


# ---------------------------------------------------------------- gaps and erased entries


async def test_a_place_below_the_floor_is_a_gap(changes: MemoryLog, rung: Crowd) -> None:
    changes.append(*["alex"] * 5)
    changes.forget_before(3)

    member = await rung.join(after=changes.position(2))
    changes.append("alex")
    await member.knows(6)

    missed = changes.position(2).cursor
    assert member.told == [ChangeGap(changes.position(5), missed), changes.entries[5]]


async def test_the_floor_itself_is_no_gap(changes: MemoryLog, rung: Crowd) -> None:
    changes.append(*["alex"] * 5)
    changes.forget_before(3)

    member = await rung.join(after=changes.position(3))
    await member.knows(5)

    assert member.told[0] == ChangeCheckpoint(changes.position(3))
    assert member.numbers == [4, 5]


@pytest.mark.parametrize(
    "after",
    [LogPosition("epoch-0", 7, 1), LogPosition("epoch-1", 8, 1), LogPosition("epoch-1", 7, 4)],
    ids=["another epoch", "another tenant", "above the head"],
)
async def test_a_place_that_is_not_of_this_log_is_a_gap(changes: MemoryLog, rung: Crowd, after: LogPosition) -> None:
    changes.append(*["alex"] * 3)

    member = await rung.join(after=after)
    changes.append("alex")
    await member.knows(4)

    assert member.told == [ChangeGap(changes.position(3), after.cursor), changes.entries[3]]


async def test_a_store_that_is_restored_meanwhile_is_one_gap_for_each(changes: MemoryLog, ticking: Crowd) -> None:
    live, quiet = await ticking.join(), await ticking.join(ALEX)
    changes.append(*["sam"] * 5)
    await live.knows(5)
    await quiet.knows(5)
    before = changes.position(5).cursor

    changes.restore("epoch-2", 2)
    await live.until(lambda: isinstance(live.told[-1], ChangeGap))
    await quiet.until(lambda: isinstance(quiet.told[-1], ChangeGap))
    gap = ChangeGap(changes.position(2), before)
    assert [live.told[-1], quiet.told[-1]] == [gap, gap]

    changes.append("alex")
    await live.knows(3)
    await quiet.knows(3)
    assert [live.told[-1], quiet.told[-1]] == [changes.entries[2]] * 2


async def test_a_slow_subscriber_whom_the_floor_overtakes_is_told_of_the_gap(
    changes: MemoryLog, ticking: Crowd
) -> None:
    slow, quick = await ticking.join(), await ticking.join()
    slow.reading.clear()
    changes.append(*["alex"] * 20)
    await quick.knows(20)
    changes.forget_before(15)
    slow.reading.set()
    await slow.knows(20)

    (gap,) = (event for event in slow.told if isinstance(event, ChangeGap))
    assert log_position(gap.missed_from).number == slow.numbers[-1] < 15
    assert quick.numbers == list(range(1, 21))


async def test_a_floor_that_rises_while_the_log_is_read_is_a_gap_too(changes: MemoryLog, rung: Crowd) -> None:
    changes.append(*["alex"] * 8)
    changes.forgets_at_read = 5

    member = await rung.join(after=changes.position(3))
    await member.knows(8)

    assert member.told == [
        ChangeCheckpoint(changes.position(3)),
        ChangeGap(changes.position(8), changes.position(3).cursor),
    ]


async def test_erased_entries_are_passed_over(changes: MemoryLog, rung: Crowd) -> None:
    changes.append("alex", "sam", "alex", "alex", "sam", "alex")
    changes.erase("alex")

    all_of_it = await rung.join(after=changes.position(0))
    await all_of_it.knows(6)

    assert all_of_it.numbers == [2, 5]
    assert all_of_it.told[-1] == ChangeCheckpoint(changes.position(6))


# ---------------------------------------------------------------- slow subscribers


async def test_a_slow_subscriber_gets_everything_and_keeps_nobody_waiting(changes: MemoryLog, rung: Crowd) -> None:
    slow = await rung.join()
    quick = [await rung.join() for _ in range(5)]
    slow.reading.clear()

    for number in range(1, 101):
        changes.append("alex")
        for member in quick:
            await member.knows(number)
    slow.reading.set()
    await slow.knows(100)

    everything = list(range(1, 101))
    assert slow.numbers == everything
    assert all(member.numbers == everything for member in quick)


async def test_what_is_kept_for_a_slow_subscriber_is_bounded(changes: MemoryLog, rung: Crowd) -> None:
    slow = await rung.join()
    slow.reading.clear()
    gc.collect()
    before = entries_alive()
    for _ in range(100):
        changes.append(*["alex"] * 10)
        await asyncio.sleep(0)
    await slow.until(lambda: changes.reads >= 100)
    await asyncio.sleep(0.05)

    gc.collect()
    assert entries_alive() - before <= changes.last + RUNG.buffer + RUNG.slice + 1

    slow.reading.set()
    await slow.knows(1_000)
    assert slow.numbers == list(range(1, 1_001))


def entries_alive() -> int:
    return sum(isinstance(one, BeliefChange) for one in gc.get_objects())


async def test_who_was_slow_is_served_by_the_reader_again(changes: MemoryLog, rung: Crowd) -> None:
    member = await rung.join()
    member.reading.clear()
    changes.append(*["alex"] * 20)
    await asyncio.sleep(0.01)
    member.reading.set()
    await member.knows(20)
    await asyncio.sleep(0.01)
    changes.heads = changes.reads = 0

    changes.append("alex")
    await member.knows(21)

    assert (changes.heads, changes.reads) == (1, 1)
    assert member.numbers == list(range(1, 22))


# ---------------------------------------------------------------- two servers and a Redis


async def test_subscribers_of_another_server_miss_nothing_while_redis_is_killed_and_started_again(
    own_redis: RedisServer,
) -> None:
    here, there = RedisBell(own_redis.url, answer_within=0.5), RedisBell(own_redis.url, answer_within=0.5)
    await asyncio.gather(here.wait_until_listening(), there.wait_until_listening())
    changes = MemoryLog(here, TENANT)
    follower = Follower(changes, there, FollowerOptions(tick=0.5))
    crowd = Crowd(follower)
    members = [await crowd.join() for _ in range(20)]

    # when: changes are made at one server, and Redis goes and comes
    for number in range(1, 601):
        changes.append("alex")
        await asyncio.sleep(0.002)
        if number == 200:
            own_redis.kill()
        if number == 400:
            await asyncio.to_thread(own_redis.start)
    await there.wait_until_listening()
    for member in members:
        await member.knows(600)
    # and: once it is back, it rings again, sooner than any tick
    await asyncio.sleep(0.6)
    began = asyncio.get_running_loop().time()
    changes.append("alex")
    await members[0].knows(601)
    assert asyncio.get_running_loop().time() - began < 0.4

    for member in members:
        await member.knows(601)
        assert member.numbers == list(range(1, 602))
        await member.leave()
    await follower.close()
    await here.close()
    await there.close()


# ---------------------------------------------------------------- all of it at once

SUBJECTS = ("alex", "sam", "kim")
WANTED = (EVERY_CHANGE, ALEX, BeliefChangeFilter(subject_ids=("alex", "kim")))
APPEND = st.tuples(st.just("append"), st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=12), st.booleans())
JOIN = st.tuples(st.just("join"), st.sampled_from(WANTED), st.none() | st.integers(0, 15))
WAIT = st.tuples(st.just("wait"), st.sampled_from((0, 0.001, 0.03)))
HOLD = st.tuples(st.sampled_from(("hold", "go on")), st.integers(0, 3))
RARE = st.one_of(
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("erase"), st.sampled_from(SUBJECTS)),
    st.tuples(st.just("forget"), st.integers(0, 60)),
    st.tuples(st.just("restore"), st.integers(0, 60)),
    st.tuples(st.just("fail"), st.booleans()),
)
# what happens most is there most; each round ends with a little time for those who read
ROUNDS = st.lists(st.tuples(APPEND, st.one_of(JOIN, JOIN, HOLD, HOLD, RARE), WAIT), min_size=8, max_size=20)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROUNDS)
async def test_each_is_told_all_that_concerns_him_once_and_in_order(rounds: list[tuple[Any, ...]]) -> None:
    bell = LocalBell()
    changes = MemoryLog(bell, TENANT)
    written: dict[str, list[BeliefChange]] = {}
    erased: set[str] = set()
    async for crowd in crowd_of(changes, bell, TICKING):
        for action in chain.from_iterable(rounds):
            await act(action, crowd, changes, erased)
            written.setdefault(changes.epoch, [])
            known = {one.number for one in written[changes.epoch]}
            written[changes.epoch] += [one for one in changes.entries if one is not None and one.number not in known]
        changes.failing = False
        for member in crowd.members:
            member.reading.set()
        for member in crowd.members:
            if not member.task.done():
                await member.until(partial(is_up_to_date, member, changes))
            tells_all(member, written, erased)


async def act(  # noqa: PLR0912 - a branch for each kind of action
    action: tuple[Any, ...], crowd: Crowd, changes: MemoryLog, erased: set[str]
) -> None:
    match action:
        case ("append", subjects, ring):
            changes.append(*subjects, ring=ring)
        case ("join", wanted, after):
            if not changes.failing:
                position = None if after is None else changes.position(max(0, changes.last - after))
                crowd.members.append(Subscriber(crowd.follower.subscribe(TENANT, wanted, position), wanted))
        case ("leave", at):
            for member in crowd.members[at : at + 1]:
                await member.leave()
        case ("hold", at):
            for member in crowd.members[at : at + 1]:
                member.reading.clear()
        case ("go on", at):
            for member in crowd.members[at : at + 1]:
                member.reading.set()
        case ("erase", subject):
            erased.update(one.id for one in changes.entries if one is not None and one.subject_id == subject)
            changes.erase(subject)
        case ("forget", floor):
            changes.forget_before(floor)
        case ("restore", entries):
            changes.restore(f"{changes.epoch}'", min(entries, changes.last))
        case ("fail", failing):
            changes.failing = failing
            # who hasn't begun may be refused then, which is another test's matter
            if any(not member.told and not member.task.done() for member in crowd.members):
                changes.failing = False
        case ("wait", seconds):
            await asyncio.sleep(seconds)


def is_up_to_date(member: Subscriber, changes: MemoryLog) -> bool:
    """Whether he knows that he is at the log's end, by the epoch of the last mark and the number of the last event."""
    marks = [event for event in member.told if not isinstance(event, BeliefChange)]
    return bool(marks) and marks[-1].position.at(member.number) == changes.position(changes.last)


def tells_all(member: Subscriber, written: dict[str, list[BeliefChange]], erased: set[str]) -> None:
    """Between two marks of one log, exactly what he wanted of it was told, but for what was erased meanwhile."""
    if not member.told:
        return
    first = member.told[0]
    assert not isinstance(first, BeliefChange)
    at = first.position
    run: list[BeliefChange] = []
    for event in [*member.told[1:], ChangeCheckpoint(at.at(member.number))]:
        if isinstance(event, BeliefChange):
            assert event.number > (run[-1].number if run else at.number)
            run.append(event)
            continue
        upto = log_position(event.missed_from) if isinstance(event, ChangeGap) else event.position
        if upto.at(0) == at.at(0):
            due = [one for one in written[at.epoch] if at.number < one.number <= upto.number]
            due = [one for one in due if member.wanted.takes(one)]
            assert [one.number for one in due if one.id not in erased or one in run] == [one.number for one in run]
        at, run = event.position, []
