from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.ranking import Ranked, favour, fuse, lend

scores = st.floats(min_value=-10, max_value=10)
arms = st.lists(st.tuples(st.sampled_from("abcdefgh"), scores), max_size=12)


def ids(ranking: list[Ranked[str]]) -> list[str]:
    return [ranked.item for ranked in ranking]


def test_both_arms() -> None:
    ranking = fuse([("a", 0.9), ("b", 0.8)], [("b", 7.5), ("c", 3.0)], k=10)

    assert ranking == [
        Ranked("b", 1 / 12 + 1 / 11, 2, 0.8, 1, 7.5),
        Ranked("a", 1 / 11, 1, 0.9, None, None),
        Ranked("c", 1 / 12, None, None, 2, 3.0),
    ]


@pytest.mark.parametrize(
    ("semantic", "keyword", "order"),
    [
        ([], [], []),
        ([("a", 0.1)], [], ["a"]),
        ([], [("b", 2.0), ("a", 1.0)], ["b", "a"]),
        # one first place beats two tenth places at k = 0 only
        ([("b", 1.0), ("a", 2.0)], [], ["a", "b"]),
        # equal fused scores: the smaller id
        ([("b", 1.0)], [("a", 1.0)], ["a", "b"]),
        ([("a", 2.0), ("b", 1.0)], [("b", 2.0), ("a", 1.0)], ["a", "b"]),
        # equal scores in an arm: the smaller id first, whatever the order given
        ([("c", 1.0), ("a", 1.0), ("b", 1.0)], [], ["a", "b", "c"]),
        # twice in an arm: the better counts, and takes one rank
        ([("a", 0.2), ("b", 0.5), ("a", 0.9), ("a", 0.1)], [("b", 1.0)], ["b", "a"]),
    ],
)
def test_orders(semantic: list[tuple[str, float]], keyword: list[tuple[str, float]], order: list[str]) -> None:
    assert ids(fuse(semantic, keyword)) == order


def test_equal_scores_go_to_the_better_best_rank() -> None:
    # k = 0: a has 1/1 in one arm, b 1/2 in each
    ranking = fuse([("c", 3.0), ("b", 2.0)], [("z", 3.0), ("b", 2.0)], k=0)

    assert [(ranked.item, ranked.score) for ranked in ranking] == [("c", 1.0), ("z", 1.0), ("b", 1.0)]


def test_duplicates_take_one_rank() -> None:
    assert fuse([("a", 0.9), ("a", 0.8), ("b", 0.7)], [])[1].semantic_rank == 2


def test_weights() -> None:
    semantic, keyword = [("a", 1.0)], [("b", 1.0)]

    assert ids(fuse(semantic, keyword, keyword_weight=1.5)) == ["b", "a"]
    assert fuse(semantic, keyword, semantic_weight=0.0)[1] == Ranked("a", 0.0, 1, 1.0, None, None)


def test_most() -> None:
    keyword = [(f"{n:03}", float(-n)) for n in range(300)]

    assert ids(fuse([], keyword)) == [f"{n:03}" for n in range(200)]
    assert ids(fuse([], keyword, most=2)) == ["000", "001"]
    assert fuse([], keyword, most=0) == []


@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_scores_that_are_no_numbers_are_refused(score: float) -> None:
    with pytest.raises(ValueError, match="semantic score of b"):
        fuse([("a", 1.0), ("b", score)], [])
    with pytest.raises(ValueError, match="keyword score of b"):
        fuse([], [("b", score)])


def test_constants_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="k=-1"):
        fuse([], [], k=-1)
    with pytest.raises(ValueError, match="most=-1"):
        fuse([], [], most=-1)
    with pytest.raises(ValueError, match="semantic_weight"):
        fuse([], [], semantic_weight=nan)
    with pytest.raises(ValueError, match="keyword_weight"):
        fuse([], [], keyword_weight=-0.5)


@given(arms, arms)
def test_each_item_once_in_a_total_order(semantic: list[tuple[str, float]], keyword: list[tuple[str, float]]) -> None:
    ranking = fuse(semantic, keyword)

    assert sorted(ids(ranking)) == sorted({item for item, _ in semantic + keyword})
    fused = [ranked.score for ranked in ranking]
    assert fused == sorted(fused, reverse=True)
    for ranks in (
        [ranked.semantic_rank for ranked in ranking if ranked.semantic_rank is not None],
        [ranked.keyword_rank for ranked in ranking if ranked.keyword_rank is not None],
    ):
        assert sorted(ranks) == list(range(1, len(ranks) + 1))
    assert ids(fuse(semantic, keyword, most=3)) == ids(ranking)[:3]


@given(arms, arms, st.data())
def test_the_order_given_tells_nothing(
    semantic: list[tuple[str, float]], keyword: list[tuple[str, float]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(semantic)), data.draw(st.permutations(keyword))

    assert fuse(*shuffled) == fuse(semantic, keyword)


@given(arms, arms)
def test_symmetric(semantic: list[tuple[str, float]], keyword: list[tuple[str, float]]) -> None:
    swapped = [
        Ranked(r.item, r.score, r.keyword_rank, r.keyword_score, r.semantic_rank, r.semantic_score)
        for r in fuse(keyword, semantic)
    ]

    assert swapped == fuse(semantic, keyword)


@given(arms, arms, st.sampled_from("abcdefgh"))
def test_a_better_score_never_harms(
    semantic: list[tuple[str, float]], keyword: list[tuple[str, float]], item: str
) -> None:
    before, after = fuse(semantic, keyword), fuse([*semantic, (item, 11.0)], keyword)

    place = ids(before).index(item) if item in ids(before) else len(before)
    assert ids(after).index(item) <= place
    assert next(ranked.semantic_rank for ranked in after if ranked.item == item) == 1


# ---------------------------------------------------------------- lending


def flat(*scores: tuple[str, float]) -> list[Ranked[str]]:
    return [Ranked(item, score, 1, score, None, None) for item, score in scores]


def test_neighbours_lend_of_their_scores() -> None:
    places = {"a": ("x", 4), "b": ("x", 5), "c": ("x", 6), "d": ("x", 8), "e": ("y", 5)}

    lent = lend(flat(("a", 1.0), ("e", 0.9), ("b", 0.5), ("c", 0.2), ("d", 0.1)), places, {1: 0.5, 2: 0.25})

    assert {one.item: one.score for one in lent} == pytest.approx(
        {
            "a": 1.0 + 0.5 * 0.5 + 0.25 * 0.2,
            "b": 0.5 + 0.5 * 1.0 + 0.5 * 0.2,
            "c": 0.2 + 0.5 * 0.5 + 0.25 * 1.0 + 0.25 * 0.1,
            "d": 0.1 + 0.25 * 0.2,
            "e": 0.9,
        }
    )
    assert ids(lent) == ["a", "b", "e", "c", "d"]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 1)), unique_by=lambda pair: pair[0]))
def test_what_has_no_place_keeps_its_score(pairs: list[tuple[str, float]]) -> None:
    ranking = sorted(flat(*pairs), key=lambda one: (-one.score, 1, one.item))

    assert lend(ranking, {}) == ranking


# ---------------------------------------------------------------- favour


def test_scores_grow_by_their_factors() -> None:
    favoured = favour(flat(("a", 1.0), ("b", 0.6), ("c", 0.5)), {"b": 2.0, "c": 2.0, "z": 9.0})

    assert [(one.item, one.score) for one in favoured] == [("b", 1.2), ("a", 1.0), ("c", 1.0)]


@pytest.mark.parametrize("factor", [0.5, -1.0, float("nan"), float("inf")])
def test_factors_that_would_lose_or_are_no_numbers_are_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="factor of a"):
        favour(flat(("a", 1.0)), {"a": factor})
