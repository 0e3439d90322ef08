"""Dreaming: finished episodes are read, and what they say becomes beliefs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace

from reverie.bus.bells import NoticeKind
from reverie.domain.checks import Checks
from reverie.domain.clock import now_ms
from reverie.domain.context import without_context
from reverie.domain.dreaming import Dream
from reverie.domain.episodes import ConsolidationStatus, Episode
from reverie.domain.events import Event
from reverie.domain.extraction import Dropped, KnownBelief, evidence_of
from reverie.domain.ids import well_formed
from reverie.errors import Conflict, ExtractionFailed, NotFound, Refusal, Refusals, Unavailable, Unsupported
from reverie.graph import dreaming, episodes
from reverie.graph.beliefs import known_beliefs
from reverie.graph.dreaming import Lease, LeaseLost, Owed
from reverie.graph.nodes import nodes_by_id
from reverie.resources import Resources
from reverie.services.bells import tell_changes, tell_dreams, tell_episodes, tell_work
from reverie.services.leases import RENEWALS

log = logging.getLogger("reverie.dreaming")

KNOWN_MOST = 100
"""Beliefs of a subject that an extractor is told of."""
_LAST_WORD = 5.0
"""Seconds in which a worker that stops gives its work back."""
LOOK_AGAIN = 1.0
"""Seconds after which a dream is looked at though nothing rang."""
SWEPT_AT_ONCE = 20
WORKER_SILENCE = 30_000
"""Milliseconds without a sign of life after which no worker is taken to run."""


async def take(resources: Resources) -> Lease | None:
    """Takes the next episode that waits, None where none does."""
    lease = await dreaming.take_episode(resources.graph, now_ms(), resources.dreaming.lease)
    if lease is not None:
        tell_episodes(resources, lease.tenant, [lease.episode_id])
    return lease


async def consolidate(resources: Resources, lease: Lease) -> None:
    """Reads an episode under a lease and applies what it says; a failure is noted on the episode.

    Cancelled, it gives the episode back. Raises Unavailable when Neo4j doesn't answer: then the lease runs out.
    """
    reading = asyncio.create_task(_read_and_apply(resources, lease))
    renewing = asyncio.create_task(_renew(resources, lease))
    try:
        await asyncio.wait({reading, renewing}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
    except asyncio.CancelledError:
        reading.cancel()
        with suppress(LeaseLost, Unavailable, TimeoutError):
            async with asyncio.timeout(_LAST_WORD):
                await asyncio.wait({reading})
                await dreaming.give_back(resources.graph, lease, now_ms())
                tell_work(resources, lease.tenant)
        raise
    finally:
        for task in (reading, renewing):
            task.cancel()
        await asyncio.gather(reading, renewing, return_exceptions=True)
        tell_episodes(resources, lease.tenant, [lease.episode_id])


async def _renew(resources: Resources, lease: Lease) -> None:
    """Keeps a lease until it is lost, or would have run out since Neo4j doesn't answer."""
    length = resources.dreaming.lease
    deadline = now_ms() + length
    while True:
        await asyncio.sleep(length / 1000 / RENEWALS)
        try:
            if not await dreaming.renew_lease(resources.graph, lease, now_ms(), length):
                return
            deadline = now_ms() + length
        except Unavailable:
            if now_ms() > deadline:
                return


async def _read_and_apply(resources: Resources, lease: Lease) -> None:
    try:
        episode, events = await dreaming.read_work(resources.graph, lease)
        await _learn(resources, lease, episode, events)
    except LeaseLost:
        log.info("an episode went to another worker meanwhile", extra={"episode": lease.episode_id})
    except ExtractionFailed as error:
        await _failed(resources, lease, str(error), error.retry_after)
    except (Unavailable, asyncio.CancelledError):
        raise
    except Exception:
        log.exception("episode %s could not be read", lease.episode_id)
        await _failed(resources, lease, "reading it went wrong on our side; the log of the worker tells more", None)


async def _failed(resources: Resources, lease: Lease, reason: str, asked: float | None) -> None:
    policy = resources.dreaming
    with suppress(LeaseLost):
        status = await dreaming.fail_episode(
            resources.graph,
            lease,
            reason,
            now_ms(),
            attempts=policy.attempts,
            pause_after=lambda failures: policy.pause_after(failures, asked),
        )
        log.warning("episode %s could not be read (%s): %s", lease.episode_id, status.value.lower(), reason)
        if status is ConsolidationStatus.FAILED:
            tell_dreams(resources, lease.tenant)


async def _learn(resources: Resources, lease: Lease, episode: Episode, events: Sequence[Event]) -> None:
    subjects = sorted({event.user_id for event in events if event.user_id is not None})
    known = [
        KnownBelief(key, value)
        for subject in subjects
        for key, value in await known_beliefs(resources.graph, lease.tenant, subject, KNOWN_MOST)
    ]
    # what the server itself handed out says nothing new
    events = [replace(event, text=without_context(event.text)) for event in events]
    reading = await resources.extractor.read_episode(events, known)
    dropped = Dropped()
    # secrets are looked for in every text, which others' requests needn't wait for
    evidence = await asyncio.to_thread(evidence_of, reading, events, episode.id, dropped)
    if dropped.counts:
        log.info("statements of episode %s were dropped: %s", episode.id, dropped.counts)
    done = await dreaming.consolidate(
        resources.graph,
        lease,
        reading,
        evidence,
        resources.dreaming.half_lives,
        now_ms(),
        dropped=sum(dropped.counts.values()),
    )
    if done.changes:
        tell_changes(resources, lease.tenant)
    if done.dreams:
        tell_dreams(resources, lease.tenant)


async def dream(resources: Resources, tenant: str, episode_ids: Sequence[str] | None, *, wait: bool) -> Dream:
    """Has the tenant's pending episodes read now, or those that are named; with `wait`, returns when they are done, or
    as far as they are once no worker is left.

    Unsupported where nobody would do it, NotFound and Conflict for an episode that isn't there or doesn't wait.
    """
    if episode_ids is not None:
        checks = Checks()
        checks.few(episode_ids, ("episodeIds",))
        checks.done()
        await _check_owed(resources, tenant, episode_ids)
    if not await dreaming.any_worker(resources.graph, now_ms() - WORKER_SILENCE):
        raise Refusals([Unsupported("no worker is running: start `reverie work`, or `reverie serve` with its worker")])
    with resources.bell.listen(NoticeKind.DREAMS, tenant=tenant) as listener:
        begun = await dreaming.start_dream(resources.graph, tenant, episode_ids, now_ms())
        tell_work(resources, tenant)
        tell_dreams(resources, tenant, begun.id)
        while wait and begun.finished_at is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await anext(listener)
            begun = await dreaming.dream_by_id(resources.graph, tenant, begun.id) or begun
            if not await dreaming.any_worker(resources.graph, now_ms() - WORKER_SILENCE):
                break
    return begun


async def _check_owed(resources: Resources, tenant: str, episode_ids: Sequence[str]) -> None:
    known = [given for given in episode_ids if well_formed(given)]
    found = dict(zip(known, await nodes_by_id(resources.graph, tenant, known, now=now_ms()), strict=True))
    refusals: list[Refusal] = []
    for index, given in enumerate(episode_ids):
        episode, path = found.get(given), ("episodeIds", index)
        if not isinstance(episode, Episode):
            refusals.append(NotFound("no episode has this id", path))
        elif episode.consolidation_status not in (ConsolidationStatus.PENDING, ConsolidationStatus.PROCESSING):
            refusals.append(Conflict(f"it is {episode.consolidation_status}, not PENDING", path))
    if refusals:
        raise Refusals(refusals)


async def find_dream(resources: Resources, tenant: str, dream_id: str) -> Dream | None:
    """A dream, None where there is none."""
    return await dreaming.dream_by_id(resources.graph, tenant, dream_id) if well_formed(dream_id) else None


async def follow_dreams(resources: Resources, tenant: str, dream_id: str | None) -> AsyncIterator[Dream]:
    """A dream, or the tenant's running ones: as they stand first, then each time one came on, until all are over."""
    graph = resources.graph
    shown: dict[str, Dream] = {}
    begun: set[str] = set()
    with resources.bell.listen(NoticeKind.DREAMS, tenant=tenant) as listener:
        while True:
            if dream_id is not None:
                one = await find_dream(resources, tenant, dream_id)
                if one is None:
                    return
                now = [one]
            else:
                running = await dreaming.running_dreams(graph, tenant)
                # those that were shown or heard of, and ended meanwhile
                ended = (begun | shown.keys()) - {one.id for one in running}
                found = [await dreaming.dream_by_id(graph, tenant, gone) for gone in sorted(ended)]
                now = [*(one for one in found if one is not None), *running]
            for one in now:
                if shown.get(one.id) != one:
                    yield one
                shown[one.id] = one
                if one.finished_at is not None:
                    if dream_id is not None:
                        return
                    del shown[one.id]
            begun.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    heard = [await anext(listener), *listener.take_waiting()]
                    begun = {str(notice.body["id"]) for notice in heard if "id" in notice.body}


async def worker_state(resources: Resources, tenant: str) -> tuple[bool, Owed]:
    """Whether a worker runs, and what the tenant's episodes owe."""
    running = await dreaming.any_worker(resources.graph, now_ms() - WORKER_SILENCE)
    return running, await dreaming.owed(resources.graph, tenant)


async def sweep(resources: Resources) -> int:
    """Closes some episodes that have been idle for long; returns how many."""
    closed = await episodes.sweep_idle(resources.graph, now_ms(), resources.dreaming.idle_gap, SWEPT_AT_ONCE)
    for tenant, episode_id in closed:
        tell_episodes(resources, tenant, [episode_id], work=True)
    return len(closed)


async def beat(resources: Resources, worker_id: str) -> None:
    """Shows that a worker lives."""
    await dreaming.beat(resources.graph, worker_id, now_ms())


async def leave(resources: Resources, worker_id: str) -> None:
    """Says that a worker ends."""
    await dreaming.leave(resources.graph, worker_id)


async def everything_owed(resources: Resources) -> tuple[int, int]:
    """How many episodes of all tenants wait or are being read, and how many failed."""
    return await dreaming.everything_owed(resources.graph)
