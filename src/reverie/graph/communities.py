"""Communities in Neo4j: the topics' graph that they are found in, and the groups that were found, replaced all at once."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from reverie.domain import policy
from reverie.domain.communities import CO_OCCURS, CommunityAlgorithm, Detection, Edge, Group
from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.graph.nodes import lock_nodes
from reverie.graph.store import Graph, Transaction
from reverie.graph.writes import Outcome, Write

_MEMORIES_AT_ONCE = 20_000
_TOPICS_AT_ONCE = 500
"""What one statement looks at in counting which topics occur together: whichever is reached first."""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic, and how many memories have it."""

    id: str
    name: str
    memories: int


TOPICS_BY_SIZE = """
MATCH (x:Topic) WHERE x.tenant = $t AND x.form >= '' AND x.id >= ''
WITH x, COUNT { (x)<-[:HAS_TOPIC]-() } AS memories
ORDER BY memories DESC, x.id LIMIT $limit
RETURN collect([x.id, x.name, memories])
"""
CO_OCCURRENCES = """
UNWIND $ids AS i MATCH (x:Topic&Node {id: i}) WHERE x.tenant = $t
CALL (x) {
  MATCH (x)<-[:HAS_TOPIC]-(m:Memory)-[:HAS_TOPIC]->(y:Topic) WHERE m.tenant = $t AND m.expiresAt > $now AND y.tenant = $t
  WITH y, count(*) AS weight ORDER BY weight DESC, y.id LIMIT $limit
  RETURN collect([y.id, weight]) AS near
}
RETURN collect([i, near])
"""


async def topics_by_size(graph: Graph, tenant: str) -> list[TopicRow]:
    """The topics: those in the most memories first, as many as communities are found among."""
    rows = await graph.read(TOPICS_BY_SIZE, t=tenant, limit=policy.TOPICS_MOST)
    return [TopicRow(*row) for row in rows if None not in row]


async def co_occurrences(graph: Graph, tenant: str, topics: Sequence[TopicRow], now: int) -> list[Edge]:
    """Which of these topics occur together in visible memories, and in how many; each pair once, the lesser id first.

    Of each topic the strongest pairs are kept. Read in stretches, none of which looks at many memories.
    """
    known = {topic.id for topic in topics}
    weights: dict[tuple[str, str], float] = {}
    for ids in _stretches(topics):
        found = await graph.read(CO_OCCURRENCES, t=tenant, ids=ids, now=now, limit=policy.NEIGHBOURS_MOST)
        for one, near in found:
            weights.update(((min(one, other), max(one, other)), weight) for other, weight in near if other in known)
    return [(*pair, float(weight)) for pair, weight in weights.items()]


def _stretches(topics: Sequence[TopicRow]) -> Iterator[list[str]]:
    ids: list[str] = []
    memories = 0
    for topic in topics:
        if topic.memories == 0:
            break
        if ids and (memories + topic.memories > _MEMORIES_AT_ONCE or len(ids) == _TOPICS_AT_ONCE):
            yield ids
            ids, memories = [], 0
        ids.append(topic.id)
        memories += topic.memories
    if ids:
        yield ids


BEGIN_DETECTION = """
MERGE (d:Detection {tenant: $t, algorithm: $algorithm})
ON CREATE SET d.begun = 0, d.written = 0
SET d.begun = d.begun + 1
RETURN d.begun
"""


async def begin_detection(graph: Graph, tenant: str, algorithm: CommunityAlgorithm) -> int:
    """The number of a detection that is about to read the graph: one that begins later has a greater one."""
    return int(await graph.write(BEGIN_DETECTION, t=tenant, algorithm=algorithm.value))


@dataclass(frozen=True, slots=True)
class Found:
    """What a detection found, and its number."""

    wanted: Detection
    number: int
    groups: Sequence[Group]


LOCK_DETECTION = "MATCH (d:Detection {tenant: $t, algorithm: $algorithm}) SET d.lockedAt = $now"
WRITTEN_DETECTION = "MATCH (d:Detection {tenant: $t, algorithm: $algorithm}) RETURN d.written"
END_DETECTION = """
MATCH (d:Detection {tenant: $t, algorithm: $algorithm}) SET d.written = $number, d.resolution = $resolution
"""
COMMUNITIES_NOW = """
MATCH (c:Community) WHERE c.tenant = $t AND c.form >= '' AND c.id >= '' AND c.algorithm = $algorithm
RETURN collect([c.id, [(x:Topic)-[:BELONGS_TO]->(c) | x.id]])
"""
DELETE_COMMUNITIES = "UNWIND $ids AS i MATCH (c:Community&Node {id: i}) DETACH DELETE c"
CREATE_COMMUNITIES = """
UNWIND $rows AS row CREATE (c:Community:Node) SET c = row.properties
WITH c, row UNWIND row.topics AS i MATCH (x:Topic&Node {id: i}) WHERE x.tenant = c.tenant
CREATE (x)-[:BELONGS_TO]->(c)
"""
NAME_COMMUNITIES = """
UNWIND $rows AS row MATCH (c:Community&Node {id: row[0]}) WHERE c.name <> row[1] SET c.name = row[1], c.form = row[2]
"""


async def replace_communities(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Puts what detections found (drafts: Found) in the place of what their algorithm had found before.

    One with the same topics as before keeps its id. A detection that began later and is written already stays.
    Outcome: `communities`, the ids of all there are now.
    """
    return [await _replace(transaction, write) for write in writes]


async def _replace(transaction: Transaction, write: Write) -> Outcome:
    found: Found = write.draft
    which = {"t": write.tenant, "algorithm": found.wanted.algorithm.value}
    await transaction.run(LOCK_DETECTION, now=write.now, **which)
    written = await transaction.run(WRITTEN_DETECTION, **which)
    before = await transaction.run(COMMUNITIES_NOW, **which)
    if written > found.number:
        return {"communities": [row[0] for row in before]}
    ids = {tuple(sorted(topics)): node_id for node_id, topics in before}
    kept = {group.topics: ids[group.topics] for group in found.groups if group.topics in ids}
    new = [(new_id(), group) for group in found.groups if group.topics not in kept]
    stay = set(kept.values())
    going = {node_id: topics for node_id, topics in before if node_id not in stay}
    gone = sorted(going)
    if new or gone:
        # topics come before communities for whoever deletes a topic, too
        moved = {topic for group in (*going.values(), *(group.topics for _, group in new)) for topic in group}
        await lock_nodes(transaction, write.tenant, moved, write.now)
    if gone:
        await transaction.run(DELETE_COMMUNITIES, ids=gone)
    if new:
        rows = [
            {"properties": _properties(write, node_id, group, found.wanted.algorithm), "topics": group.topics}
            for node_id, group in new
        ]
        await transaction.run(CREATE_COMMUNITIES, rows=rows)
    names = [
        [kept[group.topics], group.name, normal_form(group.name)] for group in found.groups if group.topics in kept
    ]
    if names:
        await transaction.run(NAME_COMMUNITIES, rows=names)
    await transaction.run(END_DETECTION, number=found.number, resolution=found.wanted.resolution, **which)
    # a topic may have gone since the graph was read
    left = await settle_communities(transaction, [node_id for node_id, _ in new])
    return {"communities": sorted({*kept.values(), *left})}


def _properties(write: Write, node_id: str, group: Group, algorithm: CommunityAlgorithm) -> dict[str, object]:
    return {
        "id": node_id,
        "tenant": write.tenant,
        "name": group.name,
        "form": normal_form(group.name),
        "algorithm": algorithm.value,
        "size": len(group.topics),
        "createdAt": write.now,
    }


LOCK_COMMUNITIES_OF = """
MATCH (x:Topic&Node)-[:BELONGS_TO]->(c:Community) WHERE x.id IN $ids
WITH DISTINCT c ORDER BY c.id SET c.lockedAt = $now
RETURN collect(c.id)
"""
COUNT_TOPICS = """
UNWIND $ids AS i MATCH (c:Community&Node {id: i}) SET c.size = COUNT { (c)<-[:BELONGS_TO]-() }
RETURN collect([c.id, c.size])
"""


async def lock_communities_of(transaction: Transaction, ids: Sequence[str], now: int) -> list[str]:
    """Locks the communities that some topics belong to, in order; their ids, for `settle_communities`."""
    return list(await transaction.run(LOCK_COMMUNITIES_OF, ids=list(ids), now=now))


async def settle_communities(transaction: Transaction, ids: Sequence[str]) -> list[str]:
    """Counts the topics of communities that may have lost some, and takes the empty ones away; those that are left."""
    if not ids:
        return []
    sizes = dict(await transaction.run(COUNT_TOPICS, ids=list(ids)))
    empty = sorted(node_id for node_id, size in sizes.items() if size == 0)
    if empty:
        await transaction.run(DELETE_COMMUNITIES, ids=empty)
    return [node_id for node_id in sizes if node_id not in empty]


RELATE_TOPICS = """
UNWIND $rows AS row MATCH (x:Topic&Node {id: row[0]}) WHERE x.tenant = $t
CALL (x, row) {
  MATCH (x)-[r:RELATED_TO {relation: $relation}]->(y) WHERE NOT y.id IN [near IN row[1] | near[0]] DELETE r
}
UNWIND row[1] AS near
MATCH (y:Topic&Node {id: near[0]}) WHERE y.tenant = $t
MERGE (x)-[r:RELATED_TO {relation: $relation}]->(y)
ON CREATE SET r.id = near[2], r.tenant = $t, r.weight = near[1]
ON MATCH SET r.weight = near[1]
"""


async def relate_topics(graph: Graph, tenant: str, topics: Sequence[TopicRow], edges: Iterable[Edge]) -> None:
    """Relates topics that occur together as these edges say, in order, and no others.

    In several transactions, each of which leaves some topics as they are now.
    """
    near = {one: list(group) for one, group in groupby(edges, key=lambda edge: edge[0])}
    rows = [
        [topic.id, [[other, weight, new_id()] for _, other, weight in near.get(topic.id, ())]]
        for topic in sorted(topics, key=lambda topic: topic.id)
    ]
    for start in range(0, len(rows), _TOPICS_AT_ONCE):
        await graph.write(RELATE_TOPICS, t=tenant, rows=rows[start : start + _TOPICS_AT_ONCE], relation=CO_OCCURS)


TENANTS_AFTER = """
MATCH (t:Tenant) WHERE t.name > $after WITH t ORDER BY t.name LIMIT $limit RETURN collect(t.name)
"""
CHANGED_LINKS = """
MATCH (x:Topic) WHERE x.tenant = $t AND x.form >= '' AND x.id >= ''
WITH COUNT { (x)<-[:HAS_TOPIC]-() } AS now, coalesce(x.counted, 0) AS then
RETURN [sum(now), sum(abs(now - then))]
"""
NOTE_COUNTS = """
MATCH (x:Topic) WHERE x.tenant = $t AND x.form >= '' AND x.id >= ''
WITH x, COUNT { (x)<-[:HAS_TOPIC]-() } AS now WHERE coalesce(x.counted, 0) <> now
CALL (x, now) { SET x.counted = now } IN TRANSACTIONS OF 500 ROWS ON ERROR CONTINUE
"""
DETECTIONS = "MATCH (d:Detection {tenant: $t}) WHERE d.algorithm >= '' RETURN collect([d.algorithm, d.resolution])"
TAKE_TURN = """
MERGE (d:Detection {tenant: $t, algorithm: $algorithm})
ON CREATE SET d.begun = 0, d.written = 0
SET d.lockedAt = $now
WITH d WHERE coalesce(d.lookedAt, 0) <= $before
SET d.lookedAt = $now
RETURN true
"""


async def tenants(graph: Graph, limit: int = 100) -> AsyncIterator[str]:
    """The tenants there are, by name."""
    after = ""
    while names := await graph.read(TENANTS_AFTER, after=after, limit=limit):
        for name in names:
            yield name
        after = names[-1]


async def changed_links(graph: Graph, tenant: str) -> tuple[int, int]:
    """How many links between memories and topics there are, and how many changed since communities were found."""
    links, changed = await graph.read(CHANGED_LINKS, t=tenant)
    return links, changed


async def note_counts(graph: Graph, tenant: str) -> None:
    """Notes on every topic in how many memories it is now, by which it shows how much changed since."""
    await graph.execute(NOTE_COUNTS, t=tenant)


async def take_turn(graph: Graph, tenant: str, now: int, pause: int) -> bool:
    """Whether nobody has taken this tenant's turn in the last `pause` milliseconds; it is the caller's now."""
    leiden = CommunityAlgorithm.LEIDEN.value
    return bool(await graph.write(TAKE_TURN, t=tenant, algorithm=leiden, now=now, before=now - pause))


async def detections(graph: Graph, tenant: str) -> list[Detection]:
    """How communities were found for this tenant before, by each algorithm; by Leiden where they never were."""
    known = {Detection().algorithm: Detection()}
    for name, resolution in await graph.read(DETECTIONS, t=tenant):
        if resolution is not None:
            algorithm = CommunityAlgorithm(name)
            known[algorithm] = Detection(algorithm, resolution)
    return list(known.values())


WEIGH_TOPICS = """
MATCH (x:Topic) WHERE x.tenant = $t AND x.form >= '' AND x.id >= ''
WITH x, COUNT { (x)--() } AS degree WHERE coalesce(x.degree, -1) <> degree
CALL (x, degree) { SET x.degree = degree } IN TRANSACTIONS OF 500 ROWS ON ERROR CONTINUE
"""
WEIGH_ENTITIES = """
MATCH (x:Entity) WHERE x.tenant = $t AND x.form >= '' AND x.id >= ''
WITH x, COUNT { (x)--() } AS degree WHERE coalesce(x.degree, -1) <> degree
CALL (x, degree) { SET x.degree = degree } IN TRANSACTIONS OF 500 ROWS ON ERROR CONTINUE
"""


async def weigh(graph: Graph, tenant: str) -> None:
    """Notes on topics and entities how many edges they have, by which an index finds the most connected."""
    await graph.execute(WEIGH_TOPICS, t=tenant)
    await graph.execute(WEIGH_ENTITIES, t=tenant)
