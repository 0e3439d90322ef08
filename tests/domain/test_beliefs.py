"""The fold of evidence into a timeline, row by row, and what its difference writes to the log."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.beliefs import (
    DAY_MS,
    BeliefChangeKind,
    BeliefType,
    BeliefUpsert,
    Change,
    EpistemicStatus,
    Evidence,
    EvidenceKind,
    Ledger,
    Timeline,
    check_upsert,
    faded,
    timeline,
    well_formed_key,
)
from reverie.domain.clock import from_ms
from reverie.domain.dreaming import HALF_LIVES
from reverie.errors import Refusals

ACTIVE, SUPERSEDED = EpistemicStatus.ACTIVE, EpistemicStatus.SUPERSEDED
CONTRADICTED, RETRACTED = EpistemicStatus.CONTRADICTED, EpistemicStatus.RETRACTED
STATE, CORRECT, UPSERT = EvidenceKind.STATE, EvidenceKind.CORRECT, EvidenceKind.UPSERT
END, RETRACT = EvidenceKind.END, EvidenceKind.RETRACT
NOW = 1_000 * DAY_MS
_ids = itertools.count()


def seen(value: str, day: float, kind: EvidenceKind = STATE, **more: Any) -> Evidence:
    """A piece of evidence of some day, in an episode of its own unless one is named."""
    number = next(_ids)
    more.setdefault("episode", None if kind in (UPSERT, RETRACT) else f"episode {number}")
    more.setdefault("id", f"evidence {number:06}")
    more.setdefault("confidence", 0.8)
    return Evidence(kind=kind, value=value, time=int(day * DAY_MS), **more)


def told(*evidence: Evidence) -> Timeline:
    return timeline(evidence, HALF_LIVES)


def rows(found: Timeline) -> list[tuple[str, EpistemicStatus, float, float | None]]:
    return [
        (v.value, v.status, v.valid_from / DAY_MS, None if v.valid_to is None else v.valid_to / DAY_MS)
        for v in found.versions
    ]


def names() -> Any:
    numbers = itertools.count(1)
    return lambda: f"belief {next(numbers)}"


def log(*evidence: Evidence) -> tuple[Ledger, list[Change]]:
    """Records evidence in the order given."""
    ledger, make = Ledger(HALF_LIVES), names()
    return ledger, [change for one in evidence for change in ledger.record(one, NOW, make)]


# ---------------------------------------------------------------- the rows of the table


def test_nothing_current_founds_a_version() -> None:
    one = seen("tabs", 1, confidence=0.6)

    (version,) = told(one).versions

    assert (version.value, version.status, version.base) == ("tabs", ACTIVE, 0.6)
    assert (version.valid_from, version.valid_to, version.reinforced_at) == (DAY_MS, None, DAY_MS)
    assert version.evidence == [one.id]


def test_an_equal_value_strengthens_whatever_its_case_width_and_blanks() -> None:
    first, second = (
        seen("Dark  Mode", 1, confidence=0.5),
        seen("\N{FULLWIDTH LATIN SMALL LETTER D}ark mode", 1, confidence=0.5),
    )

    (version,) = told(first, second).versions

    assert version.base == pytest.approx(1 - 0.5 * 0.75)
    assert version.value == "Dark  Mode"
    assert version.evidence == sorted([first.id, second.id])


def test_values_are_compared_as_texts_never_as_numbers() -> None:
    assert len(told(seen("3.10", 1), seen("3.1", 2)).versions) == 2


def test_confirming_counts_what_is_left_of_the_confidence() -> None:
    (version,) = told(seen("a", 0, confidence=0.8), seen("a", 60, confidence=0.4)).versions

    faded_to = 0.4
    assert version.base == pytest.approx(1 - (1 - faded_to) * (1 - 0.2))
    assert version.reinforced_at == 60 * DAY_MS


def test_a_second_equal_evidence_from_the_same_episode_is_kept_and_changes_nothing() -> None:
    first, again = seen("a", 1, episode="e"), seen("a", 2, episode="e")

    (version,) = told(first, again).versions

    assert (version.base, version.reinforced_at) == (0.8, DAY_MS)
    assert version.evidence == [first.id, again.id]


def test_an_upsert_brings_its_type_and_domain() -> None:
    dreamed = seen("a", 1, belief_type=BeliefType.BELIEF)
    upsert = seen("a", 2, UPSERT, belief_type=BeliefType.TENET, domain="settings")

    (version,) = told(dreamed, upsert).versions
    (unchanged,) = told(dreamed, seen("a", 2, belief_type=BeliefType.FACT, domain="other")).versions

    assert (version.belief_type, version.domain) == (BeliefType.TENET, "settings")
    assert (unchanged.belief_type, unchanged.domain) == (BeliefType.BELIEF, "general")


def test_another_value_that_is_sure_enough_supersedes() -> None:
    found = told(seen("a", 1, confidence=0.8), seen("b", 1, confidence=0.6))

    assert rows(found) == [("a", SUPERSEDED, 1, 1), ("b", ACTIVE, 1, None)]
    assert found.versions[0].superseded_by == found.versions[1].founded_by


def test_a_correction_supersedes_however_unsure() -> None:
    assert rows(told(seen("a", 1, confidence=1.0), seen("b", 2, CORRECT, confidence=0.01))) == [
        ("a", SUPERSEDED, 1, 2),
        ("b", ACTIVE, 2, None),
    ]


def test_a_weaker_value_loses_and_weakens() -> None:
    found = told(seen("a", 1, confidence=0.9), seen("b", 1, confidence=0.5))

    assert rows(found) == [("a", ACTIVE, 1, None), ("b", CONTRADICTED, 1, 1)]
    assert found.versions[0].base == pytest.approx(0.9 * 0.75)
    assert found.versions[0].reinforced_at == DAY_MS


def test_the_same_weaker_value_in_the_same_episode_weakens_once() -> None:
    strong = seen("a", 1, confidence=1.0, belief_type=BeliefType.FACT)
    first, again = seen("b", 1, confidence=0.5, episode="e"), seen("b", 1, confidence=0.5, episode="e")

    found = told(strong, first, again)

    assert [v.value for v in found.versions] == ["a", "b"]
    assert found.versions[0].base == pytest.approx(0.75)
    assert found.versions[1].evidence == [first.id, again.id]


def test_a_repeat_of_what_lost_may_win_once_the_other_is_weak_enough() -> None:
    found = told(
        seen("a", 1, confidence=0.9),
        seen("b", 1, confidence=0.5, episode="one"),
        seen("b", 2, confidence=0.5, episode="two"),
    )

    assert rows(found) == [("a", SUPERSEDED, 1, 2), ("b", CONTRADICTED, 1, 1), ("b", ACTIVE, 2, None)]


def test_what_holds_no_longer_ends_and_still_held_before() -> None:
    found = told(seen("a", 1), seen("a", 3, END))

    assert rows(found) == [("a", RETRACTED, 1, 3)]
    assert found.current is None


def test_the_end_of_another_value_ends_nothing() -> None:
    end = seen("b", 3, END)

    found = told(seen("a", 1), end)

    assert rows(found) == [("a", ACTIVE, 1, None)]
    assert found.ignored == [end.id]


def test_a_retracted_value_was_never_true_and_what_it_superseded_holds_again() -> None:
    first, second = seen("a", 1), seen("b", 2)

    found = told(first, second, seen("b", 3, RETRACT))

    assert rows(found) == [("a", ACTIVE, 1, None)]
    assert found.void == [second.id]


def test_newer_evidence_of_a_retracted_value_makes_a_new_version() -> None:
    assert rows(told(seen("b", 2), seen("b", 3, RETRACT), seen("b", 4))) == [("b", ACTIVE, 4, None)]


def test_late_evidence_from_before_a_retraction_is_void() -> None:
    late = seen("b", 1)
    ledger, changes = log(seen("b", 2), seen("b", 3, RETRACT), late)

    assert [change.kind for change in changes] == [BeliefChangeKind.CREATED, BeliefChangeKind.RETRACTED]
    assert ledger.current is None


# ---------------------------------------------------------------- the absurd cases


def test_half_sure_confirmed_by_nearly_sure() -> None:
    (version,) = told(seen("a", 1, confidence=0.5), seen("a", 1, confidence=0.99)).versions
    assert version.base == pytest.approx(0.99)


def test_certainty_confirmed_stays_certainty() -> None:
    (version,) = told(seen("a", 1, confidence=1.0), seen("a", 1, confidence=1.0)).versions
    assert version.base == 1.0


def test_something_faded_still_holds_against_next_to_nothing() -> None:
    days = 60 * math.log2(0.8 / 0.2)
    found = told(seen("a", 0, confidence=0.8), seen("b", days, confidence=0.01))
    assert [v.status for v in found.versions] == [ACTIVE, CONTRADICTED]


def test_a_retraction_before_anything_does_nothing() -> None:
    ledger, changes = log(seen("a", 1, RETRACT))
    assert (ledger.versions, changes) == ([], [])


def test_a_tenet_yields_to_upserts_alone() -> None:
    tenet = seen("a", 1, UPSERT, belief_type=BeliefType.TENET)
    against = [seen("b", 2, confidence=1.0), seen("b", 3, CORRECT, confidence=1.0), seen("a", 4, END)]

    found = told(tenet, *against)
    overruled = told(tenet, *against, seen("b", 5, UPSERT, confidence=0.1))

    assert rows(found) == [("a", ACTIVE, 1, None)]
    assert found.ignored == [one.id for one in against]
    assert found.versions[0].base == 0.8
    assert rows(overruled) == [("a", SUPERSEDED, 1, 5), ("b", ACTIVE, 5, None)]


def test_a_late_older_evidence_dissolves_a_stored_version() -> None:
    stored, late = seen("a", 5), seen("a", 2)

    ledger, changes = log(stored, late)

    first, second = ledger.versions
    assert (first.number, second.number) == (1, 2)
    assert first.dissolved
    assert (first.version.status, first.version.valid_from, first.version.valid_to) == (
        SUPERSEDED,
        5 * DAY_MS,
        5 * DAY_MS,
    )
    assert first.replaced_by == second.id
    assert second.version.evidence == [late.id, stored.id]
    assert [(change.kind, change.belief, change.previous) for change in changes] == [
        (BeliefChangeKind.CREATED, first.id, None),
        (BeliefChangeKind.SUPERSEDED, second.id, first.id),
    ]


# ---------------------------------------------------------------- what the log is told


def test_a_preference_that_changes_is_created_then_superseded() -> None:
    ledger, changes = log(seen("tabs", 1), seen("spaces", 2, CORRECT))

    tabs, spaces = ledger.versions
    assert [(c.kind, c.belief, c.previous, c.status_after) for c in changes] == [
        (BeliefChangeKind.CREATED, tabs.id, None, ACTIVE),
        (BeliefChangeKind.SUPERSEDED, spaces.id, tabs.id, ACTIVE),
    ]
    assert (tabs.replaced_by, spaces.replaces) == (spaces.id, tabs.id)


def test_confirming_is_logged_with_both_confidences() -> None:
    _, (_, change) = log(seen("a", 999, confidence=0.5), seen("a", 1000, confidence=0.5))

    assert change.kind is BeliefChangeKind.STRENGTHENED
    assert change.confidence_before == pytest.approx(faded(0.5, 999 * DAY_MS, NOW, 60))
    assert change.confidence_after > (change.confidence_before or 1)


def test_a_loser_is_logged_with_what_it_weakened() -> None:
    ledger, (_, change) = log(seen("a", 999, confidence=0.9), seen("b", 999.5, confidence=0.3))

    strong, weak = ledger.versions
    assert (change.kind, change.belief, change.rejected) == (BeliefChangeKind.CONTRADICTED, strong.id, weak.id)
    assert change.status_after is ACTIVE


def test_a_retraction_tells_what_went_and_what_holds_again() -> None:
    ledger, changes = log(seen("a", 1), seen("b", 2), seen("b", 3, RETRACT))

    a, b = ledger.versions
    assert [(c.kind, c.belief, c.previous, c.status_after) for c in changes[2:]] == [
        (BeliefChangeKind.RETRACTED, b.id, None, RETRACTED),
        (BeliefChangeKind.SUPERSEDED, a.id, b.id, ACTIVE),
    ]
    assert (b.version.valid_from, b.version.valid_to) == (2 * DAY_MS, 2 * DAY_MS)
    assert a.replaced_by is None


def test_a_new_version_of_the_past_is_told_a_change_of_the_past_alone_is_not() -> None:
    ledger, changes = log(seen("a", 1), seen("b", 5), seen("c", 3), seen("a", 2))

    assert [v.value for v in sorted((v.version for v in ledger.versions), key=lambda v: v.valid_from)] == [
        "a",
        "c",
        "b",
    ]
    assert [(c.kind, c.status_after) for c in changes] == [
        (BeliefChangeKind.CREATED, ACTIVE),
        (BeliefChangeKind.SUPERSEDED, ACTIVE),
        (BeliefChangeKind.CREATED, SUPERSEDED),
    ]


def test_of_one_value_each_upsert_strengthens_even_what_is_certain() -> None:
    upserts = [Evidence(id=f"u{i}", kind=UPSERT, value="x", time=i, confidence=1.0) for i in range(32)]

    ledger, changes = log(*upserts)

    assert [c.kind for c in changes] == [BeliefChangeKind.CREATED] + [BeliefChangeKind.STRENGTHENED] * 31
    assert [v.number for v in ledger.versions] == [1]


# ---------------------------------------------------------------- properties

values = st.sampled_from(["a", "A ", "b", "c", "3.1", "3.10"])


@st.composite
def histories(draw: st.DrawFn) -> list[Evidence]:
    """Evidence of one identity, many of it of the same instant."""
    count = draw(st.integers(1, 9))
    made = []
    for number in range(count):
        kind = draw(st.sampled_from(list(EvidenceKind)))
        made.append(
            Evidence(
                id=f"evidence {number:03}",
                kind=kind,
                value=draw(values),
                time=draw(st.integers(0, 6)) * 30 * DAY_MS,
                confidence=draw(st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.8, 0.99, 1.0])),
                belief_type=draw(st.sampled_from(list(BeliefType))),
                domain=draw(st.sampled_from(["general", "work"])),
                episode=None if kind in (UPSERT, RETRACT) else draw(st.sampled_from(["e1", "e2", "e3"])),
            )
        )
    return made


def shape(ledger: Ledger) -> list[Any]:
    """What of the stored versions must not depend on the order of arrival."""
    living = [one.version for one in ledger.versions if not one.dissolved]
    return sorted(
        (v.founded_by, v.value, v.status, v.valid_from, v.valid_to, v.base, v.reinforced_at, sorted(v.evidence))
        for v in living
    )


@settings(max_examples=400, deadline=None)
@given(histories(), st.randoms())
def test_any_order_of_arrival_gives_the_same_timeline(history: list[Evidence], random: Any) -> None:
    shuffled = list(history)
    random.shuffle(shuffled)

    ledgers = []
    for order in (history, shuffled):
        ledger, make = Ledger(HALF_LIVES), names()
        for one in order:
            changes = ledger.record(one, NOW, make)
            assert_sound(ledger, changes)
        ledgers.append(shape(ledger))

    assert ledgers[0] == ledgers[1]


def assert_sound(ledger: Ledger, changes: Sequence[Change]) -> None:
    numbers = [one.number for one in ledger.versions]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({one.id for one in ledger.versions}) == len(numbers)
    active = [one for one in ledger.versions if one.version.status is ACTIVE]
    assert len(active) <= 1
    for one in ledger.versions:
        version = one.version
        assert 0 <= version.base <= 1
        assert (version.valid_to is None) == (version.status is ACTIVE)
        assert version.valid_to is None or version.valid_to >= version.valid_from
        assert one.dissolved == (not version.evidence)
    supporting = [evidence for one in ledger.versions for evidence in one.version.evidence]
    assert len(supporting) == len(set(supporting))
    by_id = {one.id: one for one in ledger.versions}
    for change in changes:
        assert 0 <= change.confidence_after <= 1
        assert change.status_after is by_id[change.belief].version.status
        assert {change.previous, change.rejected} <= {None, *by_id}


@settings(max_examples=200, deadline=None)
@given(histories())
def test_a_follower_of_the_log_knows_what_is_current(history: list[Evidence]) -> None:
    ledger, make = Ledger(HALF_LIVES), names()
    followed: str | None = None
    for one in history:
        for change in ledger.record(one, NOW, make):
            if change.kind is BeliefChangeKind.RETRACTED and change.belief == followed:
                followed = None
            elif change.status_after is ACTIVE:
                followed = change.belief
        current = ledger.current
        assert followed == (None if current is None else current.id)


@given(st.floats(0, 1), st.integers(0, 10_000), st.integers(0, 10_000), st.sampled_from([None, 60.0, 365.0]))
def test_fading_never_raises_and_halves_in_its_half_life(
    base: float, day: int, later: int, half_life: float | None
) -> None:
    at = day * DAY_MS
    now = faded(base, at, at + later * DAY_MS, half_life)

    assert 0 <= now <= base
    assert faded(base, at, at - 5, half_life) == base
    if half_life is not None:
        assert faded(base, at, at + int(half_life * DAY_MS), half_life) == pytest.approx(base / 2)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("key", ["likes.hiking", "a", "sprache.größe", "x_1.y_2", "k" * 200])
def test_keys(key: str) -> None:
    assert well_formed_key(key)


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", "a b", "a-b", "a.b\n", "k" * 201, "a/b"])
def test_malformed_keys(key: str) -> None:
    assert not well_formed_key(key)


def test_all_that_is_wrong_with_an_upsert_is_told_at_once() -> None:
    now = from_ms(NOW)
    bad = BeliefUpsert(" ", "a b", "", 1.5, valid_from=from_ms(NOW + 1), domain="")

    with pytest.raises(Refusals) as refused:
        check_upsert(bad, now)

    assert [one.path for one in refused.value.refusals] == [
        ("subjectId",),
        ("key",),
        ("value",),
        ("confidence",),
        ("domain",),
        ("validFrom",),
    ]
