"""The map in Neo4j: one statement that finds what is around some nodes, and reads it with all edges between.

It goes outwards from the centres a step at a time. Of what a step reaches, what most of the last step's nodes lead to
comes first, then the newest, until there are as many nodes as wanted. Aliases are fixed: n is a node to go on from, x
one that it leads to.
"""

from dataclasses import dataclass
from functools import cache

from reverie.domain import policy
from reverie.domain.ids import well_formed
from reverie.domain.maps import (
    Graph as Map,
)
from reverie.domain.maps import (
    GraphEdge,
    GraphKind,
    GraphNode,
    MapQuery,
    map_label,
    subject_key,
    whole_map,
)
from reverie.graph.filters import SOME_EXPIRED, visible, visible_any
from reverie.graph.listings import LOWEST
from reverie.graph.store import Graph

HAS_BELIEF = "HAS_BELIEF"
"""From a subject to its beliefs; no relationship, but the subject's id on them."""
LEARNED_FROM = "LEARNED_FROM"
"""From a belief to the episodes of its evidence."""
_LEARNED_FROM = "<-[:SUPPORTS]-(:Evidence)-[:QUOTES]->(:Event)-[:PART_OF]->"
_TAUGHT = "<-[:PART_OF]-(:Event)<-[:QUOTES]-(:Evidence)-[:SUPPORTS]->"
_DRAWN = (
    "BELONGS_TO|HAS_TOPIC|MENTIONS|RELATED_TO|EXTRACTED_FROM|ABOUT|HAS_SUBJECT|HAS_OBJECT|IN_THREAD|PART_OF|SUPERSEDES"
)
"""The relationships that are edges of the map where both of their ends are nodes of it."""
_FEW = 5
"""The first nodes of a step, each of which may bring in all that fit on the map."""
_FAN_SHARE = 20
_FAN_LEAST = 20
"""The others bring in a share of the limit each, or this many."""
_STARTS_SHARE = 10
"""The share of the limit at which a map of the whole tenant starts, the rest being what is around."""
_COMPARED_LEAST = 100
"""Of each kind twice as many as a map starts at have their edges counted, or this many; all where no step follows."""
_LABEL = 200
"""Characters of a text that are read for a label."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of node: its label in Neo4j, the Cypher of its text, and the column by whose index some are found."""

    kind: GraphKind
    label: str
    text: str
    column: str = ""


_KINDS = (
    _Kind(GraphKind.MEMORY, "Memory", "n.content", "createdAt"),
    _Kind(GraphKind.CONVERSATION, "Conversation", "n.title", "updatedAt"),
    _Kind(GraphKind.TOPIC, "Topic", "n.name", "degree"),
    _Kind(GraphKind.FACT, "Fact", "n.subject + ' ' + n.predicate + ' ' + n.object", "createdAt"),
    _Kind(GraphKind.ENTITY, "Entity", "n.name", "degree"),
    _Kind(GraphKind.COMMUNITY, "Community", "n.name", "form"),
    _Kind(GraphKind.EPISODE, "Episode", "coalesce(n.summary, n.threadId)", "startedAt"),
    _Kind(GraphKind.BELIEF, "Belief", "n.key + ': ' + n.value", "validFrom"),
    _Kind(GraphKind.DOCUMENT, "Document", "n.title", "createdAt"),
    _Kind(GraphKind.CHUNK, "Chunk", "n.text"),
)
_LABELS = {kind.kind: kind.label for kind in _KINDS} | {GraphKind.SUBJECT: "Subject"}
"""What kinds are called in the statements; no node has the last."""

# Kinds are a parameter, and no part of the statements' texts: planning one takes Neo4j about a second.
_OF_KIND = "any(label IN labels(x) WHERE label IN $labels)"
_SUBJECTS_BELIEFS = "(x:Belief {tenant: $t, subjectId: s}) WHERE x.epistemicStatus = 'ACTIVE'"
_DEGREE = (
    f"CASE WHEN some THEN COUNT {{ (n)-[:{_DRAWN}|SUPPORTS]-(y) WHERE coalesce(y.expiresAt > $now, true) }} "
    f"ELSE COUNT {{ (n)-[:{_DRAWN}|SUPPORTS]-() }} END"
)


def _centres() -> str:
    """From the centres that were given: those that the tenant has."""
    return (
        "CALL () { UNWIND $ids AS i MATCH (x:Node {id: i}) "
        f"WHERE any(label IN labels(x) WHERE label IN $all_labels) AND {visible_any('x')} RETURN collect(x) AS found }} "
        f"CALL () {{ UNWIND $subjects AS s WITH s WHERE EXISTS {{ MATCH {_SUBJECTS_BELIEFS} }} "
        "RETURN collect(s) AS known } "
        "WITH some, found[..$limit] AS nodes, known, size(found) + size(known) > $limit AS more "
        "WITH some, nodes, known[..$limit - size(nodes)] AS subjects, more "
    )


def _most_connected() -> str:
    """From the nodes with the most edges among the first of each kind, found by an index.

    Topics and entities come by their noted degree, which is a little old; all others come newest first, and few have
    many edges. Where all there is fits on the map, all of it is there from the start.
    """
    arms = " UNION ALL ".join(
        f"UNWIND [label IN $labels WHERE label = '{kind.label}'] AS wanted "
        f"CALL () {{ {_candidates(kind)} }} RETURN collect(x) AS first"
        for kind in _KINDS
    )
    return (
        f"CALL (some) {{ CALL () {{ {arms} }} "
        "WITH some, collect(first) AS firsts, sum(size(first)) AS there "
        "UNWIND firsts AS first UNWIND CASE WHEN there > $limit THEN first[..$compared] ELSE first END AS n "
        f"WITH n, there, {_DEGREE} AS degree ORDER BY degree DESC, n.id DESC "
        "RETURN collect(n) AS found, coalesce(max(there), 0) AS there } "
        "CALL () { UNWIND [label IN $labels WHERE label = 'Subject'] AS wanted "
        f"CALL () {{ {_newest('b', 'Belief', 'validFrom')} RETURN b }} WITH b WHERE b.epistemicStatus = 'ACTIVE' "
        "WITH b.subjectId AS s, count(*) AS beliefs ORDER BY beliefs DESC, s RETURN collect(s) AS known } "
        "WITH some, found, known, there + size(known) > $limit AS more "
        "WITH some, CASE WHEN more THEN found[..$starts] ELSE found END AS nodes, known, more "
        "WITH some, nodes, CASE WHEN NOT more THEN known WHEN nodes = [] THEN known[..$starts] "
        "ELSE known[..CASE WHEN size(nodes) < $limit THEN $starts_beside ELSE 0 END] END AS subjects, more "
    )


def _candidates(kind: _Kind) -> str:
    if kind.kind is GraphKind.CHUNK:
        documents = _newest("d", "Document", "createdAt")
        return f"{documents} MATCH (x:Chunk)-[:PART_OF]->(d) WHERE x.tenant = $t WITH x LIMIT $candidates RETURN x"
    if kind.column == "degree":
        return (
            f"MATCH (x:{kind.label}) WHERE x.tenant = $t AND x.degree >= 0 "
            "WITH x ORDER BY x.tenant DESC, x.degree DESC LIMIT $candidates RETURN x"
        )
    return f"{_newest('x', kind.label, kind.column)} RETURN x"


def _newest(x: str, label: str, column: str) -> str:
    """The last of a label's nodes in the order of one of its indexes."""
    return (
        f"MATCH ({x}:{label}) WHERE {visible(label, x)} AND {x}.{column} >= {LOWEST[column]} AND {x}.id >= '' "
        f"WITH {x} ORDER BY {x}.tenant DESC, {x}.{column} DESC, {x}.id DESC LIMIT $candidates"
    )


_NEAR = f"MATCH (n)-[:{_DRAWN}]-(x) WHERE {_OF_KIND} AND {visible_any('x')}"
_EPISODES = f"WITH n WHERE n:Belief AND 'Episode' IN $labels MATCH (n){_LEARNED_FROM}(x:Episode) WHERE x.tenant = $t"
_BELIEFS = f"WITH n WHERE n:Episode AND 'Belief' IN $labels MATCH (n){_TAUGHT}(x:Belief) WHERE x.tenant = $t"
_HELD = f"MATCH {_SUBJECTS_BELIEFS} AND 'Belief' IN $labels"
_ARMS = (
    ("front[..$few] AS n", _NEAR, "$fan"),
    ("front[$few..] AS n", _NEAR, "$narrow_fan"),
    ("front AS n", _EPISODES, "$fan"),
    ("front AS n", _BELIEFS, "$fan"),
    ("asked AS s", _HELD, "$fan"),
)
"""From what a step leads on, how, and how many each brings in at most."""


def _arm(start: str, way: str, fan: str) -> str:
    alias = start[-1]
    near = f"{way} WITH DISTINCT x LIMIT {fan} RETURN collect(x) AS near"
    return f"UNWIND {start} CALL ({alias}) {{ {near} }} RETURN near, size(near) = {fan} AS full"


# One text for every step. Cut after it is collected: of rows sorted with a LIMIT, Neo4j counts all lists beside each.
_STEP = (
    f"CALL (front, asked) {{ CALL (front, asked) {{ {' UNION ALL '.join(_arm(*arm) for arm in _ARMS)} }} "
    "RETURN collect(near) AS nears, collect(full) AS fulls } "
    "CALL (front, subjects) { UNWIND front AS n WITH n WHERE 'Subject' IN $labels "
    "AND n:Belief AND n.epistemicStatus = 'ACTIVE' AND NOT n.subjectId IN subjects "
    "RETURN collect(DISTINCT n.subjectId) AS whose } "
    "CALL (nodes, nears) { "
    "UNWIND nears AS near UNWIND near AS x WITH x, count(*) AS ways WHERE NOT x IN nodes "
    "WITH x, ways ORDER BY ways DESC, x.id DESC RETURN collect(x)[..$limit + 1] AS found } "
    "WITH some, nodes, subjects, found, whose, $limit - size(nodes) - size(subjects) AS room, "
    "more OR any(full IN fulls WHERE full) AS more "
    "WITH some, nodes, subjects, whose[..room] AS asked, found, room, more OR size(whose) + size(found) > room AS more "
    "WITH some, nodes, subjects + asked AS subjects, asked, found[..room - size(asked)] AS front, more "
    "WITH some, nodes + front AS nodes, subjects, front, asked, more "
)
"""A step outwards, from the nodes and subjects that the last one added."""


def _read() -> str:
    """What was found: nodes, subjects, edges, and whether there is more."""
    kinds = " ".join(f"WHEN n:{kind.label} THEN [{place}, {kind.text}]" for place, kind in enumerate(_KINDS))
    return (
        f"CALL (nodes, some) {{ UNWIND nodes AS n WITH n, {_DEGREE} AS degree, CASE {kinds} END AS shown "
        f"RETURN collect([n.id, shown[0], left(shown[1], {_LABEL}), degree, n.subjectId, n.epistemicStatus]) AS rows }} "
        f"CALL (nodes) {{ UNWIND nodes AS n MATCH (n)-[r:{_DRAWN}]->(x) WHERE x IN nodes "
        "WITH n, r, x LIMIT $edges RETURN collect([n.id, x.id, type(r), coalesce(r.weight, 1.0)]) AS drawn } "
        f"CALL (nodes) {{ UNWIND nodes AS n WITH n WHERE n:Belief MATCH (n){_LEARNED_FROM}(x:Episode) WHERE x IN nodes "
        "WITH n.id AS belief, x.id AS episode, count(*) AS quotes LIMIT $edges "
        "RETURN collect([belief, episode, quotes]) AS learned } "
        f"RETURN [rows, [s IN subjects | [s, COUNT {{ MATCH {_SUBJECTS_BELIEFS} }}]], drawn, learned, more]"
    )


@cache
def map_statement(depth: int, *, centred: bool) -> str:
    """[[[id, kind, text, degree, subject, status], …], [[subject, beliefs], …], [[from, to, type, weight], …],
    [[belief, episode, quotes], …], more]."""
    # a whole tenant that fits on the map is on it already
    going_on = "{}" if centred else "CASE WHEN more THEN {} ELSE [] END"
    return (
        f"CYPHER 25 WITH {SOME_EXPIRED} AS some {_centres() if centred else _most_connected()}"
        f"WITH some, nodes, subjects, {going_on.format('nodes')} AS front, {going_on.format('subjects')} AS asked, more "
        f"{_STEP * depth}{_read()}"
    )


async def read_map(graph: Graph, tenant: str, wanted: MapQuery, *, now: int) -> Map:
    """The map of a checked query: one statement. Centres that the tenant doesn't have are left out."""
    labels = [label for kind, label in _LABELS.items() if wanted.kinds is None or kind in wanted.kinds]
    limit, edges = wanted.limit, wanted.limit * policy.MAP_EDGES_EACH
    starts = limit if wanted.depth == 0 else max(1, limit // _STARTS_SHARE)
    rows, subjects, drawn, learned, more = await graph.read(
        map_statement(wanted.depth, centred=wanted.center_keys is not None),
        t=tenant,
        now=now,
        labels=labels,
        all_labels=list(_LABELS.values()),
        ids=[given for given in wanted.ids if well_formed(given)],
        subjects=wanted.subjects,
        limit=limit,
        candidates=limit + 1,
        starts=starts,
        compared=limit + 1 if wanted.depth == 0 else max(_COMPARED_LEAST, 2 * starts),
        starts_beside=max(1, starts // _STARTS_SHARE),
        few=_FEW,
        fan=limit,
        narrow_fan=max(limit // _FAN_SHARE, _FAN_LEAST),
        edges=edges + 1,
    )
    nodes = [
        GraphNode(subject_key(subject), GraphKind.SUBJECT, map_label(subject), float(n)) for subject, n in subjects
    ]
    # of a node that went while the statement ran, what was not read yet is null
    nodes += [
        GraphNode(row[0], _KINDS[row[1]].kind, map_label(row[2]), float(row[3])) for row in rows if None not in row[:4]
    ]
    held = [
        GraphEdge(subject_key(row[4]), row[0], HAS_BELIEF, 1.0)
        for row in rows
        if row[1] is not None and _KINDS[row[1]].kind is GraphKind.BELIEF and row[5] == "ACTIVE" and None not in row[:5]
    ]
    found = [
        *held,
        *(GraphEdge(belief, episode, LEARNED_FROM, float(quotes)) for belief, episode, quotes in learned),
        *(GraphEdge(*row) for row in drawn if None not in row),
    ]
    return whole_map(nodes, found, truncated=more or len(drawn) > edges or len(learned) > edges)
