"""The map: a part of a tenant's graph to be drawn, with everything that its edges lead to."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reverie.domain import policy
from reverie.domain.checks import Checks

SUBJECT_PREFIX = "subject:"


class GraphKind(StrEnum):
    MEMORY = "MEMORY"
    CONVERSATION = "CONVERSATION"
    TOPIC = "TOPIC"
    FACT = "FACT"
    ENTITY = "ENTITY"
    COMMUNITY = "COMMUNITY"
    EPISODE = "EPISODE"
    BELIEF = "BELIEF"
    DOCUMENT = "DOCUMENT"
    CHUNK = "CHUNK"
    SUBJECT = "SUBJECT"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a map. Its key is its id, or `subject:` and a subject's id; its weight its degree in all the graph."""

    key: str
    kind: GraphKind
    label: str
    weight: float


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of a map, from one node's key to another's."""

    source: str
    target: str
    relation: str
    weight: float

    @property
    def key(self) -> str:
        return f"{self.source} {self.relation} {self.target}"


@dataclass(frozen=True, slots=True)
class Graph:
    """A map; not `truncated` where nothing within its reach was left out."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    truncated: bool


@dataclass(frozen=True, slots=True)
class MapQuery:
    """Which map is wanted: so many steps around some centres, or around the most connected where none is given.

    Only nodes of some `kinds` are shown and walked through, the centres aside; None: of all.
    """

    center_keys: tuple[str, ...] | None = None
    depth: int = 1
    kinds: tuple[GraphKind, ...] | None = None
    limit: int = policy.MAP_NODES

    @property
    def subjects(self) -> list[str]:
        """The subjects among the centres, each once."""
        keys = dict.fromkeys(self.center_keys or ())
        return [key.removeprefix(SUBJECT_PREFIX) for key in keys if key.startswith(SUBJECT_PREFIX)]

    @property
    def ids(self) -> list[str]:
        """The other centres, each once."""
        return [key for key in dict.fromkeys(self.center_keys or ()) if not key.startswith(SUBJECT_PREFIX)]


def check_map_query(wanted: MapQuery) -> MapQuery:
    """The same; Refusals when it can't be."""
    checks = Checks()
    checks.few(wanted.center_keys or (), ("centerKeys",))
    if not 0 <= wanted.depth <= policy.MAP_DEPTH_MOST:
        checks.bad(f"must be from 0 to {policy.MAP_DEPTH_MOST}, not {wanted.depth}", ("depth",))
    if not 1 <= wanted.limit <= policy.MAP_NODES_MOST:
        checks.bad(f"must be from 1 to {policy.MAP_NODES_MOST}, not {wanted.limit}", ("limit",))
    checks.done()
    return wanted


def subject_key(subject: str) -> str:
    """The key of a subject on a map."""
    return f"{SUBJECT_PREFIX}{subject}"


def map_label(text: str) -> str:
    """A text on one line, cut to what fits beside a node."""
    line = " ".join(text.split())
    most = policy.MAP_LABEL_MOST
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def whole_map(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], *, truncated: bool) -> Graph:
    """The map of some nodes, and of those edges whose ends are both among them; parallel ones as the heaviest."""
    known = {node.key: node for node in nodes}
    kept: dict[str, GraphEdge] = {}
    for edge in edges:
        if edge.source in known and edge.target in known:
            former = kept.get(edge.key)
            if former is None or former.weight < edge.weight:
                kept[edge.key] = edge
    return Graph(list(known.values()), list(kept.values()), truncated)
