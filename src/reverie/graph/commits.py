"""Joined commits: concurrent writes share one transaction, since committing costs Neo4j more than writing.

A write is carried out by a writer function that takes all waiting writes of its kind at once. While one transaction
is under way, what arrives waits for the next. A refused write leaves nothing behind and lets the others be; a
transaction that fails is run again write by write, so that a bad one fails alone. When Neo4j doesn't answer, all that
waits fails with it: each of them would wait as long again for the same answer.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.errors import Conflict, Refusals, Unavailable
from reverie.graph.schema import await_words
from reverie.graph.store import CommitUnknown, Contended, Graph, Raced, Transaction
from reverie.graph.writes import Done, Outcome, Write, Writer

JOINED_MOST = 100
"""Writes of one transaction; a write of more weight than this has a transaction of its own."""
LARGE_AT_ONCE = 2


Key = tuple[str, str, str]
"""Tenant, field and the caller's key: what a receipt is found by."""


@dataclass(slots=True, eq=False)
class _Job:
    write: Write
    writer: Writer
    answer: "asyncio.Future[Done]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def key(self) -> Key | None:
        return None if self.write.key is None else (self.write.tenant, self.write.field, self.write.key)


def digest(value: Any) -> str:
    """The hash of an input, by which a second use of a key with another input is told."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).hexdigest()


LOCK_RECEIPTS = """
UNWIND $keys AS k
MERGE (r:Receipt {tenant: k[0], field: k[1], key: k[2]}) SET r.locked = true
RETURN collect([k, r.digest, r.result, r.createdAt])
"""
WRITE_RECEIPTS = """
UNWIND $rows AS k
MATCH (r:Receipt {tenant: k[0], field: k[1], key: k[2]})
SET r.digest = k[3], r.result = k[4], r.createdAt = k[5]
RETURN count(*)
"""
READ_RECEIPT = "MATCH (r:Receipt {tenant: $t, field: $field, key: $key}) RETURN [r.digest, r.result, r.createdAt]"
DROP_RECEIPTS = """
UNWIND $keys AS k MATCH (r:Receipt {tenant: k[0], field: k[1], key: k[2]}) DELETE r
"""
FORGET_RECEIPTS = """
MATCH (r:Receipt) WHERE r.createdAt <= $oldest WITH r LIMIT $limit
SET r.locked = true
WITH r WHERE r.createdAt <= $oldest DELETE r
RETURN count(*)
"""


async def forget_receipts(graph: Graph, now: int, limit: int) -> int:
    """Takes away some receipts that count no more, but for those that are written anew meanwhile; how many."""
    return int(await graph.write(FORGET_RECEIPTS, oldest=_oldest(now), limit=limit))


class Commits:
    """The one way in for writes of callers. `joined` counts transactions, for tests and metrics."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._small: list[_Job] = []
        self._waiting: set[_Job] = set()
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self._joining: asyncio.Task[None] | None = None
        self._apart: set[asyncio.Task[None]] = set()
        self.joined = 0

    async def write(self, writer: Writer, write: Write, *, asked: Any) -> Done:
        """Carries out a write and returns what it made, after its commit; `asked` is what a second use of its key must ask.

        Raises Refusals when it can't be done, Unavailable when Neo4j doesn't answer.
        """
        if write.key is not None:
            checks = Checks()
            checks.text(write.key, ("clientMutationKey",), policy.KEY_MOST)
            checks.done()
            write.digest = digest(asked)
        job = _Job(write, writer)
        self._waiting.add(job)
        if write.weight > JOINED_MOST // 2:
            task = asyncio.create_task(self._run_large(job))
            self._apart.add(task)
            task.add_done_callback(self._apart.discard)
        else:
            self._small.append(job)
            if self._joining is None or self._joining.done():
                self._joining = asyncio.create_task(self._run_small())
        # a caller that leaves must not take the transaction with it
        return await asyncio.shield(job.answer)

    async def known(self, tenant: str, field: str, key: str | None, *, asked: Any, now: int) -> Done | None:
        """What an earlier use of a key made, where there was one: for what is done before the write can be told.

        Raises Refusals where it asked for something else.
        """
        if key is None:
            return None
        receipt = await self._graph.read(READ_RECEIPT, t=tenant, field=field, key=key)
        if receipt is None or receipt[0] is None or receipt[2] <= _oldest(now):
            return None
        if receipt[0] != digest(asked):
            raise _conflict()
        done: Done = orjson.loads(receipt[1])
        return done

    async def close(self) -> None:
        """Waits for all that was taken."""
        while self._apart or (self._joining is not None and not self._joining.done()):
            await asyncio.wait([*self._apart, *([self._joining] if self._joining is not None else [])])

    async def _run_small(self) -> None:
        while self._small:
            taken: list[_Job] = []
            weight = 0
            while self._small and weight + self._small[0].write.weight <= JOINED_MOST:
                weight += self._small[0].write.weight
                taken.append(self._small.pop(0))
            await self._run(taken)

    async def _run_large(self, job: _Job) -> None:
        async with self._large:
            await self._run([job])

    async def _run(self, taken: Sequence[_Job]) -> None:
        jobs = [job for job in taken if not job.answer.done()]
        if not jobs:
            return
        self._waiting.difference_update(jobs)
        try:
            outcomes = await self._transact(jobs)
        except CommitUnknown as error:
            # run again, what did happen would happen twice
            _fail(jobs, error)
        except Unavailable as error:
            if isinstance(error, Contended) and len(jobs) > 1:
                await self._one_by_one(jobs)
                return
            _fail(jobs, error)
            if not isinstance(error, Contended):
                _fail(self._waiting, error)
                self._waiting.clear()
        except Exception as error:
            if len(jobs) == 1:
                _fail(jobs, error)
            else:
                await self._one_by_one(jobs)
        else:
            for job, outcome in zip(jobs, outcomes, strict=True):
                _answer(job, outcome)

    async def _one_by_one(self, jobs: Sequence[_Job]) -> None:
        self._waiting.update(jobs)
        for job in jobs:
            await self._run([job])

    async def _transact(self, jobs: Sequence[_Job]) -> list[Outcome]:
        outcomes = await self._graph.transact(lambda transaction: self._carry_out(transaction, jobs))
        self.joined += 1
        if not all(job.write.logged for job in jobs):
            await await_words(self._graph)
        return outcomes

    async def _carry_out(self, transaction: Transaction, jobs: Sequence[_Job]) -> list[Outcome]:
        keys = sorted({job.key for job in jobs if job.key is not None})
        outcomes: dict[int, Outcome] = {}
        known = await self._replay(transaction, jobs, keys, outcomes)
        while waiting := [place for place in range(len(jobs)) if place not in outcomes]:
            first: dict[Key, int] = {}
            for place in waiting:
                if (key := jobs[place].key) is not None:
                    first.setdefault(key, place)
            by_writer: dict[Writer, list[int]] = {}
            for place in waiting:
                key = jobs[place].key
                if key is None or first[key] == place:
                    by_writer.setdefault(jobs[place].writer, []).append(place)
            for writer, places in sorted(by_writer.items(), key=lambda item: jobs[item[1][0]].write.logged):
                made = await writer(transaction, [jobs[place].write for place in places])
                outcomes.update(zip(places, made, strict=True))
            for place in waiting:
                key = jobs[place].key
                if place not in outcomes and key is not None:
                    _repeat(jobs, first[key], place, outcomes)
        await self._remember(transaction, jobs, [key for key in keys if key not in known], outcomes)
        return [outcomes[place] for place in range(len(jobs))]

    @staticmethod
    async def _replay(
        transaction: Transaction, jobs: Sequence[_Job], keys: Sequence[Key], outcomes: dict[int, Outcome]
    ) -> set[Key]:
        """Locks the receipts of all keys, and answers the jobs whose key is known; returns the known keys."""
        known: set[Key] = set()
        if not keys:
            return known
        # a sorted order of locks: writers that share keys wait for each other instead of dying together
        receipts = {
            tuple(key): receipt
            for key, *receipt in await transaction.run(LOCK_RECEIPTS, keys=[list(key) for key in keys])
        }
        for place, job in enumerate(jobs):
            if job.key is None:
                continue
            stored, result, created = receipts[job.key]
            if stored is not None and created > _oldest(job.write.now):
                outcomes[place] = orjson.loads(result) if stored == job.write.digest else _conflict()
                known.add(job.key)
        return known

    @staticmethod
    async def _remember(
        transaction: Transaction, jobs: Sequence[_Job], keys: Sequence[Key], outcomes: dict[int, Outcome]
    ) -> None:
        """Keeps what was made under new keys; what was refused isn't remembered."""
        rows: dict[Key, list[Any]] = {}
        for place, job in enumerate(jobs):
            outcome = outcomes[place]
            if job.key in keys and job.key is not None and not isinstance(outcome, Refusals):
                rows.setdefault(job.key, [*job.key, job.write.digest, orjson.dumps(outcome).decode(), job.write.now])
        dropped = [list(key) for key in keys if key not in rows]
        if rows and await transaction.run(WRITE_RECEIPTS, rows=list(rows.values())) < len(rows):
            # one was taken away while its lock was waited for
            raise Raced
        if dropped:
            await transaction.run(DROP_RECEIPTS, keys=dropped)


def _repeat(jobs: Sequence[_Job], first: int, place: int, outcomes: dict[int, Outcome]) -> None:
    """The answer to a second use of a key beside its first; with another input than a refused one it has its turn."""
    if jobs[place].write.digest == jobs[first].write.digest:
        outcomes[place] = outcomes[first]
    elif not isinstance(outcomes[first], Refusals):
        outcomes[place] = _conflict()


def _oldest(now: int) -> int:
    """When receipts that still count were made at the earliest."""
    return now - policy.RECEIPT_DAYS * 86_400_000


def _conflict() -> Refusals:
    return Refusals([Conflict("was used before with another input", ("clientMutationKey",))])


def _answer(job: _Job, outcome: Outcome) -> None:
    if job.answer.done():
        return
    if isinstance(outcome, Refusals):
        job.answer.set_exception(outcome)
    else:
        job.answer.set_result(outcome)


def _fail(jobs: Iterable[_Job], error: BaseException) -> None:
    for job in jobs:
        if not job.answer.done():
            job.answer.set_exception(error)
