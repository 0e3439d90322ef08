"""Vectors in Neo4j: what waits for one, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.graph.store import Graph


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A node that waits for its vector, with the text it is made of."""

    id: str
    text: str


_TEXT = "CASE WHEN n:Memory THEN n.content WHEN n:Chunk THEN n.text ELSE n.name END"
"""What a vector is made of."""
UNEMBEDDED = f"""
MATCH (n:Unembedded) WITH n ORDER BY coalesce(n.embedTries, 0), n.createdAt LIMIT $limit
RETURN collect([n.id, {_TEXT}])
"""
SET_VECTORS = f"""
UNWIND $rows AS k MATCH (n:Unembedded&Node {{id: k[0]}})
WHERE ({_TEXT}) = k[1]
SET n.embedding = k[2], n.embedTries = null REMOVE n:Unembedded
RETURN count(n)
"""
NOTE_FAILURES = "UNWIND $ids AS i MATCH (n:Unembedded&Node {id: i}) SET n.embedTries = coalesce(n.embedTries, 0) + 1"
COUNT_UNEMBEDDED = "MATCH (n:Unembedded) RETURN count(n)"
ANYTHING_TO_EMBED = "RETURN EXISTS { (:Memory) } OR EXISTS { (:Topic) } OR EXISTS { (:Chunk) }"
MARK_SOME = """
MATCH (n:Node) WHERE n.id > $after AND (n:Memory OR n:Topic OR n:Chunk)
WITH n ORDER BY n.id LIMIT $limit SET n:Unembedded, n.embedding = null
RETURN [count(n), max(n.id)]
"""


async def unembedded(graph: Graph, limit: int) -> list[Unembedded]:
    """Some nodes that wait for their vector, those that failed least first."""
    return [Unembedded(*row) for row in await graph.read(UNEMBEDDED, limit=limit)]


async def count_unembedded(graph: Graph) -> int:
    """How many nodes wait for their vector, over all tenants."""
    return int(await graph.read(COUNT_UNEMBEDDED))


async def anything_to_embed(graph: Graph) -> bool:
    """Whether the store holds anything that has, or could have, a vector."""
    return bool(await graph.read(ANYTHING_TO_EMBED))


async def set_vectors(graph: Graph, rows: Sequence[tuple[Unembedded, list[float]]]) -> int:
    """Keeps vectors of texts that are still the node's; returns how many were."""
    return int(await graph.write(SET_VECTORS, rows=[[node.id, node.text, vector] for node, vector in rows]))


async def note_failures(graph: Graph, ids: Sequence[str]) -> None:
    """Puts nodes whose text couldn't be embedded behind the others."""
    await graph.write(NOTE_FAILURES, ids=list(ids))


async def mark_all(graph: Graph) -> int:
    """Takes every vector away and marks its node, in steps; returns how many wait afterwards."""
    after = ""
    while True:
        count, last = await graph.write(MARK_SOME, after=after, limit=5_000)
        if not count:
            return await count_unembedded(graph)
        after = last
