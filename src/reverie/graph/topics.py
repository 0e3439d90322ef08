"""Topics in Neo4j: made, renamed, merged, deleted, each under the locks of its names."""

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.errors import BadInput, NotFound, Refusal, Refusals
from reverie.graph.communities import lock_communities_of, settle_communities
from reverie.graph.names import (
    TOPIC,
    NameKey,
    claim,
    drop,
    give,
    lock_names_of,
    name_words,
    named_properties,
    topic_key,
)
from reverie.graph.nodes import lock_nodes
from reverie.graph.store import Graph, Transaction
from reverie.graph.writes import Outcome, Write

TOPIC_BY_NAME = "MATCH (x:Name {tenant: $t, kind: 'Topic', form: $form, type: ''})-[:NAMES]->(n:Topic) RETURN n.id"


async def topic_by_name(graph: Graph, tenant: str, name: str) -> str | None:
    """The id of the topic that a name leads to."""
    found = await graph.read(TOPIC_BY_NAME, t=tenant, form=normal_form(name))
    return None if found is None else str(found)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A checked name, with its vector where the embedder was in time."""

    name: str
    vector: list[float] | None = None


CREATE_TOPIC = """
CREATE (n:Topic:Node) SET n = $properties, n.embedding = $vector
FOREACH (_ IN CASE WHEN $vector IS NULL THEN [1] ELSE [] END | SET n:Unembedded)
"""


async def create_topics(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Makes topics (drafts: NewTopic); outcome: `topic`, its id."""
    outcomes: list[Outcome] = []
    for write in writes:
        new: NewTopic = write.draft
        key = topic_key(write.tenant, new.name)
        refused = await claim(transaction, [(key, ("name",))], None)
        if refused:
            outcomes.append(Refusals(refused))
            continue
        node_id = new_id()
        properties = named_properties(write, TOPIC, node_id, new.name)
        await transaction.run(CREATE_TOPIC, properties=properties, vector=new.vector)
        await give(transaction, [key], node_id)
        outcomes.append({"topic": node_id})
    return outcomes


@dataclass(frozen=True, slots=True)
class TopicRename:
    """A topic's new name, with its vector where the embedder was in time."""

    id: str
    name: str
    vector: list[float] | None = None


TOPIC_NAME = "MATCH (n:Topic&Node {id: $id}) WHERE n.tenant = $t RETURN n.form"
SET_TOPIC = """
MATCH (n:Topic&Node {id: $id})
SET n.name = $name, n.form = $form, n.words = $words, n.updatedAt = $now, n.embedding = $vector
FOREACH (_ IN CASE WHEN $vector IS NULL THEN [1] ELSE [] END | SET n:Unembedded)
FOREACH (_ IN CASE WHEN $vector IS NULL THEN [] ELSE [1] END | REMOVE n:Unembedded)
"""


async def rename_topics(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Renames topics (drafts: TopicRename); the old name leads to it no more; outcome: `topic`, its id."""
    return [await _rename_topic(transaction, write) for write in writes]


async def _rename_topic(transaction: Transaction, write: Write) -> Outcome:
    rename: TopicRename = write.draft
    key = topic_key(write.tenant, rename.name)
    if await transaction.run(TOPIC_NAME, id=rename.id, t=write.tenant) is None:
        return _missing()
    refused = await claim(transaction, [(key, ("name",))], rename.id)
    if refused:
        return Refusals(refused)
    await lock_names_of(transaction, write.tenant, [rename.id])
    old = await transaction.run(TOPIC_NAME, id=rename.id, t=write.tenant)
    if old is None:
        return _missing()
    await give(transaction, [key], rename.id)
    if old != key[2]:
        await drop(transaction, [(write.tenant, TOPIC, old, "")])
    await transaction.run(
        SET_TOPIC,
        id=rename.id,
        name=rename.name,
        form=key[2],
        words=name_words(write.number, TOPIC, rename.name),
        now=write.now,
        vector=rename.vector,
    )
    return {"topic": rename.id}


@dataclass(frozen=True, slots=True)
class Merge:
    """What is to go into what."""

    into_id: str
    from_ids: tuple[str, ...]


def held_sources(label: str, edge: str) -> str:
    """The Cypher of a merge's beginning: into, and each m with its edge old to what is merged, under the lock of m.

    Matched anew after the lock: whoever held it may have taken the edge away.
    """
    return (
        f"MATCH (into:{label}&Node {{id: $into}}) MATCH (m)-[:{edge}]->(n:{label}&Node) WHERE n.id IN $ids "
        "WITH DISTINCT into, m ORDER BY m.id SET m.lockedAt = $now "
        f"WITH into, m MATCH (m)-[old:{edge}]->(n:{label}&Node) WHERE n.id IN $ids"
    )


FOUND_TOPICS = "MATCH (n:Topic&Node) WHERE n.id IN $ids AND n.tenant = $t RETURN collect(n.id)"
MOVE_NAMES = """
MATCH (into:Node {id: $into}) MATCH (x:Name)-[old:NAMES]->(n:Node) WHERE n.id IN $ids
DELETE old MERGE (x)-[:NAMES]->(into)
"""
MOVE_MEMORIES_OF_TOPICS = f"{held_sources('Topic', 'HAS_TOPIC')} DELETE old MERGE (m)-[:HAS_TOPIC]->(into)"
LEAVE_COMMUNITIES = "MATCH (n:Topic&Node)-[r:BELONGS_TO]->() WHERE n.id IN $ids DELETE r"
MOVE_RELATED = """
MATCH (into:Node {id: $into}) MATCH (n:Node)-[old:RELATED_TO]-(o:Node) WHERE n.id IN $ids AND NOT o.id IN $ids AND o.id <> $into
WITH into, o, old, startNode(old) = n AS outgoing
WITH into, o, outgoing, old.relation AS relation, max(old.weight) AS weight, min(old.id) AS id, into.tenant AS tenant
FOREACH (_ IN CASE WHEN outgoing THEN [1] ELSE [] END |
  MERGE (into)-[r:RELATED_TO {relation: relation}]->(o)
  ON CREATE SET r.id = id, r.tenant = tenant, r.weight = weight
  ON MATCH SET r.weight = CASE WHEN r.weight < weight THEN weight ELSE r.weight END)
FOREACH (_ IN CASE WHEN outgoing THEN [] ELSE [1] END |
  MERGE (o)-[r:RELATED_TO {relation: relation}]->(into)
  ON CREATE SET r.id = id, r.tenant = tenant, r.weight = weight
  ON MATCH SET r.weight = CASE WHEN r.weight < weight THEN weight ELSE r.weight END)
"""
DROP_RELATED = "MATCH (n:Node)-[r:RELATED_TO]-() WHERE n.id IN $ids DELETE r"
DELETE_BARE = "MATCH (n:Node) WHERE n.id IN $ids DELETE n"
DELETE_NODES = "MATCH (n:Node) WHERE n.id IN $ids DETACH DELETE n"
TOUCH_NODE = "MATCH (n:Node {id: $id}) SET n.updatedAt = $now"


async def merge_topics(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Merges topics (drafts: Merge): memories, relations and names go to the survivor; outcome: `topic`, its id."""
    return [await _merge_topics(transaction, write) for write in writes]


async def _merge_topics(transaction: Transaction, write: Write) -> Outcome:
    merge: Merge = write.draft
    gone = list(dict.fromkeys(merge.from_ids))
    await lock_merged(transaction, write, [merge.into_id, *gone])
    refused = refuse_merge(
        merge, set(await transaction.run(FOUND_TOPICS, ids=[merge.into_id, *gone], t=write.tenant)), "topic"
    )
    if refused:
        return Refusals(refused)
    await transaction.run(MOVE_MEMORIES_OF_TOPICS, into=merge.into_id, ids=gone, now=write.now)
    await leave_communities(transaction, gone, write.now)
    await move_common(transaction, write, merge.into_id, gone)
    return {"topic": merge.into_id}


async def leave_communities(transaction: Transaction, ids: Sequence[str], now: int) -> None:
    """Takes topics, which are locked, out of their communities."""
    communities = await lock_communities_of(transaction, ids, now)
    await transaction.run(LEAVE_COMMUNITIES, ids=list(ids))
    await settle_communities(transaction, communities)


async def lock_merged(transaction: Transaction, write: Write, ids: Sequence[str]) -> None:
    """Locks what is to be merged against renaming, relating and other merges."""
    await lock_names_of(transaction, write.tenant, ids)
    await lock_nodes(transaction, write.tenant, ids, write.now)


async def move_common(transaction: Transaction, write: Write, into: str, gone: Sequence[str]) -> None:
    """What merging does for topics and entities alike: relations and names move, what is merged goes."""
    await transaction.run(MOVE_RELATED, into=into, ids=list(gone))
    await transaction.run(MOVE_NAMES, into=into, ids=list(gone))
    await delete_bare(transaction, gone)
    await transaction.run(TOUCH_NODE, id=into, now=write.now)


async def delete_bare(transaction: Transaction, ids: Sequence[str]) -> None:
    """Deletes topics or entities that nothing but others of their kind is to be related to any more.

    An edge that a memory drew meanwhile makes it fail: the transaction, which is run again, finds it then.
    """
    await transaction.run(DROP_RELATED, ids=list(ids))
    await transaction.run(DELETE_BARE, ids=list(ids))


def refuse_merge(merge: Merge, found: set[str], kind: str) -> list[Refusal]:
    """What stands against a merge, given which of its ids exist."""
    refused: list[Refusal] = []
    if merge.into_id not in found:
        refused.append(NotFound(f"no {kind} has this id", ("intoId",)))
    if not merge.from_ids:
        refused.append(BadInput("must not be empty", ("fromIds",)))
    for at, merged in enumerate(merge.from_ids):
        if merged == merge.into_id:
            refused.append(BadInput("must be another one than intoId", ("fromIds", at)))
        elif merged not in found:
            refused.append(NotFound(f"no {kind} has this id", ("fromIds", at)))
    return refused


async def delete_topics(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Deletes topics (drafts: ids) with their names; outcome: `deletedId`."""
    outcomes: list[Outcome] = []
    names: dict[str, list[NameKey]] = {}
    for tenant in sorted({write.tenant for write in writes}):
        ids = [write.draft for write in writes if write.tenant == tenant]
        names.update(await lock_names_of(transaction, tenant, ids))
        # a community may take one in until it is locked
        await lock_nodes(transaction, tenant, ids, writes[0].now)
    for write in writes:
        if not await transaction.run(FOUND_TOPICS, ids=[write.draft], t=write.tenant):
            outcomes.append(_missing())
            continue
        await leave_communities(transaction, [write.draft], write.now)
        await drop(transaction, names.get(write.draft, []))
        await transaction.run(DELETE_NODES, ids=[write.draft])
        outcomes.append({"deletedId": write.draft})
    return outcomes


def _missing() -> Refusals:
    return Refusals([NotFound("no topic has this id", ("id",))])
