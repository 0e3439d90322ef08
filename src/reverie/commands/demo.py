"""`reverie demo`: `serve` on a throw-away store with the demo's data, in which life goes on."""

import tempfile
from dataclasses import replace
from pathlib import Path

from reverie.commands.notices import say
from reverie.commands.serve import serve
from reverie.demo.fill import fill
from reverie.demo.live import live
from reverie.domain.events import EventDraft
from reverie.resources import Resources
from reverie.settings import Settings
from reverie.web.auth import DEFAULT_TENANT

_PATIENCE = 600.0
"""Seconds for the vectors of the demo's memories, on a slow machine too."""
_SUBSCRIPTION = (
    "subscription { beliefChanges { ... on BeliefChange "
    "{ kind subjectId key belief { value confidence } previous { value } } } }"
)


def demo(settings: Settings) -> None:
    """Serves the demo until it is told to stop; its store is gone afterwards."""

    async def prepare(resources: Resources) -> None:
        say("Writing two months of a small team's memories…")
        filled = await fill(replace(resources, embedding_timeout=_PATIENCE), DEFAULT_TENANT)
        say(f"{filled.memories} memories and {filled.events} events are there. The store goes when the demo ends.")

    async def go_on(resources: Resources) -> None:
        say("")
        say("  What the team says to its assistants in the next minutes becomes beliefs. To watch, run in GraphiQL:")
        say("")
        say(f"  {_SUBSCRIPTION}")
        say("")
        await live(resources, DEFAULT_TENANT, _say_heard)

    with tempfile.TemporaryDirectory(prefix="reverie-demo-") as folder:
        own = replace(
            settings,
            data_dir=Path(folder),
            neo4j_uri=None,
            neo4j_database=None,
            redis_url=None,
            api_keys=None,
            worker="on",
        )
        # without keys, the demo is for this machine alone
        own.check()
        serve(own, companions=(go_on,), prepare=prepare)


def _say_heard(event: EventDraft) -> None:
    say(f"  {event.user_id}: {event.content}")
