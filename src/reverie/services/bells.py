"""What the use cases tell those who wait: that the log grew, that episodes came on, that there is work."""

from collections.abc import Iterable

from reverie.bus.bells import Notice, NoticeKind
from reverie.resources import Resources


def tell_changes(resources: Resources, tenant: str) -> None:
    """The tenant's change log grew."""
    resources.bell.ring(Notice(NoticeKind.CHANGES, tenant))


def tell_episodes(resources: Resources, tenant: str, ids: Iterable[str], *, work: bool = False) -> None:
    """Episodes were opened, or their status changed; `work`: some of them now wait for the worker."""
    for episode_id in ids:
        resources.bell.ring(Notice(NoticeKind.EPISODES, tenant, {"id": episode_id}))
    if work:
        tell_work(resources, tenant)


def tell_dreams(resources: Resources, tenant: str, begun: str | None = None) -> None:
    """A dream began, whose id is given then, or dreams came on or ended."""
    resources.bell.ring(Notice(NoticeKind.DREAMS, tenant, {} if begun is None else {"id": begun}))


def tell_work(resources: Resources, tenant: str) -> None:
    """There is something for the worker."""
    resources.bell.ring(Notice(NoticeKind.WORK, tenant))
