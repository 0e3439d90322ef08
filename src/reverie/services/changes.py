"""Following the change log: one reader per tenant, any number of subscribers, and nobody misses an entry."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from reverie.bus.bells import Bell, Listener, NoticeKind
from reverie.domain.changes import (
    EVERY_CHANGE,
    BeliefChange,
    BeliefChangeFilter,
    ChangeCheckpoint,
    ChangeGap,
    LogHead,
    LogPosition,
    LogSlice,
)
from reverie.errors import ReverieError
from reverie.graph import changes
from reverie.resources import Resources

log = logging.getLogger("reverie.changes")

ChangeEvent = BeliefChange | ChangeCheckpoint | ChangeGap


class ChangeLog(Protocol):
    """The log as it is stored."""

    async def head(self, tenant: str) -> LogHead:
        """How far the tenant's log goes now."""

    async def read_log(self, tenant: str, after: int, limit: int) -> LogSlice:
        """The entries after a number, in order: those of the next `limit` numbers or of all there are.

        Erased ones are left out, and covered by `upto`, which is `after` where there is nothing new.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerOptions:
    """How a log is followed; times in seconds."""

    tick: float = 1.0
    """The longest time without looking, whether or not a bell rang."""
    buffer: int = 1_000
    """Entries kept for a subscriber who doesn't take them; beyond it he is on his own until he has caught up."""
    slice: int = 500
    """Entries read at once."""
    checkpoint_every: float = 3.0
    """The shortest time from anything sent to a checkpoint."""


class Follower:
    """Hands each tenant's log to those who subscribed to it. One per server."""

    def __init__(self, changes: ChangeLog, bell: Bell, options: FollowerOptions | None = None) -> None:
        self._log = changes
        self._bell = bell
        self._options = options or FollowerOptions()
        self._readers: dict[str, _Reader] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def readers(self) -> int:
        """How many logs are being read."""
        return len(self._readers)

    async def close(self) -> None:
        """Ends all reading; nobody is told anything any more."""
        for reader in self._readers.values():
            self._end(reader)
        self._readers.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def subscribe(
        self, tenant: str, wanted: BeliefChangeFilter = EVERY_CHANGE, after: LogPosition | None = None
    ) -> AsyncGenerator[ChangeEvent, None]:
        """What `wanted` takes of a tenant's log, in order and each once: all after a place, or from now on.

        First comes a checkpoint of where it starts, or a gap where the log can't be read from there, and then it
        starts at the log's end. A checkpoint also follows when the log moved on without anything that is wanted; a
        gap, when the log was lost, or its older part before a slow subscriber took it. Without end; what stops the
        reading of the log delays the subscriber. Raises Unavailable if it can't be read at the beginning.
        """
        head = await self._log.head(tenant)
        with self._joined(tenant, head.position) as reader:
            position = head.position
            if after is None:
                event: ChangeEvent = ChangeCheckpoint(position)
            elif head.reaches(after):
                position = after
                event = ChangeCheckpoint(position)
            else:
                event = ChangeGap(position, after.cursor)
            course = _Course(position, self._options.checkpoint_every)
            yield event
            while True:
                place = reader.take_place(course.position, wanted)
                if place is None:
                    source = self._from_log(tenant, wanted, course)
                else:
                    source = self._from_reader(reader, place, course)
                try:
                    async for event in source:
                        yield event
                finally:
                    await source.aclose()

    @contextmanager
    def _joined(self, tenant: str, position: LogPosition) -> Iterator["_Reader"]:
        """The tenant's reader, which begins with its first subscriber and ends with the last."""
        reader = self._readers.get(tenant)
        if reader is None:
            reader = self._readers[tenant] = _Reader(tenant, position, self._log, self._bell, self._options)
        reader.subscribers += 1
        try:
            yield reader
        finally:
            reader.subscribers -= 1
            if reader.subscribers == 0 and self._readers.get(tenant) is reader:
                del self._readers[tenant]
                self._end(reader)

    def _end(self, reader: "_Reader") -> None:
        self._ending.add(reader.task)
        reader.task.add_done_callback(self._ending.discard)
        reader.task.cancel()

    async def _from_log(
        self, tenant: str, wanted: BeliefChangeFilter, course: "_Course"
    ) -> AsyncGenerator[ChangeEvent, None]:
        """One step of a subscriber who is behind the reader, or was too slow for him: the next part of the log."""
        try:
            part = await read_on(self._log, tenant, course.position, self._options.slice)
        except ReverieError:
            # the reader tells of it in the log
            await asyncio.sleep(self._options.tick)
            return
        if isinstance(part, LogHead):
            missed_from = course.position.cursor
            course.told(part.position)
            yield ChangeGap(part.position, missed_from)
            return
        if part.upto == course.position.number:
            # the reader, who is further, hasn't noticed yet that the log is another
            await asyncio.sleep(self._options.tick)
            return
        for change in part.changes:
            if wanted.takes(change):
                course.told(course.position.at(change.number))
                yield change
        course.came_to(part.upto)
        if course.due == 0:
            yield course.checkpoint()

    async def _from_reader(
        self, reader: "_Reader", place: "_Place", course: "_Course"
    ) -> AsyncGenerator[ChangeEvent, None]:
        """What the reader hands out, until more of it waits than is kept."""
        try:
            while True:
                while place.waiting:
                    change = place.waiting.popleft()
                    course.told(course.position.at(change.number))
                    yield change
                if place.lost:
                    return
                course.came_to(place.upto)
                due = course.due
                if due == 0:
                    yield course.checkpoint()
                    continue
                place.stirred.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(due):
                        await place.stirred.wait()
        finally:
            reader.leave(place)


async def read_on(changes: ChangeLog, tenant: str, position: LogPosition, limit: int) -> LogSlice | LogHead:
    """The next part of the log after a place, or the log's head where it can't be read on from there."""
    head = await changes.head(tenant)
    part = LogSlice((), position.number)
    if head.reaches(position) and position.number < head.position.number:
        part = await changes.read_log(tenant, position.number, limit)
        if len(part.changes) < part.upto - position.number:
            # erased entries may be missing, but not those below a floor that rose meanwhile
            head = await changes.head(tenant)
    return part if head.reaches(position) else head


class _Course:
    """How far one subscriber has come, and how far he knows that he has."""

    def __init__(self, position: LogPosition, checkpoint_every: float) -> None:
        self.position = position
        self._known = position
        self._every = checkpoint_every
        self._last = monotonic()

    def told(self, position: LogPosition) -> None:
        """He is being told something that carries this place."""
        self.position = self._known = position
        self._last = monotonic()

    def came_to(self, number: int) -> None:
        """Nothing more concerns him up to this number."""
        self.position = self.position.at(number)

    @property
    def due(self) -> float | None:
        """Seconds until he should get a checkpoint; None: he needs none."""
        if self.position == self._known:
            return None
        return max(0.0, self._last + self._every - monotonic())

    def checkpoint(self) -> ChangeCheckpoint:
        self.told(self.position)
        return ChangeCheckpoint(self.position)


class _Place:
    """What waits for one subscriber: all that he wants up to `upto`, unless it was `lost` for being too much."""

    def __init__(self, wanted: BeliefChangeFilter, upto: int, most: int) -> None:
        self.waiting: deque[BeliefChange] = deque()
        self.upto = upto
        self.lost = False
        self.stirred = asyncio.Event()
        self._wanted = wanted
        self._most = most

    def offer(self, part: LogSlice) -> None:
        for change in part.changes:
            if change.number > self.upto and self._wanted.takes(change):
                if len(self.waiting) == self._most:
                    self.lose()
                    return
                self.waiting.append(change)
        self.upto = max(self.upto, part.upto)
        self.stirred.set()

    def lose(self) -> None:
        self.lost = True
        self.stirred.set()


class _Reader:
    """The one who reads a tenant's log for all of its subscribers, when the bell rings and with every tick."""

    def __init__(
        self, tenant: str, position: LogPosition, changes: ChangeLog, bell: Bell, options: FollowerOptions
    ) -> None:
        self.subscribers = 0
        self._tenant = tenant
        self._position = position
        self._log = changes
        self._options = options
        self._places: set[_Place] = set()
        self._failing = False
        self._bell = bell
        self.task = asyncio.create_task(self._run())

    def take_place(self, position: LogPosition, wanted: BeliefChangeFilter) -> _Place | None:
        """A place for a subscriber who has come to `position`; None where the reader is further, or in another log."""
        if position.at(0) != self._position.at(0) or position.number < self._position.number:
            return None
        place = _Place(wanted, position.number, self._options.buffer)
        self._places.add(place)
        return place

    def leave(self, place: _Place) -> None:
        self._places.discard(place)

    async def _run(self) -> None:
        # listens before it reads, so that no bell rings unheard in between
        with self._bell.listen(NoticeKind.CHANGES, tenant=self._tenant) as notices:
            while True:
                try:
                    # what has rung until now is answered by this one look
                    notices.take_waiting()
                    await self._catch_up()
                    self._failing = False
                except Exception as error:
                    if not self._failing:
                        self._failing = True
                        known = isinstance(error, ReverieError)
                        log.warning(
                            "the change log can't be read, subscribers wait: %s",
                            error,
                            exc_info=None if known else error,
                        )
                await self._wait(notices)

    async def _catch_up(self) -> None:
        while True:
            part = await read_on(self._log, self._tenant, self._position, self._options.slice)
            if isinstance(part, LogHead):
                # each subscriber finds the gap by himself
                self._position = part.position
                for place in self._places:
                    place.lose()
                self._places.clear()
                return
            covered = part.upto - self._position.number
            for place in list(self._places):
                place.offer(part)
                if place.lost:
                    self._places.discard(place)
            self._position = self._position.at(part.upto)
            if covered < self._options.slice:
                return

    async def _wait(self, notices: Listener) -> None:
        """Until the bell rings for something new, or for a tick."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.tick):
                async for notice in notices:
                    number = notice.body.get("number")
                    if not isinstance(number, int) or number > self._position.number:
                        return


class StoredLog:
    """The log as Neo4j has it (`ChangeLog`).

    Few read at a time: all subscribers of a server come back at once when it starts again, and what else is asked of
    Neo4j must not wait behind them, nor they run into its time limit.
    """

    AT_ONCE = 8

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._reading = asyncio.Semaphore(self.AT_ONCE)

    async def head(self, tenant: str) -> LogHead:
        """How far the tenant's log goes now."""
        async with self._reading:
            number = await self._resources.tenant_number(tenant)
            return await changes.log_head(self._resources.graph, tenant, number)

    async def read_log(self, tenant: str, after: int, limit: int) -> LogSlice:
        """The entries of the next `limit` numbers after one, without those that were erased."""
        async with self._reading:
            return await changes.read_log(self._resources.graph, tenant, after, limit)


def make_follower(resources: Resources) -> Follower:
    """What hands the stored log to its subscribers; to be closed."""
    return Follower(StoredLog(resources), resources.bell)
