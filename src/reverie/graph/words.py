"""What is indexed by word: the prefix of each label, and the pass that makes all words anew after a new analysis."""

from collections.abc import Callable
from typing import Any

from reverie.domain.search import VECTOR_KINDS, SearchKind, searched_text
from reverie.domain.text import index_text
from reverie.graph.records import any_row, any_value
from reverie.graph.store import Graph, Raced

LABELS: dict[SearchKind, str] = {kind: kind.value.capitalize() for kind in SearchKind}
LETTERS: dict[str, str] = {
    "Memory": "m",
    "Belief": "b",
    "Fact": "f",
    "Entity": "e",
    "Topic": "t",
    "Conversation": "c",
    "Episode": "s",
    "Chunk": "k",
}
"""What follows the tenant's number in the prefix of a label's words."""
VECTOR_LABELS = tuple(LABELS[kind] for kind in VECTOR_KINDS)
"""Labels whose nodes have a vector."""
_AT_ONCE = 500
"""Nodes of one step: each may have a hundred thousand characters."""

COUNT_WORDED = f"MATCH (n:{'|'.join(LETTERS)}) RETURN count(n)"
READ_WORDED = f"""
MATCH (n:Node) WHERE n.id > $after AND (n:{"|".join(LETTERS)})
WITH n ORDER BY n.id LIMIT $limit
OPTIONAL MATCH (t:Tenant {{name: n.tenant}})
RETURN collect([n.id, labels(n), t.number, {any_row("n")}, n.embedding IS NULL, coalesce(n.epistemicStatus, 'ACTIVE') = 'ACTIVE'])
"""
SET_WORDS = """
UNWIND $rows AS row MATCH (n:Node {id: row[0]}) SET n.words = row[1]
FOREACH (_ IN CASE WHEN row[2] AND n.embedding IS NULL THEN [1] ELSE [] END | SET n:Unembedded)
"""
PLACE_MEMORIES = """
MATCH (c:Conversation) WHERE c.places IS NULL
CALL (c) {
  SET c.lockedAt = $now
  WITH c
  CALL (c) { MATCH (c)<-[:BELONGS_TO]-(m:Memory) WITH m ORDER BY m.id WITH collect(m) AS told
    UNWIND range(0, size(told) - 1) AS i WITH told[i] AS m, i + 1 AS place SET m.place = place RETURN count(m) AS count }
  SET c.places = count
} IN TRANSACTIONS OF 100 ROWS
"""
"""Gives the memories of conversations that were written without them their places, in the order of writing."""


def words_of(number: int, label: str, text: str) -> str:
    """The words property of a node: its text's words, with the tenant's number and the label's letter before each."""
    return index_text(text, f"{number}{LETTERS[label]}")


async def reword(graph: Graph, now: int, progress: Callable[[int, int], None]) -> None:
    """Makes the words of all nodes anew, in steps, and marks those that should have a vector and have none.

    It may be cut off and begun again. `progress` gets (done, all).
    """
    await graph.execute(PLACE_MEMORIES, now=now)
    total = int(await graph.read(COUNT_WORDED))
    after, done = "", 0
    while rows := await graph.read(READ_WORDED, after=after, limit=_AT_ONCE):
        await graph.write(SET_WORDS, rows=[_reworded(*row) for row in rows])
        after, done = max(row[0] for row in rows), done + len(rows)
        progress(min(done, total), total)


def _reworded(
    node_id: str, labels: list[str], number: int | None, row: list[Any], unembedded: bool, holds: bool
) -> list[Any]:
    label = next(name for name in labels if name in LETTERS)
    try:
        text = searched_text(any_value(row)) if holds and number is not None else ""
    except Raced:
        # gone meanwhile, or being written: by code that knows how
        text = ""
    words = None if number is None or not text else words_of(number, label, text)
    return [node_id, words, unembedded and words is not None and label in VECTOR_LABELS]
