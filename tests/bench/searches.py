"""What the benchmarks of search share: the raw read, the query, the server, and calls timed in turns."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import uvicorn

from reverie.graph.records import MEMORY
from reverie.resources import Resources
from reverie.settings import Settings
from reverie.web.app import create_app

RAW_SEARCH = f"""
CYPHER 25 CALL () {{
  MATCH (m:Memory) SEARCH m IN (VECTOR INDEX memory_embedding FOR $vector WHERE m.tenant = $t LIMIT 200) SCORE AS s
  WITH collect(m)[0..100] AS found UNWIND range(0, size(found) - 1) AS i RETURN found[i] AS m, 1.0 / (11 + i) AS w
  UNION ALL
  CALL db.index.fulltext.queryNodes('words', $words, {{limit: 100}}) YIELD node AS m, score AS s
  WITH collect(m) AS found UNWIND range(0, size(found) - 1) AS i RETURN found[i] AS m, 1.0 / (11 + i) AS w
}} WITH m, sum(w) AS w ORDER BY w DESC LIMIT 10
RETURN collect([w, {MEMORY.row("m")}])
"""
SEARCH = """
query($query: String!) {
  search(query: $query, filter: {kinds: [MEMORY]}) { edges { score node { ... on Memory { id content importance } } } }
}
"""
ROUNDS, PER_ROUND, WARM = 6, 25, 60


@asynccontextmanager
async def served(resources: Resources) -> AsyncIterator[str]:
    """The real application on a free loopback port."""
    app = create_app(Settings.read({}), companions=(), opener=lambda _: nullcontext(resources))
    config = uvicorn.Config(
        app, port=0, log_level="warning", loop="uvloop", http="httptools", lifespan="on", timeout_keep_alive=75
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event to wait for
        await asyncio.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await running


async def paired(variants: Mapping[str, Callable[[], Awaitable[Any]]], clients: int = 1) -> dict[str, list[float]]:
    """Milliseconds of each call of each variant, in turns, after a warm-up; so many clients call at once."""
    times: dict[str, list[float]] = {name: [] for name in variants}

    async def client(name: str, call: Callable[[], Awaitable[Any]]) -> None:
        for _ in range(PER_ROUND):
            start = time.perf_counter()
            await call()
            times[name].append((time.perf_counter() - start) * 1_000)

    for call in variants.values():
        for _ in range(WARM):
            await call()
    for _ in range(ROUNDS):
        for name, call in variants.items():
            await asyncio.gather(*(client(name, call) for _ in range(clients)))
    return times


def p50(times: list[float]) -> float:
    return statistics.median(times)
