"""Two transactions that meet: one is held open while the other waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from reverie.graph.store import Transaction
from reverie.resources import Resources

Work = Callable[[Transaction], Awaitable[object]]


async def meanwhile(resources: Resources, work: Work, other: Callable[[], Awaitable[Any]]) -> Any:
    """What comes of the other, which begins when this work is done and not committed yet."""
    begun: list[asyncio.Future[Any]] = []

    async def held(transaction: Transaction) -> None:
        await work(transaction)
        if not begun:
            begun.append(asyncio.ensure_future(other()))
            await asyncio.sleep(0.5)
            assert not begun[0].done()

    await resources.graph.transact(held)
    return await begun[0]
