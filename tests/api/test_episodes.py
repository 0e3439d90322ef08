"""Episodes over the API: how they grow, close, take late events, and are sent back after a failure."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from tests.conftest import Api
from tests.recording import message, record
from tests.stored import stored

from reverie.bus.bells import NoticeKind
from reverie.domain.ids import new_id
from reverie.resources import Resources

EPISODE = (
    "id threadId userId agentId summary tags outcome consolidationStatus startedAt endedAt attempts failure "
    "conversation { threadId } events(first: 200) { totalCount nodes { text } }"
)
LISTED = f"query($filter: EpisodeFilter) {{ episodes(filter: $filter) {{ totalCount nodes {{ {EPISODE} }} }} }}"
SET = "MATCH (e:Episode&Node {id: $id}) SET e += $properties"


def at(minute: float, text: Any = "hello", thread: str = "t", **given: Any) -> dict[str, Any]:
    """A message so many minutes after midnight."""
    second = round(minute * 60)
    moment = (
        f"2026-03-{1 + second // 86_400:02}T{second % 86_400 // 3600:02}:{second % 3600 // 60:02}:{second % 60:02}Z"
    )
    return message(text, thread, occurredAt=moment, **given)


async def listed(api: Api, **wanted: Any) -> list[dict[str, Any]]:
    found = (await api(LISTED, filter=wanted or None))["episodes"]
    assert found["totalCount"] == len(found["nodes"])
    nodes: list[dict[str, Any]] = found["nodes"]
    return nodes


async def shape(api: Api) -> list[tuple[str, list[str]]]:
    """The episodes by their states and events, latest first."""
    return [
        (episode["consolidationStatus"], [event["text"] for event in episode["events"]["nodes"]])
        for episode in await listed(api)
    ]


async def close(api: Api, **given: Any) -> dict[str, Any]:
    return await api.mutate("closeEpisode", "CloseEpisodeInput", f"episode {{ {EPISODE} }}", given)


async def closed(api: Api, **given: Any) -> dict[str, Any]:
    payload = await close(api, **given)
    assert payload["errors"] == []
    episode: dict[str, Any] = payload["episode"]
    return episode


def refusal(payload: dict[str, Any]) -> list[tuple[str, list[str]]]:
    assert payload["episode"] is None
    return [(error["code"], error["path"]) for error in payload["errors"]]


@pytest_asyncio.fixture
async def pending(resources: Resources) -> AsyncIterator[asyncio.Event]:
    """Set when the worker is told that there is work."""
    rung = asyncio.Event()

    async def hear() -> None:
        with resources.bell.listen(NoticeKind.WORK) as listener:
            async for _ in listener:
                rung.set()

    hearing = asyncio.create_task(hear())
    await asyncio.sleep(0)
    yield rung
    hearing.cancel()


# ---------------------------------------------------------------- how they grow


async def test_an_open_episode_has_no_end_and_no_summary(api: Api, pending: asyncio.Event) -> None:
    await record(api, at(0, "one", userId="ann", agentId="bot"), at(30, "two", userId="ann"))

    (episode,) = await listed(api)

    assert episode == {
        "id": episode["id"],
        "threadId": "t",
        "userId": "ann",
        "agentId": "bot",
        "summary": None,
        "tags": [],
        "outcome": None,
        "consolidationStatus": "OPEN",
        "startedAt": "2026-03-01T00:00:00.000Z",
        "endedAt": None,
        "attempts": 0,
        "failure": None,
        "conversation": {"threadId": "t"},
        "events": {"totalCount": 2, "nodes": [{"text": "one"}, {"text": "two"}]},
    }
    by_id = f"query($id: ID!) {{ episode(id: $id) {{ {EPISODE} }} node(id: $id) {{ ... on Episode {{ {EPISODE} }} }} }}"
    assert await api(by_id, id=episode["id"]) == {"episode": episode, "node": episode}
    assert not pending.is_set()


async def test_the_next_event_after_the_gap_ends_it(api: Api, pending: asyncio.Event) -> None:
    await record(api, at(0, "I prefer tabs for indentation.", userId="ann"), at(1, "Fine.", eventType="AGENT_RESPONSE"))

    await record(api, at(31.1, "next day"))

    later, earlier = await listed(api)
    assert (later["consolidationStatus"], earlier["consolidationStatus"]) == ("OPEN", "PENDING")
    assert earlier["summary"] == "I prefer tabs for indentation. … Fine."
    assert earlier["tags"] == ["indentation", "prefer", "tabs", "fine"]
    assert (earlier["outcome"], earlier["endedAt"]) == ("COMPLETED", "2026-03-01T00:01:00.000Z")
    assert pending.is_set()


async def test_the_201st_event_ends_it(api: Api, pending: asyncio.Event) -> None:
    await record(api, *(at(number / 60, f"{number}") for number in range(200)), selection="id")
    assert [status for status, _ in await shape(api)] == ["OPEN"]
    assert not pending.is_set()

    await record(api, at(200 / 60, "200"))

    later, earlier = await shape(api)
    assert later == ("OPEN", ["200"])
    assert earlier == ("PENDING", [f"{number}" for number in range(200)])
    assert pending.is_set()


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_how_events_are_batched_makes_no_difference(api: Api, size: int) -> None:
    minutes = [0, 1, 2, 40, 41, 100, 131, 161, 161, 300]
    events = [at(minute, f"{place}") for place, minute in enumerate(minutes)]

    for start in range(0, len(events), size):
        await record(api, *events[start : start + size])

    assert await shape(api) == [
        ("OPEN", ["9"]),
        ("PENDING", ["6", "7", "8"]),
        ("PENDING", ["5"]),
        ("PENDING", ["3", "4"]),
        ("PENDING", ["0", "1", "2"]),
    ]
    assert all(
        (episode["endedAt"] is None) is (episode["consolidationStatus"] == "OPEN") for episode in await listed(api)
    )


@pytest.mark.parametrize("step", [7, 11, 23, 41])
async def test_out_of_order_and_from_several_writers_nothing_is_lost(api: Api, second_server: Api, step: int) -> None:
    # 90 events in bursts, with pauses of 8 to 55 minutes, sent in another order than they occurred, up to five at once
    minutes, minute = [], 0
    for place in range(90):
        minute += (0, 1, 8, 29, 30, 31, 55)[place * step % 7]
        minutes.append(minute)
    sent = [at(minutes[place * step % 90], f"{place * step % 90}") for place in range(90)]
    batches = [sent[start : start + 6] for start in range(0, 90, 6)]

    for turn in range(0, len(batches), 5):
        await asyncio.gather(
            *(
                record(api if place % 2 else second_server, *batch, selection="id")
                for place, batch in enumerate(batches[turn : turn + 5])
            )
        )

    selection = "consolidationStatus startedAt endedAt summary events(first: 200) { nodes { text occurredAt } }"
    found = (await api(f"{{ episodes(first: 200) {{ nodes {{ {selection} }} }} }}"))["episodes"]["nodes"]
    told = [event["text"] for episode in found for event in episode["events"]["nodes"]]
    assert sorted(told, key=int) == [f"{place}" for place in range(90)]
    for episode in found:
        times = [event["occurredAt"] for event in episode["events"]["nodes"]]
        assert times == sorted(times)
        assert episode["startedAt"] == times[0]
        assert all(
            datetime.fromisoformat(later) - datetime.fromisoformat(earlier) <= timedelta(minutes=30)
            for earlier, later in pairwise(times)
        )
        over = episode["consolidationStatus"] == "PENDING"
        assert (episode["endedAt"], episode["summary"] is not None) == ((times[-1], True) if over else (None, False))


async def test_threads_grow_apart(api: Api) -> None:
    await record(api, at(0, "a", "one"), at(0, "b", "two"), at(60, "c", "one"), at(1, "d", "two"))

    assert sorted(await shape(api)) == [("OPEN", ["b", "d"]), ("OPEN", ["c"]), ("PENDING", ["a"])]


async def test_a_late_event_joins_an_episode_that_is_over_and_is_told_in_it(api: Api) -> None:
    await record(api, at(0, "Which editor?"), at(5, "Vim."), at(100, "later"))

    await record(api, at(6, "Emacs is out of the question", eventType="AGENT_RESPONSE"), at(0, "zero"))

    assert await shape(api) == [
        ("OPEN", ["later"]),
        ("PENDING", ["Which editor?", "zero", "Vim.", "Emacs is out of the question"]),
    ]
    episode = (await listed(api))[1]
    assert episode["outcome"] == "COMPLETED"
    assert "Emacs" in episode["summary"]
    assert episode["endedAt"] == "2026-03-01T00:06:00.000Z"


async def test_a_late_event_before_the_first_begins_it_earlier(api: Api) -> None:
    await record(api, at(60, "second"))
    await record(api, at(30, "first"))

    (episode,) = await listed(api)
    assert (episode["startedAt"], episode["consolidationStatus"]) == ("2026-03-01T00:30:00.000Z", "OPEN")


@pytest.mark.parametrize("status", ["PROCESSING", "CONSOLIDATED", "FAILED"])
async def test_what_the_worker_took_is_not_joined_and_nothing_is_lost(
    api: Api, resources: Resources, status: str
) -> None:
    await record(api, at(0, "a"), at(2, "b"), at(100, "c"))
    taken = (await listed(api))[1]
    await resources.graph.execute(SET, id=taken["id"], properties={"consolidationStatus": status})

    await record(api, at(1, "late"))

    assert await shape(api) == [("OPEN", ["c"]), ("OPEN", ["late"]), (status, ["a", "b"])]
    (same,) = [episode for episode in await listed(api) if episode["id"] == taken["id"]]
    assert same == {**taken, "consolidationStatus": status}


async def test_several_users_are_none(api: Api) -> None:
    await record(api, at(0, "a", userId="ann", agentId="bot"), at(1, "b"))
    (episode,) = await listed(api, userId="ann")
    assert (episode["userId"], episode["agentId"]) == ("ann", "bot")

    await record(api, at(2, "c", userId="bob", agentId="bot"))

    (episode,) = await listed(api)
    assert (episode["userId"], episode["agentId"]) == (None, "bot")
    assert await listed(api, userId="ann") == []
    await record(api, at(3, "d", userId="ann", agentId="bot"))
    assert (await listed(api))[0]["userId"] is None


# ---------------------------------------------------------------- closed by request


async def test_closed_by_its_id(api: Api, pending: asyncio.Event) -> None:
    (event, _) = await record(api, at(0, "Where are the keys?"), at(2, "Under the mat."))

    episode = await closed(api, id=event["episode"]["id"])

    assert (episode["consolidationStatus"], episode["outcome"]) == ("PENDING", "ABANDONED")
    assert episode["summary"] == "Where are the keys? … Under the mat."
    assert (episode["startedAt"], episode["endedAt"]) == ("2026-03-01T00:00:00.000Z", "2026-03-01T00:02:00.000Z")
    assert await listed(api) == [episode]
    assert pending.is_set()


async def test_closed_as_its_threads_open_one_that_began_last(api: Api) -> None:
    await record(api, at(100, "last"))
    await record(api, at(0, "late"), at(50, "elsewhere", "other"))
    assert [status for status, _ in await shape(api)] == ["OPEN"] * 3

    first, second = await closed(api, threadId="t"), await closed(api, threadId="t")

    assert [episode["events"]["nodes"][0]["text"] for episode in (first, second)] == ["last", "late"]
    assert refusal(await close(api, threadId="t")) == [("NOT_FOUND", ["threadId"])]
    assert refusal(await close(api, threadId="T")) == [("NOT_FOUND", ["threadId"])]
    assert sorted(await shape(api)) == [("OPEN", ["elsewhere"]), ("PENDING", ["last"]), ("PENDING", ["late"])]


async def test_a_given_outcome_stays_whatever_comes_late(api: Api) -> None:
    await record(api, at(0, "It works"), at(10, "great"))
    episode = await closed(api, threadId="t", outcome="ESCALATED")
    assert episode["outcome"] == "ESCALATED"

    await record(api, at(5, "Thanks", eventType="AGENT_RESPONSE"))

    (same,) = await listed(api)
    assert (same["id"], same["outcome"], same["events"]["totalCount"]) == (episode["id"], "ESCALATED", 3)


async def test_what_comes_after_the_end_is_another_episode(api: Api) -> None:
    await record(api, at(0, "a"))
    await closed(api, threadId="t")

    await record(api, at(1, "b"))

    assert await shape(api) == [("OPEN", ["b"]), ("PENDING", ["a"])]


async def test_closed_again_it_stays_as_it_is(api: Api) -> None:
    await record(api, at(0, "a"))
    episode = await closed(api, threadId="t", outcome="COMPLETED")

    assert await closed(api, id=episode["id"]) == episode
    assert await closed(api, id=episode["id"], outcome="COMPLETED") == episode


async def test_what_is_over_takes_an_outcome_until_it_is_taken_up(api: Api, resources: Resources) -> None:
    await record(api, at(0, "a"), at(100, "b"))
    episode = (await listed(api))[1]
    assert episode["outcome"] == "ABANDONED"

    assert await closed(api, id=episode["id"], outcome="COMPLETED") == {**episode, "outcome": "COMPLETED"}

    for status in ("PROCESSING", "CONSOLIDATED", "FAILED"):
        await resources.graph.execute(SET, id=episode["id"], properties={"consolidationStatus": status})
        before = await stored(resources.graph, api.tenant)
        as_it_is = {**episode, "outcome": "COMPLETED", "consolidationStatus": status}
        assert await closed(api, id=episode["id"]) == as_it_is
        assert await closed(api, id=episode["id"], outcome="COMPLETED") == as_it_is
        assert refusal(await close(api, id=episode["id"], outcome="ESCALATED")) == [("CONFLICT", ["outcome"])]
        assert await stored(resources.graph, api.tenant) == before


async def test_a_close_while_events_arrive_loses_none(api: Api, second_server: Api) -> None:
    for round_ in range(4):
        await record(api, message("first", f"r{round_}"))

        answers = await asyncio.gather(
            *(record(api if place % 2 else second_server, message(f"{place}", f"r{round_}")) for place in range(8)),
            close(second_server, threadId=f"r{round_}"),
            close(api, threadId=f"r{round_}"),
        )

        assert [error["code"] for answer in answers[8:] for error in answer["errors"]] in ([], ["NOT_FOUND"])
        episodes = await listed(api, threadId=f"r{round_}")
        told = sorted(event["text"] for episode in episodes for event in episode["events"]["nodes"])
        assert told == sorted(["first", *(f"{place}" for place in range(8))])
        assert sum(episode["consolidationStatus"] == "PENDING" for episode in episodes) >= 1
        assert all((episode["endedAt"] is None) is (episode["consolidationStatus"] == "OPEN") for episode in episodes)


# ---------------------------------------------------------------- tried again


async def test_a_failed_episode_goes_back_to_pending(api: Api, resources: Resources, pending: asyncio.Event) -> None:
    await record(api, at(0, "a"))
    episode = await closed(api, threadId="t")
    failed = {"consolidationStatus": "FAILED", "failure": "the model does not answer", "attempts": 3}
    await resources.graph.execute(SET, id=episode["id"], properties=failed)
    pending.clear()

    payload = await api.mutate("retryEpisode", "RetryEpisodeInput", f"episode {{ {EPISODE} }}", {"id": episode["id"]})

    assert payload == {"episode": {**episode, "attempts": 3}, "errors": []}
    assert pending.is_set()


@pytest.mark.parametrize("status", ["OPEN", "PENDING", "PROCESSING", "CONSOLIDATED"])
async def test_what_has_not_failed_is_not_tried_again(api: Api, resources: Resources, status: str) -> None:
    (event,) = await record(api, at(0, "a"))
    await resources.graph.execute(SET, id=event["episode"]["id"], properties={"consolidationStatus": status})
    before = await stored(resources.graph, api.tenant)

    payload = await api.mutate("retryEpisode", "RetryEpisodeInput", "episode { id }", {"id": event["episode"]["id"]})

    assert refusal(payload) == [("CONFLICT", ["id"])]
    assert await stored(resources.graph, api.tenant) == before


@pytest.mark.parametrize(
    ("mutation", "input_type"), [("closeEpisode", "CloseEpisodeInput"), ("retryEpisode", "RetryEpisodeInput")]
)
async def test_an_event_is_no_episode(api: Api, mutation: str, input_type: str) -> None:
    (event,) = await record(api, at(0, "a"))

    for wrong in (event["id"], new_id()):
        payload = await api.mutate(mutation, input_type, "episode { id }", {"id": wrong})
        assert refusal(payload) == [("NOT_FOUND", ["id"])]


# ---------------------------------------------------------------- lists


async def test_every_field_of_the_filter(api: Api) -> None:
    await record(
        api,
        at(0, "a", "t1", userId="ann", agentId="bot"),
        at(100, "b", "t1", userId="ann"),
        at(200, "c", "t2", userId="bob", agentId="bot"),
    )
    await closed(api, threadId="t2", outcome="ESCALATED")

    async def found(**wanted: Any) -> list[str]:
        return [episode["events"]["nodes"][0]["text"] for episode in await listed(api, **wanted)]

    assert await found() == ["c", "b", "a"]
    assert await found(threadId="t1") == ["b", "a"]
    assert await found(userId="ann") == ["b", "a"]
    assert await found(agentId="bot") == ["c", "a"]
    assert await found(consolidationStatuses=["OPEN"]) == ["b"]
    assert await found(consolidationStatuses=["OPEN", "PENDING"]) == ["c", "b", "a"]
    assert await found(consolidationStatuses=[]) == []
    assert await found(outcomes=["ESCALATED"]) == ["c"]
    assert await found(outcomes=["ABANDONED", "ESCALATED"]) == ["c", "a"]
    assert await found(threadId="t1", agentId="bot", outcomes=["ABANDONED"]) == ["a"]
    assert await found(userId="ann", consolidationStatuses=["PENDING"]) == ["a"]
    assert await found(threadId="unknown") == []


async def test_a_conversation_leads_to_its_episodes_in_their_order(api: Api) -> None:
    await record(api, at(100, "later"), at(0, "earlier"), at(0, "other", "other"))

    found = await api(
        """{ conversation(threadId: "t") { episodes { totalCount nodes { startedAt } } events { nodes { text } } } }"""
    )

    assert found["conversation"] == {
        "episodes": {
            "totalCount": 2,
            "nodes": [{"startedAt": "2026-03-01T00:00:00.000Z"}, {"startedAt": "2026-03-01T01:40:00.000Z"}],
        },
        "events": {"nodes": [{"text": "earlier"}, {"text": "later"}]},
    }
