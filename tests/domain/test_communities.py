"""Communities are found alike in equal graphs, and named after their members."""

import random
import subprocess
import sys
from itertools import combinations

import pytest

from reverie.domain import policy
from reverie.domain.communities import (
    CommunityAlgorithm,
    Detection,
    Edge,
    changed_enough,
    check_detection,
    detect,
    named_groups,
    strongest,
)
from reverie.errors import Refusals

GROUPS = [[f"{group}{place}" for place in range(size)] for group, size in zip("abcd", (12, 10, 9, 8), strict=True)]


def planted() -> list[Edge]:
    """Four groups whose members occur together often, and now and then with those of others."""
    chance = random.Random(4)  # noqa: S311 - no secret
    inside = [
        (*pair, chance.uniform(4, 9)) for group in GROUPS for pair in combinations(group, 2) if chance.random() < 0.8
    ]
    outside = [
        (chance.choice(one), chance.choice(other), 1.0) for one, other in combinations(GROUPS, 2) for _ in range(6)
    ]
    return [*inside, *outside]


@pytest.mark.parametrize("algorithm", CommunityAlgorithm)
def test_a_planted_graph_gives_its_groups_in_every_run_whatever_the_order(algorithm: CommunityAlgorithm) -> None:
    edges = planted()
    chance = random.Random(5)  # noqa: S311 - no secret
    for _ in range(20):
        chance.shuffle(edges)
        turned = [edge if chance.random() < 0.5 else (edge[1], edge[0], edge[2]) for edge in edges]

        assert detect(turned, Detection(algorithm)) == [sorted(group) for group in GROUPS]


@pytest.mark.parametrize("algorithm", CommunityAlgorithm)
def test_other_processes_find_the_same(algorithm: CommunityAlgorithm) -> None:
    # without structure there are many ways to divide it, of which each process must take the same
    found = {
        subprocess.run(
            [sys.executable, "-c", RANDOM.format(algorithm.name)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(found) == 1
    assert "n0" in found.pop()


RANDOM = """
import random
from reverie.domain.communities import CommunityAlgorithm, Detection, detect
chance = random.Random(6)
edges = [(f"n{{chance.randrange(60)}}", f"n{{chance.randrange(60)}}", chance.randint(1, 3)) for _ in range(400)]
print(detect([*edges, ("n0", "n1", 50)], Detection(CommunityAlgorithm.{})))
"""


def test_a_higher_resolution_finds_smaller_communities() -> None:
    edges = planted()

    coarse, usual, fine = (
        len(detect(edges, Detection(CommunityAlgorithm.LEIDEN, resolution))) for resolution in (0.05, 1.0, 4.0)
    )

    assert coarse < usual < fine


@pytest.mark.parametrize("algorithm", CommunityAlgorithm)
def test_what_occurs_alone_belongs_to_none(algorithm: CommunityAlgorithm) -> None:
    assert detect([], Detection(algorithm)) == []
    assert detect([("a", "a", 3.0), ("b", "c", 0.0)], Detection(algorithm)) == []
    assert detect([("a", "b", 1.0), ("c", "c", 9.0)], Detection(algorithm)) == [["a", "b"]]


@pytest.mark.parametrize("resolution", [0.0, -1.0, 100.5, float("nan"), float("inf")])
def test_a_resolution_that_cant_be_is_refused(resolution: float) -> None:
    with pytest.raises(Refusals) as refused:
        check_detection(Detection(resolution=resolution))

    assert [refusal.path for refusal in refused.value.refusals] == [("resolution",)]
    assert check_detection(Detection(resolution=100.0)).resolution == 100.0


def test_names_are_those_of_the_most_central_members() -> None:
    edges = [("a", "b", 5.0), ("b", "c", 2.0), ("c", "d", 2.0), ("d", "x", 90.0)]
    names = {"a": "Alps", "b": "Boots", "c": "Camps", "d": "Dams", "x": "Xylophones", "y": "Yaks"}

    first, second = named_groups([["d", "c", "b", "a"], ["x", "y"]], edges, names, {"y": 3})

    assert first.topics == ("a", "b", "c", "d")
    assert first.name == "Boots, Alps, Camps"
    # an edge to another group makes nobody central; then the more memories count
    assert second.name == "Yaks, Xylophones"


def test_a_name_stays_as_short_as_names_are() -> None:
    long = {letter: letter * 150 for letter in "abc"}
    (group,) = named_groups([["a", "b", "c"]], [], long, {})

    assert group.name == "a" * 150
    assert len(group.name) <= policy.NAME_MOST


def test_the_strongest_edges_of_each_end_are_kept() -> None:
    edges = [("a", "b", 3.0), ("a", "c", 2.0), ("a", "d", 1.0), ("b", "c", 1.0)]

    # d has but one, and keeps it
    assert strongest(edges, 1) == [("a", "b", 3.0), ("a", "c", 2.0), ("a", "d", 1.0)]
    assert strongest(edges, 2) == edges


def test_a_tenth_of_the_links_and_at_least_ten_are_enough() -> None:
    assert [changed_enough(*given) for given in ((0, 0), (9, 9), (10, 10), (200, 19), (200, 20))] == [
        False,
        False,
        True,
        False,
        True,
    ]
