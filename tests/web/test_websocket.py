"""GraphQL over WebSocket, by a real client at a real server: the protocol's frames, credentials, errors and ends."""

import asyncio
import gc
import logging
import re
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
import pytest
import pytest_asyncio
from tests.serving import until
from tests.web.ticking import KEYS, SECRET, open_subscriptions, ticking_server
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.frames import CloseCode
from websockets.typing import Origin, Subprotocol

from reverie.resources import Resources

PROTOCOL = Subprotocol("graphql-transport-ws")
BEARER = {"Authorization": "Bearer key-1"}


@pytest_asyncio.fixture(scope="module")
async def address(resources: Resources) -> AsyncIterator[str]:
    """Where a server listens that knows two keys."""
    async with ticking_server(resources, KEYS) as (_, at):
        yield at


class Client:
    """One connection, frame by frame."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, message: object) -> None:
        await self.connection.send(orjson.dumps(message).decode())

    async def subscribe(self, id_: str, query: str, **variables: Any) -> None:
        await self.send({"id": id_, "type": "subscribe", "payload": {"query": query, "variables": variables}})

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(20):
            text = await self.connection.recv()
        # then: text, as the protocol wants it
        assert isinstance(text, str)
        found: dict[str, Any] = orjson.loads(text)
        return found

    async def closed(self) -> int:
        """The code with which the server closes."""
        async with asyncio.timeout(20):
            with suppress(ConnectionClosedError):
                async for _ in self.connection:
                    pass
            await self.connection.wait_closed()
        code = self.connection.close_code
        assert code is not None
        return code


@asynccontextmanager
async def opened(address: str, **given: Any) -> AsyncIterator[Client]:
    """A connection without anything sent over it."""
    async with connect(f"ws://{address}/graphql", subprotocols=[PROTOCOL], **given) as connection:
        yield Client(connection)


@asynccontextmanager
async def acknowledged(address: str, **given: Any) -> AsyncIterator[Client]:
    """A connection of tenant-1."""
    async with opened(address, **given) as client:
        await client.send({"type": "connection_init", "payload": BEARER})
        assert await client.next() == {"type": "connection_ack"}
        yield client


# ---------------------------------------------------------------- operations


async def test_a_subscription_sends_its_events_and_completes(address: str) -> None:
    async with acknowledged(address) as client:
        await client.subscribe("a", "subscription { ticks(to: 3) { number tenant } }")

        for number in (1, 2, 3):
            data = {"ticks": {"number": number, "tenant": "tenant-1"}}
            assert await client.next() == {"id": "a", "type": "next", "payload": {"data": data}}
        assert await client.next() == {"id": "a", "type": "complete"}


async def test_queries_and_mutations_work_too(address: str) -> None:
    async with acknowledged(address) as client:
        await client.subscribe("q", "{ tenant }")
        assert await client.next() == {"id": "q", "type": "next", "payload": {"data": {"tenant": "tenant-1"}}}
        assert await client.next() == {"id": "q", "type": "complete"}

        await client.subscribe("q", "mutation($text: String!) { shout(text: $text) }", text="Ümlaut 😀")
        assert (await client.next())["payload"] == {"data": {"shout": "ÜMLAUT 😀"}}
        assert await client.next() == {"id": "q", "type": "complete"}


async def test_several_operations_share_a_connection_and_each_has_its_request_id(address: str) -> None:
    async with acknowledged(address) as client:
        for id_ in ("a", "b"):
            await client.subscribe(id_, "subscription { ticks(to: 2) { requestId } }")
        frames = [await client.next() for _ in range(6)]

    ids: dict[str, set[str]] = {"a": set(), "b": set()}
    for frame in frames:
        if frame["type"] == "next":
            ids[frame["id"]].add(frame["payload"]["data"]["ticks"]["requestId"])
    assert [len(found) for found in ids.values()] == [1, 1]
    assert ids["a"] != ids["b"]


async def test_a_completed_operation_ends_and_its_id_is_free_again(address: str) -> None:
    before = open_subscriptions.now
    async with acknowledged(address) as client:
        await client.subscribe("a", "subscription { never { number } }")
        await until(lambda: open_subscriptions.now == before + 1)
        await client.send({"id": "a", "type": "complete"})
        await until(lambda: open_subscriptions.now == before)

        await client.subscribe("a", "{ tenant }")
        assert (await client.next())["type"] == "next"


@pytest.mark.parametrize("payload", [None, {"a": [1]}])
async def test_a_ping_is_answered_with_its_payload(payload: object, address: str) -> None:
    async with acknowledged(address) as client:
        await client.send({"type": "ping", "payload": payload})
        assert await client.next() == {"type": "pong", "payload": payload}
        await client.send({"type": "ping"})
        assert await client.next() == {"type": "pong"}
        await client.send({"type": "pong"})
        await client.send({"type": "ping"})
        assert await client.next() == {"type": "pong"}


# ---------------------------------------------------------------- credentials


@pytest.mark.parametrize("name", ["Authorization", "authorization"])
async def test_the_key_comes_with_the_first_message(name: str, address: str) -> None:
    async with opened(address) as client:
        await client.send({"type": "connection_init", "payload": {name: "Bearer key-2"}})
        assert await client.next() == {"type": "connection_ack"}
        await client.subscribe("a", "{ tenant }")
        assert (await client.next())["payload"] == {"data": {"tenant": "tenant-2"}}


@pytest.mark.parametrize("message", [{}, {"payload": None}, {"payload": {}}, {"payload": {"other": 1}}], ids=str)
async def test_or_with_the_handshake(message: dict[str, object], address: str) -> None:
    async with opened(address, additional_headers=BEARER) as client:
        await client.send({"type": "connection_init", **message})
        assert await client.next() == {"type": "connection_ack"}
        await client.subscribe("a", "{ tenant }")
        assert (await client.next())["payload"] == {"data": {"tenant": "tenant-1"}}


async def test_the_first_message_goes_before_the_handshake(address: str) -> None:
    async with opened(address, additional_headers=BEARER) as client:
        await client.send({"type": "connection_init", "payload": {"Authorization": "Bearer key-2"}})
        await client.next()
        await client.subscribe("a", "{ tenant }")
        assert (await client.next())["payload"] == {"data": {"tenant": "tenant-2"}}


@pytest.mark.parametrize(
    "payload",
    [None, {}, {"Authorization": "Bearer key-3"}, {"Authorization": "key-1"}, {"Authorization": 5}, {"key": "key-1"}],
    ids=str,
)
async def test_refused_credentials_close_with_4403(payload: object, address: str) -> None:
    async with opened(address) as client:
        await client.send({"type": "connection_init", "payload": payload})
        assert await client.closed() == 4403


async def test_a_wrong_key_in_the_first_message_is_not_saved_by_the_handshake(address: str) -> None:
    async with opened(address, additional_headers=BEARER) as client:
        await client.send({"type": "connection_init", "payload": {"authorization": "Bearer key-3"}})
        assert await client.closed() == 4403


async def test_without_keys_there_is_one_tenant(resources: Resources) -> None:
    async with ticking_server(resources) as (_, address), opened(address) as client:
        await client.send({"type": "connection_init"})
        await client.next()
        await client.subscribe("a", "{ tenant }")
        assert (await client.next())["payload"] == {"data": {"tenant": "default"}}


@pytest.mark.parametrize(
    "origin",
    ["https://elsewhere.example", "http://127.0.0.1:1", "http://localhost", "null", "http://127.0.0.1.example"],
)
async def test_a_page_of_another_site_is_refused(origin: str, address: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with opened(address, origin=Origin(origin)):
            pass
    assert refused.value.response.status_code == 403


async def test_a_page_of_this_site_is_not(address: str) -> None:
    async with acknowledged(address, origin=Origin(f"http://{address}")) as client:
        await client.subscribe("a", "{ tenant }")
        assert (await client.next())["type"] == "next"


@pytest.mark.parametrize("protocols", [["graphql-ws"], ["soap"], None], ids=str)
async def test_another_protocol_closes_with_4406(protocols: list[Subprotocol] | None, address: str) -> None:
    async with connect(f"ws://{address}/graphql", subprotocols=protocols) as connection:
        assert await Client(connection).closed() == 4406


# ---------------------------------------------------------------- faults of the protocol

WRONG: tuple[dict[str, Any], ...] = (
    {"id": None},
    {"id": 5},
    {"id": ["a"]},
    {"payload": None},
    {"payload": []},
    {"payload": {}},
    {"payload": {"query": 5}},
    {"payload": {"query": "{ tenant }", "variables": []}},
    {"payload": {"query": "{ tenant }", "operationName": 5}},
    {"payload": {"query": "{ tenant }", "extensions": "e"}},
)
SUBSCRIBE = {"id": "a", "type": "subscribe", "payload": {"query": "{ tenant }"}}


@pytest.mark.parametrize(
    "frame",
    [
        b"binary",
        "{",
        "",
        "null",
        "5",
        "[]",
        "NaN",
        '"text"',
        "{}",
        '{"type": 5}',
        '{"type": "start"}',
        '{"type": "%s"}' % ("x" * 1_000),
        '{"type": "ping", "payload": []}',
        '{"type": "complete"}',
        '{"type": "complete", "id": 5}',
        *(orjson.dumps({**SUBSCRIBE, **wrong}).decode() for wrong in WRONG),
    ],
    ids=lambda frame: repr(frame[:60]),
)
async def test_a_frame_that_is_none_closes_with_4400(frame: str | bytes, address: str) -> None:
    async with acknowledged(address) as client:
        await client.connection.send(frame)
        assert await client.closed() == 4400


@pytest.mark.parametrize("payload", [[], "text", 5])
async def test_a_first_message_with_a_payload_that_is_no_object_closes_with_4400(payload: object, address: str) -> None:
    async with opened(address) as client:
        await client.send({"type": "connection_init", "payload": payload})
        assert await client.closed() == 4400


async def test_a_second_first_message_closes_with_4429(address: str) -> None:
    async with acknowledged(address) as client:
        await client.send({"type": "connection_init", "payload": BEARER})
        assert await client.closed() == 4429


async def test_an_operation_before_the_acknowledgement_closes_with_4401(address: str) -> None:
    async with opened(address, additional_headers=BEARER) as client:
        await client.send(SUBSCRIBE)
        assert await client.closed() == 4401


async def test_an_id_that_is_in_use_closes_with_4409(address: str) -> None:
    before = open_subscriptions.now
    async with acknowledged(address) as client:
        await client.subscribe("a", "subscription { never { number } }")
        await client.subscribe("a", "subscription { never { number } }")
        assert await client.closed() == 4409
    await until(lambda: open_subscriptions.now == before)


# ---------------------------------------------------------------- faults of an operation


async def faulty(client: Client, query: str, **variables: Any) -> dict[str, Any]:
    """The one error of an operation that is not executed."""
    await client.subscribe("faulty", query, **variables)
    frame = await client.next()
    assert (frame["id"], frame["type"]) == ("faulty", "error")
    (error,) = frame["payload"]
    assert re.fullmatch(r"[0-9a-f-]{36}", error["extensions"]["requestId"])
    return dict(error)


async def test_a_faulty_operation_ends_alone(address: str) -> None:
    async with acknowledged(address) as client:
        await client.subscribe("other", "subscription { never { number } }")

        assert (await faulty(client, "{"))["extensions"]["code"] == "GRAPHQL_PARSE_FAILED"
        unknown = await faulty(client, "subscription { tocks }")
        assert unknown["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
        assert "tocks" in unknown["message"]
        assert (await faulty(client, ""))["extensions"]["code"] == "BAD_INPUT"
        text = await faulty(client, "mutation($text: String!) { shout(text: $text) }", text="a\0b")
        assert (text["extensions"]["code"], text["message"]) == (
            "BAD_INPUT",
            "variables.text: holds a NUL, which no text may",
        )
        assert "code" in (await faulty(client, "subscription($to: Int!) { ticks(to: $to) { number } }"))["extensions"]

        await client.subscribe("b", "{ tenant }")
        assert (await client.next())["payload"] == {"data": {"tenant": "tenant-1"}}


async def test_an_error_of_one_event_is_masked_and_the_next_events_come(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "reverie.api"):
        async with acknowledged(address) as client:
            await client.subscribe("a", "subscription { ticks(to: 3) { odd } }")
            first, second, third = [(await client.next())["payload"] for _ in range(3)]

    assert first == {"data": {"ticks": {"odd": 1}}}
    assert third == {"data": {"ticks": {"odd": 3}}}
    (error,) = second["errors"]
    assert (error["path"], error["extensions"]["code"]) == (["ticks", "odd"], "INTERNAL")
    assert SECRET not in str(second)
    # and: the log tells it, under the same id
    assert SECRET in caplog.text
    assert error["extensions"]["requestId"] in caplog.text


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("subscription { breaks { number } }", "INTERNAL"),
        ("subscription { refuses { number } }", "UNAVAILABLE"),
        ("subscription { ticks(to: 1) { available } }", "UNAVAILABLE"),
        ("{ fails }", "INTERNAL"),
    ],
)
async def test_what_fails_ends_with_a_coded_error(
    query: str, code: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    frames: list[dict[str, Any]] = []
    with caplog.at_level(logging.ERROR, "reverie.api"):
        async with acknowledged(address) as client:
            await client.subscribe("a", query)
            while not frames or frames[-1]["type"] == "next":
                frames.append(await client.next())

    errors = [error for frame in frames if frame["type"] == "next" for error in frame["payload"].get("errors", [])]
    errors += [error for frame in frames if frame["type"] == "error" for error in frame["payload"]]
    assert [error["extensions"]["code"] for error in errors] == [code]
    assert SECRET not in str(frames)


async def test_one_connection_runs_a_hundred_operations_at_once(address: str) -> None:
    before = open_subscriptions.now
    async with acknowledged(address) as client:
        for number in range(100):
            await client.subscribe(str(number), "subscription { never { number } }")

        refused = await faulty(client, "{ tenant }")
        assert (refused["extensions"]["code"], refused["message"]) == (
            "BAD_INPUT",
            "one connection runs 100 operations at once, no more",
        )
        await client.send({"id": "0", "type": "complete"})
        await client.subscribe("again", "{ tenant }")
        assert (await client.next())["payload"] == {"data": {"tenant": "tenant-1"}}
    await until(lambda: open_subscriptions.now == before)


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize(
    "query", ["subscription { never { number } }", "subscription { ticks(pause: 0.001) { number } }"]
)
async def test_a_socket_that_vanishes_ends_its_subscriptions(query: str, address: str) -> None:
    before = open_subscriptions.now
    async with acknowledged(address) as client:
        for number in range(5):
            await client.subscribe(str(number), query)
        await until(lambda: open_subscriptions.now == before + 5)

        # when: the connection is reset, without a word
        raw = client.connection.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.connection.transport.abort()
        await until(lambda: open_subscriptions.now == before)


async def test_nothing_is_left_of_the_operations_of_a_long_lived_socket(address: str) -> None:
    async with acknowledged(address) as client:
        counts = []
        for number in range(4):
            for one in range(500):
                await client.subscribe(f"{number}-{one}", "{ tenant }")
                await client.next()
                await client.next()
            gc.collect()
            counts.append(len(gc.get_objects()))

    assert max(counts) - min(counts) < 200, counts


async def test_a_client_that_stops_reading_holds_up_nobody_and_fills_no_memory(address: str) -> None:
    query = "subscription { ticks(filling: 500000) { number filling } }"
    async with acknowledged(address, max_queue=1) as stuck, acknowledged(address) as other:
        before = open_subscriptions.ticked
        await stuck.subscribe("a", query)
        await stuck.next()
        # when: it takes nothing any more, the buffers of both sides fill, and then nothing more is made for it
        made = -1
        while made != (made := open_subscriptions.ticked):  # noqa: ASYNC110 - it waits for nothing to happen
            await asyncio.sleep(0.5)
        assert (made - before) * 500_000 < 50_000_000
        await other.subscribe("b", "{ tenant }")
        assert (await other.next())["type"] == "next"

        # then: it hears what it missed, in order
        numbers = [(await stuck.next())["payload"]["data"]["ticks"]["number"] for _ in range(150)]
        assert numbers == list(range(2, 152))


async def test_at_the_end_of_the_server_its_sockets_are_told_to_come_again(resources: Resources) -> None:
    before = open_subscriptions.now
    async with ticking_server(resources, KEYS) as (server, address), acknowledged(address) as client:
        await client.subscribe("a", "subscription { never { number } }")
        await until(lambda: open_subscriptions.now == before + 1)
        began = asyncio.get_running_loop().time()
        server.should_exit = True

        assert await client.closed() in (CloseCode.SERVICE_RESTART, CloseCode.GOING_AWAY)
        await until(lambda: open_subscriptions.now == before)
    assert asyncio.get_running_loop().time() - began < 5
