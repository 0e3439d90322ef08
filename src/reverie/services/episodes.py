"""Episodes: closed, and sent back after a failure."""

from collections.abc import AsyncGenerator

from reverie.bus.bells import NoticeKind
from reverie.domain.clock import now_ms
from reverie.domain.episodes import ConsolidationStatus, Episode, EpisodeClosing, EpisodeFilter, check_closing
from reverie.graph import episodes
from reverie.graph.nodes import nodes_by_id
from reverie.resources import Resources
from reverie.services.bells import tell_episodes
from reverie.services.writing import check_id, write_one


async def close_episode(resources: Resources, tenant: str, closing: EpisodeClosing, key: str | None) -> Episode:
    """Ends an episode, so that it is consolidated; one that is over already is answered as it stands."""
    closing = check_closing(closing)
    if closing.id is not None:
        check_id(closing.id, "episode")
    writer = episodes.close_episodes
    return _told(resources, tenant, await write_one(resources, tenant, "closeEpisode", writer, closing, key, Episode))


async def retry_episode(resources: Resources, tenant: str, episode_id: str) -> Episode:
    """Sends a failed episode back to be consolidated; Conflict for one that hasn't failed."""
    check_id(episode_id, "episode")
    writer = episodes.retry_episodes
    return _told(
        resources, tenant, await write_one(resources, tenant, "retryEpisode", writer, episode_id, None, Episode)
    )


def _told(resources: Resources, tenant: str, episode: Episode) -> Episode:
    """The episode; who follows it is told, and the worker where it is its turn."""
    pending = episode.consolidation_status is ConsolidationStatus.PENDING
    tell_episodes(resources, tenant, [episode.id], work=pending)
    return episode


FIRST_MOST = 200
"""Episodes that a new follower is told of at once."""


async def follow_episodes(
    resources: Resources, tenant: str, wanted: EpisodeFilter | None
) -> AsyncGenerator[Episode, None]:
    """The matching episodes that aren't consolidated, oldest first, then each whenever its status changed; for ever.

    What changed while nobody could tell of it (a server that went away, a lost connection to Redis) isn't told later.
    """
    wanted = wanted or EpisodeFilter()
    with resources.bell.listen(NoticeKind.EPISODES, tenant=tenant) as listener:
        told: dict[str, ConsolidationStatus] = {}
        for episode in await episodes.unfinished(resources.graph, tenant, wanted, FIRST_MOST):
            told[episode.id] = episode.consolidation_status
            yield episode
        async for notice in listener:
            (found,) = await nodes_by_id(resources.graph, tenant, [str(notice.body.get("id"))], now=now_ms())
            if not isinstance(found, Episode) or told.get(found.id) is found.consolidation_status:
                continue
            if found.consolidation_status is ConsolidationStatus.CONSOLIDATED:
                told.pop(found.id, None)
            else:
                told[found.id] = found.consolidation_status
            if wanted.takes(found):
                yield found
