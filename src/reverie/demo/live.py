"""Records the demo's live episodes, so that whoever follows the change log sees beliefs change."""

import asyncio
from collections.abc import Callable

from reverie.demo.episodes import live_episodes
from reverie.domain.episodes import EpisodeClosing
from reverie.domain.events import EventDraft, EventType
from reverie.resources import Resources
from reverie.services.episodes import close_episode
from reverie.services.events import record_events


async def live(resources: Resources, tenant: str, heard: Callable[[EventDraft], object]) -> None:
    """Records each live episode at its time from now, and ends it, which leaves it to the worker.

    `heard` is given what the user said, before it is recorded.
    """
    clock = asyncio.get_running_loop()
    began = clock.time()
    for episode in live_episodes():
        await asyncio.sleep(began + episode.seconds - clock.time())
        for event in episode.events:
            if event.event_type is EventType.USER_MESSAGE:
                heard(event)
        await record_events(resources, tenant, episode.events, None)
        await close_episode(resources, tenant, EpisodeClosing(thread_id=episode.events[0].thread_id), None)
