"""`reverie demo`: `serve` on a throw-away store with the demo's data."""

import tempfile
from dataclasses import replace
from pathlib import Path

from reverie.commands.notices import say
from reverie.commands.serve import serve
from reverie.demo.fill import fill
from reverie.resources import Resources
from reverie.settings import Settings
from reverie.web.auth import DEFAULT_TENANT


def demo(settings: Settings) -> None:
    """Serves the demo until it is told to stop; its store is gone afterwards."""

    async def prepare(resources: Resources) -> None:
        say("Writing two months of a small team's memories…")
        count = await fill(resources, DEFAULT_TENANT)
        say(f"{count} memories are there. The store goes when the demo ends.")

    with tempfile.TemporaryDirectory(prefix="reverie-demo-") as folder:
        serve(replace(settings, data_dir=Path(folder), neo4j_uri=None, api_keys=None), prepare=prepare)
