"""Leases on what is being read: kept while that lasts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from reverie.errors import Unavailable

RENEWALS = 3
"""How often a lease is renewed in its time."""


@asynccontextmanager
async def kept(lease: int, renew: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Calls `renew` again and again within a lease of so many milliseconds, however long the block takes.

    An outage ends nothing: whoever writes what was read finds out whether the lease was lost.
    """
    renewing = asyncio.create_task(_renew(lease, renew))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait({renewing})


async def _renew(lease: int, renew: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(lease / 1000 / RENEWALS)
        with suppress(Unavailable):
            await renew()
