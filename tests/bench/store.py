"""The benchmark's store: a private Neo4j with 100,000 memories, made once and kept."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from neo4j import AsyncDriver, AsyncGraphDatabase

from reverie.domain.clock import now_ms
from reverie.domain.ids import new_id
from reverie.domain.memories import MemoryDraft, MemoryType
from reverie.domain.names import normal_form
from reverie.domain.text import ANALYSIS_VERSION, index_text
from reverie.graph.communities import weigh
from reverie.graph.memories import memory_properties
from reverie.graph.schema import await_words, record_embedder, set_up
from reverie.graph.store import Graph, open_graph
from reverie.graph.tenants import tenant_number
from reverie.graph.writes import Write
from reverie.local import LocalNeo4j, LocalNeo4jOptions, default_cache_dir, private_neo4j

TENANT = "default"
DIMENSIONS = 384
MEMORIES, TOPICS, ENTITIES, FACTS, CONVERSATIONS = 100_000, 2_000, 10_000, 30_000, 1_000
CLUSTERS = 200
BATCH = 1_000

_SYLLABLES = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "on")]


@dataclass(slots=True)
class Bench:
    """The open store: the graph as the product sees it, and a raw driver beside it."""

    graph: Graph
    driver: AsyncDriver
    neo4j: LocalNeo4j
    number: int
    vectors: "Vectors"


class Vectors:
    """Synthetic unit vectors around fixed centres, as embeddings of a corpus with themes are."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        centres = np.random.default_rng(7).normal(size=(CLUSTERS, DIMENSIONS))
        self._centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)

    def next(self) -> list[float]:
        centre = self._centres[self._random.integers(CLUSTERS)]
        vector = centre + self._random.normal(size=DIMENSIONS) * 0.06
        found: list[float] = (vector / np.linalg.norm(vector)).astype(np.float32).tolist()
        return found


class Words:
    """Sentences of made-up words whose frequencies fall as those of a language do."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        vocabulary = random.Random(3)
        self._words = ["".join(vocabulary.choices(_SYLLABLES, k=vocabulary.randint(2, 4))) for _ in range(8_000)]
        self._weights = [1 / (rank + 8) for rank in range(len(self._words))]

    def sentence(self, length: int = 24) -> str:
        return " ".join(self._random.choices(self._words, self._weights, k=length))


@asynccontextmanager
async def open_bench(folder: Path) -> AsyncIterator[Bench]:
    """Opens the store in `folder`, filling it first where it is empty (some minutes)."""
    async with open_store(folder) as bench:
        if not await is_filled(bench):
            await fill(bench)
        yield bench


@asynccontextmanager
async def open_store(folder: Path) -> AsyncIterator[Bench]:
    """The private Neo4j of `folder`, set up for the local model's vectors."""
    options = LocalNeo4jOptions(data_dir=folder, cache_dir=default_cache_dir(), heap="1g", page_cache="1g")
    async with (
        private_neo4j(options, notify=print, progress=True) as neo4j,
        open_graph(neo4j.uri, neo4j.username, neo4j.password, None, time_limit=120) as graph,
        AsyncGraphDatabase.driver(
            neo4j.uri, auth=(neo4j.username, neo4j.password), notifications_min_severity="OFF"
        ) as driver,
    ):
        record = await set_up(graph, analysis=ANALYSIS_VERSION)
        if record.embedder is None:
            await record_embedder(graph, "local:multilingual-e5-small-q4", DIMENSIONS)
        yield Bench(graph, driver, neo4j, await tenant_number(graph, TENANT), Vectors(11))


async def is_filled(bench: Bench) -> bool:
    return bool(await bench.graph.read("MATCH (n:Bench {done: true}) RETURN true"))


async def note_filled(bench: Bench) -> None:
    await run(bench, "CREATE (:Bench {done: true})")


async def fill(bench: Bench) -> None:
    """Writes the whole data set."""
    print("filling the store…", flush=True)
    now = now_ms()
    names = Words(1)
    chance = random.Random(2)
    write = Write(TENANT, bench.number, "bench", None, now)

    def named(count: int, kind: str, letter: str) -> list[dict[str, Any]]:
        rows = []
        for index in range(count):
            name = f"{names.sentence(2)} {index}"
            rows.append(
                {
                    "id": new_id(),
                    "tenant": TENANT,
                    "name": name,
                    "form": normal_form(name),
                    "kind": kind,
                    "words": index_text(name, f"{bench.number}{letter}"),
                    "createdAt": now,
                    "updatedAt": now,
                }
            )
        return rows

    topics, entities = named(TOPICS, "Topic", "t"), named(ENTITIES, "Entity", "e")
    conversations: list[dict[str, Any]] = [
        {
            "id": (node_id := new_id()),
            "tenant": TENANT,
            "title": (title := names.sentence(4)),
            "form": title,
            "threadId": node_id,
            "words": index_text(title, f"{bench.number}c"),
            "createdAt": now,
            "updatedAt": now,
        }
        for _ in range(CONVERSATIONS)
    ]
    for rows in batches(topics):
        vectors = [bench.vectors.next() for _ in rows]
        await run(bench, CREATE_TOPICS, rows=rows, vectors=vectors)
    for rows in batches(entities):
        await run(bench, CREATE_ENTITIES, rows=rows)
    for rows in batches(conversations):
        await run(bench, CREATE_CONVERSATIONS, rows=rows)
    words = Words(4)
    for start in range(0, MEMORIES, BATCH):
        memories = []
        for index in range(start, start + BATCH):
            draft = MemoryDraft(
                content=words.sentence(),
                memory_type=chance.choice(list(MemoryType)),
                importance=chance.random(),
                conversation_id=conversations[chance.randrange(CONVERSATIONS)]["id"],
                enrich=False,
            )
            write.now = now - (MEMORIES - index) * 1_000
            memories.append(memory_properties(write, draft, new_id(), bench.vectors.next()))
        edges = [[m["id"], m["conversationId"], pick(chance, topics, 5), pick(chance, entities, 5)] for m in memories]
        await run(bench, CREATE_MEMORIES, rows=memories)
        await run(bench, CONNECT_MEMORIES, rows=edges)
        if start % 10_000 == 0:
            print(f"  {start + BATCH:,} memories", flush=True)
    facts = [
        {
            "id": new_id(),
            "tenant": TENANT,
            "subject": (subject := entities[chance.randrange(ENTITIES)])["name"],
            "predicate": "uses",
            "object": (text := words.sentence(3)),
            "subjectForm": subject["form"],
            "predicateForm": "uses",
            "objectForm": text,
            "confidence": 0.9,
            "words": index_text(f"{subject['name']} uses {text}", f"{bench.number}f"),
            "createdAt": now,
            "about": subject["id"],
        }
        for _ in range(FACTS)
    ]
    for rows in batches(facts):
        await run(bench, CREATE_FACTS, rows=rows)
    await await_words(bench.graph)
    await weigh(bench.graph, TENANT)
    await note_filled(bench)


CREATE_TOPICS = """
UNWIND range(0, size($rows) - 1) AS i CREATE (n:Topic:Node) SET n = $rows[i], n.embedding = $vectors[i], n.kind = null
CREATE (:Name {tenant: n.tenant, kind: 'Topic', form: n.form, type: ''})-[:NAMES]->(n)
"""
CREATE_ENTITIES = """
UNWIND $rows AS row CREATE (n:Entity:Node) SET n = row, n.kind = null, n.type = 'TOOL', n.aliases = []
CREATE (:Name {tenant: n.tenant, kind: 'Entity', form: n.form, type: 'TOOL'})-[:NAMES]->(n)
"""
CREATE_CONVERSATIONS = "UNWIND $rows AS row CREATE (n:Conversation:Node) SET n = row"
CREATE_MEMORIES = "UNWIND $rows AS row CREATE (n:Memory:Node) SET n = row"
CONNECT_MEMORIES = """
UNWIND $rows AS k MATCH (m:Node {id: k[0]})
CALL (m, k) { MATCH (c:Node {id: k[1]}) CREATE (m)-[:BELONGS_TO]->(c) }
CALL (m, k) { UNWIND k[2] AS i MATCH (t:Node {id: i}) CREATE (m)-[:HAS_TOPIC]->(t) }
CALL (m, k) { UNWIND k[3] AS i MATCH (e:Node {id: i}) CREATE (m)-[:MENTIONS]->(e) }
"""
CREATE_FACTS = """
UNWIND $rows AS row MATCH (e:Node {id: row.about})
CREATE (n:Fact:Node) SET n = row, n.about = null
CREATE (n)-[:ABOUT]->(e) CREATE (n)-[:HAS_SUBJECT]->(e)
"""


def batches(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))


def pick(chance: random.Random, rows: list[dict[str, Any]], count: int) -> list[str]:
    return [row["id"] for row in chance.sample(rows, count)]


async def run(bench: Bench, statement: str, **parameters: Any) -> None:
    async with bench.driver.session() as session:
        result = await session.run(statement, parameters)
        await result.consume()
