"""How the rankings of several arms of a search become one."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Generic, NamedTuple, TypeVar

from reverie.domain.policy import RANKING_MOST
from reverie.domain.search import Candidates, happened_at
from reverie.domain.times import Month, Span

T = TypeVar("T")
K = TypeVar("K", bound=str)


class Ranked(NamedTuple, Generic[T]):
    """An item of a fused ranking; rank and score of an arm are None where the item wasn't among its candidates.

    `score` is the fused score, higher is better, comparable within one ranking only; ranks count from 1.
    """

    item: T
    score: float
    semantic_rank: int | None
    semantic_score: float | None
    keyword_rank: int | None
    keyword_score: float | None


def fuse(
    semantic: Sequence[tuple[K, float]],
    keyword: Sequence[tuple[K, float]],
    *,
    k: int = 10,
    semantic_weight: float = 1.0,
    keyword_weight: float = 1.0,
    most: int = 200,
) -> list[Ranked[K]]:
    """The best `most` ids of both arms by weighted reciprocal rank, best first.

    Each arm holds (id, score) pairs, higher scores better, in any order; its ranks follow (score, id), and of an id
    that occurs twice the better score counts. An item's fused score is the sum over the arms of weight / (k + rank).
    Ties go to the better best rank, then to the smaller id, so the order is total and the same for the same pairs.

    Source: G. V. Cormack, C. L. A. Clarke, S. Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
    Rank Learning Methods", SIGIR 2009. They use k = 60; k = 10 is better on lists as short as these.

    Raises:
        ValueError: a score or a weight that isn't a finite number, a negative weight, a negative `k` or `most`.
    """
    if k < 0 or most < 0:
        raise ValueError(f"k and most can't be negative, got k={k}, most={most}")
    for name, weight in (("semantic_weight", semantic_weight), ("keyword_weight", keyword_weight)):
        if not isfinite(weight) or weight < 0:
            raise ValueError(f"{name} must be a finite number of at least 0, got {weight}")
    by_meaning = _ranks("semantic", semantic)
    by_words = _ranks("keyword", keyword)
    ranked: list[Ranked[K]] = []
    for item in by_meaning.keys() | by_words.keys():
        semantic_rank, semantic_score = by_meaning.get(item, (None, None))
        keyword_rank, keyword_score = by_words.get(item, (None, None))
        score = 0.0
        if semantic_rank is not None:
            score += semantic_weight / (k + semantic_rank)
        if keyword_rank is not None:
            score += keyword_weight / (k + keyword_rank)
        ranked.append(Ranked(item, score, semantic_rank, semantic_score, keyword_rank, keyword_score))
    ranked.sort(key=_order)
    return ranked[:most]


NEAR: Mapping[int, float] = {1: 0.3, 2: 0.2}
"""What of its score an item lends to those one and two turns away in its conversation, as measured best on LoCoMo."""


def lend(
    ranking: Sequence[Ranked[K]], places: Mapping[K, tuple[str, int]], near: Mapping[int, float] = NEAR
) -> list[Ranked[K]]:
    """The ranking after each item lent of its score to its neighbours in the ranking, best first.

    `places` tells of some items their conversation and their turn in it; `near` which part of a score goes to an item
    so many turns away, on either side. What is lent is of the scores before, so that the order of lending is nothing.
    Ties go as in `fuse`.
    """
    scores = {places[ranked.item]: ranked.score for ranked in ranking if ranked.item in places}
    lent = []
    for ranked in ranking:
        if ranked.item in places:
            conversation, turn = places[ranked.item]
            around = ((part, turn + side * away) for away, part in near.items() for side in (-1, 1))
            gain = sum(part * scores.get((conversation, other), 0.0) for part, other in around)
            lent.append(ranked._replace(score=ranked.score + gain) if gain else ranked)
        else:
            lent.append(ranked)
    return sorted(lent, key=_order)


NAMED = 1.5
"""By what a score grows of an item that mentions an entity which the question names, as measured best on LoCoMo."""
TIMELY = 2.0
"""By what a score grows of an item of a time that the question names, as measured on LoCoMo."""


def favour(ranking: Sequence[Ranked[K]], factors: Mapping[K, float]) -> list[Ranked[K]]:
    """The ranking after some items' scores grew by their factors, best first; ties go as in `fuse`.

    Raises:
        ValueError: a factor that isn't a finite number of at least 1.
    """
    for item, factor in factors.items():
        if not isfinite(factor) or factor < 1:
            raise ValueError(f"the factor of {item} must be a finite number of at least 1, got {factor}")
    if not factors:
        return list(ranking)
    favoured = [
        ranked._replace(score=ranked.score * factors[ranked.item]) if ranked.item in factors else ranked
        for ranked in ranking
    ]
    return sorted(favoured, key=_order)


def rank(found: Candidates, times: Sequence[Month | Span]) -> list[Ranked[str]]:
    """One ranking of what both arms found: fused, neighbours lending to each other, and then in favour of what mentions
    an entity that the question names, and of what is of a time that it names: of things that were read."""
    factors = dict.fromkeys(found.naming, NAMED)
    if times:
        for item, thing in found.found.items():
            moment = happened_at(thing)
            if moment is not None and any(time.covers(moment) for time in times):
                factors[item] = factors.get(item, 1.0) * TIMELY
    return favour(lend(fuse(found.semantic, found.keyword, most=RANKING_MOST), found.places), factors)


def _ranks(arm: str, pairs: Sequence[tuple[K, float]]) -> dict[K, tuple[int, float]]:
    best: dict[K, float] = {}
    for item, score in pairs:
        if not isfinite(score):
            raise ValueError(f"the {arm} score of {item} isn't a finite number: {score}")
        best[item] = max(score, best.get(item, score))
    order = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    return {item: (rank, score) for rank, (item, score) in enumerate(order, start=1)}


def _order(ranked: Ranked[K]) -> tuple[float, int, K]:
    near, matching = ranked.semantic_rank, ranked.keyword_rank
    if near is None or (matching is not None and matching < near):
        near = matching
    return -ranked.score, near or 0, ranked.item
