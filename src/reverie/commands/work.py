"""`reverie work`: a worker of its own, beside servers that have none."""

import asyncio
import sys
from contextlib import suppress

import uvloop

from reverie.commands.notices import embedder_sentence, extractor_sentence, say
from reverie.commands.signals import on_first_signal
from reverie.resources import open_resources
from reverie.settings import Settings
from reverie.worker.loop import work as run


def work(settings: Settings) -> None:
    """Works until SIGTERM or Ctrl-C, and then gives back what it has in hand.

    Raises StartupError or Unavailable, one sentence for the terminal.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(settings))


async def _work(settings: Settings) -> None:
    working = asyncio.ensure_future(_open_and_work(settings))
    on_first_signal(working.cancel)
    with suppress(asyncio.CancelledError):
        await working


async def _open_and_work(settings: Settings) -> None:
    async with open_resources(settings, say, progress=sys.stderr.isatty()) as resources:
        say("The worker is ready. Stop with Ctrl-C.")
        say(f"  {extractor_sentence(settings, resources)}")
        say(f"  {embedder_sentence(settings, resources)}")
        await run(resources)
