"""A map holds all that its edges lead to, and what is asked for is checked."""

import pytest

from reverie.domain import policy
from reverie.domain.maps import GraphEdge, GraphKind, GraphNode, MapQuery, check_map_query, map_label, whole_map
from reverie.errors import Refusals


def node(key: str) -> GraphNode:
    return GraphNode(key, GraphKind.TOPIC, key, 1.0)


def test_an_edge_without_both_ends_is_left_out() -> None:
    edges = [GraphEdge("a", "b", "R", 1.0), GraphEdge("a", "gone", "R", 1.0), GraphEdge("gone", "b", "R", 1.0)]

    found = whole_map([node("a"), node("b"), node("a")], edges, truncated=False)

    assert [one.key for one in found.nodes] == ["a", "b"]
    assert found.edges == edges[:1]


def test_parallel_edges_are_one_with_the_greatest_weight() -> None:
    edges = [GraphEdge("a", "b", "R", 0.2), GraphEdge("a", "b", "R", 0.7), GraphEdge("b", "a", "R", 0.1)]

    found = whole_map([node("a"), node("b")], edges, truncated=True)

    assert [(edge.source, edge.weight) for edge in found.edges] == [("a", 0.7), ("b", 0.1)]
    assert len({edge.key for edge in found.edges}) == 2
    assert found.truncated


def test_a_label_is_one_short_line() -> None:
    assert map_label(" two\n lines\t here ") == "two lines here"
    cut = map_label("word " * 40)
    assert cut.endswith("…")
    assert len(cut) <= policy.MAP_LABEL_MOST
    assert map_label("x" * policy.MAP_LABEL_MOST) == "x" * policy.MAP_LABEL_MOST


def test_centres_are_ids_and_subjects_each_once() -> None:
    wanted = MapQuery(("subject:sam", "1", "subject:subject:2", "1", "subject:sam"))

    assert wanted.ids == ["1"]
    assert wanted.subjects == ["sam", "subject:2"]


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        (MapQuery(depth=-1), "depth"),
        (MapQuery(depth=policy.MAP_DEPTH_MOST + 1), "depth"),
        (MapQuery(limit=0), "limit"),
        (MapQuery(limit=policy.MAP_NODES_MOST + 1), "limit"),
        (MapQuery(("1",) * (policy.REFERENCES_MOST + 1)), "centerKeys"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_name(wanted: MapQuery, path: str) -> None:
    with pytest.raises(Refusals) as refused:
        check_map_query(wanted)

    assert [refusal.path for refusal in refused.value.refusals] == [(path,)]
