"""The worker's jobs, each one call of a use case."""

from collections.abc import Callable, Coroutine
from typing import Any

from reverie.graph.dreaming import Lease
from reverie.resources import Resources
from reverie.services import dreaming, embedding

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
    """Closes episodes that have been idle for long."""
    await dreaming.sweep(resources)


HOUSEKEEPING: tuple[tuple[float, Task], ...] = ((5.0, sweep),)
"""What is done again and again, with the seconds between."""
ENDLESS: tuple[Task, ...] = (embedding.embed_waiting,)
"""What runs as long as the worker."""
