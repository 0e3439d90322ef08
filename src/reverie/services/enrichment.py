"""Enrichment: memories are read in the background, and connected to what they are about and what is like them."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from reverie.domain.clock import now_ms
from reverie.domain.embedding import related_from
from reverie.domain.extraction import MemoryReading
from reverie.domain.names import name_forms
from reverie.errors import ExtractionFailed, Unavailable
from reverie.graph import enrichment, memories
from reverie.graph.enrichment import MemoryWork
from reverie.resources import Resources
from reverie.services.leases import kept

log = logging.getLogger("reverie.enrichment")

AT_ONCE = 20
SIMILAR_MOST = 5
"""Memories that one is related to for being like it."""
PATIENCE = 120_000
"""Milliseconds that a memory waits for its vector before it is read without."""
ERASED_AT_ONCE = 500
SWEPT_AT_ONCE = 1_000
_LAST_WORD = 5.0
"""Seconds in which memories that weren't read are given back."""
ORPHAN_GRACE = 60_000
"""Milliseconds that a new topic or entity is left alone, since its maker may be about to use it."""


async def enrich_some(resources: Resources) -> int:
    """Reads some memories that wait; returns how many were taken. Raises Unavailable."""
    taken = await enrichment.take_memories(
        resources.graph,
        now_ms(),
        resources.dreaming.lease,
        AT_ONCE,
        embedded=resources.embedder is not None,
        patience=PATIENCE,
    )
    if not taken:
        return 0
    waiting = list(taken)
    lease = resources.dreaming.lease

    async def renew() -> None:
        await enrichment.renew_memories(resources.graph, tuple(waiting), now_ms(), lease)

    try:
        async with kept(lease, renew):
            while waiting:
                await _enrich(resources, waiting[0])
                waiting.pop(0)
    finally:
        # what can't be given back is left to its lease
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(_LAST_WORD):
                for work in waiting:
                    await _return(resources, work)
    return len(taken)


async def _enrich(resources: Resources, work: MemoryWork) -> None:
    try:
        forms = list(name_forms(work.content))
        known = await enrichment.entities_named(resources.graph, work.tenant, forms)
        reading = await resources.extractor.read_memory(work.content, known)
        await _apply(resources, work, reading)
    except ExtractionFailed as error:
        log.warning("memory %s could not be read: %s", work.id, error)
        await _failed(resources, work, error.retry_after)
    except Unavailable:
        raise
    except Exception:
        log.exception("memory %s could not be read", work.id)
        await _failed(resources, work, None)


async def _apply(resources: Resources, work: MemoryWork, reading: MemoryReading) -> None:
    similar: Sequence[tuple[str, float]] = ()
    if resources.embedder is not None:
        least = related_from(resources.embedder.name)
        (near,) = await memories.similar_by_memory(
            resources.graph, work.tenant, SIMILAR_MOST, least, [work.id], now=now_ms()
        )
        similar = [(one.memory.id, one.score) for one in near or ()]
    if not await enrichment.enrich_memory(resources.graph, work, reading, similar, now_ms()):
        # changed while it was read: it is read again
        await _return(resources, work)


async def _failed(resources: Resources, work: MemoryWork, asked: float | None) -> None:
    pause = resources.dreaming.pause_after(work.failures + 1, asked)
    await _return(resources, work, failed=True, pause=pause)


async def _return(resources: Resources, work: MemoryWork, *, failed: bool = False, pause: int = 0) -> None:
    await enrichment.return_memory(
        resources.graph, work, now_ms(), failed=failed, attempts=resources.dreaming.attempts, pause=pause
    )


async def erase_expired(resources: Resources) -> int:
    """Erases memories whose time is over; returns how many."""
    return await enrichment.erase_expired(resources.graph, now_ms(), ERASED_AT_ONCE)


@dataclass(slots=True)
class Sweep:
    """How far a worker has come in looking through what the server made: the last id by label."""

    places: dict[str, str] = field(default_factory=lambda: {"Topic": "", "Entity": ""})

    async def go_on(self, resources: Resources) -> None:
        """Looks at the next stretch of topics and entities, and takes away what nothing leads to any more."""
        for label, after in self.places.items():
            _, self.places[label] = await enrichment.sweep_orphans(
                resources.graph, label, after, now_ms(), grace=ORPHAN_GRACE, limit=SWEPT_AT_ONCE
            )
