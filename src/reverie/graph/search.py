"""Both arms of a search in one statement: nearest by vector, best by word, each filtered inside."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from reverie.domain import policy
from reverie.domain.beliefs import HalfLives
from reverie.domain.memories import MemoryFilter
from reverie.domain.search import VECTOR_KINDS, Candidates, SearchKind
from reverie.domain.text import keyword_query
from reverie.graph.filters import confidence, index_can_decide, memory_where, visible, visible_any
from reverie.graph.names import OF_FORM
from reverie.graph.records import any_row, any_value, any_whole
from reverie.graph.store import Graph
from reverie.graph.words import LABELS, LETTERS

VECTOR_DEPTH = 200
"""Neighbours asked of the vector index: asked for no more than are used, a large index loses true ones."""
KEYWORD_DEPTH = 200
"""Hits asked of the full-text index before what is expired is taken out."""
FILTERED_KEYWORD_DEPTH = 400
"""The same where a filter takes out some, too."""
SURE_DEPTH = 1_000
"""Neighbours asked for where beliefs that are too unsure took the places of others: no index knows how sure they are."""
EVERYTHING = 2_147_483_647


NAMED = f"CALL () {{ UNWIND $forms AS form MATCH {OF_FORM} RETURN collect(DISTINCT e) AS named }}"
"""The entities that the question names."""


@dataclass(frozen=True, slots=True)
class Arms:
    """The shape of a search: which kinds the vector arm looks at, whether there is a keyword arm, how both filter.

    `sure` leaves out beliefs that are less sure than `$least` at `$now`.
    """

    semantic: tuple[SearchKind, ...]
    keyword: bool
    predicates: tuple[str, ...] = ()
    exact_start: str | None = None
    filter_in_index: bool = False
    sure: bool = False


def _semantic(kind: SearchKind, arms: Arms) -> str:
    label = LABELS[kind]
    if kind is SearchKind.MEMORY and arms.exact_start is not None:
        # edges can't be looked up inside the index: what they lead to is compared one by one
        predicates = " AND ".join((visible(label, "x"), "x.embedding IS NOT NULL", *arms.predicates))
        return (
            f"{arms.exact_start} WITH DISTINCT x WHERE {predicates} "
            "RETURN x, vector.similarity.cosine(x.embedding, $vector) AS score ORDER BY score DESC LIMIT $depth"
        )
    inside = ["x.tenant = $t"]
    if kind is not SearchKind.MEMORY:
        inside += arms.predicates
    elif arms.filter_in_index:
        inside += [*arms.predicates, "x.expiresAt > $now"]
    return (
        f"MATCH (x:{label}) SEARCH x IN (VECTOR INDEX {label.lower()}_embedding FOR $vector "
        f"WHERE {' AND '.join(inside)} LIMIT $depth) SCORE AS score RETURN x, score"
    )


_HOLDS = "(NOT x:Belief OR x.epistemicStatus = 'ACTIVE')"
_SURE = f"(NOT x:Belief OR {confidence('x.base', 'x.reinforcedAt', '$now')} >= $least)"


def _kept(arms: Arms, predicates: Sequence[str]) -> str:
    """From rows of `x` and `score`: how many there are, and the best of what is visible and passes, as rows."""
    passing = " AND ".join((visible_any("x"), _HOLDS, *predicates, *([_SURE] if arms.sure else ())))
    # no row may have all others beside it: Neo4j counts the memory of each of them
    return (
        "WITH x, score ORDER BY score DESC, x.id "
        f"WITH count(*) AS given, collect(CASE WHEN {passing} THEN {{x: x, score: score}} END)[..$most] AS best "
        "CALL (best, named) { UNWIND range(0, size(best) - 1) AS i WITH i, best[i].x AS x, best[i].score AS score "
        "WITH i, x, score, any(e IN named WHERE EXISTS { (x)-[:MENTIONS]->(e) }) AS naming "
        f"RETURN collect([x.id, score, CASE WHEN i < $whole THEN {any_row('x')} END, "
        "x.conversationId, x.place, naming]) AS kept } "
    )


@lru_cache(maxsize=1024)
def search_statement(arms: Arms) -> str:
    """[semantic rows, how many the vector index gave, keyword rows, how many the full-text index gave]."""
    text = f"CYPHER 25 {NAMED} "
    if arms.semantic:
        union = " UNION ALL ".join(_semantic(kind, arms) for kind in arms.semantic)
        text += f"CALL (named) {{ CALL () {{ {union} }} {_kept(arms, ())}RETURN given AS vectors, kept AS near }} "
    else:
        text += "WITH named, 0 AS vectors, [] AS near "
    if arms.keyword:
        text += (
            "CALL (named) { CALL db.index.fulltext.queryNodes('words', $words, {limit: $deep}) YIELD node AS x, score "
            f"{_kept(arms, arms.predicates)}RETURN given AS words, kept AS matching }} "
        )
    else:
        text += "WITH *, 0 AS words, [] AS matching "
    return f"{text}RETURN [near, vectors, matching, words]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is looked for at an instant, among which kinds of a tenant's things, by which vector and which words.

    `forms` are the normal forms of what in the question may name an entity, `sure` how sure beliefs must be, and how
    they fade. Of each arm the best `whole` are read, of the others what a ranking needs.
    """

    tenant: str
    number: int
    kinds: Sequence[SearchKind]
    wanted: MemoryFilter
    vector: Sequence[float] | None
    words: Sequence[str]
    forms: Sequence[str]
    sure: tuple[float, HalfLives] | None
    whole: int
    now: int


async def candidates(graph: Graph, asked: Asked) -> Candidates:
    """The best of both arms, at most ARM_DEPTH each. One statement; another where expiry or a filter left too few."""
    where = memory_where(asked.wanted)
    vector, sure = asked.vector, asked.sure
    semantic = tuple(kind for kind in asked.kinds if kind in VECTOR_KINDS) if vector is not None else ()
    keyword = bool(asked.words) and bool(asked.kinds)
    if not semantic and not keyword:
        return Candidates([], [], {}, {}, frozenset())
    arms = Arms(
        semantic,
        keyword,
        where.predicates,
        None if index_can_decide(asked.wanted) else where.start,
        filter_in_index=bool(where.predicates),
        sure=sure is not None,
    )
    parameters: dict[str, Any] = {
        "t": asked.tenant,
        "now": asked.now,
        "vector": None if vector is None else list(vector),
        "forms": list(asked.forms),
        "least": None if sure is None else sure[0],
        "half_lives": None if sure is None else dict(sure[1]),
        "words": keyword_query(asked.words, [f"{asked.number}{LETTERS[LABELS[kind]]}" for kind in asked.kinds]),
        "most": policy.ARM_DEPTH,
        "whole": asked.whole,
        "depth": VECTOR_DEPTH,
        "deep": FILTERED_KEYWORD_DEPTH if where.predicates else KEYWORD_DEPTH,
        **where.values(),
    }
    near, vectors, matching, hits = await graph.read(search_statement(arms), **parameters)
    short_of_near = semantic and not arms.filter_in_index and len(near) < policy.ARM_DEPTH <= vectors
    short_of_words = len(matching) < policy.ARM_DEPTH and hits >= parameters["deep"]
    if short_of_near or short_of_words:
        thorough = replace(arms, filter_in_index=True)
        deeper = {"deep": EVERYTHING, "depth": VECTOR_DEPTH if sure is None else SURE_DEPTH}
        near, _, matching, _ = await graph.read(search_statement(thorough), **parameters | deeper)
    near, matching = _intact(near, asked.whole), _intact(matching, asked.whole)
    return Candidates(
        [(row[0], row[1]) for row in near],
        [(row[0], row[1]) for row in matching],
        _Found([*near, *matching]),
        {row[0]: (row[3], row[4]) for row in (*near, *matching) if row[3] is not None and row[4] is not None},
        frozenset(row[0] for row in (*near, *matching) if row[5]),
    )


def _intact(rows: Sequence[list[Any]], whole: int) -> list[list[Any]]:
    """The rows but for those of things that went while they were read."""
    return [row for place, row in enumerate(rows) if row[0] is not None and (place >= whole or any_whole(row[2]))]


class _Found(Mapping[str, object]):
    """The things of the rows that were read, by id; each made when it is asked for."""

    def __init__(self, rows: Sequence[list[Any]]) -> None:
        self._rows = {node_id: row for node_id, _, row, *_ in rows if row is not None}

    def __getitem__(self, node_id: str) -> object:
        return any_value(self._rows[node_id])

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
