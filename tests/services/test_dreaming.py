"""Episodes read by a model that fails in every way: nothing is lost or doubled, and the reason can be seen."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from tests.conftest import LEAVE_ALONE, Api
from tests.openai_server import (
    CHAT,
    Call,
    Fault,
    OpenAIServer,
    cut_short,
    failing,
    half_body,
    rate_limited,
    refusing,
    rewording,
    slow,
)

from reverie.ai.openai_extractor import OpenAIExtractor, OpenAIExtractorOptions
from reverie.domain.clock import now_ms
from reverie.graph.dreaming import take_episode
from reverie.resources import Resources
from reverie.worker.loop import work

TIMEOUT = 2.0
MORNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TABS, SPACES = "I prefer tabs for indentation", "Actually, I prefer spaces for indentation now"
EPISODES = "{ episodes(first: 200) { nodes { id threadId consolidationStatus attempts failure } } }"
DREAM = "dream { episodes done failed finishedAt }"
COUNTED = """
RETURN [
  COUNT { MATCH (e:Evidence {tenant: $t}) },
  COLLECT { MATCH (c:Change) WHERE c.tenant = $t AND c.number >= 0 RETURN c.number ORDER BY c.number },
  COLLECT { MATCH (e:Episode) WHERE e.tenant = $t AND e.id > '' RETURN coalesce(e.dropped, 0) }
]
"""


@dataclass
class Model:
    """The model behind the worker, and what goes wrong with its next answers, one each."""

    server: OpenAIServer
    faults: deque[Fault]

    @property
    def calls(self) -> list[Call]:
        return [call for call in self.server.calls if call.path == CHAT]


@pytest.fixture
def model() -> Iterator[Model]:
    with OpenAIServer() as server:
        made = Model(server, deque())
        server.fault_for = lambda call: made.faults.popleft() if call.path == CHAT and made.faults else None
        yield made


@pytest_asyncio.fixture
async def by_model(resources: Resources, model: Model) -> AsyncIterator[Resources]:
    """Resources of a worker that asks the model, once each time, and rests but shortly after failures."""
    extractor = OpenAIExtractor(
        OpenAIExtractorOptions(
            api_key=model.server.api_key,
            base_url=model.server.base_url,
            timeout=TIMEOUT,
            deadline=TIMEOUT + 1,
            max_attempts=1,
        )
    )
    yield replace(resources, extractor=extractor, dreaming=replace(resources.dreaming, first_pause=200, attempts=3))
    await extractor.close()


@pytest_asyncio.fixture
async def worker(by_model: Resources) -> AsyncIterator[None]:
    await by_model.graph.execute(LEAVE_ALONE)
    working = asyncio.create_task(work(by_model))
    yield
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def tell(api: Api, *texts: str, user: str = "alex") -> list[str]:
    """A message a day, each an episode of its own; the episodes, all of them closed."""
    events = [
        {
            "eventType": "USER_MESSAGE",
            "content": text,
            "threadId": f"editor of {user}",
            "userId": user,
            "occurredAt": (MORNING + timedelta(days=day)).isoformat(),
        }
        for day, text in enumerate(texts)
    ]
    told = await api.mutate("recordEvents", "RecordEventsInput", "events { episode { id } }", {"events": events})
    closing = {"threadId": f"editor of {user}"}
    await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", closing)
    return [event["episode"]["id"] for event in told["events"]]


async def dream(api: Api) -> dict[str, Any]:
    payload = await api.mutate("dream", "DreamInput", DREAM, {"wait": True})
    assert payload["errors"] == []
    assert payload["dream"]["finishedAt"] is not None
    done: dict[str, Any] = payload["dream"]
    return done


async def episodes(api: Api) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in (await api(EPISODES))["episodes"]["nodes"]}


async def assert_learned_once(api: Api, resources: Resources) -> None:
    """Tabs, then spaces: one piece of evidence for each, and one entry of the log."""
    found = await api(
        """{ beliefs(filter: {epistemicStatuses: [ACTIVE, SUPERSEDED, CONTRADICTED, RETRACTED]}) {
          nodes { value epistemicStatus validFrom evidenceCount evidence { nodes { text } } } } }"""
    )
    versions = sorted(found["beliefs"]["nodes"], key=lambda node: node["validFrom"])
    assert [(one["value"], one["epistemicStatus"], one["evidenceCount"]) for one in versions] == [
        ("tabs", "SUPERSEDED", 1),
        ("spaces", "ACTIVE", 1),
    ]
    assert [one["evidence"]["nodes"] for one in versions] == [[{"text": TABS}], [{"text": SPACES}]]
    evidence, numbers, _ = await resources.graph.read(COUNTED, t=api.tenant)
    assert (evidence, numbers) == (2, [1, 2])


def without_quotes(text: str) -> str:
    return text.replace('"quote"', '"proof"')


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("fault", "calls", "attempts"),
    [
        (None, 2, 1),
        (rewording(lambda text: f"Here it is:\n```json\n{text}\n```\nAnything else?"), 2, 1),
        (rewording(without_quotes), 3, 1),
        (rewording(lambda text: text[: len(text) // 2]), 3, 1),
        (cut_short(), 3, 2),
        (half_body(), 3, 2),
        (failing(500), 3, 2),
        (slow(60), 3, 2),
        (refusing(), 3, 2),
    ],
    ids=["good", "fenced", "no-quotes", "half-json", "cut-short", "half-body", "500", "time-out", "refusal"],
)
async def test_whatever_the_model_answers_first_each_thing_is_learned_once(
    fault: Fault | None, calls: int, attempts: int, api: Api, model: Model, by_model: Resources
) -> None:
    model.faults.extend([] if fault is None else [fault])
    first, second = await tell(api, TABS, SPACES)

    done = await dream(api)

    # they may have been read before the dream began
    assert done["episodes"] <= len((first, second))
    assert (done["done"], done["failed"]) == (done["episodes"], 0)
    await assert_learned_once(api, by_model)
    found = await episodes(api)
    assert {node["consolidationStatus"] for node in found.values()} == {"CONSOLIDATED"}
    assert [found[one]["attempts"] for one in (first, second)] == [attempts, 1]
    assert {node["failure"] for node in found.values()} == {None}
    assert len(model.calls) == calls


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    "invented",
    [lambda text: text.replace(f'"quote": "{TABS}"', '"quote": ""'), lambda text: text.replace(TABS, "I adore tabs")],
    ids=["empty", "not-there"],
)
async def test_what_no_event_shows_is_dropped_and_counted(
    invented: Any, api: Api, model: Model, by_model: Resources
) -> None:
    model.faults.append(rewording(invented))
    await tell(api, TABS)

    await dream(api)

    (episode,) = (await episodes(api)).values()
    assert (episode["consolidationStatus"], episode["failure"]) == ("CONSOLIDATED", None)
    assert await by_model.graph.read(COUNTED, t=api.tenant) == [0, [], [1]]
    assert (await api("{ events { totalCount } }"))["events"]["totalCount"] == 1


@pytest.mark.usefixtures("worker")
async def test_the_provider_is_left_alone_for_as_long_as_it_asks_and_the_reason_is_seen_meanwhile(
    api: Api, model: Model, by_model: Resources
) -> None:
    model.faults.append(rate_limited(retry_after="2"))
    (episode,) = await tell(api, TABS)
    async with asyncio.timeout(30):
        while (seen := (await episodes(api))[episode])["failure"] is None:  # noqa: ASYNC110 - as long as nobody tells
            await asyncio.sleep(0.05)
    assert (seen["consolidationStatus"], seen["attempts"]) == ("PENDING", 1)
    assert seen["failure"] == "Extraction failed: 127.0.0.1 answered 429 (rate_limit_exceeded)."

    await dream(api)

    asked, again = (call.at for call in model.calls)
    assert again - asked >= 2
    after = (await episodes(api))[episode]
    assert (after["consolidationStatus"], after["attempts"], after["failure"]) == ("CONSOLIDATED", 2, None)
    assert (await by_model.graph.read(COUNTED, t=api.tenant))[:2] == [1, [1]]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            failing(500, f"No luck with {TABS} and the key sk-secret-of-nobody"),
            "Extraction failed: 127.0.0.1 answered 500.",
        ),
        (refusing(), "Extraction failed: gpt-4.1-mini declined to read this."),
        (cut_short(), "Extraction failed: the answer of gpt-4.1-mini was cut off at its length limit."),
    ],
    ids=["500", "refusal", "cut-short"],
)
async def test_after_its_attempts_it_has_failed_with_a_reason_and_sent_back_it_has_them_all_again(
    fault: Fault, reason: str, api: Api, model: Model, by_model: Resources
) -> None:
    model.faults.extend([fault] * 3)
    (episode,) = await tell(api, TABS)

    done = await dream(api)

    assert (done["done"], done["failed"]) == (0, 1)
    failed = (await episodes(api))[episode]
    assert (failed["consolidationStatus"], failed["attempts"], failed["failure"]) == ("FAILED", 3, reason)
    assert await by_model.graph.read(COUNTED, t=api.tenant) == [0, [], [0]]
    state = await api("{ server { worker { pendingEpisodes failedEpisodes } } }")
    assert state["server"]["worker"] == {"pendingEpisodes": 0, "failedEpisodes": 1}

    model.faults.extend([fault] * 2)
    payload = await api.mutate(
        "retryEpisode", "RetryEpisodeInput", "episode { consolidationStatus failure }", {"id": episode}
    )
    assert payload["episode"] == {"consolidationStatus": "PENDING", "failure": None}
    await dream(api)

    after = (await episodes(api))[episode]
    assert (after["consolidationStatus"], after["attempts"], after["failure"]) == ("CONSOLIDATED", 6, None)
    assert (await by_model.graph.read(COUNTED, t=api.tenant))[:2] == [1, [1]]


@pytest.mark.usefixtures("worker")
async def test_pauses_double(api: Api, model: Model) -> None:
    model.faults.extend([failing(500)] * 2)
    await tell(api, TABS)

    await dream(api)

    first, second, third = (call.at for call in model.calls)
    assert second - first >= 0.2
    assert third - second >= 0.4


async def test_one_over_which_workers_died_too_often_has_failed_and_can_be_sent_back(
    api: Api, resources: Resources
) -> None:
    await resources.graph.execute(LEAVE_ALONE)
    (episode,) = await tell(api, TABS)
    now = now_ms()
    taken = 0
    # when: every worker dies at once, and its lease runs out
    while await take_episode(resources.graph, now, 1_000) is not None:
        now += 2_000
        taken += 1
    assert taken == 5
    failed = (await episodes(api))[episode]
    assert failed["consolidationStatus"] == "FAILED"
    assert failed["failure"] == "the worker ended 5 times while it read this episode"

    await api.mutate("retryEpisode", "RetryEpisodeInput", "episode { id }", {"id": episode})

    again = await take_episode(resources.graph, now + 2_000, 1_000)
    assert again is not None
    assert again.episode_id == episode
    await resources.graph.execute(LEAVE_ALONE)


async def test_a_long_queue_of_one_subject_holds_up_no_other(api: Api, resources: Resources) -> None:
    await resources.graph.execute(LEAVE_ALONE)
    queue = await tell(api, *[TABS] * 60)
    (other,) = await tell(api, *[TABS], user="robin")
    now = now_ms()

    taken = [await take_episode(resources.graph, now, 60_000) for _ in range(3)]

    assert {lease.episode_id for lease in taken if lease is not None} == {queue[0], other}
    await resources.graph.execute(LEAVE_ALONE)
