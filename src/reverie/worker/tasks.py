"""The worker's jobs, each one call of a use case."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from reverie.errors import ReverieError
from reverie.graph.dreaming import Lease
from reverie.resources import Resources
from reverie.services import communities, documents, dreaming, embedding, enrichment, writing

log = logging.getLogger("reverie.worker")

ORPHANS_EVERY = 10.0
"""Seconds between two stretches of the sweep."""

Task = Callable[[Resources], Coroutine[Any, Any, None]]


async def beat(resources: Resources, worker_id: str) -> None:
    """Shows that this worker lives."""
    await dreaming.beat(resources, worker_id)


async def leave(resources: Resources, worker_id: str) -> None:
    """Says that this worker ends."""
    await dreaming.leave(resources, worker_id)


async def take(resources: Resources) -> Lease | None:
    """The next episode to read."""
    return await dreaming.take(resources)


async def consolidate(resources: Resources, lease: Lease) -> None:
    """Reads one episode."""
    await dreaming.consolidate(resources, lease)


async def sweep(resources: Resources) -> None:
    """Closes episodes that have been idle for long, until none is left."""
    while await dreaming.sweep(resources):
        pass


async def enrich(resources: Resources) -> None:
    """Reads memories until none waits."""
    while await enrichment.enrich_some(resources):
        pass


async def read_documents(resources: Resources) -> None:
    """Reads documents until none waits."""
    while await documents.read_some(resources):
        pass


async def erase_expired(resources: Resources) -> None:
    """Erases memories whose time is over, until none is left."""
    while await enrichment.erase_expired(resources):
        pass


async def forget_keys(resources: Resources) -> None:
    """Forgets the keys of mutations that count no more, until none is left."""
    while await writing.forget_keys(resources):
        pass


async def sweep_orphans(resources: Resources) -> None:
    """Takes away, for ever, what the server made and nothing leads to any more; a stretch at a time."""
    swept = enrichment.Sweep()
    while True:
        try:
            await swept.go_on(resources)
        except ReverieError as error:
            log.warning("orphans could not be swept: %s", error)
        await asyncio.sleep(ORPHANS_EVERY)


async def find_communities(resources: Resources) -> None:
    """Looks, for ever, whether communities are to be found anew; what goes wrong is looked at again next time."""
    while True:
        await asyncio.sleep(resources.communities_interval)
        try:
            await communities.look_through(resources)
        except ReverieError as error:
            log.warning("communities could not be looked at: %s", error)


HOUSEKEEPING: tuple[tuple[float, Task], ...] = (
    (5.0, sweep),
    (10.0, erase_expired),
    (600.0, forget_keys),
    (1.0, enrich),
    (1.0, read_documents),
)
"""What is done again and again, with the seconds between."""
ENDLESS: tuple[Task, ...] = (embedding.embed_waiting, sweep_orphans, find_communities)
"""What runs as long as the worker."""
