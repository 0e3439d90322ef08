"""Time as Reverie keeps it: UTC milliseconds in the store, aware datetimes everywhere else."""

from datetime import UTC, datetime, timedelta
from time import time_ns

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER_MS = 9_007_199_254_740_991
"""What the store keeps for "never": the largest integer that every client reads exactly."""
EARLIEST_MS = -62_135_596_800_000
"""0001-01-01T00:00:00Z, the first instant a datetime can hold."""


def now_ms() -> int:
    """The wall clock in milliseconds since 1970, UTC."""
    return time_ns() // 1_000_000


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of an aware datetime; finer parts are cut off towards the past."""
    return (moment - EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    """The UTC datetime of milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=milliseconds)


def from_ms_or_none(milliseconds: int | None) -> datetime | None:
    """As `from_ms`; None, and `NEVER_MS`, are None."""
    return None if milliseconds is None or milliseconds == NEVER_MS else from_ms(milliseconds)
