"""Both extractors keep one contract; and whatever a provider answers, nothing false becomes evidence."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.openai_server import (
    Fault,
    OpenAIServer,
    answering,
    cut_short,
    failing,
    garbage,
    half_body,
    rate_limited,
    refusing,
    rewording,
    slow,
)

from reverie.ai.extractors import Extractor
from reverie.ai.openai_extractor import OpenAIExtractor, OpenAIExtractorOptions
from reverie.ai.rules_extractor import RulesExtractor
from reverie.domain.beliefs import EvidenceKind
from reverie.domain.entities import EntityType
from reverie.domain.events import Event, EventType
from reverie.domain.extraction import Dropped, DropReason, KnownBelief, Reading, evidence_of, occurs
from reverie.domain.facts import FactDraft
from reverie.errors import ExtractionFailed

START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
USER = EventType.USER_MESSAGE
TABS = "I prefer tabs for indentation"
SPACES = "Actually, I prefer spaces for indentation now"
KEY = "ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0fG1hJ2"


def events(*texts: str, event_type: EventType = USER) -> list[Event]:
    return [
        Event(f"event-{place}", event_type, text, text, "thread", "alex", None, START + timedelta(minutes=place), START)
        for place, text in enumerate(texts)
    ]


@pytest.fixture
def options(openai_server: OpenAIServer) -> OpenAIExtractorOptions:
    return OpenAIExtractorOptions(
        api_key=openai_server.api_key, base_url=openai_server.base_url, timeout=20.0, deadline=40.0, max_attempts=2
    )


@pytest.fixture
async def model(options: OpenAIExtractorOptions) -> AsyncIterator[OpenAIExtractor]:
    extractor = OpenAIExtractor(options)
    yield extractor
    await extractor.close()


@pytest.fixture(params=["rules", "model"])
async def extractor(request: pytest.FixtureRequest, model: OpenAIExtractor) -> Extractor:
    return RulesExtractor() if request.param == "rules" else model


def found(reading: Reading) -> list[tuple[str, str, str, EvidenceKind]]:
    return [(one.event_id, one.key, one.value, one.kind) for one in reading.statements]


async def test_what_is_stated_and_corrected_is_found(extractor: Extractor) -> None:
    told = events(TABS, "Noted.", SPACES)

    reading = await extractor.read_episode(told, [])

    assert found(reading) == [
        ("event-0", "preference.indentation", "tabs", EvidenceKind.STATE),
        ("event-2", "preference.indentation", "spaces", EvidenceKind.CORRECT),
    ]


async def test_what_is_found_is_evidence_of_its_event(extractor: Extractor) -> None:
    told, dropped = events(TABS, SPACES), Dropped()

    evidence = evidence_of(await extractor.read_episode(told, []), told, "episode", dropped)

    assert [(subject, key, one.value, one.event) for subject, key, one in evidence] == [
        ("alex", "preference.indentation", "tabs", "event-0"),
        ("alex", "preference.indentation", "spaces", "event-1"),
    ]
    assert dropped.counts == {}


async def test_what_holds_no_longer_is_ended(extractor: Extractor) -> None:
    known = [KnownBelief("preference.indentation", "tabs")]

    reading = await extractor.read_episode(events("I no longer prefer tabs for indentation."), known)

    assert found(reading) == [("event-0", "preference.indentation", "tabs", EvidenceKind.END)]


@pytest.mark.parametrize("texts", [[], [""], [" \n"], ["Do I prefer tabs for indentation?"], ["Good morning."]])
async def test_where_nothing_is_stated_nothing_is_found(extractor: Extractor, texts: list[str]) -> None:
    assert (await extractor.read_episode(events(*texts), [])).statements == ()


async def test_what_one_event_says_is_not_another_s(extractor: Extractor) -> None:
    first, second = events(TABS, "My name is Bo.")

    reading = await extractor.read_episode([first, replace(second, user_id="bo")], [])

    assert [(one.event_id, one.key) for one in reading.statements] == [
        ("event-0", "preference.indentation"),
        ("event-1", "name"),
    ]


async def test_quotes_occur_in_their_events(extractor: Extractor) -> None:
    told = events(f"Hi.\n{TABS}.", f"  {SPACES}!", "my name  is\tAlex")

    for one in (await extractor.read_episode(told, [])).statements:
        assert occurs(one.quote, next(event.text for event in told if event.id == one.event_id))


async def test_a_secret_is_never_found(extractor: Extractor, openai_server: OpenAIServer) -> None:
    told, dropped = events(f"I prefer {KEY} for login. My password is hunter2."), Dropped()

    evidence = evidence_of(await extractor.read_episode(told, []), told, "episode", dropped)

    assert evidence == []
    for call in openai_server.calls:
        assert KEY not in call.said
        assert "hunter2" not in call.said


async def test_any_text_can_be_read(extractor: Extractor) -> None:
    odd = [
        "\ud800 I prefer tabs for indentation",
        "\0",
        "</events-1>\n{}",
        '"}\n{"event": "e1"',
        "я 漢 👍",
        "x" * 300_000,
    ]

    reading = await extractor.read_episode(events(*odd), [KnownBelief("a.b", "\ud800")])

    assert {one.event_id for one in reading.statements} <= {"event-0"}
    await extractor.read_memory(odd[0] + odd[1], [("\ud800", EntityType.TOOL)])


async def test_a_memory_s_entities_and_facts_are_found(extractor: Extractor) -> None:
    text = "The billingService depends on NEO4J. The migration covers the migration of indexes."

    reading = await extractor.read_memory(text, [("Neo4j", EntityType.PROJECT)])

    assert ("Neo4j", EntityType.PROJECT) in reading.entities
    assert [(fact.subject, fact.predicate, fact.object) for fact in reading.facts] == [
        ("billingService", "depends on", "NEO4J")
    ]
    assert "migration" in reading.topics


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_nothing_is_found_in_a_blank_memory(extractor: Extractor, text: str) -> None:
    reading = await extractor.read_memory(text, [])

    assert (reading.topics, reading.entities, reading.facts) == ((), (), ())


async def test_readings_may_be_at_once(extractor: Extractor) -> None:
    readings = await asyncio.gather(*(extractor.read_episode(events(f"My name is N{place}"), []) for place in range(8)))

    assert [reading.statements[0].value for reading in readings] == [f"N{place}" for place in range(8)]


def test_the_names_tell_what_reads(options: OpenAIExtractorOptions) -> None:
    assert RulesExtractor().name == "rules:en"
    assert options.name == "openai:gpt-4.1-mini"


# What providers answer.


@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"```json\n{text}\n```",
        lambda text: f"Here you are:\n\n```\n{text}\n```\nAnything else?",
        lambda text: f"<think>Is it {{}}? Or tabs?</think>\n{text}",
        lambda text: text + text,
        lambda text: json.dumps(json.loads(text) | {"note": "more than was asked"}),
    ],
    ids=["fenced", "with words around it", "with thoughts", "twice", "with more"],
)
async def test_json_is_found_in_its_wrapping(
    openai_server: OpenAIServer, model: OpenAIExtractor, change: Callable[[str], str]
) -> None:
    openai_server.faults.append(rewording(change))

    reading = await model.read_episode(events(TABS), [])

    assert found(reading) == [("event-0", "preference.indentation", "tabs", EvidenceKind.STATE)]
    assert len(openai_server.calls) == 1


def altered(**fields: object) -> Fault:
    """The right answer, with other fields in its statements."""

    def change(text: str) -> str:
        answer = json.loads(text)
        answer["statements"] = [one | fields for one in answer["statements"]]
        return json.dumps(answer)

    return rewording(change)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (altered(quote=""), DropReason.QUOTE_NOT_FOUND),
        (altered(quote="I prefer spaces"), DropReason.QUOTE_NOT_FOUND),
        (altered(event="e9"), DropReason.UNKNOWN_EVENT),
        (altered(event=""), DropReason.UNKNOWN_EVENT),
        (altered(key="Not a key!"), DropReason.MALFORMED_KEY),
        (altered(confidence=1.5), DropReason.BAD_CONFIDENCE),
        (rewording(lambda text: text.replace("0.9", "NaN")), DropReason.BAD_CONFIDENCE),
        (altered(value=" "), DropReason.BAD_VALUE),
        (altered(value="a\0b"), DropReason.BAD_VALUE),
        (altered(value=KEY), DropReason.SECRET),
    ],
)
async def test_a_statement_without_evidence_is_dropped_and_counted(
    openai_server: OpenAIServer, model: OpenAIExtractor, fault: Fault, reason: DropReason
) -> None:
    told, dropped = events(TABS), Dropped()
    openai_server.faults.append(fault)

    assert evidence_of(await model.read_episode(told, []), told, "episode", dropped) == []
    assert dropped.counts == {reason: 1}


WRONG = [
    pytest.param(rewording(lambda text: text[: len(text) // 2]), id="half an answer"),
    pytest.param(answering("I found nothing."), id="prose"),
    pytest.param(answering(""), id="nothing"),
    pytest.param(answering(None), id="null"),
    pytest.param(answering("{}"), id="an empty object"),
    pytest.param(answering("[]"), id="a list"),
    pytest.param(answering('{"type": "object", "properties": {"statements": {}}}'), id="the schema"),
    pytest.param(rewording(lambda text: text.replace("0.9", '"high"')), id="a word for a number"),
    pytest.param(rewording(lambda text: text.replace("STATE", "state")), id="an unknown kind"),
    pytest.param(answering('{"statements":' + "[" * 200_000), id="nested without end"),
    pytest.param(Fault(edit=lambda _: {"choices": []}), id="no choice"),
    pytest.param(Fault(edit=lambda _: {"choices": [None]}), id="a choice that is none"),
    pytest.param(Fault(edit=lambda _: []), id="no object"),
]


@pytest.mark.parametrize("fault", WRONG)
async def test_an_answer_in_a_wrong_form_is_repaired_once(
    openai_server: OpenAIServer, model: OpenAIExtractor, fault: Fault
) -> None:
    openai_server.faults.append(fault)

    reading = await model.read_episode(events(TABS), [])

    assert found(reading) == [("event-0", "preference.indentation", "tabs", EvidenceKind.STATE)]
    first, second = openai_server.calls
    assert second.body["messages"][:2] == first.body["messages"]
    assert [message["role"] for message in second.body["messages"][2:]] == ["assistant", "user"]
    assert "can't be used" in second.body["messages"][3]["content"]


@pytest.mark.parametrize("fault", WRONG)
async def test_an_answer_that_stays_wrong_fails(
    openai_server: OpenAIServer, model: OpenAIExtractor, fault: Fault
) -> None:
    openai_server.fault_for = lambda _: fault

    with pytest.raises(ExtractionFailed, match=r"^Extraction failed: gpt-4\.1-mini answered twice in a form that"):
        await model.read_episode(events(TABS), [])

    assert len(openai_server.calls) == 2


async def test_what_was_wrong_is_said(openai_server: OpenAIServer, model: OpenAIExtractor) -> None:
    openai_server.faults.append(rewording(lambda text: text.replace("0.9", '"high"')))

    await model.read_episode(events(TABS), [])

    assert "statements.0.confidence" in openai_server.calls[1].body["messages"][3]["content"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (refusing(), "gpt-4.1-mini declined to read this"),
        (answering("", finish="content_filter"), "gpt-4.1-mini declined to read this"),
        (cut_short(), "was cut off at its length limit"),
        (failing(401, code="invalid_api_key"), "answered 401 (invalid_api_key)"),
        (failing(404, code="model_not_found"), "answered 404 (model_not_found)"),
    ],
)
async def test_what_can_t_be_helped_fails_at_once(
    openai_server: OpenAIServer, model: OpenAIExtractor, fault: Fault, words: str
) -> None:
    openai_server.faults.append(fault)

    with pytest.raises(ExtractionFailed) as caught:
        await model.read_episode(events(TABS), [])

    assert words in str(caught.value)
    assert caught.value.retry_after is None
    assert "secret" not in str(caught.value)
    assert len(openai_server.calls) == 1


@pytest.mark.parametrize(
    "fault",
    [failing(500), rate_limited(), rate_limited(retry_after="1"), garbage(), half_body()],
    ids=["500", "429", "429 with Retry-After", "garbage", "half a body"],
)
async def test_a_passing_fault_loses_nothing(openai_server: OpenAIServer, model: OpenAIExtractor, fault: Fault) -> None:
    openai_server.faults.append(fault)

    assert len((await model.read_episode(events(TABS), [])).statements) == 1
    assert len(openai_server.calls) == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [(failing(500, "a secret text"), "answered 500"), (rate_limited(), r"answered 429 \(rate_limit_exceeded\)")],
)
async def test_a_lasting_fault_fails_in_words_for_people(
    openai_server: OpenAIServer, model: OpenAIExtractor, fault: Fault, words: str
) -> None:
    openai_server.fault_for = lambda _: fault

    with pytest.raises(ExtractionFailed, match=rf"^Extraction failed: 127\.0\.0\.1 {words}\.$"):
        await model.read_episode(events(TABS), [])


async def test_a_provider_that_asks_for_long_rest_is_told_of(
    openai_server: OpenAIServer, model: OpenAIExtractor
) -> None:
    openai_server.faults.append(rate_limited(retry_after="300"))

    for _ in range(2):
        with pytest.raises(ExtractionFailed, match="answered 429") as caught:
            await model.read_episode(events(TABS), [])
        assert caught.value.retry_after is not None
        assert 290 < caught.value.retry_after < 302

    assert len(openai_server.calls) == 1


async def test_an_answer_that_takes_too_long_fails(
    openai_server: OpenAIServer, options: OpenAIExtractorOptions
) -> None:
    openai_server.fault_for = lambda _: slow(20.0)
    extractor = OpenAIExtractor(replace(options, timeout=0.3, max_attempts=1))

    with pytest.raises(ExtractionFailed, match=r"127\.0\.0\.1 didn't answer within 0\.3 s"):
        await extractor.read_episode(events(TABS), [])

    await extractor.close()


async def test_a_closed_extractor_fails(model: OpenAIExtractor) -> None:
    await model.close()

    with pytest.raises(ExtractionFailed, match="closed"):
        await model.read_memory("Neo4j", [])


async def test_a_memory_s_facts_keep_their_confidence(model: OpenAIExtractor) -> None:
    assert (await model.read_memory("api depends on redis", [])).facts == (
        FactDraft("api", "depends on", "redis", 0.9),
    )
