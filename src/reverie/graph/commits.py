"""Joined commits: concurrent writes share one transaction, since committing costs Neo4j more than writing.

A write is carried out by a writer function that takes all waiting writes of its kind at once. While one transaction
is under way, what arrives waits for the next. A refused write leaves nothing behind and lets the others be; a
transaction that fails is run again write by write, so that a bad one fails alone.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Any

import orjson

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.errors import Conflict, Refusals
from reverie.graph.schema import await_words
from reverie.graph.store import CommitUnknown, Graph, Transaction
from reverie.graph.writes import Done, Outcome, Write, Writer

JOINED_MOST = 100
"""Writes of one transaction; a write of more weight than this has a transaction of its own."""
LARGE_AT_ONCE = 2


@dataclass(slots=True)
class _Job:
    write: Write
    writer: Writer
    answer: "asyncio.Future[Done]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


def digest(value: Any) -> str:
    """The hash of an input, by which a second use of a key with another input is told."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).hexdigest()


LOCK_RECEIPTS = """
UNWIND $keys AS k
MERGE (r:Receipt {tenant: k[0], field: k[1], key: k[2]}) SET r.locked = true
RETURN collect([r.digest, r.result, r.createdAt])
"""
WRITE_RECEIPTS = """
UNWIND $rows AS k
MATCH (r:Receipt {tenant: k[0], field: k[1], key: k[2]})
SET r.digest = k[3], r.result = k[4], r.createdAt = k[5]
"""
DROP_RECEIPTS = """
UNWIND $keys AS k MATCH (r:Receipt {tenant: k[0], field: k[1], key: k[2]}) DELETE r
"""


class Commits:
    """The one way in for writes of callers. `joined` counts transactions, for tests and metrics."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._small: list[_Job] = []
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

    async def _run(self, jobs: list[_Job]) -> None:
        try:
            outcomes = await self._transact(jobs)
        except CommitUnknown as error:
            # run again, what did happen would happen twice
            _fail(jobs, error)
        except Exception as error:
            if len(jobs) == 1:
                _fail(jobs, error)
            else:
                await self._one_by_one(jobs)
        else:
            for job, outcome in zip(jobs, outcomes, strict=True):
                _answer(job, outcome)

    async def _one_by_one(self, jobs: list[_Job]) -> None:
        for job in jobs:
            await self._run([job])

    async def _transact(self, jobs: list[_Job]) -> list[Outcome]:
        outcomes = await self._graph.transact(lambda transaction: self._carry_out(transaction, jobs))
        self.joined += 1
        await await_words(self._graph)
        return outcomes

    async def _carry_out(self, transaction: Transaction, jobs: list[_Job]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        first = await self._replay(transaction, jobs, outcomes)
        by_writer: dict[Writer, list[int]] = {}
        for place, job in enumerate(jobs):
            if place not in outcomes and first.get(_key(job.write), place) == place:
                by_writer.setdefault(job.writer, []).append(place)
        for writer, places in by_writer.items():
            made = await writer(transaction, [jobs[place].write for place in places])
            outcomes.update(zip(places, made, strict=True))
        for place, job in enumerate(jobs):
            if place not in outcomes:
                outcomes[place] = _again(
                    job.write, jobs[first[_key(job.write)]].write, outcomes[first[_key(job.write)]]
                )
        await self._remember(transaction, jobs, first, outcomes)
        return [outcomes[place] for place in range(len(jobs))]

    @staticmethod
    async def _replay(transaction: Transaction, jobs: list[_Job], outcomes: dict[int, Outcome]) -> dict[Any, int]:
        """Locks the receipts of all keys, answers those known; returns the first place of each key that isn't."""
        first: dict[Any, int] = {}
        for place, job in enumerate(jobs):
            if job.write.key is not None:
                first.setdefault(_key(job.write), place)
        if not first:
            return first
        # a sorted order of locks: writers that share keys wait for each other instead of dying together
        keys = sorted(first)
        known = dict(zip(keys, await transaction.run(LOCK_RECEIPTS, keys=[list(key) for key in keys]), strict=True))
        for place, job in enumerate(jobs):
            if job.write.key is None:
                continue
            stored, result, created = known[_key(job.write)]
            if stored is not None and created > job.write.now - policy.RECEIPT_DAYS * 86_400_000:
                outcomes[place] = orjson.loads(result) if stored == job.write.digest else _conflict()
                first.pop(_key(job.write), None)
        return first

    @staticmethod
    async def _remember(
        transaction: Transaction, jobs: list[_Job], first: dict[Any, int], outcomes: dict[int, Outcome]
    ) -> None:
        rows, dropped = [], []
        for key, place in first.items():
            outcome, write = outcomes[place], jobs[place].write
            if isinstance(outcome, Refusals):
                dropped.append(list(key))
            else:
                rows.append([*key, write.digest, orjson.dumps(outcome).decode(), write.now])
        if rows:
            await transaction.run(WRITE_RECEIPTS, rows=rows)
        if dropped:
            await transaction.run(DROP_RECEIPTS, keys=dropped)


def _key(write: Write) -> tuple[str, str, str]:
    return (write.tenant, write.field, write.key or "")


def _again(write: Write, first: Write, outcome: Outcome) -> Outcome:
    return outcome if write.digest == first.digest else _conflict()


def _conflict() -> Refusals:
    return Refusals([Conflict("was used before with another input", ("clientMutationKey",))])


def _answer(job: _Job, outcome: Outcome) -> None:
    if job.answer.done():
        return
    if isinstance(outcome, Refusals):
        job.answer.set_exception(outcome)
    else:
        job.answer.set_result(outcome)


def _fail(jobs: list[_Job], error: BaseException) -> None:
    for job in jobs:
        if not job.answer.done():
            job.answer.set_exception(error)
