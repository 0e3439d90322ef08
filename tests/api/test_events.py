"""Recording events: each as it was received and once, whoever sends it, in whatever batch and how often."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.conftest import Api
from tests.recording import EVENT, message, record
from tests.stored import counted, stored

from reverie.resources import Resources

LISTED = "query($filter: EventFilter) { events(filter: $filter, first: 200) { totalCount nodes { text } } }"


async def listed(api: Api, **wanted: Any) -> list[str]:
    found = (await api(LISTED, filter=wanted or None))["events"]
    texts = [node["text"] for node in found["nodes"]]
    assert found["totalCount"] == len(texts)
    return texts


async def conversation(api: Api, thread: str = "t") -> dict[str, Any]:
    found: dict[str, Any] = (
        await api(
            "query($thread: String) { conversation(threadId: $thread) { id title threadId createdAt updatedAt "
            "events { totalCount nodes { text } } episodes { nodes { id } } } }",
            thread=thread,
        )
    )["conversation"]
    return found


# ---------------------------------------------------------------- as it was received


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Tabs,  please.\n", "Tabs,  please.\n"),
        ("", ""),
        ({"text": "Hi", "n": 1.5, "deep": [None, True, {"ж": "é👍"}]}, "Hi"),
        ({"role": "tool", "output": {"content": ["a", "b"]}}, "a\nb"),
        (["one", {"text": "two"}, 3], "one\ntwo"),
        ({}, ""),
        ([], ""),
        (0, ""),
        (False, ""),
        (9007199254740993, ""),
    ],
)
async def test_an_event_is_kept_as_it_was_received(api: Api, content: Any, text: str) -> None:
    given = message(
        content,
        " Slack/1 ",
        eventType="TOOL_CALL",
        userId="ann",
        agentId="bot",
        occurredAt="2026-03-01T12:00:00.123+02:00",
    )
    before = datetime.now(UTC)

    (event,) = await record(api, given)

    assert event["content"] == content
    assert type(event["content"]) is type(content)
    recorded = datetime.fromisoformat(event["recordedAt"])
    assert abs((recorded - before).total_seconds()) < 60
    assert event | {"content": None, "recordedAt": None, "id": None, "episode": None, "conversation": None} == {
        "id": None,
        "eventType": "TOOL_CALL",
        "content": None,
        "text": text,
        "threadId": " Slack/1 ",
        "userId": "ann",
        "agentId": "bot",
        "occurredAt": "2026-03-01T10:00:00.123Z",
        "recordedAt": None,
        "episode": None,
        "conversation": None,
    }
    again = await api(
        f"query($id: ID!) {{ event(id: $id) {{ {EVENT} }} node(id: $id) {{ ... on Event {{ {EVENT} }} }} }}",
        id=event["id"],
    )
    assert again == {"event": event, "node": event}


async def test_without_a_time_it_happened_when_it_was_recorded(api: Api) -> None:
    first, second = await record(api, message("a"), message("b"))

    assert first["occurredAt"] == first["recordedAt"] == second["occurredAt"]
    assert (first["userId"], first["agentId"]) == (None, None)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])
async def test_any_instant_is_taken(api: Api, moment: str) -> None:
    (event,) = await record(api, message("a", occurredAt=moment))

    assert event["occurredAt"] == moment
    assert await listed(api) == ["a"]


async def test_a_batch_is_answered_in_its_order_and_kept_in_the_order_of_arrival(api: Api) -> None:
    moment = "2026-03-01T12:00:00Z"
    texts = [f"{number * 7 % 30}" for number in range(30)]

    events = await record(api, *(message(text, occurredAt=moment) for text in texts))

    assert [event["text"] for event in events] == texts
    assert [event["id"] for event in events] == sorted(event["id"] for event in events)
    assert [node["text"] for node in (await conversation(api))["events"]["nodes"]] == texts[:20]
    assert await listed(api) == texts[::-1]


async def test_nothing_is_recorded_of_nothing(api: Api, resources: Resources) -> None:
    assert await record(api) == []
    assert await stored(resources.graph, api.tenant) == []


async def test_a_thousand_are_taken_and_one_more_refused_whole(api: Api, resources: Resources) -> None:
    batch = [message(f"{number}", f"t{number % 7}") for number in range(1000)]

    payload = await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": [*batch, batch[0]]})
    assert payload["events"] is None
    assert [(error["code"], error["path"]) for error in payload["errors"]] == [("TOO_LARGE", ["events"])]
    assert await stored(resources.graph, api.tenant) == []

    events = await record(api, *batch, selection="text")

    assert [event["text"] for event in events] == [f"{number}" for number in range(1000)]
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Event"], counts["Conversation"], counts["PART_OF"], counts["Episode"]) == (1000, 7, 1000, 7)
    assert counts["IN_THREAD"] == 1007


async def test_one_bad_member_keeps_the_whole_batch_out(api: Api, resources: Resources) -> None:
    batch = [message("a"), message("x" * 100_000), message("b", " "), message("c", userId="", occurredAt=None)]

    payload = await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": batch})

    assert payload["events"] is None
    assert [(error["code"], error["path"]) for error in payload["errors"]] == [
        ("TOO_LARGE", ["events", "1", "content"]),
        ("BAD_INPUT", ["events", "2", "threadId"]),
        ("BAD_INPUT", ["events", "3", "userId"]),
    ]
    assert await stored(resources.graph, api.tenant) == []


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"occurredAt": "2026-03-01T12:00:00"}, "events[1].occurredAt"),
        ({"occurredAt": "99999-01-01T00:00:00Z"}, "events[1].occurredAt"),
        ({"eventType": "SHOUT"}, "events[1].eventType"),
        ({"content": None}, "events[1].content"),
        ({"content": {"deep": ["nul \x00"]}}, "events.1.content.deep.0"),
        ({"threadId": "nul \x00"}, "events.1.threadId"),
    ],
    ids=str,
)
async def test_what_can_not_be_read_is_refused_by_name(
    api: Api, resources: Resources, wrong: dict[str, Any], named: str
) -> None:
    (error,) = await api.errors(
        "mutation($input: RecordEventsInput!) { recordEvents(input: $input) { events { id } } }",
        input={"events": [message("a"), message("b") | wrong]},
    )

    assert named in error["message"]
    assert await stored(resources.graph, api.tenant) == []


# ---------------------------------------------------------------- once


async def test_a_resent_event_is_the_first_one(api: Api, resources: Resources) -> None:
    first, other = await record(api, message("a", clientEventId="k1"), message("b", clientEventId="k2"))
    before = await stored(resources.graph, api.tenant)

    again = await record(
        api,
        message("b", clientEventId="k2"),
        message("changed", "another thread", clientEventId="k1", eventType="SYSTEM_LOG"),
    )

    assert again == [other, first]
    assert await stored(resources.graph, api.tenant) == before


async def test_a_batch_may_hold_one_event_twice(api: Api, resources: Resources) -> None:
    events = await record(
        api,
        message("a", clientEventId="k"),
        message("b"),
        message("c", "elsewhere", clientEventId="k"),
        message("b"),
        selection="id text",
    )

    assert [event["text"] for event in events] == ["a", "b", "a", "b"]
    assert len({event["id"] for event in events}) == 3
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Event"], counts["Conversation"]) == (3, 1)


async def test_a_new_event_among_resent_ones_is_recorded(api: Api) -> None:
    await record(api, message("a", clientEventId="k1"))

    events = await record(api, message("a", clientEventId="k1"), message("b", clientEventId="k2"))

    assert [event["text"] for event in events] == ["a", "b"]
    assert await listed(api) == ["b", "a"]


async def test_client_ids_are_a_tenants_own(api: Api, other_api: Api) -> None:
    (mine,) = await record(api, message("mine", clientEventId="k"))
    (theirs,) = await record(other_api, message("theirs", clientEventId="k"))

    assert (mine["text"], theirs["text"]) == ("mine", "theirs")
    assert await listed(api) == ["mine"]


async def test_a_batch_with_a_key_is_recorded_once(api: Api, resources: Resources) -> None:
    first = await record(api, message("a"), message("b"), key="k")
    before = await stored(resources.graph, api.tenant)

    assert await record(api, message("a"), message("b"), key="k") == first
    assert await stored(resources.graph, api.tenant) == before


async def test_of_many_that_send_the_same_events_at_once_each_gets_the_same_answer(
    api: Api, second_server: Api, resources: Resources
) -> None:
    events = [message(f"{number}", f"t{number % 3}", clientEventId=f"k{number}") for number in range(12)]

    async def send(place: int) -> dict[str, str]:
        # nine of them in an order of the sender's own, and some say another thread for what is the same event
        batch = [events[(place + turn * (5 if place % 3 else 7)) % 12] for turn in range(9)]
        if place % 4 == 0:
            batch[0] = batch[0] | {"threadId": "other"}
        made = await record(api if place % 2 else second_server, *batch, selection="id text")
        return {event["text"]: event["id"] for event in made}

    answers = await asyncio.gather(*(send(place) for place in range(16)))

    told: dict[str, set[str]] = {}
    for answer in answers:
        for text, event_id in answer.items():
            told.setdefault(text, set()).add(event_id)
    assert sorted(told) == sorted(f"{number}" for number in range(12))
    assert {len(ids) for ids in told.values()} == {1}
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Event"], counts["PART_OF"]) == (12, 12)
    # every conversation has an event
    for node in (await api("{ conversations { nodes { events { totalCount } } } }"))["conversations"]["nodes"]:
        assert node["events"]["totalCount"] > 0


async def test_sixteen_writers_on_one_thread_lose_nothing(api: Api, second_server: Api, resources: Resources) -> None:
    async def write(writer: int) -> list[str]:
        made = []
        for turn in range(10):
            batch = [message(f"{writer}.{turn}.{place}") for place in range(2)]
            made += await record(api if writer % 2 else second_server, *batch, selection="id text")
        return [event["text"] for event in made]

    answers = await asyncio.gather(*(write(writer) for writer in range(16)))

    counts = await counted(resources.graph, api.tenant)
    assert (counts["Event"], counts["Conversation"], counts["PART_OF"]) == (320, 1, 320)
    episodes = (
        await api("{ episodes { nodes { consolidationStatus events(first: 200) { totalCount nodes { text } } } } }")
    )["episodes"]["nodes"]
    told = [event["text"] for episode in episodes for event in episode["events"]["nodes"]]
    assert sorted(told) == sorted(text for answer in answers for text in answer)
    assert [(episode["consolidationStatus"], episode["events"]["totalCount"]) for episode in episodes] == [
        ("OPEN", 120),
        ("PENDING", 200),
    ]


async def test_small_batches_that_arrive_together_share_a_transaction(api: Api, resources: Resources) -> None:
    joined = resources.commits.joined

    await asyncio.gather(*(record(api, message(f"{number}", f"t{number % 4}")) for number in range(40)))

    assert resources.commits.joined - joined < 40
    assert len(await listed(api)) == 40
    assert (await counted(resources.graph, api.tenant))["Episode"] == 4


# ---------------------------------------------------------------- threads


async def test_a_thread_is_titled_by_its_first_user_message(api: Api) -> None:
    events = await record(
        api,
        message("started", eventType="SYSTEM_LOG"),
        message("later", occurredAt="2026-03-01T12:05:00Z"),
        message({"text": " Why  does\nit fail? "}, occurredAt="2026-03-01T12:00:00Z"),
        message("Because.", eventType="AGENT_RESPONSE", occurredAt="2026-03-01T11:00:00Z"),
    )
    await record(api, message("earlier still", occurredAt="2026-03-01T10:00:00Z"))

    found = await conversation(api)
    assert (found["title"], found["threadId"]) == ("Why does it fail?", "t")
    assert {event["conversation"]["id"] for event in events} == {found["id"]}
    assert found["events"]["totalCount"] == 5
    assert (await api('{ conversations(titleContains: "does it") { totalCount } }'))["conversations"]["totalCount"] == 1


async def test_until_a_user_says_something_a_thread_is_titled_by_its_id(api: Api) -> None:
    await record(api, message("ready", eventType="AGENT_RESPONSE"), message({"n": 1}), message(" \n"))
    assert (await conversation(api))["title"] == "t"

    await record(api, message("x" * 300))
    assert (await conversation(api))["title"] == "x" * 99 + "…"

    await record(api, message("another"))
    assert (await conversation(api))["title"] == "x" * 99 + "…"


async def test_a_title_that_a_caller_gave_stays(api: Api) -> None:
    await api.mutate(
        "createConversation", "CreateConversationInput", "conversation { id }", {"title": "Mine", "threadId": "given"}
    )
    await record(api, message("hello", "given"), message("ready", "renamed", eventType="SYSTEM_LOG"))
    renamed = await conversation(api, "renamed")
    await api.mutate(
        "updateConversation", "UpdateConversationInput", "conversation { id }", {"id": renamed["id"], "title": "Chosen"}
    )
    await record(api, message("hello", "renamed"))

    assert (await conversation(api, "given"))["title"] == "Mine"
    assert (await conversation(api, "renamed"))["title"] == "Chosen"


async def test_a_conversations_time_is_that_of_the_last_event_recorded(api: Api) -> None:
    await record(api, message("a", occurredAt="2020-01-01T00:00:00Z"))
    await asyncio.sleep(0.002)

    (event,) = await record(api, message("b", occurredAt="2019-01-01T00:00:00Z"))

    found = await conversation(api)
    assert found["updatedAt"] == event["recordedAt"] > found["createdAt"]


@pytest.mark.parametrize("delete_memories", [False, True])
async def test_a_conversation_that_has_events_is_not_deleted(
    api: Api, resources: Resources, delete_memories: bool
) -> None:
    await record(api, message("a"))
    found = await conversation(api)
    memory = {"content": "kept", "conversationId": found["id"]}
    await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", memory)
    before = await stored(resources.graph, api.tenant)

    payload = await api.mutate(
        "deleteConversation",
        "DeleteConversationInput",
        "deletedId deletedMemories",
        {"id": found["id"], "deleteMemories": delete_memories},
    )

    assert [(error["code"], error["path"]) for error in payload["errors"]] == [("CONFLICT", ["id"])]
    assert await stored(resources.graph, api.tenant) == before


async def test_events_recorded_while_their_conversation_goes_are_kept(api: Api, resources: Resources) -> None:
    for round_ in range(6):
        made = await api.mutate(
            "createConversation",
            "CreateConversationInput",
            "conversation { id }",
            {"title": "x", "threadId": f"r{round_}"},
        )
        recording = [asyncio.create_task(record(api, message(f"{place}", f"r{round_}"))) for place in range(6)]
        await asyncio.sleep(0.003 * round_)

        await api.mutate(
            "deleteConversation", "DeleteConversationInput", "deletedId", {"id": made["conversation"]["id"]}
        )
        events = [event for (event,) in await asyncio.gather(*recording)]

        found = await conversation(api, f"r{round_}")
        assert found["events"]["totalCount"] == len(events) == 6


# ---------------------------------------------------------------- lists


async def test_every_field_of_the_filter(api: Api) -> None:
    await record(
        api,
        message("a", "t1", userId="ann", agentId="bot", occurredAt="2026-03-01T12:00:00Z"),
        message("b", "t1", userId="bob", occurredAt="2026-03-01T12:00:01Z", eventType="TOOL_CALL"),
        message("c", "t2", userId="ann", occurredAt="2026-03-01T12:00:02Z", eventType="AGENT_RESPONSE"),
        message("d", "T1", agentId="bot", occurredAt="2026-03-01T12:00:03Z", eventType="SYSTEM_LOG"),
    )

    assert await listed(api) == ["d", "c", "b", "a"]
    assert await listed(api, threadId="t1") == ["b", "a"]
    assert await listed(api, userId="ann") == ["c", "a"]
    assert await listed(api, agentId="bot") == ["d", "a"]
    assert await listed(api, eventTypes=["TOOL_CALL", "SYSTEM_LOG"]) == ["d", "b"]
    assert await listed(api, eventTypes=[]) == []
    assert await listed(api, occurredAfter="2026-03-01T12:00:01Z") == ["d", "c", "b"]
    assert await listed(api, occurredBefore="2026-03-01T12:00:01Z") == ["a"]
    assert await listed(api, threadId="t1", userId="bob", eventTypes=["TOOL_CALL"]) == ["b"]
    assert await listed(api, userId="ann", occurredAfter="2026-03-01T12:00:01Z") == ["c"]
    assert await listed(api, threadId=None, userId=None) == ["d", "c", "b", "a"]
    assert await listed(api, threadId="unknown") == []


async def test_a_reversed_range_is_refused(api: Api) -> None:
    (error,) = await api.errors(
        LISTED, filter={"occurredAfter": "2026-03-02T00:00:00Z", "occurredBefore": "2026-03-01T00:00:00Z"}
    )

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert "occurredAfter" in error["message"]


async def test_an_event_of_another_tenant_is_none(api: Api, other_api: Api) -> None:
    (event,) = await record(api, message("a"))

    assert await other_api("query($id: ID!) { event(id: $id) { id } }", id=event["id"]) == {"event": None}
    assert await api("query($id: ID!) { event(id: $id) { id } }", id=event["episode"]["id"]) == {"event": None}
    assert await other_api("{ events { totalCount } episodes { totalCount } }") == {
        "events": {"totalCount": 0},
        "episodes": {"totalCount": 0},
    }
