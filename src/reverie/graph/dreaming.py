"""Dreaming in Neo4j: episodes taken under a lease, given back, failed or consolidated, and the dreams they belong to.

A lease is an owner's token and a deadline, on the episode and on its subject, so that of one tenant and subject only
one episode is read at a time. Results are applied by the lease's owner alone, in one transaction.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from reverie.domain.beliefs import Evidence, HalfLives
from reverie.domain.clock import from_ms, from_ms_or_none
from reverie.domain.dreaming import Dream
from reverie.domain.episodes import ConsolidationStatus, Episode
from reverie.domain.events import Event
from reverie.domain.extraction import Reading
from reverie.domain.ids import new_id
from reverie.graph.beliefs import Identity, lock_slots, record, write_slots
from reverie.graph.episodes import summarised
from reverie.graph.records import EPISODE, EVENT, whole
from reverie.graph.store import Graph, Transaction
from reverie.graph.tenants import TENANT_NUMBER

OF_A_TENANT = 20
"""Episodes of one tenant that are looked at for the next to read."""
DEATHS_MOST = 5
"""How often a worker may die over an episode before it is given up."""
_SUBJECT = "coalesce(e.userId, 'thread ' + e.threadId)"


class LeaseLost(Exception):
    """The work is another's now, or nobody's; nothing was written."""


@dataclass(frozen=True, slots=True)
class Lease:
    """An episode that is this owner's until the deadline, unless renewed."""

    episode_id: str
    tenant: str
    subject: str
    token: str


CANDIDATES = f"""
MATCH (t:Tenant) CALL (t) {{
  MATCH (e:Episode) WHERE e.tenant = t.name AND e.consolidationStatus = 'PENDING' AND e.startedAt IS NOT NULL
    AND coalesce(e.notBefore, 0) <= $now
  OPTIONAL MATCH (l:Lease {{tenant: e.tenant, subject: {_SUBJECT}}})
  WITH e, l WHERE coalesce(l.until, 0) < $now
  RETURN e ORDER BY e.startedAt LIMIT $limit
UNION
  MATCH (e:Episode) WHERE e.tenant = t.name AND e.consolidationStatus = 'PROCESSING' AND e.startedAt IS NOT NULL
    AND e.leaseUntil < $now
  RETURN e ORDER BY e.startedAt LIMIT $limit
}}
WITH e ORDER BY e.startedAt, e.id
RETURN collect([e.id, e.tenant, {_SUBJECT}])
"""
LOCK_LEASE = """
MERGE (l:Lease {tenant: $t, subject: $subject}) SET l.lockedAt = $now
RETURN coalesce(l.until, 0) < $now
"""
TAKE_EPISODE = """
MATCH (e:Episode&Node {id: $id}) SET e.lockedAt = $now
WITH e, e.consolidationStatus = 'PROCESSING' AND e.leaseUntil < $now AS orphaned
WHERE orphaned OR (e.consolidationStatus = 'PENDING' AND coalesce(e.notBefore, 0) <= $now)
SET e.deaths = coalesce(e.deaths, 0) + CASE WHEN orphaned THEN 1 ELSE 0 END
SET e.consolidationStatus = 'PROCESSING', e.owner = $token, e.leaseUntil = $until, e.attempts = e.attempts + 1
RETURN e.deaths
"""
HOLD_LEASE = "MATCH (l:Lease {tenant: $t, subject: $subject}) SET l.owner = $token, l.until = $until"


async def take_episode(graph: Graph, now: int, lease: int) -> Lease | None:
    """Takes the oldest episode that waits, or whose worker died, and whose subject nobody reads now; None if none.

    An episode over which workers died too often is failed instead.
    """
    candidates = await graph.read(CANDIDATES, now=now, limit=OF_A_TENANT)
    # no tenant with much to read keeps the others waiting
    turns = {tenant: random.random() for _, tenant, _ in candidates}  # noqa: S311 - no secret
    seen = set()
    for episode_id, tenant, subject in sorted(candidates, key=lambda row: turns[row[1]]):
        # what was lived first is read first: only a subject's oldest waits for its turn
        if (tenant, subject) in seen:
            continue
        seen.add((tenant, subject))
        wanted = Lease(episode_id, tenant, subject, new_id())

        async def take(transaction: Transaction, wanted: Lease = wanted) -> int | None:
            free = await transaction.run(LOCK_LEASE, t=wanted.tenant, subject=wanted.subject, now=now)
            if not free:
                return None
            deaths: int | None = await transaction.run(
                TAKE_EPISODE, id=wanted.episode_id, now=now, token=wanted.token, until=now + lease
            )
            if deaths is not None:
                await transaction.run(
                    HOLD_LEASE, t=wanted.tenant, subject=wanted.subject, token=wanted.token, until=now + lease
                )
            return deaths

        deaths = await graph.transact(take)
        if deaths is None:
            continue
        if deaths < DEATHS_MOST:
            return wanted
        with suppress(LeaseLost):
            reason = f"the worker ended {deaths} times while it read this episode"
            await fail_episode(graph, wanted, reason, now, attempts=1, pause_after=lambda _: 0)
    return None


RENEW_LEASE = """
MATCH (e:Episode&Node {id: $id}) SET e.lockedAt = $now
WITH e WHERE e.owner = $token AND e.consolidationStatus = 'PROCESSING' SET e.leaseUntil = $until
WITH e MATCH (l:Lease {tenant: $t, subject: $subject}) WHERE l.owner = $token SET l.until = $until
RETURN true
"""


async def renew_lease(graph: Graph, lease: Lease, now: int, length: int) -> bool:
    """Moves the deadline; False where the lease is lost."""
    kept = await graph.write(
        RENEW_LEASE,
        id=lease.episode_id,
        t=lease.tenant,
        subject=lease.subject,
        token=lease.token,
        now=now,
        until=now + length,
    )
    return bool(kept)


READ_WORK = f"""
MATCH (e:Episode&Node {{id: $id}}) WHERE e.owner = $token
RETURN [{EPISODE.row("e")}, COLLECT {{
  MATCH (v:Event)-[:PART_OF]->(e) WITH v ORDER BY v.occurredAt, v.id RETURN {EVENT.row("v")}
}}]
"""


@whole
async def read_work(graph: Graph, lease: Lease) -> tuple[Episode, list[Event]]:
    """The episode under a lease, with its events in order. Raises LeaseLost."""
    found = await graph.read(READ_WORK, id=lease.episode_id, token=lease.token)
    if found is None:
        raise LeaseLost
    return EPISODE.value(found[0]), [EVENT.value(row) for row in found[1]]


FREE_LEASE = """
MATCH (l:Lease {tenant: $t, subject: $subject}) WHERE l.owner = $token SET l.until = 0, l.owner = null, l.readAt = coalesce($read, l.readAt)
"""
HOLDS_LEASE = """
MATCH (e:Episode&Node {id: $id}) SET e.lockedAt = $now
WITH e WHERE e.owner = $token AND e.consolidationStatus = 'PROCESSING' RETURN coalesce(e.failures, 0)
"""
END_EPISODE = """
MATCH (e:Episode&Node {id: $id}) SET e += $properties, e.owner = null, e.leaseUntil = null
"""
EMBED_EPISODE = "MATCH (e:Episode&Node {id: $id}) SET e:Unembedded"
COUNT_DREAMS = """
MATCH (d:Dream)-[r:RUNS]->(e:Episode&Node {id: $id}) WHERE d.finishedAt IS NULL
SET d.done = d.done + $done, d.failed = d.failed + $failed, d.beliefsChanged = d.beliefsChanged + $changed
DELETE r
WITH d, e SET d.finishedAt = CASE WHEN NOT EXISTS { (d)-[:RUNS]->(other:Episode) WHERE other <> e } THEN $now END
RETURN collect(d.id)
"""


async def _held(transaction: Transaction, lease: Lease, now: int) -> int:
    failures: int | None = await transaction.run(HOLDS_LEASE, id=lease.episode_id, token=lease.token, now=now)
    if failures is None:
        raise LeaseLost
    return failures


async def _free(transaction: Transaction, lease: Lease, read_at: int | None = None) -> None:
    """Lets the subject go; `read_at` notes when an episode of it was consolidated."""
    await transaction.run(FREE_LEASE, t=lease.tenant, subject=lease.subject, token=lease.token, read=read_at)


async def give_back(graph: Graph, lease: Lease, now: int) -> None:
    """Puts an episode back among those that wait, without counting it as a failure. Raises LeaseLost."""

    async def work(transaction: Transaction) -> None:
        await _held(transaction, lease, now)
        properties = {"consolidationStatus": ConsolidationStatus.PENDING.value}
        await transaction.run(END_EPISODE, id=lease.episode_id, properties=properties)
        await _free(transaction, lease)

    await graph.transact(work)


async def fail_episode(
    graph: Graph, lease: Lease, reason: str, now: int, *, attempts: int, pause_after: Callable[[int], int]
) -> ConsolidationStatus:
    """Notes why reading failed: FAILED once `attempts` failed in a row, otherwise to be tried again after a pause.

    `pause_after` tells its milliseconds by how many failed. One that is FAILED and sent back has all its attempts
    again. Returns the status afterwards. Raises LeaseLost.
    """

    async def work(transaction: Transaction) -> ConsolidationStatus:
        failures = await _held(transaction, lease, now) + 1
        over = failures >= attempts
        status = ConsolidationStatus.FAILED if over else ConsolidationStatus.PENDING
        properties = {
            "consolidationStatus": status.value,
            "failure": reason,
            "failures": None if over else failures,
            "notBefore": None if over else now + pause_after(failures),
        }
        if over:
            properties["deaths"] = None
        await transaction.run(END_EPISODE, id=lease.episode_id, properties=properties)
        await _free(transaction, lease)
        if over:
            await transaction.run(COUNT_DREAMS, id=lease.episode_id, done=0, failed=1, changed=0, now=now)
        return status

    return await graph.transact(work)


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What reading an episode came to: how many entries of the log, and the dreams that it was counted for."""

    changes: int
    dreams: tuple[str, ...]


async def consolidate(
    graph: Graph,
    lease: Lease,
    reading: Reading,
    evidence: Sequence[tuple[str, str, Evidence]],
    half_lives: HalfLives,
    now: int,
    *,
    dropped: int,
) -> Consolidated:
    """Applies what was read, (subject, key, evidence), and ends the episode, all in one transaction. Raises LeaseLost."""

    async def work(transaction: Transaction) -> Consolidated:
        await _held(transaction, lease, now)
        identities: list[Identity] = [(lease.tenant, subject, key) for subject, key, _ in evidence]
        slots = await lock_slots(transaction, identities, half_lives, now) if identities else {}
        for subject, key, one in sorted(evidence, key=lambda row: row[2].place):
            record(slots[(lease.tenant, subject, key)], one)
        changes = sum(len(slot.changes) for slot in slots.values())
        properties: dict[str, Any] = {
            "consolidationStatus": ConsolidationStatus.CONSOLIDATED.value,
            "consolidatedAt": now,
            "failure": None,
            "failures": None,
            "deaths": None,
            "notBefore": None,
            "dropped": dropped,
            "tokens": reading.tokens,
        }
        if reading.summary is not None:
            number = await transaction.run(TENANT_NUMBER, name=lease.tenant)
            properties |= summarised(number, reading.summary)
            await transaction.run(EMBED_EPISODE, id=lease.episode_id)
        if reading.tags is not None:
            properties["tags"] = list(reading.tags)
        if reading.outcome is not None:
            properties["outcome"] = reading.outcome.value
        await transaction.run(END_EPISODE, id=lease.episode_id, properties=properties)
        await _free(transaction, lease, now)
        dreams = await transaction.run(COUNT_DREAMS, id=lease.episode_id, done=1, failed=0, changed=changes, now=now)
        await write_slots(transaction, list(slots.values()), now)
        return Consolidated(changes, tuple(dreams))

    return await graph.transact(work)


LOCK_OWED = """
MATCH (e:Episode) WHERE e.tenant = $t AND e.consolidationStatus IN ['PENDING', 'PROCESSING']
  AND e.startedAt IS NOT NULL AND ($ids IS NULL OR e.id IN $ids)
WITH e ORDER BY e.id SET e.lockedAt = $now, e.notBefore = null
RETURN collect(e.id)
"""
STILL_OWED = """
UNWIND $ids AS i MATCH (e:Episode&Node {id: i}) WHERE e.consolidationStatus IN ['PENDING', 'PROCESSING']
RETURN collect(i)
"""
CREATE_DREAM = """
CREATE (d:Dream) SET d = $properties
WITH d UNWIND $ids AS i MATCH (e:Episode&Node {id: i}) CREATE (d)-[:RUNS]->(e)
"""
_DREAM = "[d.id, d.episodes, d.done, d.failed, d.beliefsChanged, d.startedAt, d.finishedAt]"


def _dream(row: Sequence[Any]) -> Dream:
    return Dream(row[0], row[1], row[2], row[3], row[4], from_ms(row[5]), from_ms_or_none(row[6]))


SETTLE_DREAMS = """
MATCH (d:Dream) WHERE d.tenant = $t AND d.startedAt > 0 AND d.finishedAt IS NULL
WITH d ORDER BY d.id SET d.lockedAt = $now
WITH d WHERE d.finishedAt IS NULL AND NOT EXISTS { (d)-[:RUNS]->() }
SET d.finishedAt = $now
"""


async def settle_dreams(graph: Graph, tenant: str, now: int) -> None:
    """Ends the dreams whose last episodes are gone."""
    await graph.write(SETTLE_DREAMS, t=tenant, now=now)


async def start_dream(graph: Graph, tenant: str, ids: Sequence[str] | None, now: int) -> Dream:
    """Makes a dream over the tenant's episodes that wait or are at work, or over those of them that are named."""

    async def work(transaction: Transaction) -> Dream:
        locked = await transaction.run(LOCK_OWED, t=tenant, ids=None if ids is None else list(ids), now=now)
        # one that was consolidated while its lock was waited for will never tell this dream
        owed = await transaction.run(STILL_OWED, ids=locked)
        properties = {
            "id": new_id(),
            "tenant": tenant,
            "episodes": len(owed),
            "done": 0,
            "failed": 0,
            "beliefsChanged": 0,
            "startedAt": now,
            "finishedAt": None if owed else now,
        }
        await transaction.run(CREATE_DREAM, properties=properties, ids=owed)
        return Dream(properties["id"], len(owed), 0, 0, 0, from_ms(now), None if owed else from_ms(now))  # type: ignore[arg-type]  # the id is a text

    return await graph.transact(work)


DREAM_BY_ID = f"MATCH (d:Dream {{id: $id}}) WHERE d.tenant = $t RETURN {_DREAM}"
RUNNING_DREAMS = f"""
MATCH (d:Dream) WHERE d.tenant = $t AND d.startedAt > 0 AND d.finishedAt IS NULL WITH d ORDER BY d.startedAt, d.id RETURN collect({_DREAM})
"""


async def dream_by_id(graph: Graph, tenant: str, dream_id: str) -> Dream | None:
    """A dream, None where there is none."""
    row = await graph.read(DREAM_BY_ID, id=dream_id, t=tenant)
    return None if row is None else _dream(row)


async def running_dreams(graph: Graph, tenant: str) -> list[Dream]:
    """The tenant's dreams that aren't finished, oldest first."""
    return [_dream(row) for row in await graph.read(RUNNING_DREAMS, t=tenant)]


@dataclass(frozen=True, slots=True)
class Owed:
    """What a tenant's episodes owe: how many wait or are at work, how many failed, and the last consolidation in ms."""

    pending: int
    failed: int
    last: int | None


OWED = """
RETURN [
  COUNT { MATCH (e:Episode) WHERE e.tenant = $t AND e.startedAt IS NOT NULL
            AND e.consolidationStatus IN ['PENDING', 'PROCESSING'] },
  COUNT { MATCH (e:Episode) WHERE e.tenant = $t AND e.startedAt IS NOT NULL AND e.consolidationStatus = 'FAILED' },
  COLLECT { MATCH (l:Lease) WHERE l.tenant = $t AND l.subject >= '' RETURN max(l.readAt) }[0]
]
"""
FORGOTTEN_AFTER = 86_400_000
"""Milliseconds after which a worker that died without a good-bye is forgotten."""
BEAT = "MERGE (w:Worker {id: $id}) SET w.seenAt = $now"
FORGET_DEAD = "MATCH (w:Worker) WHERE w.seenAt < $before DELETE w"
LEAVE = "MATCH (w:Worker {id: $id}) DELETE w"
ANY_WORKER = "RETURN EXISTS { MATCH (w:Worker) WHERE w.seenAt > $since }"


async def owed(graph: Graph, tenant: str) -> Owed:
    """What a tenant's episodes owe."""
    return Owed(*await graph.read(OWED, t=tenant))


async def beat(graph: Graph, worker_id: str, now: int) -> None:
    """A worker's sign of life; those that have been dead for long are forgotten."""

    async def work(transaction: Transaction) -> None:
        await transaction.run(BEAT, id=worker_id, now=now)
        await transaction.run(FORGET_DEAD, before=now - FORGOTTEN_AFTER)

    await graph.transact(work)


async def leave(graph: Graph, worker_id: str) -> None:
    """A worker's good-bye."""
    await graph.write(LEAVE, id=worker_id)


async def any_worker(graph: Graph, since: int) -> bool:
    """Whether any worker showed life since an instant, in ms."""
    return bool(await graph.read(ANY_WORKER, since=since))


EVERYTHING_OWED = """
RETURN [
  COUNT { MATCH (e:Episode) WHERE e.consolidationStatus IN ['PENDING', 'PROCESSING'] AND e.startedAt IS NOT NULL },
  COUNT { MATCH (e:Episode) WHERE e.consolidationStatus = 'FAILED' AND e.startedAt IS NOT NULL }
]
"""


async def everything_owed(graph: Graph) -> tuple[int, int]:
    """How many episodes of all tenants wait or are at work, and how many failed."""
    pending, failed = await graph.read(EVERYTHING_OWED)
    return pending, failed
