"""Episodes: closed, and sent back after a failure."""

from reverie.domain.episodes import ConsolidationStatus, Episode, EpisodeClosing, check_closing
from reverie.graph import episodes
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
