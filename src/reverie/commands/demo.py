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

_PATIENCE = 600.0
"""Seconds for the vectors of the demo's memories, on a slow machine too."""


def demo(settings: Settings) -> None:
    """Serves the demo until it is told to stop; its store is gone afterwards."""

    async def prepare(resources: Resources) -> None:
        say("Writing two months of a small team's memories…")
        count = await fill(replace(resources, embedding_timeout=_PATIENCE), DEFAULT_TENANT)
        say(f"{count} memories are there. The store goes when the demo ends.")

    with tempfile.TemporaryDirectory(prefix="reverie-demo-") as folder:
        own = replace(
            settings, data_dir=Path(folder), neo4j_uri=None, neo4j_database=None, redis_url=None, api_keys=None
        )
        # without keys, the demo is for this machine alone
        own.check()
        serve(own, prepare=prepare)
