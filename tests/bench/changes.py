"""`python -m tests.bench.changes`: the delay from a commit to its subscribers' frames, over two servers and Redis.

The floor, in the same run: a bare process that hears a Redis channel and sends each message to as many bare WebSocket
clients. Neo4j is the one of `NEO4J_URI` (and `NEO4J_PASSWORD`), or a private one; each run writes as a tenant of its
own. The changes are made one at a time through this process, which holds the writing server and the clients.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import orjson
import redis.asyncio
from tests.commands.program import running
from tests.following import CHANGES, LEAN, Stream, subscribed
from tests.redis_server import redis_server
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, broadcast, serve

from reverie.bus.bells import NoticeKind
from reverie.domain.beliefs import BeliefUpsert
from reverie.local import LocalNeo4jOptions, default_cache_dir, private_neo4j
from reverie.local.process import free_port
from reverie.resources import Resources, open_resources
from reverie.services.beliefs import upsert_belief
from reverie.settings import Settings

KEY = "key-of-the-bench"
CHANNEL = "bench"
LIMIT = 60.0
PAUSE = 0.02
"""Seconds between the last client's frame and the next change."""


@asynccontextmanager
async def neo4j_settings(folder: Path) -> AsyncIterator[dict[str, str]]:
    """Variables for the Neo4j that the environment names, or for a private one in `folder`."""
    if "NEO4J_URI" in os.environ:
        yield {name: value for name, value in os.environ.items() if name.startswith("NEO4J_")}
        return
    options = LocalNeo4jOptions(data_dir=folder, cache_dir=default_cache_dir(), heap="1g", page_cache="256m")
    async with private_neo4j(options, notify=print, progress=True) as running_one:
        yield {
            "NEO4J_URI": running_one.uri,
            "NEO4J_USERNAME": running_one.username,
            "NEO4J_PASSWORD": running_one.password,
        }


def relay(url: str, port: int) -> None:
    """The floor's process: what Redis says goes to every client."""
    asyncio.run(_relay(url, port))


async def _relay(url: str, port: int) -> None:
    clients: set[ServerConnection] = set()

    async def keep(client: ServerConnection) -> None:
        clients.add(client)
        await client.wait_closed()
        clients.discard(client)

    async with (
        serve(keep, "127.0.0.1", port, compression=None),
        redis.asyncio.Redis.from_url(url) as channel,
        channel.pubsub() as heard,
    ):
        await heard.subscribe(CHANNEL)
        async for message in heard.listen():
            if message["type"] == "message":
                broadcast(clients, message["data"])


async def measured(
    count: int, send: Callable[[], Awaitable[float]], clients: Sequence[Callable[[], Awaitable[object]]]
) -> list[float]:
    """Milliseconds from each sending, whose instant `send` returns, until each client has what was sent."""
    delays: list[float] = []

    async def receive(client: Callable[[], Awaitable[object]]) -> float:
        await client()
        return time.perf_counter()

    for _ in range(count):
        receiving = [asyncio.create_task(receive(client)) for client in clients]
        sent = await send()
        delays += [(at - sent) * 1_000 for at in await asyncio.gather(*receiving)]
        await asyncio.sleep(PAUSE)
    return delays


async def bare(count: int, subscribers: int, url: str) -> list[float]:
    """Redis publish and subscribe to bare WebSocket clients."""
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=relay, args=(url, port))
    process.start()
    try:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(redis.asyncio.Redis.from_url(url))
            while (await publisher.pubsub_numsub(CHANNEL))[0][1] == 0:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.05)
            clients = [
                await stack.enter_async_context(connect(f"ws://127.0.0.1:{port}", compression=None))
                for _ in range(subscribers)
            ]

            async def send() -> float:
                began = time.perf_counter()
                await publisher.publish(CHANNEL, orjson.dumps({"number": 1, "filling": "x" * 300}))
                return began

            await measured(count // 4, send, [client.recv for client in clients])
            return await measured(count, send, [client.recv for client in clients])
    finally:
        process.terminate()
        process.join()


async def followed(
    count: int, subscribers: int, query: str, address: str, resources: Resources, tenant: str
) -> list[float]:
    """Beliefs written here and followed at another server."""
    async with AsyncExitStack() as stack:
        streams: list[Stream] = [
            await stack.enter_async_context(subscribed(address, KEY, query)) for _ in range(subscribers)
        ]
        for stream in streams:
            await stream.next(LIMIT)
        written = 0

        async def send() -> float:
            nonlocal written
            written += 1
            with resources.bell.listen(NoticeKind.CHANGES, tenant=tenant) as rung:
                upsert = BeliefUpsert(f"subject {written % 40}", "likes", f"{uuid4()}")
                writing = asyncio.create_task(upsert_belief(resources, tenant, upsert, None))
                # rung right after the commit
                await anext(rung)
                at = time.perf_counter()
                await writing
            return at

        await measured(count // 4, send, [stream.next_change for stream in streams])
        return await measured(count, send, [stream.next_change for stream in streams])


def quantiles(delays: list[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    return statistics.median(delays), statistics.quantiles(delays, n=100)[-1]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--changes", type=int, default=200)
    options = parser.parse_args()
    tenant = f"bench-{uuid4().hex[:12]}"
    with tempfile.TemporaryDirectory() as name, redis_server(name) as bell:
        folder = Path(name)
        async with neo4j_settings(folder) as variables:
            variables |= {
                "REDIS_URL": bell.url,
                "REVERIE_EMBEDDER": "none",
                "REVERIE_WORKER": "off",
                "REVERIE_API_KEYS": orjson.dumps({KEY: tenant}).decode(),
            }
            async with open_resources(Settings.read(variables)) as resources:
                with running(folder, "serve", "--port", "0", **variables) as server:
                    address = (await asyncio.to_thread(server.ready)).removeprefix("http://")
                    floor = await bare(options.changes, options.subscribers, bell.url)
                    lean = await followed(options.changes, options.subscribers, LEAN, address, resources, tenant)
                    full = await followed(options.changes, options.subscribers, CHANGES, address, resources, tenant)
    floors = quantiles(floor)
    rows = (
        ("bare Redis to bare WebSockets", floor),
        ("beliefChanges, its own fields", lean),
        ("beliefChanges with belief and previous", full),
    )
    print(f"{options.changes} changes, {options.subscribers} subscribers: milliseconds from the commit to the frame")
    for name, delays in rows:
        median, last = quantiles(delays)
        ratios = "" if delays is floor else f"{median / floors[0]:.1f} and {last / floors[1]:.1f} times the bare ones"
        print(f"{name:<40} median {median:>7.1f}  p99 {last:>7.1f}  {ratios}")


if __name__ == "__main__":
    asyncio.run(main())
