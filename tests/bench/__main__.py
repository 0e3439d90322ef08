"""`python -m tests.bench`: the main job's speed as ratios within one run, on 100,000 memories."""

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from neo4j import READ_ACCESS
from platformdirs import user_cache_path
from tests.bench.store import CONNECT_MEMORIES, CREATE_MEMORIES, TENANT, Bench, Words, open_bench, run

from reverie.ai.local_embedder import LocalEmbedder
from reverie.domain.clock import now_ms
from reverie.domain.entities import EntityRef
from reverie.domain.ids import new_id
from reverie.domain.memories import MemoryDraft
from reverie.domain.search import SearchFilter, SearchKind
from reverie.domain.text import keyword_query, query_words
from reverie.domain.topics import TopicRef
from reverie.graph.commits import Commits
from reverie.graph.memories import memory_properties
from reverie.graph.records import MEMORY
from reverie.graph.schema import await_words
from reverie.graph.writes import Write
from reverie.resources import Resources
from reverie.services.memories import create_memories
from reverie.services.search import search
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
CREATE = "mutation($input: CreateMemoryInput!) { createMemory(input: $input) { memory { id } errors { code } } }"
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


async def paired(variants: dict[str, Callable[[], Awaitable[Any]]]) -> dict[str, list[float]]:
    """Milliseconds of each variant, in turns, after a warm-up."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for call in variants.values():
        for _ in range(WARM):
            await call()
    for _ in range(ROUNDS):
        for name, call in variants.items():
            for _ in range(PER_ROUND):
                start = time.perf_counter()
                await call()
                times[name].append((time.perf_counter() - start) * 1_000)
    return times


def p50(times: list[float]) -> float:
    return statistics.median(times)


async def searching(bench: Bench, resources: Resources) -> list[tuple[str, str, str]]:
    """Hybrid search over memories, vector given, at the service and over HTTP, against the raw one-statement read."""
    questions = Words(5)
    embedder = resources.embedder
    assert embedder is not None
    wanted = SearchFilter(kinds=(SearchKind.MEMORY,))

    async def raw() -> None:
        parameters = {
            "t": TENANT,
            "vector": bench.vectors.next(),
            "words": keyword_query(query_words(questions.sentence(5)), [f"{bench.number}m"]),
        }
        async with bench.driver.session(default_access_mode=READ_ACCESS, fetch_size=-1) as session:
            result = await session.run(RAW_SEARCH, parameters)
            await result.single()

    async def service() -> None:
        await search(resources, TENANT, questions.sentence(5), wanted=wanted, vector=bench.vectors.next())

    async def embedding() -> None:
        await embedder.embed_query(questions.sentence(5))

    async with served(resources) as address, httpx.AsyncClient(base_url=address, timeout=30) as client:

        async def http() -> None:
            body = {"query": SEARCH, "variables": {"query": questions.sentence(5)}}
            answer = (await client.post("/graphql", json=body)).json()
            assert "errors" not in answer, answer

        times = await paired({"raw": raw, "service": service, "embedding": embedding, "http": http})
    floor, at_service, one_embedding, over_http = (p50(times[name]) for name in ("raw", "service", "embedding", "http"))
    allowed = 1.5 * floor + one_embedding + 3
    return [
        ("search, raw one-statement read", f"{floor:.2f} ms", ""),
        ("search at the service", f"{at_service:.2f} ms", f"{at_service / floor:.2f} of raw (wanted ≤ 1.5)"),
        ("one embedding of a question", f"{one_embedding:.2f} ms", ""),
        ("search over HTTP, question as text", f"{over_http:.2f} ms", f"wanted ≤ {allowed:.2f} ms"),
    ]


async def writing(bench: Bench, resources: Resources) -> list[tuple[str, str, str]]:
    """createMemories of 1,000 against a bare UNWIND of the same graph; single writes by 32 clients and by one."""
    words = Words(6)
    topics = await ids_of(bench, "Topic", 500)
    entities = await ids_of(bench, "Entity", 500)
    conversations = await ids_of(bench, "Conversation", 100)
    count = 0

    def draft() -> MemoryDraft:
        nonlocal count
        count += 1
        return MemoryDraft(
            content=words.sentence(),
            conversation_id=conversations[count % 100],
            topics=tuple(TopicRef(id=topics[(count * 7 + i) % 500]) for i in range(5)),
            entities=tuple(EntityRef(id=entities[(count * 11 + i) % 500]) for i in range(5)),
            enrich=False,
        )

    async def ours() -> None:
        await create_memories(resources, TENANT, [draft() for _ in range(1_000)], None)

    async def bare(rows: list[dict[str, Any]], edges: list[Any]) -> None:
        async with bench.driver.session() as session:
            transaction = await session.begin_transaction()
            await (await transaction.run(CREATE_MEMORIES, rows=rows)).consume()
            await (await transaction.run(CONNECT_MEMORIES, rows=edges)).consume()
            await transaction.commit()
        await await_words(bench.graph)

    batch: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(6):
        start = time.perf_counter()
        await ours()
        batch["ours"].append(time.perf_counter() - start)
        write = Write(TENANT, bench.number, "bench", None, now_ms())
        drafts = [draft() for _ in range(1_000)]
        rows = [memory_properties(write, drawn, new_id(), None) for drawn in drafts]
        edges = [
            [row["id"], drawn.conversation_id, [t.id for t in drawn.topics], [e.id for e in drawn.entities]]
            for row, drawn in zip(rows, drafts, strict=True)
        ]
        start = time.perf_counter()
        await bare(rows, edges)
        batch["bare"].append(time.perf_counter() - start)
    batch_ratio = p50(batch["bare"][1:]) / p50(batch["ours"][1:])

    async with served(resources) as address, AsyncExitStack() as stack:
        # a connection of its own for each: one pool for all of them costs more than what is measured
        own = [await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=60)) for _ in range(32)]

        async def one(client: httpx.AsyncClient) -> None:
            drawn = draft()
            body = {
                "content": drawn.content,
                "conversationId": drawn.conversation_id,
                "topics": [{"id": t.id} for t in drawn.topics],
                "entities": [{"id": e.id} for e in drawn.entities],
                "enrich": False,
            }
            answer = (await client.post("/graphql", json={"query": CREATE, "variables": {"input": body}})).json()
            assert answer["data"]["createMemory"]["errors"] == [], answer

        async def rate(clients: int, each: int) -> float:
            async def work(client: httpx.AsyncClient) -> None:
                for _ in range(each):
                    await one(client)

            start = time.perf_counter()
            await asyncio.gather(*(work(client) for client in own[:clients]))
            return clients * each / (time.perf_counter() - start)

        await rate(8, 10)
        rates: dict[int, list[float]] = {1: [], 32: []}
        for _ in range(4):
            rates[1].append(await rate(1, 40))
            rates[32].append(await rate(32, 20))
    single, many = p50(rates[1]), p50(rates[32])
    return [
        ("bare UNWIND of 1,000", f"{1_000 / p50(batch['bare'][1:]):.0f} memories/s", ""),
        (
            "createMemories of 1,000",
            f"{1_000 / p50(batch['ours'][1:]):.0f} memories/s",
            f"{batch_ratio:.2f} of bare (wanted ≥ 0.5)",
        ),
        ("createMemory, one client", f"{single:.0f} memories/s", ""),
        ("createMemory, 32 clients", f"{many:.0f} memories/s", f"{many / single:.1f} times one (wanted ≥ 5)"),
    ]


async def ids_of(bench: Bench, label: str, count: int) -> list[str]:
    found: list[str] = await bench.graph.read(f"MATCH (n:{label}) WITH n LIMIT {count} RETURN collect(n.id)")
    return found


async def clean(bench: Bench, since: int) -> None:
    """Takes away what a run wrote, so that the next finds the same store."""
    statement = (
        "MATCH (n:Memory) WHERE n.tenant = $t AND n.createdAt >= $since "
        "CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 1000 ROWS"
    )
    await run(bench, statement, t=TENANT, since=since)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=user_cache_path("reverie", appauthor=False) / "bench-store")
    options = parser.parse_args()
    async with open_bench(options.store) as bench:
        commits = Commits(bench.graph)
        since = now_ms()
        embedder = LocalEmbedder()
        version = bench.graph.server_version
        rows = await searching(bench, Resources(bench.graph, commits, embedder, None, 10.0, version, "bench"))
        await embedder.close()
        rows += await writing(bench, Resources(bench.graph, commits, None, None, 10.0, version, "bench"))
        await commits.close()
        await clean(bench, since)
    width = max(len(row[0]) for row in rows)
    for name, figure, ratio in rows:
        print(f"{name:<{width}}  {figure:>18}  {ratio}")


if __name__ == "__main__":
    asyncio.run(main())
