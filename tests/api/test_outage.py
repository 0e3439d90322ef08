"""Mutations while Neo4j is away: UNAVAILABLE in time, nothing half-written or doubled, all as before afterwards."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from tests.conftest import Api, caller
from tests.stored import counted
from tests.tcp_proxy import TcpProxy

from reverie.local import LocalNeo4j, LocalNeo4jOptions, private_neo4j
from reverie.resources import Resources, open_resources
from reverie.settings import Settings

TIME_LIMIT = 3.0
"""Seconds; a transaction has twice that for all its tries, a read five more."""
COMMIT = b"\xb0\x12"
"""The Bolt message that commits (https://neo4j.com/docs/bolt/current/bolt/message/#messages-commit)."""
CREATE = "mutation($input: CreateMemoryInput!) { createMemory(input: $input) { memory { id } errors { code } } }"
EVERY = "{ memories(first: 200) { nodes { id topics { totalCount } entities { totalCount } facts { totalCount } } } }"


class Outage:
    """A private Neo4j behind a proxy: it can be killed and comes back under the same address."""

    def __init__(self, options: LocalNeo4jOptions, proxy: TcpProxy) -> None:
        self.proxy = proxy
        self.said: list[str] = []
        self._options = options
        self._stack = AsyncExitStack()
        self._running: LocalNeo4j | None = None

    async def start(self) -> LocalNeo4j:
        self._running = await self._stack.enter_async_context(private_neo4j(self._options, notify=self.said.append))
        address = urlsplit(self._running.uri)
        self.proxy.target = (str(address.hostname), int(address.port or 0))
        return self._running

    async def kill(self) -> None:
        """Kills Neo4j without a warning, and waits until all of it is gone."""
        assert self._running is not None
        os.kill(self._running.pid, signal.SIGKILL)
        await self.stop()

    async def stop(self) -> None:
        await self._stack.aclose()


@pytest_asyncio.fixture(scope="module")
async def outage(tmp_path_factory: pytest.TempPathFactory, cache_dir: Path) -> AsyncIterator[Outage]:
    options = LocalNeo4jOptions(
        data_dir=tmp_path_factory.mktemp("outage"), cache_dir=cache_dir, heap="512m", page_cache="64m", quick=True
    )
    async with TcpProxy() as proxy:
        made = Outage(options, proxy)
        yield made
        await made.stop()


@pytest_asyncio.fixture(scope="module")
async def through_proxy(outage: Outage, settings: Settings) -> Settings:
    running = await outage.start()
    return replace(
        settings,
        neo4j_uri=f"bolt://127.0.0.1:{outage.proxy.port}",
        neo4j_username=running.username,
        neo4j_password=running.password,
    )


@pytest_asyncio.fixture(scope="module")
async def resources(through_proxy: Settings) -> AsyncIterator[Resources]:
    """What a server holds open that reaches this Neo4j through the proxy."""
    async with open_resources(through_proxy) as opened:
        yield opened


@pytest_asyncio.fixture
async def api(resources: Resources, tenant: str) -> AsyncIterator[Api]:
    async with caller(resources, tenant) as client:
        yield Api(client, tenant)


@pytest_asyncio.fixture
async def impatient_api(through_proxy: Settings, tenant: str) -> AsyncIterator[Api]:
    """The API of a server that hasn't much patience with Neo4j."""
    async with (
        open_resources(replace(through_proxy, neo4j_timeout=TIME_LIMIT)) as opened,
        caller(opened, tenant) as client,
    ):
        yield Api(client, tenant)


async def create(api: Api, content: str, **given: Any) -> str | None:
    """Writes a memory with all that belongs to it; its id, None where Neo4j was away."""
    answer = await api.raw(
        CREATE,
        input={
            "content": content,
            "topics": [{"name": "Outage"}],
            "entities": [{"name": content, "type": "TOOL"}],
            "facts": [{"subject": content, "predicate": "is", "object": "written"}],
            **given,
        },
    )
    if "errors" not in answer:
        payload = answer["data"]["createMemory"]
        assert payload["errors"] == []
        return str(payload["memory"]["id"])
    (error,) = answer["errors"]
    assert (answer["data"], error["extensions"]["code"]) == ({"createMemory": None}, "UNAVAILABLE")
    assert "Neo4j" in error["message"]
    return None


async def whole(api: Api) -> list[str]:
    """The ids of all memories, each of which must have all that belongs to it."""
    nodes = (await api(EVERY))["memories"]["nodes"]
    for node in nodes:
        assert {name: node[name]["totalCount"] for name in ("topics", "entities", "facts")} == {
            "topics": 1,
            "entities": 1,
            "facts": 1,
        }
    return sorted(node["id"] for node in nodes)


async def test_a_connection_that_broke_while_idle_is_no_outage(api: Api, outage: Outage) -> None:
    first = await create(api, "before")
    outage.proxy.cut()

    second = await create(api, "after")
    outage.proxy.cut()

    assert await whole(api) == sorted([first, second])  # type: ignore[type-var]  # None would fail the comparison


@pytest.mark.parametrize("writers", [1, 8])
async def test_a_commit_that_never_arrived_leaves_nothing(
    writers: int, api: Api, outage: Outage, resources: Resources
) -> None:
    assert await create(api, "before") is not None
    before = await counted(resources.graph, api.tenant)
    outage.proxy.cut_before = lambda sent: COMMIT in sent

    answers = await asyncio.gather(*(create(api, str(number)) for number in range(writers)))

    assert None in answers
    after = await counted(resources.graph, api.tenant)
    assert after["Memory"] - before["Memory"] == len([answer for answer in answers if answer])
    assert len(await whole(api)) == after["Memory"]


@pytest.mark.parametrize("writers", [1, 8])
async def test_a_commit_whose_answer_was_lost_is_not_made_again(
    writers: int, api: Api, outage: Outage, resources: Resources
) -> None:
    assert await create(api, "before") is not None
    outage.proxy.cut_after = lambda sent: COMMIT in sent

    answers = await asyncio.gather(
        *(create(api, str(number), clientMutationKey=str(number)) for number in range(writers))
    )

    assert None in answers
    assert len(await whole(api)) == 1 + writers
    # asked again with the same key, each learns what became of it
    again = await asyncio.gather(
        *(create(api, str(number), clientMutationKey=str(number)) for number in range(writers))
    )
    assert set(await whole(api)) >= set(again)
    assert (await counted(resources.graph, api.tenant))["Memory"] == 1 + writers


async def test_while_neo4j_hangs_all_are_answered_within_the_time_limit(
    api: Api, impatient_api: Api, outage: Outage
) -> None:
    for number in range(10):
        await create(api, f"before {number}")
    outage.proxy.hold()
    began = time.monotonic()

    # a joined commit under way, what waits behind it, large ones of their own, and reads
    first = [asyncio.create_task(create(impatient_api, f"first {number}")) for number in range(4)]
    await asyncio.sleep(0.2)
    later, batches, reads = await asyncio.gather(
        asyncio.gather(*(create(impatient_api, f"later {number}") for number in range(150))),
        asyncio.gather(
            *(
                impatient_api.raw(
                    "mutation($input: CreateMemoriesInput!) { createMemories(input: $input) { errors { code } } }",
                    input={"memories": [{"content": "batch"}] * 100},
                )
                for _ in range(5)
            )
        ),
        asyncio.gather(*(impatient_api.raw("{ memories { totalCount } }") for _ in range(3))),
    )

    assert time.monotonic() - began < max(2 * TIME_LIMIT, TIME_LIMIT + 5) + 4
    assert [*await asyncio.gather(*first), *later] == [None] * 154
    for answer in [*batches, *reads]:
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["UNAVAILABLE"]

    outage.proxy.cut()
    outage.proxy.release()

    assert await create(impatient_api, "after") is not None
    assert len(await whole(api)) == 11


async def test_what_was_acknowledged_survives_neo4js_sudden_end(api: Api, outage: Outage, resources: Resources) -> None:
    # given: 200 writes, in the middle of which Neo4j is killed
    acknowledged: list[str | None] = []

    async def writer(numbers: range) -> None:
        for number in numbers:
            acknowledged.append(await create(api, f"memory {number}", clientMutationKey=str(number)))

    writing = [asyncio.create_task(writer(range(start, 200, 20))) for start in range(20)]
    async with asyncio.timeout(60):
        while len(acknowledged) < 60:  # noqa: ASYNC110 - the writers tell by what they append
            await asyncio.sleep(0.005)
    outage.proxy.target = None
    await outage.kill()
    await asyncio.gather(*writing)

    # when it is away: every mutation says so at once, and so does the server's health
    assert len(acknowledged) == 200
    written = [memory_id for memory_id in acknowledged if memory_id]
    assert 60 <= len(written) < 200
    began = time.monotonic()
    assert await create(api, "while it is away") is None
    assert time.monotonic() - began < TIME_LIMIT
    (error,) = await api.errors("{ memories { totalCount } }")
    assert error["extensions"]["code"] == "UNAVAILABLE"
    assert (await api.client.get("/health/ready")).status_code == 503
    assert (await api.client.get("/health/live")).status_code == 200

    # then: it comes back under its address, with all that was acknowledged and nothing half-written
    await outage.start()
    found = await whole(api)
    assert set(written) <= set(found)
    assert len(found) - len(written) <= 20
    # asked again with the same keys, each is there once
    again = await asyncio.gather(
        *(create(api, f"memory {number}", clientMutationKey=str(number)) for number in range(200))
    )
    assert sorted(memory_id for memory_id in again if memory_id) == await whole(api)
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Memory"], counts["Fact"], counts["Entity"], counts["Topic"]) == (200, 200, 200, 1)
    assert (await api.client.get("/health/ready")).status_code == 200
