"""What counts as evidence: a statement with its event, its user, its words and a sound value."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.beliefs import KEY, BeliefType, EvidenceKind
from reverie.domain.clock import to_ms
from reverie.domain.entities import EntityType
from reverie.domain.events import Event, EventType
from reverie.domain.extraction import (
    FACTS_MOST,
    SUMMARY_MOST,
    Dropped,
    DropReason,
    MemoryReading,
    Reading,
    Statement,
    cleaned_memory_reading,
    cleaned_reading,
    evidence_of,
    occurs,
)
from reverie.domain.facts import FactDraft
from reverie.domain.ids import well_formed

OCCURRED = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
RECORDED = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)


def event(text: str, id: str = "e1", **other: Any) -> Event:
    return replace(
        Event(id, EventType.USER_MESSAGE, text, text, "thread", "alex", None, OCCURRED, RECORDED),
        **other,
    )


def statement(**other: Any) -> Statement:
    return replace(
        Statement(
            event_id="e1",
            kind=EvidenceKind.STATE,
            key="preference.indentation",
            value="tabs",
            confidence=0.8,
            belief_type=BeliefType.PREFERENCE,
            domain="preferences",
            quote="I prefer tabs",
        ),
        **other,
    )


HELLO = event("Hello. I prefer   TABS for indentation.")


def test_a_statement_becomes_evidence() -> None:
    dropped = Dropped()

    ((subject, key, one),) = evidence_of(Reading((statement(reason="why"),)), [HELLO], "episode", dropped)

    assert (subject, key, dropped.counts) == ("alex", "preference.indentation", {})
    assert well_formed(one.id)
    assert (one.kind, one.value, one.time, one.confidence) == (EvidenceKind.STATE, "tabs", to_ms(OCCURRED), 0.8)
    assert (one.belief_type, one.domain, one.reason) == (BeliefType.PREFERENCE, "preferences", "why")
    assert (one.episode, one.event) == ("episode", "e1")


def test_an_event_from_the_future_counts_when_it_was_recorded() -> None:
    future = replace(HELLO, occurred_at=datetime(2099, 1, 1, tzinfo=UTC))

    ((_, _, one),) = evidence_of(Reading((statement(),)), [future], "episode", Dropped())

    assert one.time == to_ms(RECORDED)


@pytest.mark.parametrize("event_type", [kind for kind in EventType if kind is not EventType.USER_MESSAGE])
def test_what_others_say_has_half_the_confidence(event_type: EventType) -> None:
    ((_, _, one),) = evidence_of(Reading((statement(),)), [replace(HELLO, event_type=event_type)], "episode", Dropped())

    assert one.confidence == 0.4


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"event_id": "e2"}, DropReason.UNKNOWN_EVENT),
        ({"event_id": ""}, DropReason.UNKNOWN_EVENT),
        ({"quote": "I prefer spaces"}, DropReason.QUOTE_NOT_FOUND),
        ({"quote": " "}, DropReason.QUOTE_NOT_FOUND),
        ({"key": ""}, DropReason.MALFORMED_KEY),
        ({"key": "no blanks"}, DropReason.MALFORMED_KEY),
        ({"key": "a..b"}, DropReason.MALFORMED_KEY),
        ({"key": "a.b\n"}, DropReason.MALFORMED_KEY),
        ({"key": "k" * 201}, DropReason.MALFORMED_KEY),
        ({"value": " \n"}, DropReason.BAD_VALUE),
        ({"value": "v" * 1_001}, DropReason.BAD_VALUE),
        ({"value": "a\0b"}, DropReason.BAD_VALUE),
        ({"value": "a\ud800b"}, DropReason.BAD_VALUE),
        ({"confidence": 1.01}, DropReason.BAD_CONFIDENCE),
        ({"confidence": -0.1}, DropReason.BAD_CONFIDENCE),
        ({"confidence": math.nan}, DropReason.BAD_CONFIDENCE),
        ({"confidence": math.inf}, DropReason.BAD_CONFIDENCE),
        ({"confidence": "0.5"}, DropReason.BAD_CONFIDENCE),
        ({"confidence": True}, DropReason.BAD_CONFIDENCE),
        ({"confidence": None}, DropReason.BAD_CONFIDENCE),
        ({"kind": EvidenceKind.UPSERT}, DropReason.BAD_KIND),
        ({"kind": EvidenceKind.RETRACT}, DropReason.BAD_KIND),
        ({"value": "sk-abcdefgh12345678ijkl"}, DropReason.SECRET),
        ({"value": "[hidden]"}, DropReason.SECRET),
        ({"reason": "my password is hunter2"}, DropReason.SECRET),
    ],
)
def test_what_does_not_count_is_dropped_and_counted(other: dict[str, Any], reason: DropReason) -> None:
    dropped = Dropped()

    assert evidence_of(Reading((statement(**other),)), [HELLO], "episode", dropped) == []
    assert dropped.counts == {reason: 1}


@pytest.mark.parametrize("user_id", [None, ""])
def test_an_event_without_a_user_has_no_subject(user_id: str | None) -> None:
    dropped = Dropped()

    assert evidence_of(Reading((statement(),)), [replace(HELLO, user_id=user_id)], "episode", dropped) == []
    assert dropped.counts == {DropReason.NO_USER: 1}


@pytest.mark.parametrize(
    ("value", "quote"), [("hunter2", "my password is hunter2"), ("hunter2", "my password"), ("x", "is hunter2")]
)
def test_a_secret_of_the_event_never_counts(value: str, quote: str) -> None:
    dropped = Dropped()
    told = event("I say: my password is hunter2.")

    found = evidence_of(Reading((statement(value=value, quote=quote),)), [told], "episode", dropped)

    assert found == []
    assert dropped.counts == {DropReason.SECRET: 1}


def test_the_limits_themselves_count() -> None:
    told = [statement(key="k" * 200, value="v" * 1_000, confidence=number) for number in (0, 1)]

    found = evidence_of(Reading(tuple(told)), [HELLO], "episode", Dropped())

    assert [one.confidence for _, _, one in found] == [1.0]


def test_a_quote_is_compared_by_its_letters() -> None:
    told = event("Ich wohne\n in der \N{LATIN SMALL LIGATURE FI}nkenstra\xdfe")

    assert occurs("wohne in der FINKENSTRASSE", told.text)
    assert not occurs("", told.text)
    assert not occurs("wohne in  derfinken", told.text)


def test_one_evidence_for_a_value_of_an_event() -> None:
    dropped = Dropped()
    told = (
        statement(confidence=0.5),
        statement(confidence=0.9, value="Tabs "),
        statement(confidence=0.3, kind=EvidenceKind.CORRECT, value="TABS"),
        statement(value="spaces"),
        statement(key="preference.other"),
        statement(event_id="e2"),
    )

    found = evidence_of(Reading(told), [HELLO, replace(HELLO, id="e2")], "episode", dropped)

    assert [(key, one.value, one.kind, one.event) for _, key, one in found] == [
        ("preference.indentation", "TABS", EvidenceKind.CORRECT, "e1"),
        ("preference.indentation", "spaces", EvidenceKind.STATE, "e1"),
        ("preference.other", "tabs", EvidenceKind.STATE, "e1"),
        ("preference.indentation", "tabs", EvidenceKind.STATE, "e2"),
    ]
    assert dropped.counts == {DropReason.REPEATED: 2}


def test_a_domain_or_a_reason_that_can_t_be_is_left_out() -> None:
    told = Reading((statement(domain=" ", reason="a\0"),))

    ((_, _, one),) = evidence_of(told, [HELLO], "episode", Dropped())

    assert (one.domain, one.reason) == ("general", None)


anything = st.builds(
    Statement,
    event_id=st.sampled_from(["e1", "e2", ""]),
    kind=st.sampled_from(EvidenceKind),
    key=st.one_of(st.text(max_size=10), st.just("a.b")),
    value=st.text(max_size=10),
    confidence=st.one_of(st.floats(), st.just(0.5)),
    belief_type=st.sampled_from(BeliefType),
    domain=st.text(max_size=5),
    quote=st.one_of(st.text(max_size=3), st.just("I prefer")),
    reason=st.none() | st.text(max_size=5),
)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(anything, max_size=8))
def test_any_reading_gives_sound_evidence_and_a_count_of_the_rest(told: list[Statement]) -> None:
    dropped = Dropped()

    found = evidence_of(Reading(tuple(told)), [HELLO, event("", "e2")], "episode", dropped)

    assert len(found) + sum(dropped.counts.values()) == len(told)
    assert len({(subject, key, one.event, one.form) for subject, key, one in found}) == len(found)
    for subject, key, one in found:
        assert subject == "alex"
        assert KEY.fullmatch(key)
        assert 0 <= one.confidence <= 1
        assert one.form


def test_a_memory_s_reading_is_cleaned() -> None:
    facts = (
        FactDraft(" API ", "depends on", "Redis", 0.5),
        FactDraft("api", "depends  on", "redis", 0.9),
        FactDraft("", "is", "x"),
        FactDraft("a", "is", "b", math.nan),
        FactDraft("a", "is", "x" * 1_001),
        FactDraft("the password", "is", "[hidden]"),
        FactDraft("a\ud800", "is", "b"),
    )
    told = MemoryReading(
        (" search", "Search", "", "x" * 201, "\0", *(f"topic {number}" for number in range(20))),
        (("Neo4j", EntityType.TOOL), ("neo4j", EntityType.TOOL), ("neo4j", EntityType.PROJECT), (" ", EntityType.TOOL)),
        facts + tuple(FactDraft(f"a{number}", "is", "b") for number in range(100)),
        7,
    )

    found = cleaned_memory_reading(told)

    assert found.topics == ("search", *(f"topic {number}" for number in range(7)))
    assert found.entities == (("Neo4j", EntityType.TOOL), ("neo4j", EntityType.PROJECT))
    assert found.facts[:2] == (FactDraft("API", "depends on", "Redis", 0.5), FactDraft("a0", "is", "b"))
    assert len(found.facts) == FACTS_MOST
    assert found.tokens == 7


def test_an_episode_s_summary_and_tags_are_cleaned() -> None:
    found = cleaned_reading(Reading((), " s" * 2_000, ("a ", "A", " ", "b"), None, 3))

    assert found.summary is not None
    assert len(found.summary) == SUMMARY_MOST
    assert (found.tags, found.tokens) == (("a", "b"), 3)
    assert cleaned_reading(Reading((), " ")) == Reading(())
    assert cleaned_reading(Reading((), "the password is hunter2")).summary is None
