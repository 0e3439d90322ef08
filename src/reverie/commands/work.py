"""`reverie work`: a worker of its own, beside servers that have none."""

import asyncio
import sys

import uvloop

from reverie.commands.notices import embedder_sentence, extractor_sentence, say
from reverie.commands.signals import until_told_to_stop
from reverie.resources import open_resources
from reverie.settings import Settings
from reverie.worker.loop import work as run


def work(settings: Settings) -> None:
    """Works until SIGTERM or Ctrl-C, and then gives back what it has in hand.

    Raises StartupError or Unavailable, one sentence for the terminal.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(until_told_to_stop(_work(settings)))


async def _work(settings: Settings) -> None:
    async with open_resources(settings, say, progress=sys.stderr.isatty()) as resources:
        say("The worker is ready. Stop with Ctrl-C.")
        say(f"  {extractor_sentence(settings, resources)}")
        say(f"  {embedder_sentence(settings, resources)}")
        await run(resources)
