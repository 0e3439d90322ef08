"""Beliefs: evidence is what is stored, and the timeline of an identity is computed from it by a pure fold.

An identity is (tenant, subject, key). Recording evidence means: fold again, compare with the stored versions, and write
the difference. So the same evidence gives the same timeline in whatever order it arrived.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Final

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.domain.clock import to_ms
from reverie.domain.names import normal_form

DAY_MS: Final = 86_400_000
KEY = re.compile(r"\w+(?:\.\w+)*")
"""Letters, digits and `_` in parts joined by `.`."""

_WEAKER_BY = 0.2
"""How much weaker than what is current another value may be and still take its place."""
_LEAST_TO_REPLACE = 0.3
_MOST_BY_CONFIRMING = 0.99
_NOISE = 1e-9
"""What floating point may add to a difference: 0.6 is no weaker than 0.8 - 0.2."""


class BeliefType(StrEnum):
    FACT = "FACT"
    BELIEF = "BELIEF"
    PREFERENCE = "PREFERENCE"
    TENET = "TENET"


class EpistemicStatus(StrEnum):
    ACTIVE = "ACTIVE"
    SUPERSEDED = "SUPERSEDED"
    CONTRADICTED = "CONTRADICTED"
    RETRACTED = "RETRACTED"


class EvidenceKind(IntEnum):
    """What a piece of evidence does; of one instant, in this order."""

    STATE = 0
    """The value is stated."""
    CORRECT = 1
    """The value is stated against an earlier one ("actually …")."""
    UPSERT = 2
    """A caller sets the value."""
    END = 3
    """The value holds no longer."""
    RETRACT = 4
    """The value was never true."""


HalfLives = Mapping[BeliefType, float | None]
"""Days in which a confidence halves, by type; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One piece of evidence for an identity; `time` is in milliseconds, confidence 0 to 1.

    `episode` is the episode it was read in, None for a caller's own word.
    """

    id: str
    kind: EvidenceKind
    value: str
    time: int
    confidence: float = 1.0
    belief_type: BeliefType = BeliefType.BELIEF
    domain: str = "general"
    episode: str | None = None
    event: str | None = None
    reason: str | None = None

    @property
    def form(self) -> str:
        """The value as it is compared: as text, never as a number."""
        return normal_form(self.value)

    @property
    def place(self) -> tuple[int, int, str, float, str]:
        """Where it comes in the fold; the id only decides between equal evidence."""
        return (self.time, self.kind, self.form, self.confidence, self.id)


def belief_text(subject: str, key: str, value: str) -> str:
    """What a belief says, as words: (alex, preference.code_style, spaces) → `alex preference code style: spaces`."""
    return f"{subject} {key.replace('.', ' ').replace('_', ' ')}: {value}"


Step = tuple[int, float, int]
"""From a time on: the base, and when it was reinforced."""


@dataclass(slots=True)
class Version:
    """One version of the timeline; `founded_by` and `evidence` are ids of evidence, times are in milliseconds."""

    founded_by: str
    value: str
    belief_type: BeliefType
    domain: str
    status: EpistemicStatus
    valid_from: int
    valid_to: int | None
    base: float
    reinforced_at: int
    evidence: list[str]
    superseded_by: str | None = None
    """The founding evidence of the version that took its place."""
    steps: list[Step] = field(default_factory=list)
    """How its confidence came about, oldest first."""
    _counted: set[str | None] = field(default_factory=set, compare=False, repr=False)

    def confidence(self, at: int, half_lives: HalfLives) -> float:
        """How sure it is at an instant; a version that ended keeps what it had then."""
        until = at if self.valid_to is None else min(at, self.valid_to)
        return faded(self.base, self.reinforced_at, until, half_lives[self.belief_type])


def faded(base: float, reinforced_at: int, at: int, half_life: float | None) -> float:
    """base · 2^(-age / half-life), with the age in days; an instant before `reinforced_at` has age 0."""
    if half_life is None:
        return base
    return float(base * 2.0 ** (-max(0, at - reinforced_at) / (half_life * DAY_MS)))


@dataclass(slots=True)
class Timeline:
    """What the evidence of one identity comes to: its versions in the order in which they began."""

    versions: list[Version] = field(default_factory=list)
    current: Version | None = None
    ignored: list[str] = field(default_factory=list)
    """Evidence against a TENET, and what would end a value that doesn't hold."""
    void: list[str] = field(default_factory=list)
    """Evidence of values that were retracted later."""


def timeline(evidence: Sequence[Evidence], half_lives: HalfLives) -> Timeline:
    """Folds the evidence of one identity. "Now" inside it is each evidence's own time, never the wall clock."""
    ordered = sorted(evidence, key=lambda one: one.place)
    retracted: dict[str, tuple[int, int, str, float, str]] = {}
    for one in ordered:
        if one.kind is EvidenceKind.RETRACT:
            retracted[one.form] = one.place
    told = Timeline()
    for one in ordered:
        if one.kind is EvidenceKind.RETRACT:
            continue
        if one.form in retracted and one.place < retracted[one.form]:
            told.void.append(one.id)
        else:
            _step(told, one, half_lives)
    return told


def _step(told: Timeline, one: Evidence, half_lives: HalfLives) -> None:
    current = told.current
    same = current is not None and normal_form(current.value) == one.form
    if one.kind is EvidenceKind.END:
        if current is None or not same or current.belief_type is BeliefType.TENET:
            told.ignored.append(one.id)
            return
        current.status, current.valid_to = EpistemicStatus.RETRACTED, one.time
        told.current = None
    elif current is None:
        told.current = _found(told, one)
    elif same:
        _confirm(current, one, half_lives)
    elif current.belief_type is BeliefType.TENET and one.kind is not EvidenceKind.UPSERT:
        told.ignored.append(one.id)
    else:
        _challenge(told, current, one, half_lives)


def _found(told: Timeline, one: Evidence) -> Version:
    version = Version(
        one.id,
        one.value,
        one.belief_type,
        one.domain,
        EpistemicStatus.ACTIVE,
        one.time,
        None,
        one.confidence,
        one.time,
        [one.id],
        steps=[(one.time, one.confidence, one.time)],
        _counted={one.episode},
    )
    told.versions.append(version)
    return version


def _confirm(current: Version, one: Evidence, half_lives: HalfLives) -> None:
    current.evidence.append(one.id)
    if one.episode is not None and one.episode in current._counted:
        return
    current._counted.add(one.episode)
    sure = current.confidence(one.time, half_lives)
    raised = min(_MOST_BY_CONFIRMING, 1 - (1 - sure) * (1 - one.confidence / 2))
    current.base, current.reinforced_at = max(sure, one.confidence, raised), one.time
    current.steps.append((one.time, current.base, one.time))
    if one.kind is EvidenceKind.UPSERT:
        current.belief_type, current.domain = one.belief_type, one.domain


def _challenge(told: Timeline, current: Version, one: Evidence, half_lives: HalfLives) -> None:
    sure = current.confidence(one.time, half_lives)
    by_word = one.kind in (EvidenceKind.CORRECT, EvidenceKind.UPSERT)
    if by_word or one.confidence >= max(sure - _WEAKER_BY, _LEAST_TO_REPLACE) - _NOISE:
        told.current = _found(told, one)
        current.status, current.valid_to, current.superseded_by = EpistemicStatus.SUPERSEDED, one.time, one.id
        return
    lost = _lost_before(told, current, one)
    if lost is not None:
        lost.evidence.append(one.id)
        return
    loser = _found(told, one)
    loser.status, loser.valid_to = EpistemicStatus.CONTRADICTED, one.time
    current.base *= 1 - one.confidence / 2
    current.steps.append((one.time, current.base, current.reinforced_at))


def _lost_before(told: Timeline, current: Version, one: Evidence) -> Version | None:
    """The version in which this value already lost against the current one in this episode."""
    if one.episode is None:
        return None
    after = told.versions.index(current) + 1
    return next(
        (
            version
            for version in told.versions[after:]
            if normal_form(version.value) == one.form and one.episode in version._counted
        ),
        None,
    )


class BeliefChangeKind(StrEnum):
    CREATED = "CREATED"
    STRENGTHENED = "STRENGTHENED"
    SUPERSEDED = "SUPERSEDED"
    CONTRADICTED = "CONTRADICTED"
    RETRACTED = "RETRACTED"


@dataclass(slots=True)
class StoredVersion:
    """A version as the store has it. `dissolved`: the fold no longer has it, and it holds no instant of the past.

    Its evidence is kept apart: each version names the evidence that supports it.
    """

    id: str
    number: int
    version: Version
    created_at: int
    dissolved: bool = False
    replaced_by: str | None = None
    """The id of the version that took its place."""
    replaces: str | None = None
    """The id of the version whose place it took."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log, in terms of stored versions' ids; confidences are as of the change."""

    kind: BeliefChangeKind
    belief: str
    status_after: EpistemicStatus
    confidence_after: float
    confidence_before: float | None = None
    previous: str | None = None
    rejected: str | None = None
    reason: str | None = None
    episode: str | None = None


@dataclass(slots=True)
class Ledger:
    """The stored state of one identity, evidence and versions, to which evidence is added piece by piece.

    `now` is the wall clock of the recording: entries of the log tell confidences as of it, never the fold.
    """

    half_lives: HalfLives
    evidence: list[Evidence] = field(default_factory=list)
    versions: list[StoredVersion] = field(default_factory=list)
    last_number: int = 0

    @property
    def current(self) -> StoredVersion | None:
        return next((one for one in self.versions if one.version.status is EpistemicStatus.ACTIVE), None)

    @property
    def latest(self) -> int | None:
        """The time of the last evidence."""
        return max((one.time for one in self.evidence), default=None)

    def record(self, one: Evidence, now: int, new_id: Callable[[], str]) -> list[Change]:
        """Adds a piece of evidence, brings the versions up to date, and tells what changed."""
        self.evidence.append(one)
        before = self.current
        sure_before = None if before is None else before.version.confidence(now, self.half_lives)
        at_before = None if before is None else before.version.reinforced_at
        told = timeline(self.evidence, self.half_lives)
        made = self._settle(told, now, new_id)
        changes = self._told(one, before, sure_before, at_before, made, now)
        return [replace(change, reason=one.reason, episode=one.episode) for change in changes]

    def _settle(self, told: Timeline, now: int, new_id: Callable[[], str]) -> list[StoredVersion]:
        """Brings the stored versions to what the fold says; returns those that are new."""
        stored = {one.version.founded_by: one for one in self.versions if not one.dissolved}
        made = []
        for version in told.versions:
            known = stored.pop(version.founded_by, None)
            if known is None:
                known = self._revived(version) or self._new(version, now, new_id)
                if known not in self.versions:
                    self.versions.append(known)
                    made.append(known)
            known.version = version
        holders = {
            evidence: one
            for one in self.versions
            if not one.dissolved and one.version.founded_by not in stored
            for evidence in one.version.evidence
        }
        void = set(told.void)
        for gone in stored.values():
            self._dissolve(gone, holders.get(gone.version.founded_by), retracted=gone.version.founded_by in void)
        self._link()
        return made

    def _revived(self, version: Version) -> StoredVersion | None:
        """A dissolved version that the fold has again."""
        for one in self.versions:
            if one.dissolved and one.version.founded_by == version.founded_by:
                one.dissolved = False
                return one
        return None

    def _new(self, version: Version, now: int, new_id: Callable[[], str]) -> StoredVersion:
        self.last_number += 1
        return StoredVersion(new_id(), self.last_number, version, now)

    @staticmethod
    def _dissolve(gone: StoredVersion, holder: StoredVersion | None, *, retracted: bool) -> None:
        gone.dissolved = True
        gone.version = replace(
            gone.version,
            status=EpistemicStatus.RETRACTED if retracted else EpistemicStatus.SUPERSEDED,
            valid_to=gone.version.valid_from,
            evidence=[],
            superseded_by=None,
        )
        gone.replaced_by = None if holder is None else holder.id

    def _link(self) -> None:
        living = {one.version.founded_by: one for one in self.versions if not one.dissolved}
        for one in self.versions:
            one.replaces = None
        for one in living.values():
            one.replaced_by = None
        for one in living.values():
            if one.version.superseded_by is not None:
                heir = living[one.version.superseded_by]
                one.replaced_by, heir.replaces = heir.id, one.id

    def _told(
        self,
        one: Evidence,
        before: StoredVersion | None,
        sure_before: float | None,
        at_before: int | None,
        made: Sequence[StoredVersion],
        now: int,
    ) -> list[Change]:
        """What the difference writes to the log."""
        after = self.current
        changes = []
        losers = [
            new for new in made if new.version.status is EpistemicStatus.CONTRADICTED and one.id in new.version.evidence
        ]
        if before is not None and before is not after and before.version.status is EpistemicStatus.RETRACTED:
            changes.append(self._change(BeliefChangeKind.RETRACTED, before, now, sure_before))
        if after is not None and after is not before:
            superseded = before is not None
            kind = BeliefChangeKind.SUPERSEDED if superseded else BeliefChangeKind.CREATED
            changes.append(self._change(kind, after, now, None, previous=before))
        elif after is not None and sure_before is not None and at_before is not None:
            sure = after.version.confidence(now, self.half_lives)
            if sure < sure_before:
                loser = losers.pop() if losers else None
                changes.append(self._change(BeliefChangeKind.CONTRADICTED, after, now, sure_before, rejected=loser))
            elif sure > sure_before or after.version.reinforced_at > at_before:
                changes.append(self._change(BeliefChangeKind.STRENGTHENED, after, now, sure_before))
        elif before is not None and after is None and not changes:
            changes.append(self._change(BeliefChangeKind.RETRACTED, before, now, sure_before))
        told = {change.rejected for change in changes}
        for new in made:
            if new is not after and new.id not in told:
                changes.append(self._change(BeliefChangeKind.CREATED, new, now, None))
        return changes

    def _change(
        self,
        kind: BeliefChangeKind,
        belief: StoredVersion,
        now: int,
        before: float | None,
        *,
        previous: StoredVersion | None = None,
        rejected: StoredVersion | None = None,
    ) -> Change:
        return Change(
            kind,
            belief.id,
            belief.version.status,
            belief.version.confidence(now, self.half_lives),
            before,
            None if previous is None else previous.id,
            None if rejected is None else rejected.id,
        )


@dataclass(frozen=True, slots=True)
class Belief:
    """One version as it is read. `confidence` is computed from (base, reinforced_at), as of `as_of` or of now."""

    id: str
    subject_id: str
    key: str
    value: str
    base: float
    reinforced_at: datetime
    belief_type: BeliefType
    epistemic_status: EpistemicStatus
    domain: str
    version: int
    valid_from: datetime
    valid_to: datetime | None
    created_at: datetime
    evidence_count: int
    as_of: datetime | None = None

    def confidence(self, now: datetime, half_lives: HalfLives) -> float:
        """How sure it is, 0 to 1; a version that ended keeps what it had then."""
        at = now if self.as_of is None else self.as_of
        until = at if self.valid_to is None else min(at, self.valid_to)
        return faded(self.base, to_ms(self.reinforced_at), to_ms(until), half_lives[self.belief_type])


@dataclass(frozen=True, slots=True)
class BeliefUpsert:
    """What a caller wants believed from now on, or from `valid_from`."""

    subject_id: str
    key: str
    value: str
    confidence: float = 0.8
    belief_type: BeliefType = BeliefType.BELIEF
    domain: str = "general"
    valid_from: datetime | None = None
    reason: str | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class BeliefRetraction:
    """Which version's value was never true."""

    id: str
    reason: str | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefFilter:
    """Which versions; every field that is given must hold."""

    subject_id: str | None = None
    keys: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    belief_types: tuple[BeliefType, ...] | None = None
    epistemic_statuses: tuple[EpistemicStatus, ...] | None = None
    min_confidence: float | None = None
    as_of: datetime | None = None


def well_formed_key(key: str) -> bool:
    """Whether a text can be the key of a belief."""
    return len(key) <= policy.NAME_MOST and KEY.fullmatch(key) is not None


def check_upsert(upsert: BeliefUpsert, now: datetime) -> BeliefUpsert:
    """The upsert itself; Refusals when it can't be."""
    checks = Checks()
    checks.text(upsert.subject_id, ("subjectId",), policy.NAME_MOST)
    if not well_formed_key(upsert.key):
        checks.bad(
            f"must be letters, digits and _ in parts joined by a full stop, {policy.NAME_MOST} characters at most",
            ("key",),
        )
    value = checks.name(upsert.value, ("value",), policy.PHRASE_MOST)
    checks.unit(upsert.confidence, ("confidence",))
    domain = checks.name(upsert.domain, ("domain",))
    if upsert.valid_from is not None and upsert.valid_from > now:
        checks.bad("lies in the future", ("validFrom",))
    checks.label(upsert.reason, ("reason",), policy.PHRASE_MOST)
    checks.done()
    return replace(upsert, value=value, domain=domain)


def check_retraction(retraction: BeliefRetraction) -> BeliefRetraction:
    """The retraction itself; Refusals when it can't be."""
    checks = Checks()
    checks.label(retraction.reason, ("reason",), policy.PHRASE_MOST)
    checks.done()
    return retraction


def check_belief_filter(wanted: BeliefFilter) -> BeliefFilter:
    """The filter itself; Refusals when a value can't be."""
    checks = Checks()
    if wanted.min_confidence is not None:
        checks.unit(wanted.min_confidence, ("minConfidence",))
    for values, name in ((wanted.keys, "keys"), (wanted.domains, "domains")):
        checks.few(values or (), (name,))
    checks.done()
    return wanted
