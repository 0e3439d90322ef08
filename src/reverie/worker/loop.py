"""The worker's loop: take, run, rest, and on the way out give work back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from reverie.bus.bells import NoticeKind
from reverie.domain.ids import new_id
from reverie.errors import ReverieError
from reverie.graph.dreaming import Lease
from reverie.resources import Resources
from reverie.worker import tasks

log = logging.getLogger("reverie.worker")

AT_ONCE = 4
"""Episodes that one worker reads at a time."""
BEAT = 5.0
"""Seconds between two signs of life."""
REST = 1.0
"""Seconds between two looks for work when nothing rings."""
LONGEST_REST = 30.0
_LAST_WORD = 5.0
"""Seconds in which a worker that stops takes its leave."""


async def work(resources: Resources) -> None:
    """Works until it is cancelled, and then gives back what it has in hand."""
    worker_id = new_id()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_for_ever(BEAT, partial(tasks.beat, resources, worker_id)))
            group.create_task(_read_episodes(resources))
            for every, task in tasks.HOUSEKEEPING:
                group.create_task(_for_ever(every, partial(task, resources)))
            for task in tasks.ENDLESS:
                group.create_task(_for_ever(REST, partial(task, resources)))
    finally:
        with suppress(ReverieError, TimeoutError):
            async with asyncio.timeout(_LAST_WORD):
                await tasks.leave(resources, worker_id)


async def _for_ever(every: float, run: Callable[[], Awaitable[object]]) -> None:
    """Runs something again and again; what goes wrong is logged, and rested after for longer each time."""
    rest = every
    while True:
        try:
            await run()
            rest = every
        except ReverieError as error:
            log.warning("the worker is held up: %s", error)
            rest = min(max(LONGEST_REST, every), rest * 2)
        except Exception:
            log.exception("something in the worker went wrong; it goes on")
            rest = min(max(LONGEST_REST, every), rest * 2)
        await asyncio.sleep(rest)


async def _read_episodes(resources: Resources) -> None:
    """Reads episodes, several at a time."""
    free = asyncio.Semaphore(AT_ONCE)
    again = asyncio.Event()
    async with asyncio.TaskGroup() as group:

        async def read(lease: Lease) -> None:
            try:
                await tasks.consolidate(resources, lease)
            except ReverieError as error:
                log.warning("an episode is left to its lease: %s", error)
            except Exception:
                log.exception("an episode is left to its lease")
            finally:
                free.release()
                again.set()

        async def hear() -> None:
            with resources.bell.listen(NoticeKind.WORK) as listener:
                async for _ in listener:
                    again.set()

        group.create_task(hear())
        rest = REST
        while True:
            await free.acquire()
            again.clear()
            lease = None
            try:
                lease = await tasks.take(resources)
                rest = REST
            except ReverieError as error:
                log.warning("the worker is held up: %s", error)
                rest = min(LONGEST_REST, rest * 2)
            except Exception:
                log.exception("something in the worker went wrong; it goes on")
                rest = min(LONGEST_REST, rest * 2)
            finally:
                if lease is None:
                    free.release()
            if lease is not None:
                group.create_task(read(lease))
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await again.wait()
