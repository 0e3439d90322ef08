"""`python -m tests.bench`: the main job's speed as ratios within one run, on 100,000 memories."""

import argparse
import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
from neo4j import READ_ACCESS
from platformdirs import user_cache_path
from tests.bench.searches import RAW_SEARCH, SEARCH, p50, paired, served
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
from reverie.graph.schema import await_words
from reverie.graph.writes import Write
from reverie.resources import Resources
from reverie.services.memories import create_memories
from reverie.services.search import search

CREATE = "mutation($input: CreateMemoryInput!) { createMemory(input: $input) { memory { id } errors { code } } }"


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
