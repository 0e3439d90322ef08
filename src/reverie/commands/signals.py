"""Ctrl-C and SIGTERM, as asynchronous commands take them: the first asks to stop, a second one ends all."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def on_first_signal(stop: Callable[[], object]) -> None:
    """Has the running loop call `stop` at the first of the signals; the next one does what it does by default."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, first)


async def until_told_to_stop(work: Coroutine[Any, Any, None]) -> None:
    """Runs something to its end, or until the first of the signals, which cancels it."""
    running = asyncio.ensure_future(work)
    on_first_signal(running.cancel)
    with suppress(asyncio.CancelledError):
        await running
