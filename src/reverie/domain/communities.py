"""Communities: groups of topics that occur together, found in a weighted graph by one of three algorithms."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING

from reverie.domain import policy
from reverie.domain.checks import Checks

if TYPE_CHECKING:
    import networkx as nx

Edge = tuple[str, str, float]
"""Two topics' ids, and in how many memories they occur together."""

CO_OCCURS = "co-occurs"
"""The relation of topics that occur in the same memories; its weight is their number."""
SEED = 5
"""Where the algorithms' chance starts, so that equal graphs give equal groups."""
LEIDEN_ROUNDS = 5
LEAST_CHANGE = 10
LEAST_SHARE = 0.1
"""What of a tenant's links between memories and topics must differ for communities to be found anew."""
NAMED_AFTER = 3
"""Members that a community's name is made of."""


class CommunityAlgorithm(StrEnum):
    LEIDEN = "LEIDEN"
    LOUVAIN = "LOUVAIN"
    LABEL_PROPAGATION = "LABEL_PROPAGATION"


@dataclass(frozen=True, slots=True)
class Community:
    """A community as it was found; size counts its topics."""

    id: str
    name: str
    algorithm: CommunityAlgorithm
    size: int


@dataclass(frozen=True, slots=True)
class Detection:
    """How communities are to be found. A higher resolution gives more and smaller ones; label propagation has none."""

    algorithm: CommunityAlgorithm = CommunityAlgorithm.LEIDEN
    resolution: float = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """Topics that belong together, in the order of their ids, and their community's name."""

    name: str
    topics: tuple[str, ...]


def check_detection(wanted: Detection) -> Detection:
    """The same; Refusals when its resolution can't be."""
    checks = Checks()
    if not (isfinite(wanted.resolution) and 0 < wanted.resolution <= policy.RESOLUTION_MOST):
        checks.bad(f"must be above 0 and at most {policy.RESOLUTION_MOST}, not {wanted.resolution!r}", ("resolution",))
    checks.done()
    return wanted


def changed_enough(links: int, changed: int) -> bool:
    """Whether so many changed links between memories and topics, of so many there are, are worth another detection."""
    return changed >= max(LEAST_CHANGE, LEAST_SHARE * links)


def detect(edges: Iterable[Edge], wanted: Detection) -> list[list[str]]:
    """The groups of at least two topics: each sorted, the largest first.

    Edges have no direction; double ones add up, loops and weights of 0 or less don't count. Equal graphs give equal
    groups, whatever the order of their edges. Leiden: Traag, Waltman and van Eck, "From Louvain to Leiden" (2019),
    over modularity. Louvain: Blondel et al., "Fast unfolding of communities in large networks" (2008). Label
    propagation: Raghavan, Albert and Kumara (2007), asynchronous and weighted.
    """
    known, weights = _canonical(edges)
    if not weights:
        return []
    found: Sequence[Collection[int]]
    match wanted.algorithm:
        case CommunityAlgorithm.LEIDEN:
            found = _leiden(weights, wanted.resolution)
        case CommunityAlgorithm.LOUVAIN:
            found = _louvain(len(known), weights, wanted.resolution)
        case CommunityAlgorithm.LABEL_PROPAGATION:
            found = _label_propagation(len(known), weights)
    groups = [sorted(known[place] for place in group) for group in found if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), group))


Places = Sequence[tuple[int, int, float]]


def _canonical(edges: Iterable[Edge]) -> tuple[list[str], Places]:
    """The topics in the order of their ids, and each pair of them once, by their places, in order.

    Places are whole numbers, whose order in a set is the same in every process, as that of texts is not.
    """
    weights: dict[tuple[str, str], float] = defaultdict(float)
    for one, other, weight in edges:
        if one != other and weight > 0:
            weights[(min(one, other), max(one, other))] += weight
    known = sorted({node for pair in weights for node in pair})
    places = {node: place for place, node in enumerate(known)}
    return known, sorted((places[one], places[other], weight) for (one, other), weight in weights.items())


# The algorithms' packages take a moment to import, which is left to the process that runs them.


def _leiden(weights: Places, resolution: float) -> list[list[int]]:
    from graspologic_native import leiden  # type: ignore[import-untyped]  # noqa: PLC0415 - has none; as said above

    _, found = leiden(
        edges=[(str(one), str(other), weight) for one, other, weight in weights],
        resolution=resolution,
        iterations=LEIDEN_ROUNDS,
        use_modularity=True,
        seed=SEED,
    )
    groups: dict[int, list[int]] = defaultdict(list)
    for place, group in found.items():
        groups[group].append(int(place))
    return list(groups.values())


def _louvain(count: int, weights: Places, resolution: float) -> list[set[int]]:
    import networkx as nx  # noqa: PLC0415 - as said above

    return list(nx.community.louvain_communities(_graph(count, weights), resolution=resolution, seed=SEED))


def _label_propagation(count: int, weights: Places) -> list[set[int]]:
    import networkx as nx  # noqa: PLC0415 - as said above

    return list(nx.community.asyn_lpa_communities(_graph(count, weights), weight="weight", seed=SEED))


def _graph(count: int, weights: Places) -> "nx.Graph[int]":
    import networkx as nx  # noqa: PLC0415 - as said above

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_weighted_edges_from(weights)
    return graph


def named_groups(
    groups: Iterable[Sequence[str]], edges: Iterable[Edge], names: Mapping[str, str], memories: Mapping[str, int]
) -> list[Group]:
    """Groups with names made of their most central members: those with the most weight inside the group.

    Among equals the one in more `memories` goes first, then by name.
    """
    groups = list(groups)
    group_of = {topic: place for place, group in enumerate(groups) for topic in group}
    inside: dict[str, float] = defaultdict(float)
    for one, other, weight in edges:
        if one in group_of and group_of[one] == group_of.get(other):
            inside[one] += weight
            inside[other] += weight

    def rank(topic: str) -> tuple[float, int, str, str]:
        return (-inside[topic], -memories.get(topic, 0), names[topic], topic)

    return [
        Group(_joined([names[topic] for topic in sorted(group, key=rank)[:NAMED_AFTER]]), tuple(sorted(group)))
        for group in groups
    ]


def _joined(names: Sequence[str]) -> str:
    """As many of the names as a name may hold, at least the first."""
    while len(names) > 1 and len(", ".join(names)) > policy.NAME_MOST:
        names = names[:-1]
    return ", ".join(names)


def strongest(edges: Iterable[Edge], most: int) -> list[Edge]:
    """Those of some edges, each given once, that are among the `most` strongest of one of their ends; in order."""
    near: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for one, other, weight in edges:
        near[one].append((-weight, other))
        near[other].append((-weight, one))
    kept = {
        (min(topic, other), max(topic, other), -weight)
        for topic, others in near.items()
        for weight, other in sorted(others)[:most]
    }
    return sorted(kept)
