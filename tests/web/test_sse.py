"""GraphQL over server-sent events (graphql-sse, distinct connections), by a real client at a real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
from tests.serving import until
from tests.web.ticking import KEYS, SECRET, open_subscriptions, ticking_server

from reverie.resources import Resources

STREAM = {"accept": "text/event-stream", "authorization": "Bearer key-1"}
TICKS = "subscription($to: Int!) { ticks(to: $to) { number tenant } }"


@pytest_asyncio.fixture(scope="module")
async def client(resources: Resources) -> AsyncIterator[httpx.AsyncClient]:
    """A client of tenant-1 that wants streams."""
    async with (
        ticking_server(resources, KEYS) as (_, address),
        httpx.AsyncClient(base_url=f"http://{address}", headers=STREAM, timeout=20) as opened,
    ):
        yield opened


class Events:
    """The events of one answer, as they come."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def next(self) -> tuple[str, Any] | None:
        """Name and data of the next event; None at the end of the stream."""
        name, data = "", ""
        async for line in self._lines:
            if line.startswith(":"):
                continue
            if line == "" and name:
                return name, orjson.loads(data) if data else None
            field, _, value = line.partition(":")
            if field == "event":
                name = value.strip()
            elif field == "data":
                data = value.strip()
        return None

    async def all(self) -> list[tuple[str, Any]]:
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


@asynccontextmanager
async def streamed(client: httpx.AsyncClient, query: str, **variables: Any) -> AsyncIterator[Events]:
    body = {"query": query, "variables": variables}
    async with client.stream("POST", "/graphql", json=body) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Events(answer)


def tick(number: int) -> tuple[str, Any]:
    return "next", {"data": {"ticks": {"number": number, "tenant": "tenant-1"}}}


async def test_a_subscription_is_streamed_by_post(client: httpx.AsyncClient) -> None:
    async with streamed(client, TICKS, to=3) as events:
        assert "no-cache" in events.answer.headers["cache-control"]
        assert events.answer.headers["x-request-id"]
        assert await events.all() == [tick(1), tick(2), tick(3), ("complete", None)]


async def test_and_by_get(client: httpx.AsyncClient) -> None:
    parameters = {"query": TICKS, "variables": '{"to": 2}'}
    async with client.stream("GET", "/graphql", params=parameters) as answer:
        assert await Events(answer).all() == [tick(1), tick(2), ("complete", None)]


async def test_events_come_as_they_happen(client: httpx.AsyncClient) -> None:
    async with streamed(client, "subscription { ticks(pause: 3600) { number tenant } }") as events:
        assert await events.next() == tick(1)


async def test_a_query_may_be_streamed_too(client: httpx.AsyncClient) -> None:
    async with streamed(client, "{ tenant }") as events:
        assert await events.all() == [("next", {"data": {"tenant": "tenant-1"}}), ("complete", None)]


async def test_a_mutation_by_get_is_not_run(client: httpx.AsyncClient) -> None:
    parameters = {"query": 'mutation { shout(text: "x") }'}
    answer = await client.get("/graphql", params=parameters)

    assert "X" not in answer.text
    assert '"code":"' in answer.text


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("{", ["GRAPHQL_PARSE_FAILED"]),
        ("subscription { tocks }", ["GRAPHQL_VALIDATION_FAILED"]),
        ("subscription { breaks { number } }", ["INTERNAL"]),
        ("subscription { refuses { number } }", ["UNAVAILABLE"]),
        ("subscription { ticks(to: 3) { odd } }", ["INTERNAL"]),
    ],
)
async def test_errors_are_coded_and_masked(query: str, codes: list[str], client: httpx.AsyncClient) -> None:
    async with streamed(client, query) as events:
        found = await events.all()

    errors = [error for _, data in found if data for error in data.get("errors", [])]
    assert [error["extensions"]["code"] for error in errors] == codes
    assert {error["extensions"]["requestId"] for error in errors} == {events.answer.headers["x-request-id"]}
    assert SECRET not in str(found)
    assert found[-1] == ("complete", None)


@pytest.mark.parametrize("authorization", ["", "Bearer key-3"])
async def test_without_a_known_key_nothing_is_streamed(authorization: str, client: httpx.AsyncClient) -> None:
    answer = await client.post("/graphql", json={"query": TICKS}, headers={"authorization": authorization})

    assert answer.status_code == 401
    assert answer.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "http://127.0.0.1:1", "null"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_page_of_another_site_is_refused(method: str, origin: str, client: httpx.AsyncClient) -> None:
    given: dict[str, Any] = (
        {"json": {"query": "{ tenant }"}} if method == "POST" else {"params": {"query": "{ tenant }"}}
    )
    answer = await client.request(method, "/graphql", headers={"origin": origin}, **given)

    assert answer.status_code == 403
    assert answer.json()["errors"][0]["extensions"]["code"] == "FORBIDDEN"


async def test_a_page_of_this_site_is_not(client: httpx.AsyncClient) -> None:
    body = {"query": "{ tenant }"}
    answer = await client.post("/graphql", json=body, headers={"origin": str(client.base_url).rstrip("/")})

    assert answer.status_code == 200
    assert "tenant-1" in answer.text


async def test_a_client_that_goes_ends_its_subscription(client: httpx.AsyncClient) -> None:
    before = open_subscriptions.now
    for query in ("subscription { ticks(pause: 0.01) { number } }", "subscription { ticks(pause: 3600) { number } }"):
        async with streamed(client, query) as events:
            await events.next()
            assert open_subscriptions.now == before + 1
        await until(lambda: open_subscriptions.now == before)


async def test_a_subscription_by_plain_post_is_told_how_to_ask(client: httpx.AsyncClient) -> None:
    answer = await client.post("/graphql", json={"query": TICKS, "variables": {"to": 1}}, headers={"accept": "*/*"})

    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["extensions"]["code"] == "BAD_INPUT"
    assert "text/event-stream" in error["message"]


async def test_at_the_end_of_the_server_its_streams_end_without_completing(resources: Resources) -> None:
    before = open_subscriptions.now
    async with (
        ticking_server(resources, KEYS) as (server, address),
        httpx.AsyncClient(base_url=f"http://{address}", headers=STREAM, timeout=20) as client,
    ):
        began = asyncio.get_running_loop().time()
        async with streamed(client, "subscription { ticks(pause: 3600) { number tenant } }") as events:
            assert await events.next() == tick(1)
            server.should_exit = True
            assert await events.all() == []
        await until(lambda: open_subscriptions.now == before)
    assert asyncio.get_running_loop().time() - began < 5
