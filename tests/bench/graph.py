"""`python -m tests.bench.graph`: the map on 100,000 memories, against a raw read of what it shows, in one run.

Depth 2, at most 500 nodes: around topics, entities, memories and conversations by turns, and of the whole tenant. Each
map is followed by the raw read of what it showed: one statement that is given the ids. Then communities by each
algorithm, timed once.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

from neo4j import READ_ACCESS
from platformdirs import user_cache_path
from tests.bench.store import TENANT, Bench, open_bench

from reverie.domain.clock import now_ms
from reverie.domain.communities import CommunityAlgorithm, Detection
from reverie.domain.maps import MapQuery
from reverie.graph.commits import Commits
from reverie.graph.maps import read_map
from reverie.resources import Resources
from reverie.services.communities import detect_communities

RAW = """
MATCH (n:Node) WHERE n.id IN $ids AND n.tenant = $t
WITH collect(n) AS nodes
CALL (nodes) { UNWIND nodes AS n RETURN collect([n.id, labels(n), coalesce(n.name, n.title, n.content)]) AS rows }
CALL (nodes) { UNWIND nodes AS n MATCH (n)-[r]->(x) WHERE x IN nodes RETURN collect([n.id, x.id, type(r), r.weight]) AS edges }
RETURN [rows, edges]
"""  # noqa: E501 - a statement
SOME_IDS = "MATCH (n:{}) WITH n SKIP {} LIMIT 200 RETURN collect(n.id)"
DEPTH, LIMIT = 2, 500
WARM, TIMES = 20, 200


async def measured(bench: Bench, centres: Sequence[str | None]) -> tuple[list[float], list[float], float, float]:
    """Milliseconds of each map and of each raw read, then the nodes and the edges of a map on average."""
    maps, raws, nodes, edges = [], [], 0, 0
    for turn in range(WARM + TIMES):
        centre = centres[turn % len(centres)]
        wanted = MapQuery(None if centre is None else (centre,), DEPTH, None, LIMIT)
        start = time.perf_counter()
        found = await read_map(bench.graph, TENANT, wanted, now=now_ms())
        middle = time.perf_counter()
        ids = [node.key for node in found.nodes]
        between = time.perf_counter()
        async with bench.driver.session(default_access_mode=READ_ACCESS, fetch_size=-1) as session:
            rows, drawn = (await (await session.run(RAW, ids=ids, t=TENANT)).single(strict=True))[0]
        end = time.perf_counter()
        assert len(rows) == len(found.nodes)
        assert len(drawn) == len(found.edges)
        if turn >= WARM:
            maps.append((middle - start) * 1_000)
            raws.append((end - between) * 1_000)
            nodes, edges = nodes + len(rows), edges + len(drawn)
    return maps, raws, nodes / TIMES, edges / TIMES


def p95(times: Sequence[float]) -> float:
    return sorted(times)[round(0.95 * (len(times) - 1))]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=user_cache_path("reverie", appauthor=False) / "bench-store")
    parser.add_argument("--communities", action="store_true", help="find communities too")
    options = parser.parse_args()
    chance = random.Random(8)
    async with open_bench(options.store) as bench:
        kinds: dict[str, list[str | None]] = {"the whole tenant": [None]}
        for label in ("Topic", "Entity", "Memory", "Conversation"):
            found = await bench.graph.read(SOME_IDS.format(label, 100))
            chance.shuffle(found)
            kinds[f"around a {label.lower()}"] = found
        for name, centres in kinds.items():
            maps, raws, nodes, edges = await measured(bench, centres)
            print(
                f"{name:<22} {nodes:4.0f} nodes {edges:5.0f} edges   map p50 {sorted(maps)[TIMES // 2]:6.1f} ms "
                f"p95 {p95(maps):6.1f} ms   raw p50 {sorted(raws)[TIMES // 2]:6.1f} ms p95 {p95(raws):6.1f} ms   "
                f"{p95(maps) / p95(raws):.2f} of raw (wanted < 5)",
                flush=True,
            )
        if options.communities:
            commits = Commits(bench.graph)
            resources = Resources(bench.graph, commits, None, None, 10.0, bench.graph.server_version, "bench")
            for algorithm in CommunityAlgorithm:
                start = time.perf_counter()
                communities = await detect_communities(resources, TENANT, Detection(algorithm))
                took = time.perf_counter() - start
                print(f"{algorithm}: {len(communities)} communities in {took:.1f} s", flush=True)
            await commits.close()


if __name__ == "__main__":
    asyncio.run(main())
