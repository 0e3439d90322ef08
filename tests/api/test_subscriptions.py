"""Subscriptions by real clients at a real server: every change once and in order, whatever happens in between."""

import asyncio
import gc
import os
import re
import socket
import statistics
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
from tests.conftest import Api
from tests.following import CHANGES, LEAN, Member, Stream, subscribed
from tests.recording import message, record
from tests.services.change_log import MemoryLog
from tests.serving import serving, until

from reverie.api.loaders import Loaders
from reverie.bus.local_bell import LocalBell
from reverie.domain.changes import LogPosition, log_position
from reverie.resources import Resources
from reverie.services import dreaming
from reverie.services.changes import Follower, FollowerOptions, StoredLog

KEY, OTHER_KEY = "key-of-the-test", "key-of-another"
EPISODES = """
subscription($filter: EpisodeFilter) { episodeChanges(filter: $filter) { id consolidationStatus summary } }
"""
DREAMS = "subscription($id: ID) { dreamProgress(id: $id) { id episodes done finishedAt } }"
NUMBERED = FollowerOptions(tick=0.2, buffer=20, slice=20, checkpoint_every=0.2)


@pytest_asyncio.fixture
async def address(resources: Resources, tenant: str, other_api: Api) -> AsyncIterator[str]:
    """A server at which KEY is the test's tenant, and OTHER_KEY another's."""
    async with serving(resources, {KEY: tenant, OTHER_KEY: other_api.tenant}) as (_, at):
        yield at


async def upsert(api: Api, value: str, subject: str = "alex", key: str = "editor.theme", **more: Any) -> dict[str, Any]:
    given = {"subjectId": subject, "key": key, "value": value, **more}
    payload = await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id } change { id cursor }", given)
    assert payload["errors"] == []
    change: dict[str, Any] = payload["change"]
    return change


async def upsert_many(api: Api, count: int, start: int = 0, writers: int = 8) -> None:
    """So many changes of many subjects, several at a time."""
    places = iter(range(start, start + count))

    async def write() -> None:
        for place in places:
            await upsert(api, f"value {place}", f"subject {place % 40}")

    await asyncio.gather(*(write() for _ in range(writers)))


async def cursor(api: Api) -> str:
    """Where the log ends."""
    return str((await api("{ changesCursor }"))["changesCursor"])


def number(cursor: str) -> int:
    return log_position(cursor).number


# ---------------------------------------------------------------- the change log


async def test_first_a_checkpoint_then_each_change_as_it_happens(api: Api, address: str) -> None:
    await upsert(api, "earlier", "sam")
    end = await cursor(api)
    async with subscribed(address, KEY, CHANGES) as stream:
        assert await stream.next() == {"kindOf": "ChangeCheckpoint", "cursor": end}

        first = await upsert(api, "dark")
        created = await stream.next()
        second = await upsert(api, "light")
        superseded = await stream.next()

    assert created == {
        "kindOf": "BeliefChange",
        **first,
        "kind": "CREATED",
        "subjectId": "alex",
        "key": "editor.theme",
        "belief": {"value": "dark", "version": 1, "epistemicStatus": "ACTIVE"},
        "previous": None,
    }
    assert superseded == {
        "kindOf": "BeliefChange",
        **second,
        "kind": "SUPERSEDED",
        "subjectId": "alex",
        "key": "editor.theme",
        "belief": {"value": "light", "version": 2, "epistemicStatus": "ACTIVE"},
        "previous": {"value": "dark"},
    }


async def test_every_cursor_resumes_without_a_hole_or_a_double_on_any_server(
    api: Api, address: str, second_resources: Resources, tenant: str
) -> None:
    async with subscribed(address, KEY, LEAN) as stream:
        cursors = [(await stream.next())["cursor"]]
        await upsert_many(api, 12)
        changes = [await stream.next_change() for _ in range(12)]
        cursors += [change["cursor"] for change in changes]
    assert [number(one) - number(cursors[0]) for one in cursors] == list(range(13))

    async with serving(second_resources, {KEY: tenant}) as (_, elsewhere):
        for at in (address, elsewhere):
            for place in (0, 5, 11, 12):
                async with subscribed(at, KEY, LEAN, after=cursors[place]) as stream:
                    assert await stream.next() == {"kindOf": "ChangeCheckpoint", "cursor": cursors[place]}
                    assert [await stream.next() for _ in changes[place:]] == changes[place:]
                    changes.append({"kindOf": "BeliefChange", **await upsert(api, f"after {place} at {at}")})
                    assert await stream.next_change() == changes[-1]


async def test_at_the_seam_from_the_backlog_to_what_is_live_nothing_is_lost_or_doubled(api: Api, address: str) -> None:
    start = await cursor(api)
    writing = asyncio.create_task(upsert_many(api, 120))
    members = []
    try:
        # each joins at another moment of the writing, from the very beginning
        for _ in range(8):
            members.append(await Member(address, KEY, after=start).__aenter__())
            await asyncio.sleep(0.05)
        await writing
        for member in members:
            await member.knows(lambda one: len(one.changes) >= 120)
    finally:
        for member in members:
            await member.__aexit__()

    expected = list(range(number(start) + 1, number(start) + 121))
    assert [member.numbers for member in members] == [expected] * len(members)


async def test_a_filter_takes_what_it_names_and_a_checkpoint_tells_of_the_rest(api: Api, address: str) -> None:
    wanted = {"subjectIds": ["alex"], "kinds": ["CREATED"], "beliefTypes": ["PREFERENCE"]}
    async with subscribed(address, KEY, CHANGES, filter=wanted) as stream:
        await stream.next()
        await upsert(api, "dark", "sam", beliefType="PREFERENCE")
        await upsert(api, "dark", key="terminal.theme")
        await upsert(api, "dark", beliefType="PREFERENCE")
        last = await upsert(api, "light", beliefType="PREFERENCE")

        change = await stream.next_change()
        checkpoint = await stream.next()

    assert (change["kind"], change["subjectId"], change["previous"]) == ("CREATED", "alex", None)
    assert checkpoint == {"kindOf": "ChangeCheckpoint", "cursor": last["cursor"]}


async def test_a_client_cut_before_its_first_change_resumes_from_the_checkpoint(api: Api, address: str) -> None:
    async with subscribed(address, KEY, LEAN) as stream:
        checkpoint = await stream.next()
    missed = await upsert(api, "while nobody listened")

    async with subscribed(address, KEY, LEAN, after=checkpoint["cursor"]) as stream:
        assert await stream.next() == checkpoint
        assert await stream.next() == {"kindOf": "BeliefChange", **missed}


async def test_a_snapshot_and_the_stream_from_a_cursor_read_before_it_agree(api: Api, address: str) -> None:
    """The values that a client believes who reads a snapshot, and then applies the stream, are those of the store."""
    snapshot = "{ beliefs(first: 200) { nodes { subjectId value version } } }"
    await upsert_many(api, 30)
    writing = asyncio.create_task(upsert_many(api, 150, 30))
    await asyncio.sleep(0.3)

    start = await cursor(api)
    async with subscribed(address, KEY, CHANGES, after=start) as stream:
        held = {node["subjectId"]: node for node in (await api(snapshot))["beliefs"]["nodes"]}
        assert not writing.done()
        await writing
        end = number(await cursor(api))
        seen: list[dict[str, Any]] = []
        while not seen or number(seen[-1]["cursor"]) < end:
            seen.append(await stream.next_change())

    for change in seen:
        told, known = change["belief"], held.get(change["subjectId"])
        # what happened before the snapshot was read is in it already
        if known is None or known["version"] < told["version"]:
            held[change["subjectId"]] = {"subjectId": change["subjectId"], **told}
    stored = (await api(snapshot))["beliefs"]["nodes"]
    assert {subject: (one["value"], one["version"]) for subject, one in held.items()} == {
        node["subjectId"]: (node["value"], node["version"]) for node in stored
    }
    assert [number(change["cursor"]) for change in seen] == list(range(number(start) + 1, end + 1))


async def test_each_event_reads_what_it_shows_anew(api: Api, address: str) -> None:
    query = """subscription { beliefChanges { ... on BeliefChange { kind
      previous { epistemicStatus history { nodes { value } } } belief { epistemicStatus history { nodes { value } } } }
    } }"""
    async with subscribed(address, KEY, query) as stream:
        await stream.next()
        await upsert(api, "dark")
        created = await stream.next()
        await upsert(api, "light")
        superseded = await stream.next()

    assert created["belief"] == {"epistemicStatus": "ACTIVE", "history": {"nodes": [{"value": "dark"}]}}
    both = {"nodes": [{"value": "light"}, {"value": "dark"}]}
    assert superseded["previous"] == {"epistemicStatus": "SUPERSEDED", "history": both}
    assert superseded["belief"] == {"epistemicStatus": "ACTIVE", "history": both}


async def test_what_several_are_told_of_together_is_read_once(api: Api, resources: Resources, address: str) -> None:
    async def statements(subscribers: int) -> int:
        """Statements of one change, its writing among them."""
        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(subscribed(address, KEY, CHANGES)) for _ in range(subscribers)]
            for stream in streams:
                await stream.next()
            for value in ("first", "second"):
                before = resources.graph.statements
                await upsert(api, f"{value} for {subscribers}")
                told = [await stream.next_change() for stream in streams]
                assert {change["belief"]["value"] for change in told} == {f"{value} for {subscribers}"}
            return resources.graph.statements - before

    assert await statements(20) < await statements(1) + 10


async def test_who_is_cut_takes_nothing_from_those_who_were_told_with_him(api: Api, resources: Resources) -> None:
    await upsert(api, "dark")
    (belief,) = (await api("{ beliefs { nodes { id } } }"))["beliefs"]["nodes"]
    loaders = Loaders(resources.graph, api.tenant, shared=True)

    async def read() -> Any:
        return await loaders.node(belief["id"])

    cut, other = asyncio.create_task(read()), asyncio.create_task(read())
    await asyncio.sleep(0)
    cut.cancel()

    assert (await other).value == "dark"
    assert cut.cancelled()


async def test_what_was_forgotten_is_passed_over_and_the_checkpoint_moves_on(api: Api, address: str) -> None:
    start = await cursor(api)
    kept = await upsert(api, "dark", "sam")
    await upsert(api, "dark")
    gone = await upsert(api, "light")
    payload = await api.mutate("forgetSubject", "ForgetSubjectInput", "deleted { kind }", {"subjectId": "alex"})
    assert payload["errors"] == []

    async with subscribed(address, KEY, CHANGES, after=start) as stream:
        assert (await stream.next())["cursor"] == start
        told = await stream.next()
        checkpoint = await stream.next()

    assert told["id"] == kept["id"]
    assert checkpoint == {"kindOf": "ChangeCheckpoint", "cursor": gone["cursor"]}


# ---------------------------------------------------------------- cursors that lead nowhere


@pytest.mark.parametrize("which", ["below the floor", "of another epoch", "of another tenant", "above the head"])
async def test_a_cursor_from_which_the_log_cannot_be_told_is_one_gap_and_then_it_goes_on(
    api: Api, other_api: Api, resources: Resources, address: str, which: str
) -> None:
    start = log_position(await cursor(api))
    for value in ("one", "two", "three"):
        await upsert(api, value)
        await upsert(other_api, value)
    end = log_position(await cursor(api))
    if which == "below the floor":
        await resources.graph.execute("MATCH (c:Counter {tenant: $t}) SET c.floor = 2", t=api.tenant)
    after = {
        "below the floor": start.at(1).cursor,
        "of another epoch": LogPosition("an older epoch", end.tenant, 1).cursor,
        "of another tenant": await cursor(other_api),
        "above the head": end.at(4).cursor,
    }[which]

    # the query says of such a cursor that it has expired
    (error,) = await api.errors("query($a: String) { beliefChanges(after: $a) { nodes { id } } }", a=after)
    async with subscribed(address, KEY, LEAN, after=after) as stream:
        gap = await stream.next()
        change = await upsert(api, "four")
        following = await stream.next()

    assert error["extensions"]["code"] == "CURSOR_EXPIRED"
    assert gap == {"kindOf": "ChangeGap", "cursor": end.cursor, "missedFrom": after}
    assert following == {"kindOf": "BeliefChange", **change}


@pytest.mark.parametrize("after", ["", "nonsense", "bm9uc2Vuc2U", "W10", "🦊"])
async def test_what_is_no_cursor_is_bad_input(address: str, after: str) -> None:
    async with subscribed(address, KEY, LEAN, after=after) as stream:
        (error,) = await stream.errors()

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert error["message"] == "after: not a cursor of the change log"


# ---------------------------------------------------------------- episodes and dreams


async def close(api: Api, thread: str) -> str:
    payload = await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", {"threadId": thread})
    assert payload["errors"] == []
    return str(payload["episode"]["id"])


async def test_unfinished_episodes_come_first_and_then_each_new_status(api: Api, address: str) -> None:
    (first,) = await record(api, message("hello", "first"))
    (second,) = await record(api, message("hello", "second"))
    async with subscribed(address, KEY, EPISODES) as stream:
        shown = [await stream.next() for _ in range(2)]
        (third,) = await record(api, message("hello", "third"))
        opened = await stream.next()
        await close(api, "second")
        closed = await stream.next()

    found = [(episode["id"], episode["consolidationStatus"]) for episode in (*shown, opened, closed)]
    assert found == [
        (first["episode"]["id"], "OPEN"),
        (second["episode"]["id"], "OPEN"),
        (third["episode"]["id"], "OPEN"),
        (second["episode"]["id"], "PENDING"),
    ]


async def test_only_the_episodes_of_a_filter_are_told_of(api: Api, address: str) -> None:
    await record(api, message("hello", "alex's", userId="alex"), message("hello", "sam's", userId="sam"))
    async with subscribed(address, KEY, EPISODES, filter={"userId": "alex"}) as stream:
        shown = await stream.next()
        await close(api, "sam's")
        closed = await close(api, "alex's")
        told = await stream.next()

    assert (shown["id"], shown["consolidationStatus"]) == (closed, "OPEN")
    assert (told["id"], told["consolidationStatus"]) == (closed, "PENDING")


async def test_an_episode_that_the_sweep_closes_is_told_of(api: Api, resources: Resources, address: str) -> None:
    (event,) = await record(api, message("hello"))
    async with subscribed(address, KEY, EPISODES) as stream:
        assert (await stream.next())["consolidationStatus"] == "OPEN"
        await resources.graph.execute("MATCH (e:Episode {tenant: $t}) SET e.recordedAt = 1000", t=api.tenant)
        await dreaming.sweep(resources)
        told = await stream.next()

    assert (told["id"], told["consolidationStatus"]) == (event["episode"]["id"], "PENDING")


MORNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.usefixtures("worker")
async def test_a_subscriber_sees_what_is_dreamed(api: Api, address: str) -> None:
    async with (
        subscribed(address, KEY, CHANGES) as changes,
        subscribed(address, KEY, EPISODES) as episodes,
    ):
        checkpoint = await changes.next()
        events = await record(
            api,
            message("I prefer tabs for indentation", userId="alex", occurredAt=MORNING.isoformat()),
            message(
                "Actually, I prefer spaces for indentation now",
                userId="alex",
                occurredAt=(MORNING + timedelta(days=1)).isoformat(),
            ),
        )
        await close(api, "t")
        dream = (await api.mutate("dream", "DreamInput", "dream { finishedAt failed }", {"wait": True}))["dream"]
        assert dream["finishedAt"] is not None
        assert dream["failed"] == 0
        created, superseded = [await changes.next_change() for _ in range(2)]
        statuses: dict[str, list[str]] = {event["episode"]["id"]: [] for event in events}
        while not all(told[-1:] == ["CONSOLIDATED"] for told in statuses.values()):
            episode = await episodes.next()
            statuses[episode["id"]].append(episode["consolidationStatus"])

    assert (created["kind"], created["belief"]["value"], created["belief"]["version"]) == ("CREATED", "tabs", 1)
    assert (superseded["kind"], superseded["belief"], superseded["previous"]) == (
        "SUPERSEDED",
        {"value": "spaces", "version": 2, "epistemicStatus": "ACTIVE"},
        {"value": "tabs"},
    )
    order = ["OPEN", "PENDING", "PROCESSING", "CONSOLIDATED"]
    assert all(one != other for told in statuses.values() for one, other in pairwise(told))
    assert all(told == sorted(told, key=order.index) for told in statuses.values()), statuses
    # and: each cursor is a place to go on from
    for after, following in ((checkpoint, [created, superseded]), (created, [superseded]), (superseded, [])):
        async with subscribed(address, KEY, CHANGES, after=after["cursor"]) as again:
            assert (await again.next())["cursor"] == after["cursor"]
            told = [(await again.next())["id"] for _ in following]
            assert told == [change["id"] for change in following]


@pytest.mark.usefixtures("worker")
async def test_the_progress_of_a_dream_ends_with_it(api: Api, address: str) -> None:
    async with subscribed(address, KEY, DREAMS) as running:
        for thread in ("a", "b", "c"):
            await record(api, message("I prefer tabs for indentation", thread, userId=thread))
            await close(api, thread)
        begun = (await api.mutate("dream", "DreamInput", "dream { id }", {}))["dream"]["id"]
        async with subscribed(address, KEY, DREAMS, id=begun) as stream:
            steps = [await stream.next()]
            while steps[-1]["finishedAt"] is None:
                steps.append(await stream.next())
            await stream.ended()
        # whoever follows all that run goes on for ever, and has seen this one end too, if it took long enough to see
        while (seen := await running.next())["finishedAt"] is None:
            pass

    assert {step["id"] for step in steps} == {begun}
    assert [step["done"] for step in steps] == sorted(step["done"] for step in steps)
    assert steps[-1]["done"] == steps[-1]["episodes"] == seen["done"]
    assert seen["id"] == begun


async def test_a_dream_that_is_none_ends_at_once(address: str) -> None:
    async with subscribed(address, KEY, DREAMS, id="0198c2f0-0000-7000-8000-000000000000") as stream:
        await stream.ended()


# ---------------------------------------------------------------- tenants, and the other transport


@pytest.mark.usefixtures("worker")
async def test_no_subscription_shows_anything_of_another_tenant(api: Api, other_api: Api, address: str) -> None:
    """What happens to another is followed by nobody: the next that each is told of is his own."""
    theirs = ("their-thread", "their-user", "their words")
    ours = ("our-thread", "our-user", "our words")

    async def live(caller: Api, thread: str, user: str, words: str) -> str:
        await upsert(caller, words, user)
        await record(caller, message(words, thread, userId=user))
        await close(caller, thread)
        dream = await caller.mutate("dream", "DreamInput", "dream { id }", {"wait": True})
        return str(dream["dream"]["id"])

    queries = {
        "beliefChanges": CHANGES,
        "episodeChanges": "subscription { episodeChanges { id consolidationStatus events { nodes { text } } } }",
        "dreamProgress": DREAMS,
    }
    streams: dict[str, Stream] = {}
    async with (
        subscribed(address, KEY, queries["beliefChanges"]) as streams["beliefChanges"],
        subscribed(address, KEY, queries["episodeChanges"]) as streams["episodeChanges"],
        subscribed(address, KEY, queries["dreamProgress"]) as streams["dreamProgress"],
    ):
        await streams["beliefChanges"].next()
        their_dream = await live(other_api, *theirs)
        async with subscribed(address, KEY, DREAMS, id=their_dream) as foreign:
            await foreign.ended()
        our_dream = await live(api, *ours)

        assert (await streams["beliefChanges"].next_change())["belief"]["value"] == "our words"
        assert (await streams["episodeChanges"].next())["events"] == {"nodes": [{"text": "our words"}]}
        assert (await streams["dreamProgress"].next())["id"] == our_dream


async def test_changes_are_streamed_as_server_sent_events(api: Api, address: str) -> None:
    headers = {"accept": "text/event-stream", "authorization": f"Bearer {KEY}"}

    async def told(lines: AsyncIterator[str], count: int) -> list[dict[str, Any]]:
        found = []
        async for line in lines:
            if line.startswith("data:") and line != "data:":
                found.append(orjson.loads(line.removeprefix("data:"))["data"]["beliefChanges"])
                if len(found) == count:
                    break
        return found

    async with httpx.AsyncClient(base_url=f"http://{address}", headers=headers, timeout=30) as client:
        async with client.stream("POST", "/graphql", json={"query": LEAN}) as answer:
            lines = answer.aiter_lines()
            (checkpoint,) = await told(lines, 1)
            first = {"kindOf": "BeliefChange", **await upsert(api, "dark")}
            assert await told(lines, 1) == [first]
        second = {"kindOf": "BeliefChange", **await upsert(api, "light")}

        body = {"query": LEAN, "variables": {"after": checkpoint["cursor"]}}
        async with client.stream("POST", "/graphql", json=body) as answer:
            assert await told(answer.aiter_lines(), 3) == [checkpoint, first, second]


PAGE = (Path(__file__).parents[2] / "docs" / "subscriptions.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    """The one block of a language in the page about subscriptions."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(block)


async def test_the_query_of_the_documentation_is_answered(api: Api, address: str) -> None:
    async with subscribed(address, KEY, example("graphql")) as stream:
        assert (await stream.next())["__typename"] == "ChangeCheckpoint"
        await upsert(api, "dark")
        change = await stream.next()

    assert (change["kind"], change["key"], change["belief"]["value"]) == ("CREATED", "editor.theme", "dark")


async def test_the_client_of_the_documentation_comes_back_without_missing_anything(
    api: Api, resources: Resources, tenant: str
) -> None:
    names: dict[str, Any] = {"__name__": "client"}
    exec(compile(example("python"), "subscriptions.md", "exec"), names)  # noqa: S102 - as its readers do
    told: list[dict[str, Any]] = []

    async def handle(event: dict[str, Any]) -> None:
        told.append(event)

    changes = [await upsert(api, "one")]
    async with serving(resources, {KEY: tenant}) as (_, address):
        port = int(address.rpartition(":")[2])
        following = asyncio.create_task(names["follow"](f"ws://{address}/graphql", handle, key=KEY))
        await until(lambda: len(told) == 1)
        changes.append(await upsert(api, "two"))
        await until(lambda: len(told) == 2)
    # when: the server is away, and is there again
    changes.append(await upsert(api, "three"))
    async with serving(resources, {KEY: tenant}, port=port):
        await until(lambda: len(told) == 4)
        changes.append(await upsert(api, "four"))
        await until(lambda: len(told) == 5)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following

    assert [event["__typename"] for event in told].count("ChangeCheckpoint") == 2
    values = [event["belief"]["value"] for event in told if event["__typename"] == "BeliefChange"]
    assert values == ["two", "three", "four"]
    assert [event["cursor"] for event in told if event["__typename"] == "BeliefChange"] == [
        change["cursor"] for change in changes[1:]
    ]


# ---------------------------------------------------------------- slow subscribers, and many events

LARGE = f"""
subscription {{ beliefChanges {{ kindOf: __typename ... on ChangeCheckpoint {{ cursor }}
  ... on BeliefChange {{ id cursor {" ".join(f"value{place}: belief {{ value }}" for place in range(300))} }} }} }}
"""


async def test_a_subscriber_who_stops_reading_holds_up_nobody_fills_no_memory_and_loses_nothing(
    api: Api, resources: Resources, tenant: str
) -> None:
    follower = Follower(StoredLog(resources), resources.bell, NUMBERED)
    with socket.socket() as narrow:
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        narrow.setblocking(False)
        async with serving(resources, {KEY: tenant}, follower=follower) as (_, address):
            host, port = address.split(":")
            await asyncio.get_running_loop().sock_connect(narrow, (host, int(port)))
            connecting = {"sock": narrow, "max_queue": 1, "max_size": None}
            async with (
                Member(address, KEY) as quick,
                Member(address, KEY) as another,
                subscribed(address, KEY, LARGE, connecting) as slow,
            ):
                start = (await slow.next())["cursor"]

                async def delays(count: int) -> list[float]:
                    """Seconds from each write's answer until both others have been told of it."""
                    found = []
                    for _ in range(count):
                        change = await upsert(api, f"{len(quick.changes)} " + "x" * 900)
                        began = time.perf_counter()
                        for member in (quick, another):
                            await member.knows(lambda one: number(one.after or start) >= number(change["cursor"]))  # noqa: B023 - used at once
                        found.append(time.perf_counter() - began)
                    return found

                tracemalloc.start()
                while_all_read = []
                for _ in range(10):
                    while_all_read += await delays(1)
                    assert (await slow.next_change())["kindOf"] == "BeliefChange"
                gc.collect()
                before, _ = tracemalloc.get_traced_memory()
                while_one_does_not = await delays(60)
                gc.collect()
                after, _ = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                # when: it reads on
                told = [await slow.next_change() for _ in range(60)]

            first = number(start)
            assert quick.numbers == another.numbers == list(range(first + 1, first + 71))
    assert [number(change["cursor"]) for change in told] == list(range(first + 11, first + 71))
    assert all(len(change["value299"]["value"]) > 900 for change in told)
    # 60 frames of 270 kB each were due
    assert after - before < 5_000_000
    assert statistics.median(while_one_does_not) < 3 * statistics.median(while_all_read) + 0.05


THOUSANDS = int(os.environ.get("REVERIE_TEST_THOUSANDS", "3"))
"""Of changes through one subscription."""


async def test_thousands_of_changes_through_one_subscription_leave_nothing(resources: Resources) -> None:
    bell = LocalBell()
    changes = MemoryLog(bell, "tenant-of-many")
    counts = []
    async with (
        serving(resources, {KEY: "tenant-of-many"}, follower=Follower(changes, bell, NUMBERED)) as (_, address),
        subscribed(address, KEY, CHANGES) as stream,
    ):
        await stream.next()
        for part in range(THOUSANDS):
            for _ in range(100):
                changes.append(*["alex"] * 10)
                for _ in range(10):
                    assert (await stream.next_change())["belief"] is None
            # what the log itself holds isn't counted
            changes.entries = [None] * changes.last
            gc.collect()
            counts.append(len(gc.get_objects()))
            assert changes.last == 1_000 * (part + 1)

    # the first thousand fill what is kept for ever, such as the caches of what was parsed
    assert max(counts[1:]) - min(counts[1:]) < 200, counts
