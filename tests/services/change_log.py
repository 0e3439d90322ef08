"""A change log in memory, which obeys the same protocol as the stored one and can be made to fail."""

from dataclasses import replace
from datetime import UTC, datetime

from reverie.bus.bells import Bell, Notice, NoticeKind
from reverie.domain.beliefs import BeliefChangeKind, BeliefType, EpistemicStatus
from reverie.domain.changes import BeliefChange, LogHead, LogPosition, LogSlice
from reverie.errors import Unavailable

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def entry(number: int, subject: str) -> BeliefChange:
    return BeliefChange(
        id=f"change-{number}",
        number=number,
        kind=BeliefChangeKind.CREATED,
        subject_id=subject,
        key="likes",
        domain="general",
        belief_type=BeliefType.BELIEF,
        status_after=EpistemicStatus.ACTIVE,
        belief_id=f"belief-{number}",
        previous_id=None,
        rejected_id=None,
        confidence_before=None,
        confidence_after=0.8,
        reason=None,
        episode_id=None,
        changed_at=WHEN,
    )


class MemoryLog:
    """One tenant's log; counts what is asked of it. What is read is made anew, as from a store."""

    def __init__(self, bell: Bell, tenant: str, *, epoch: str = "epoch-1") -> None:
        self.bell = bell
        self.tenant = tenant
        self.epoch = epoch
        self.floor = 0
        self.entries: list[BeliefChange | None] = []
        """By number, from 1; None for erased ones."""
        self.failing = False
        self.forgets_at_read: int | None = None
        """Keeps nothing up to that number from within the next read on."""
        self.heads = 0
        self.reads = 0

    def position(self, number: int) -> LogPosition:
        return LogPosition(self.epoch, 7, number)

    @property
    def last(self) -> int:
        return len(self.entries)

    def append(self, *subjects: str, ring: bool = True) -> None:
        """Commits one entry for each subject."""
        for subject in subjects:
            self.entries.append(entry(self.last + 1, subject))
        if ring:
            self.bell.ring(Notice(NoticeKind.CHANGES, self.tenant, {"number": self.last}))

    def erase(self, subject: str) -> None:
        self.entries = [None if one is not None and one.subject_id == subject else one for one in self.entries]

    def forget_before(self, floor: int) -> None:
        """Keeps nothing up to that number."""
        self.floor = max(self.floor, min(floor, self.last))

    def restore(self, epoch: str, entries: int) -> None:
        """The store is an older copy of itself from now on."""
        self.epoch = epoch
        del self.entries[entries:]
        self.floor = min(self.floor, self.last)

    async def head(self, tenant: str) -> LogHead:
        assert tenant == self.tenant
        self.heads += 1
        if self.failing:
            raise Unavailable("Neo4j can't be reached")
        return LogHead(self.position(self.last), self.floor)

    async def read_log(self, tenant: str, after: int, limit: int) -> LogSlice:
        assert tenant == self.tenant
        self.reads += 1
        if self.failing:
            raise Unavailable("Neo4j can't be reached")
        if self.forgets_at_read is not None:
            self.forget_before(self.forgets_at_read)
            self.forgets_at_read = None
        upto = min(after + limit, self.last)
        part = self.entries[max(after, self.floor) : upto]
        return LogSlice([replace(one) for one in part if one is not None], max(upto, after))
