"""The change log as its readers see it: entries, the marks between them, and cursors."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from reverie.domain import policy
from reverie.domain.beliefs import BeliefChangeKind, BeliefType, EpistemicStatus
from reverie.domain.checks import Checks
from reverie.errors import BadInput

_VERSION = 1


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in a tenant's log: after entry `number` (0: before the first) of an epoch, which restoring changes."""

    epoch: str
    tenant: int
    number: int

    def at(self, number: int) -> "LogPosition":
        """Another place in the same log."""
        return replace(self, number=number)

    @property
    def cursor(self) -> str:
        """The opaque token that callers pass as `after`."""
        body = orjson.dumps([_VERSION, self.epoch, self.tenant, self.number])
        return urlsafe_b64encode(body).decode().rstrip("=")


def log_position(cursor: str, name: str = "after") -> LogPosition:
    """The place that a token means; BadInput, naming the argument, when it is none at all."""
    try:
        found = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        version, epoch, tenant, number = found
        position = LogPosition(epoch, tenant, number)
        if version == _VERSION and position.cursor == cursor and number >= 0 and isinstance(epoch, str):
            return position
    except (Base64Error, ValueError, TypeError):
        pass
    raise BadInput(f"{name}: not a cursor of the change log", (name,))


@dataclass(frozen=True, slots=True)
class BeliefChange:
    """One entry of the log. What a change fixed for ever is here; the beliefs are read when it is delivered."""

    id: str
    number: int
    kind: BeliefChangeKind
    subject_id: str
    key: str
    domain: str
    belief_type: BeliefType
    status_after: EpistemicStatus
    belief_id: str
    previous_id: str | None
    rejected_id: str | None
    confidence_before: float | None
    confidence_after: float
    reason: str | None
    episode_id: str | None
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class LogHead:
    """How far a tenant's log goes: its last place, and the number up to which entries are no longer kept."""

    position: LogPosition
    floor: int = 0

    def reaches(self, position: LogPosition) -> bool:
        """Whether all that came after a place can still be read here; not so for a place of another log."""
        return position.at(0) == self.position.at(0) and self.floor <= position.number <= self.position.number


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A part of the log in order: what is left of the entries up to `upto`, which may be none."""

    changes: Sequence[BeliefChange]
    upto: int


@dataclass(frozen=True, slots=True)
class ChangeCheckpoint:
    """The log has come to this place, and whoever follows it has been told all before it that concerns him."""

    position: LogPosition


@dataclass(frozen=True, slots=True)
class ChangeGap:
    """What came after the cursor `missed_from` can't be told any more; it goes on from `position`."""

    position: LogPosition
    missed_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefChangeFilter:
    """Which entries; every field that is given must hold. None of them asks for what may change later."""

    subject_ids: tuple[str, ...] | None = None
    keys: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    belief_types: tuple[BeliefType, ...] | None = None
    kinds: tuple[BeliefChangeKind, ...] | None = None

    def takes(self, change: BeliefChange) -> bool:
        """Whether an entry passes."""
        return all(
            wanted is None or value in wanted
            for wanted, value in (
                (self.subject_ids, change.subject_id),
                (self.keys, change.key),
                (self.domains, change.domain),
                (self.belief_types, change.belief_type),
                (self.kinds, change.kind),
            )
        )


EVERY_CHANGE = BeliefChangeFilter()


def check_change_filter(wanted: BeliefChangeFilter) -> BeliefChangeFilter:
    """The filter itself; Refusals when a list is too long."""
    checks = Checks()
    for values, name in ((wanted.subject_ids, "subjectIds"), (wanted.keys, "keys"), (wanted.domains, "domains")):
        checks.few(values or (), (name,), policy.REFERENCES_MOST)
    checks.done()
    return wanted
