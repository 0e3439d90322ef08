"""`reverie dream`: what is pending is read now, by this process, with a bar for a person."""

import asyncio
import sys
from contextlib import suppress

import click

from reverie.commands.notices import extractor_sentence, say
from reverie.commands.signals import until_told_to_stop
from reverie.resources import Resources, open_resources
from reverie.services.dreaming import everything_owed
from reverie.settings import Settings
from reverie.worker.loop import work

_LOOK_AGAIN = 0.2


async def dream(settings: Settings) -> None:
    """Reads pending episodes of all tenants until none is left; ends early by SIGTERM or Ctrl-C."""
    await until_told_to_stop(_dream(settings))


async def _dream(settings: Settings) -> None:
    async with open_resources(settings, say, progress=sys.stderr.isatty()) as resources:
        say(extractor_sentence(settings, resources))
        total, failed = await everything_owed(resources)
        if total == 0:
            say("No episode is pending.")
            return
        working = asyncio.ensure_future(work(resources))
        try:
            failed = await _show(resources, total, failed)
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
        say(f"{total} episodes were read, {failed} of them failed." if failed else f"{total} episodes were read.")


async def _show(resources: Resources, total: int, failed_before: int) -> int:
    """Shows how far it has come until nothing is pending; how many failed meanwhile."""
    with click.progressbar(length=total, label="Episodes", file=sys.stderr, show_pos=True) as bar:
        while True:
            pending, failed = await everything_owed(resources)
            bar.update(max(total - pending - bar.pos, 0))
            if pending == 0:
                return failed - failed_before
            await asyncio.sleep(_LOOK_AGAIN)
