"""The relations between the nouns, declared once, and the reading statements composed from them.

Every statement answers with one record: a page for each parent of a level, in the parents' order. Aliases are fixed:
n is the parent, x the target, r the last relationship.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from reverie.domain.entities import RelatedEntity
from reverie.domain.memories import MemoryOrder, MemoryOrderField, RelatedMemory
from reverie.domain.pages import Key, Page, Span
from reverie.domain.topics import RelatedTopic
from reverie.graph.filters import NOTHING, SOME_EXPIRED, Where, visible_if_some
from reverie.graph.records import (
    BELIEF,
    CHANGE,
    CHUNK,
    COMMUNITY,
    CONVERSATION,
    DOCUMENT,
    ENTITY,
    EPISODE,
    EVENT,
    EVIDENCE,
    FACT,
    MEMORY,
    SLOT,
    TOPIC,
    Label,
    whole,
)
from reverie.graph.store import Graph, Raced

Direction = Literal["out", "in", "both"]
_ARROWS: dict[Direction, str] = {"out": "-[{}]->", "in": "<-[{}]-", "both": "-[{}]-"}


@dataclass(frozen=True, slots=True)
class SortKey:
    """One expression of a total order."""

    expression: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """A total order; its name is part of the scope of cursors."""

    name: str
    keys: tuple[SortKey, ...]
    kept: tuple[str, ...] = ()
    """What else the cursors carry."""


@dataclass(frozen=True, slots=True)
class Step:
    """One hop of a relation."""

    relationship: str
    direction: Direction
    to: Label


@dataclass(frozen=True, slots=True)
class Relation:
    """A way from one label to another: the hops, the order of what is there, and what the edge itself tells."""

    owner: Label
    name: str
    steps: tuple[Step, ...]
    order: Order
    edge: tuple[str, ...] = ()
    wrap: Any = field(default=None, compare=False)
    pattern: str | None = None
    """Instead of the steps' own pattern: one that no relationships make."""

    @property
    def target(self) -> Label:
        return self.steps[-1].to

    @property
    def scope(self) -> str:
        return f"{self.owner.name}.{self.name}"

    def match(self) -> str:
        """The pattern from n to x, everything on the way visible."""
        if self.pattern is not None:
            return f"{self.pattern} WHERE {visible_if_some(self.target.name, 'x')}"
        text, predicates, former = "(n)", [], ""
        for place, step in enumerate(self.steps):
            last = place == len(self.steps) - 1
            alias = "x" if last else f"v{place}"
            if step.relationship == former:
                # within one pattern no relationship is walked twice, so that the way back would leave out n itself
                text += f" MATCH (v{place - 1})"
            former = step.relationship
            text += (
                _ARROWS[step.direction].format(f"{'r' if last else ''}:{step.relationship}")
                + f"({alias}:{step.to.name})"
            )
            predicates.append(visible_if_some(step.to.name, alias))
        return f"MATCH {text} WHERE {' AND '.join(predicates)}"

    @property
    def parents(self) -> str:
        """The parents in `$ids`, each with its place."""
        some = f"WITH {SOME_EXPIRED} AS some " if self.target is FACT else ""
        return f"{some}UNWIND range(0, size($ids) - 1) AS place MATCH (n:Node {{id: $ids[place]}}) WHERE n.tenant = $t"

    @property
    def seen(self) -> str:
        """The variables that a subquery for one parent needs."""
        return "n, some" if self.target is FACT else "n"

    @property
    def many_ways(self) -> bool:
        """Whether the same target can be reached twice."""
        return len(self.steps) > 1 or self.pattern is not None


BY_ID = Order("id", (SortKey("x.id"),))
BY_NAME = Order("name", (SortKey("x.form"), SortKey("x.id")))
NEWEST = Order("newest", (SortKey("x.createdAt", True), SortKey("x.id", True)))
SPOKEN = Order("spoken", (SortKey("x.occurredAt"), SortKey("x.id")))
LATEST_SPOKEN = Order("newest", (SortKey("x.occurredAt", True), SortKey("x.id", True)))
BEGUN = Order("begun", (SortKey("x.startedAt"), SortKey("x.id")))
LATEST_BEGUN = Order("newest", (SortKey("x.startedAt", True), SortKey("x.id", True)))
LATEST_VALID = Order("valid", (SortKey("x.validFrom", True), SortKey("x.id", True)))
LATEST_VERSION = Order("version", (SortKey("x.validFrom", True), SortKey("x.version", True)))
LOGGED = Order("logged", (SortKey("x.number"), SortKey("x.id")))
IN_PLACE = Order("position", (SortKey("x.position"), SortKey("x.id")))
STRONGEST = Order("strongest", (SortKey("r.weight", True), SortKey("r.id", True)))
_RELATED = ("r.relation", "r.weight", "startNode(r) = n")

RELATIONS = (
    Relation(MEMORY, "conversation", (Step("BELONGS_TO", "out", CONVERSATION),), BY_ID),
    Relation(MEMORY, "topics", (Step("HAS_TOPIC", "out", TOPIC),), BY_NAME),
    Relation(MEMORY, "entities", (Step("MENTIONS", "out", ENTITY),), BY_NAME),
    Relation(MEMORY, "facts", (Step("EXTRACTED_FROM", "in", FACT),), BY_ID),
    Relation(
        MEMORY,
        "related",
        (Step("RELATED_TO", "both", MEMORY),),
        STRONGEST,
        _RELATED,
        lambda memory, edge: RelatedMemory(memory, *edge),
    ),
    Relation(CONVERSATION, "memories", (Step("BELONGS_TO", "in", MEMORY),), NEWEST),
    Relation(CONVERSATION, "topics", (Step("BELONGS_TO", "in", MEMORY), Step("HAS_TOPIC", "out", TOPIC)), BY_NAME),
    Relation(CONVERSATION, "events", (Step("IN_THREAD", "in", EVENT),), SPOKEN),
    Relation(CONVERSATION, "episodes", (Step("IN_THREAD", "in", EPISODE),), BEGUN),
    Relation(TOPIC, "community", (Step("BELONGS_TO", "out", COMMUNITY),), BY_ID),
    Relation(TOPIC, "memories", (Step("HAS_TOPIC", "in", MEMORY),), NEWEST),
    Relation(
        TOPIC,
        "related",
        (Step("RELATED_TO", "both", TOPIC),),
        STRONGEST,
        ("r.weight",),
        lambda topic, edge: RelatedTopic(topic, *edge),
    ),
    Relation(FACT, "subjectEntity", (Step("HAS_SUBJECT", "out", ENTITY),), BY_ID),
    Relation(FACT, "objectEntity", (Step("HAS_OBJECT", "out", ENTITY),), BY_ID),
    Relation(FACT, "about", (Step("ABOUT", "out", ENTITY),), BY_NAME),
    Relation(FACT, "memories", (Step("EXTRACTED_FROM", "out", MEMORY),), NEWEST),
    Relation(ENTITY, "memories", (Step("MENTIONS", "in", MEMORY),), NEWEST),
    Relation(ENTITY, "facts", (Step("ABOUT", "in", FACT),), BY_ID),
    Relation(
        ENTITY,
        "related",
        (Step("RELATED_TO", "both", ENTITY),),
        STRONGEST,
        _RELATED,
        lambda entity, edge: RelatedEntity(entity, *edge),
    ),
    Relation(
        ENTITY,
        "beliefs",
        (Step("NAMES", "in", BELIEF),),
        LATEST_VALID,
        pattern="MATCH (n)<-[:NAMES]-(v0:Name) "
        "MATCH (x:Belief {tenant: $t, subjectForm: v0.form}) USING INDEX x:Belief(tenant, subjectForm)",
    ),
    Relation(COMMUNITY, "topics", (Step("BELONGS_TO", "in", TOPIC),), BY_NAME),
    Relation(EVENT, "episode", (Step("PART_OF", "out", EPISODE),), BY_ID),
    Relation(EVENT, "conversation", (Step("IN_THREAD", "out", CONVERSATION),), BY_ID),
    Relation(EPISODE, "conversation", (Step("IN_THREAD", "out", CONVERSATION),), BY_ID),
    Relation(EPISODE, "events", (Step("PART_OF", "in", EVENT),), SPOKEN),
    Relation(
        EPISODE,
        "beliefs",
        (Step("PART_OF", "in", EVENT), Step("QUOTES", "in", EVIDENCE), Step("SUPPORTS", "out", BELIEF)),
        LATEST_VALID,
    ),
    Relation(BELIEF, "supersedes", (Step("SUPERSEDES", "out", BELIEF),), BY_ID),
    Relation(BELIEF, "supersededBy", (Step("SUPERSEDED_BY", "out", BELIEF),), BY_ID),
    Relation(BELIEF, "history", (Step("VERSION_OF", "out", SLOT), Step("VERSION_OF", "in", BELIEF)), LATEST_VERSION),
    Relation(BELIEF, "audit", (Step("VERSION_OF", "out", SLOT), Step("CHANGE_OF", "in", CHANGE)), LOGGED),
    Relation(BELIEF, "evidence", (Step("SUPPORTS", "in", EVIDENCE), Step("QUOTES", "out", EVENT)), SPOKEN),
    Relation(
        BELIEF,
        "episodes",
        (Step("SUPPORTS", "in", EVIDENCE), Step("QUOTES", "out", EVENT), Step("PART_OF", "out", EPISODE)),
        BEGUN,
    ),
    Relation(DOCUMENT, "chunks", (Step("PART_OF", "in", CHUNK),), IN_PLACE),
    Relation(CHUNK, "document", (Step("PART_OF", "out", DOCUMENT),), BY_ID),
    Relation(COMMUNITY, "memories", (Step("BELONGS_TO", "in", TOPIC), Step("HAS_TOPIC", "in", MEMORY)), NEWEST),
)
TABLE = {(relation.owner.name, relation.name): relation for relation in RELATIONS}

_MEMORY_COLUMNS = {
    MemoryOrderField.CREATED_AT: "createdAt",
    MemoryOrderField.UPDATED_AT: "updatedAt",
    MemoryOrderField.EVENT_TIME: "happenedAt",
    MemoryOrderField.IMPORTANCE: "importance",
}


def memory_order(order: MemoryOrder | None) -> Order:
    """The total order of memories that a caller asked for; newest first unless asked."""
    order = order or MemoryOrder()
    return Order(
        f"{order.field}.{'DESC' if order.descending else 'ASC'}",
        (SortKey(f"x.{_MEMORY_COLUMNS[order.field]}", order.descending), SortKey("x.id", order.descending)),
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a relation is wanted for each parent: which page, in which order, and which members count."""

    span: Span
    order: Order
    where: Where = NOTHING


def beyond(keys: Sequence[SortKey], parameter: str, *, against: bool) -> str:
    """The predicate "later in this order than the key in `$parameter`", or earlier when `against`."""
    text = ""
    for place, key in reversed(list(enumerate(keys))):
        sign = "<" if key.descending != against else ">"
        value = f"${parameter}[{place}]"
        text = (
            f"({key.expression} {sign} {value} OR ({key.expression} = {value} AND {text}))"
            if text
            else f"{key.expression} {sign} {value}"
        )
    return text


def order_by(keys: Sequence[SortKey], *, backward: bool) -> str:
    return ", ".join(f"{key.expression}{' DESC' if key.descending != backward else ''}" for key in keys)


def bounds(order: Order, *, after: bool, before: bool) -> list[str]:
    """The predicates of a span between two keys."""
    found = [beyond(order.keys, "after", against=False)] if after else []
    return [*found, beyond(order.keys, "before", against=True)] if before else found


@lru_cache(maxsize=4096)
def page_statement(
    relation: Relation, order: Order, predicates: tuple[str, ...], after: bool, before: bool, backward: bool
) -> str:
    """One page of a relation for every parent in `$ids`: [[place, [[row, key, edge], …]], …]."""
    where = " AND ".join((relation.match(), *predicates))
    distinct = " WITH DISTINCT x" if relation.many_ways else ""
    limits = bounds(order, after=after, before=before)
    bounded = f" WITH x{'' if relation.many_ways else ', r'} WHERE {' AND '.join(limits)}" if limits else ""
    keys = ", ".join(key.expression for key in order.keys)
    edge = ", ".join(relation.edge)
    return (
        f"{relation.parents} CALL ({relation.seen}) {{ {where}{distinct}{bounded} "
        f"WITH * ORDER BY {order_by(order.keys, backward=backward)} LIMIT $limit "
        f"RETURN collect([{relation.target.row('x')}, [{keys}], [{edge}]]) AS page }} "
        "RETURN collect([place, page])"
    )


@lru_cache(maxsize=4096)
def count_statement(relation: Relation, predicates: tuple[str, ...]) -> str:
    """How many members a relation has for every parent in `$ids`: [[place, count], …]."""
    where = " AND ".join((relation.match(), *predicates))
    return f"{relation.parents} RETURN collect([place, COUNT {{ {where} RETURN {'DISTINCT x' if relation.many_ways else 'x'} }}])"


@lru_cache(maxsize=256)
def one_statement(relation: Relation, predicates: tuple[str, ...] = ()) -> str:
    """The one member of a relation for every parent in `$ids`: [[place, row], …]."""
    where = " AND ".join((relation.match(), *predicates))
    return (
        f"{relation.parents} CALL ({relation.seen}) {{ {where} RETURN {relation.target.row('x')} AS row ORDER BY x.id LIMIT 1 }} "
        "RETURN collect([place, row])"
    )


@whole
async def pages(
    graph: Graph, tenant: str, relation: Relation, wanted: Wanted, ids: Sequence[str], *, now: int
) -> list[Page[Any]]:
    """One page of a relation for each parent; an empty one for a parent that isn't the tenant's. One statement."""
    where, span = wanted.where, wanted.span
    statement = page_statement(
        relation, wanted.order, where.predicates, span.after is not None, span.before is not None, span.backward
    )
    found = await graph.read(
        statement,
        t=tenant,
        now=now,
        at=now,
        ids=list(ids),
        limit=span.limit + 1,
        after=span.after,
        before=span.before,
        **where.values(),
    )
    rows: list[list[Any]] = [[] for _ in ids]
    for place, page in found:
        rows[place] = page
    scope = f"{relation.scope}.{wanted.order.name}"
    return [page_of(tenant, scope, span, page, lambda row: _member(relation, row)) for page in rows]


def page_of(tenant: str, scope: str, span: Span, rows: list[Any], value: Any) -> Page[Any]:
    """The page made of at most limit + 1 rows [row, key, …] read from the end that was asked for; Raced for a torn one."""
    more = len(rows) > span.limit
    rows = rows[: span.limit]
    if span.backward:
        rows = rows[::-1]
    if any(None in row[1] for row in rows):
        raise Raced
    keys: list[Key] = [tuple(row[1]) for row in rows]
    return Page(
        tenant,
        scope,
        [value(row) for row in rows],
        keys,
        has_next=span.before is not None if span.backward else more,
        has_previous=more if span.backward else span.after is not None,
    )


def _member(relation: Relation, row: list[Any]) -> Any:
    if None in row[2]:
        raise Raced
    value = relation.target.value(row[0])
    return value if relation.wrap is None else relation.wrap(value, row[2])


async def counts(
    graph: Graph, tenant: str, relation: Relation, where: Where, ids: Sequence[str], *, now: int
) -> list[int]:
    """How many members a relation has for each parent. One statement."""
    found = await graph.read(
        count_statement(relation, where.predicates), t=tenant, now=now, at=now, ids=list(ids), **where.values()
    )
    by_place = dict(found)
    return [by_place.get(place, 0) for place in range(len(ids))]


@whole
async def ones(graph: Graph, tenant: str, relation: Relation, ids: Sequence[str], *, now: int) -> list[Any]:
    """The one member of a relation for each parent, None where there is none. One statement."""
    found = await graph.read(one_statement(relation), t=tenant, now=now, ids=list(ids))
    by_place = dict(found)
    return [relation.target.value(by_place[place]) if place in by_place else None for place in range(len(ids))]


COMMUNITIES_BY_TOPIC = """
UNWIND range(0, size($ids) - 1) AS place MATCH (n:Node {id: $ids[place]}) WHERE n.tenant = $t
MATCH (n)-[:BELONGS_TO]->(x:Community) WHERE x.tenant = $t AND x.algorithm = $algorithm
RETURN collect([place, [x.id, x.name, x.algorithm, x.size]])
"""


@whole
async def communities_by_topic(graph: Graph, tenant: str, algorithm: str, ids: Sequence[str]) -> list[Any]:
    """The community of each topic by one algorithm, None where there is none. One statement."""
    found = dict(await graph.read(COMMUNITIES_BY_TOPIC, t=tenant, ids=list(ids), algorithm=algorithm))
    return [COMMUNITY.value(found[place]) if place in found else None for place in range(len(ids))]
