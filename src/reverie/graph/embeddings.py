"""Vectors in Neo4j: what waits for one, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.domain.policy import CONTEXT_MOST
from reverie.domain.search import embedded_text
from reverie.graph.records import any_row, any_value
from reverie.graph.store import Graph, Raced
from reverie.graph.words import VECTOR_LABELS

_BEFORE = """
CALL (n) {
  OPTIONAL MATCH (p:Memory) WHERE p.tenant = n.tenant AND p.conversationId = n.conversationId AND p.place < n.place AND p.expiresAt > $now
  RETURN p ORDER BY p.tenant DESC, p.conversationId DESC, p.place DESC LIMIT 1
}
"""
_SOURCE = (
    "[coalesce(n.content, n.summary, n.text, n.value, n.name, ''), coalesce(p.id, ''), "
    f"coalesce(right(p.content, {CONTEXT_MOST}), '')]"
)
"""What a node's vector is made of: its own text, and the memory that it was said after. Lists with nulls equal nothing."""


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A node that waits for its vector, with the text it is made of, and what of the store that text was made of."""

    id: str
    text: str
    source: list[str]


UNEMBEDDED = f"""
MATCH (n:Unembedded) WITH n ORDER BY coalesce(n.embedTries, 0), n.createdAt LIMIT $limit
{_BEFORE}
RETURN collect([n.id, {_SOURCE}, {any_row("n")}])
"""
SET_VECTORS = f"""
UNWIND $rows AS k MATCH (n:Unembedded&Node {{id: k[0]}})
{_BEFORE}
SET n.lockedAt = $now
FOREACH (_ IN CASE WHEN p IS NULL THEN [] ELSE [1] END | SET p.lockedAt = $now)
WITH n, k, p WHERE n:Unembedded AND {_SOURCE} = k[1]
SET n.embedding = k[2], n.embedTries = null, n.saidAfter = p.id REMOVE n:Unembedded
RETURN count(n)
"""
"""Under the node's lock it is asked once more whether it waits: a belief that holds no longer gets no vector."""
NOTE_FAILURES = "UNWIND $ids AS i MATCH (n:Unembedded&Node {id: i}) SET n.embedTries = coalesce(n.embedTries, 0) + 1"
COUNT_UNEMBEDDED = "MATCH (n:Unembedded) RETURN count(n)"
ANYTHING_TO_EMBED = "RETURN " + " OR ".join(f"EXISTS {{ (:{label}) }}" for label in VECTOR_LABELS)
MARK_SOME = f"""
MATCH (n:Node) WHERE n.id > $after AND (n:{"|".join(VECTOR_LABELS)})
WITH n ORDER BY n.id LIMIT $limit SET n.embedding = null, n.saidAfter = null
FOREACH (_ IN CASE WHEN n.words IS NULL THEN [] ELSE [1] END | SET n:Unembedded)
RETURN [count(n), max(n.id)]
"""
"""What isn't found by word isn't by meaning either: an episode without a summary, a belief that holds no longer."""
LAST_SAID = f"""
UNWIND $ids AS i MATCH (n:Conversation&Node {{id: i}}) WHERE n.tenant = $t
CALL (n) {{
  MATCH (p:Memory) WHERE p.tenant = n.tenant AND p.conversationId = n.id AND p.place > 0 AND p.expiresAt > $now
  RETURN p ORDER BY p.tenant DESC, p.conversationId DESC, p.place DESC LIMIT 1
}}
RETURN collect([i, p.id, right(p.content, {CONTEXT_MOST})])
"""
SAID_BEFORE = f"""
MATCH (n:Memory&Node {{id: $id}}) WHERE n.tenant = $t
{_BEFORE}
RETURN [p.id, right(p.content, {CONTEXT_MOST})]
"""


async def unembedded(graph: Graph, limit: int, now: int) -> list[Unembedded]:
    """Some nodes that wait for their vector, those that failed least first."""
    found = []
    for node_id, source, row in await graph.read(UNEMBEDDED, limit=limit, now=now):
        try:
            found.append(Unembedded(node_id, embedded_text(any_value(row), source[2]), source))
        except Raced:
            # deleted while it was read
            continue
    return found


async def last_said(graph: Graph, tenant: str, conversations: Sequence[str], now: int) -> dict[str, tuple[str, str]]:
    """Id and last words of the last memory of each conversation that has one."""
    rows = await graph.read(LAST_SAID, t=tenant, ids=sorted(set(conversations)), now=now)
    return {conversation: (memory, words) for conversation, memory, words in rows}


async def said_before(graph: Graph, tenant: str, memory_id: str, now: int) -> tuple[str, str] | None:
    """Id and last words of the memory that came before one in its conversation; None where there is none."""
    found = await graph.read(SAID_BEFORE, t=tenant, id=memory_id, now=now)
    return None if found is None or found[0] is None else (found[0], found[1])


async def count_unembedded(graph: Graph) -> int:
    """How many nodes wait for their vector, over all tenants."""
    return int(await graph.read(COUNT_UNEMBEDDED))


async def anything_to_embed(graph: Graph) -> bool:
    """Whether the store holds anything that has, or could have, a vector."""
    return bool(await graph.read(ANYTHING_TO_EMBED))


async def set_vectors(graph: Graph, rows: Sequence[tuple[Unembedded, list[float]]], now: int) -> int:
    """Keeps vectors of texts that are still the node's; returns how many were."""
    kept = [[node.id, node.source, vector] for node, vector in rows]
    return int(await graph.write(SET_VECTORS, rows=kept, now=now))


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
