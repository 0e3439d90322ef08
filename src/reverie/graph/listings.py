"""The tenant's lists, one per label: keyset pages read from the index that keeps their order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from reverie.domain.beliefs import BeliefFilter, HalfLives
from reverie.domain.episodes import EpisodeFilter
from reverie.domain.events import EventFilter
from reverie.domain.facts import FactFilter
from reverie.domain.memories import MemoryFilter, MemoryOrder
from reverie.domain.names import part_form
from reverie.domain.pages import Page, PageArgs, Span, span
from reverie.domain.topics import NameOrder, NameOrderField
from reverie.errors import BadInput
from reverie.graph.filters import (
    NOTHING,
    SOME_EXPIRED,
    Where,
    belief_where,
    entity_where,
    episode_where,
    event_where,
    fact_where,
    memory_where,
    visible,
)
from reverie.graph.records import (
    BELIEF,
    BELIEF_THEN,
    COMMUNITY,
    CONVERSATION,
    DOCUMENT,
    ENTITY,
    EPISODE,
    EVENT,
    FACT,
    MEMORY,
    TOPIC,
    Label,
    whole,
)
from reverie.graph.relations import (
    BY_NAME,
    LATEST_BEGUN,
    LATEST_SPOKEN,
    LATEST_VALID,
    NEWEST,
    Order,
    SortKey,
    bounds,
    memory_order,
    order_by,
    page_of,
)
from reverie.graph.store import Graph

LOWEST: dict[str, str] = {
    "createdAt": "-9007199254740991",
    "updatedAt": "-9007199254740991",
    "happenedAt": "-9007199254740991",
    "occurredAt": "-9007199254740991",
    "startedAt": "-9007199254740991",
    "importance": "0.0",
    "form": "''",
    "validFrom": "-9007199254740991",
}
"""Below every value of the property: a range that lets the index serve the order."""
BY_COUNT_ALIAS = "memories"
_COUNTED_BY: dict[str, str] = {
    "Memory": "createdAt",
    "Conversation": "form",
    "Topic": "form",
    "Entity": "form",
    "Fact": "createdAt",
    "Community": "form",
    "Event": "occurredAt",
    "Episode": "startedAt",
    "Belief": "validFrom",
    "Document": "createdAt",
}
"""The column in whose index the members of a label are counted."""
_FROM_MEMORIES = {"Topic": "HAS_TOPIC", "Entity": "MENTIONS", "Conversation": "BELONGS_TO"}


_LATEST_VALID = replace(LATEST_VALID, kept=("$at",))
"""Its cursors keep the instant of the first page, as of which confidence is told on all."""


def _counted(label: Label) -> str:
    """How many memories x has: the degree that Neo4j keeps, unless some expired memory waits to be erased.

    Entities are mentioned by chunks too, which don't count.
    """
    relationship = _FROM_MEMORIES[label.name]
    memory = "(:Memory)" if label is ENTITY else "()"
    return (
        f"CASE WHEN some THEN COUNT {{ (x)<-[:{relationship}]-(m:Memory) WHERE m.expiresAt > $now }} "
        f"ELSE COUNT {{ (x)<-[:{relationship}]-{memory} }} END"
    )


@dataclass(frozen=True, slots=True)
class Listing:
    """One list of the tenant: what is listed, in which order, and by which predicates."""

    label: Label
    order: Order
    where: Where = NOTHING

    @property
    def scope(self) -> str:
        return f"{self.label.name}.{self.order.name}"


def memories(wanted: MemoryFilter | None, order: MemoryOrder | None) -> Listing:
    return Listing(MEMORY, memory_order(order), memory_where(wanted))


def facts(wanted: FactFilter) -> Listing:
    return Listing(FACT, NEWEST, fact_where(wanted))


def conversations(title_contains: str | None, order: NameOrder | None) -> Listing:
    where = (
        NOTHING
        if title_contains is None
        else Where(("x.form CONTAINS $f_part",), (("f_part", part_form(title_contains)),))
    )
    return Listing(CONVERSATION, named_order(order or NameOrder(NameOrderField.UPDATED_AT, True)), where)


def topics(name_starts_with: str | None, order: NameOrder | None) -> Listing:
    return Listing(TOPIC, named_order(order), _starting(name_starts_with))


def entities(type_: str | None, name_starts_with: str | None, order: NameOrder | None) -> Listing:
    starting, typed = _starting(name_starts_with), entity_where(type_)
    where = Where((*starting.predicates, *typed.predicates), (*starting.parameters, *typed.parameters))
    return Listing(ENTITY, named_order(order), where)


def communities(algorithm: str | None) -> Listing:
    where = NOTHING if algorithm is None else Where(("x.algorithm = $f_algorithm",), (("f_algorithm", algorithm),))
    return Listing(COMMUNITY, BY_NAME, where)


def beliefs(wanted: BeliefFilter | None, half_lives: HalfLives) -> Listing:
    """Versions, those that began last first; with an instant asked for, as sure as they were then."""
    label = BELIEF if wanted is None or wanted.as_of is None else BELIEF_THEN
    return Listing(label, _LATEST_VALID, belief_where(wanted, half_lives))


def events(wanted: EventFilter | None) -> Listing:
    return Listing(EVENT, LATEST_SPOKEN, event_where(wanted))


def episodes(wanted: EpisodeFilter | None) -> Listing:
    return Listing(EPISODE, LATEST_BEGUN, episode_where(wanted))


def documents() -> Listing:
    return Listing(DOCUMENT, NEWEST)


def named_order(order: NameOrder | None) -> Order:
    order = order or NameOrder()
    down = order.descending
    column = {
        NameOrderField.NAME: "x.form",
        NameOrderField.CREATED_AT: "x.createdAt",
        NameOrderField.UPDATED_AT: "x.updatedAt",
        NameOrderField.MEMORIES: BY_COUNT_ALIAS,
    }[order.field]
    return Order(f"{order.field}.{'DESC' if down else 'ASC'}", (SortKey(column, down), SortKey("x.id", down)))


def _starting(prefix: str | None) -> Where:
    return (
        NOTHING
        if prefix is None
        else Where(("x.form STARTS WITH $f_prefix",), (("f_prefix", part_form(prefix.lstrip())),))
    )


def _indexed(listing: Listing, column: str, ranges: Sequence[str] = ()) -> str:
    """MATCH and WHERE of a list's members, in the order of the index of one column.

    The index holds nodes that have all of its properties: only predicates over each of them let it be used.
    """
    label = listing.label.name
    predicates = (
        visible(label, "x"),
        f"x.{column} >= {LOWEST[column]}",
        *ranges,
        "x.id > $lowest",
        *listing.where.predicates,
    )
    # memories keep several orders, so the planner is told which index; other labels have one for each order
    return f"MATCH (x:{label}) USING INDEX x:{label}(tenant, {column}, id) WHERE {' AND '.join(predicates)}"


def _from_start(listing: Listing, limits: Sequence[str] = ()) -> str:
    """MATCH and WHERE of a list's members, from where its filter starts."""
    predicates = " AND ".join((visible(listing.label.name, "x"), *listing.where.predicates, *limits))
    return f"{listing.where.start} WITH DISTINCT x WHERE {predicates}"


def _between(order: Order, *, after: bool, before: bool) -> Iterator[str]:
    """The predicates of a span between two keys, in a form that lets an index serve them.

    The whole bound as one OR would keep the index from being used: first the range, then what it leaves.
    """
    first, second = order.keys
    for given, name, against in ((after, "after", False), (before, "before", True)):
        if given:
            sign = "<" if first.descending != against else ">"
            yield (
                f"{first.expression} {sign}= ${name}[0] AND "
                f"({first.expression} {sign} ${name}[0] OR {second.expression} {sign} ${name}[1])"
            )


def _source(listing: Listing, *, after: bool, before: bool) -> str:
    """MATCH and WHERE up to the members of the list that lie between the bounds."""
    limits = bounds(listing.order, after=after, before=before)
    by = listing.order.keys[0].expression
    if by == BY_COUNT_ALIAS:
        counted = f"WITH {SOME_EXPIRED} AS some {_indexed(listing, 'form')} WITH x, {_counted(listing.label)} AS {by}"
        return f"{counted} WHERE {' AND '.join(limits)}" if limits else counted
    if listing.where.start is not None:
        return _from_start(listing, limits)
    return _indexed(listing, by.removeprefix("x."), tuple(_between(listing.order, after=after, before=before)))


@lru_cache(maxsize=4096)
def list_statement(listing: Listing, after: bool, before: bool, backward: bool) -> str:
    """One page of a list: [[row, key], …]."""
    keys, kept = listing.order.keys, listing.order.kept
    leading = "x.tenant DESC, " if keys[0].descending != backward else "x.tenant, "
    by_index = listing.where.start is None and keys[0].expression != BY_COUNT_ALIAS
    return (
        f"{_source(listing, after=after, before=before)} "
        f"WITH * ORDER BY {leading if by_index else ''}{order_by(keys, backward=backward)} LIMIT $limit "
        f"RETURN collect([{listing.label.row('x')}, [{', '.join([*(key.expression for key in keys), *kept])}]])"
    )


@lru_cache(maxsize=4096)
def size_statement(listing: Listing) -> str:
    """How many members a list has."""
    start = listing.where.start
    return f"{_indexed(listing, _COUNTED_BY[listing.label.name]) if start is None else _from_start(listing)} RETURN count(x)"


@whole
async def page(graph: Graph, tenant: str, listing: Listing, args: PageArgs, *, now: int) -> Page[Any]:
    """One page of a list. One statement; BadInput for arguments that can't be."""
    wanted = span(args, tenant, listing.scope)
    shape = Listing(listing.label, listing.order, Where(listing.where.predicates, (), listing.where.start))
    found: Sequence[Any] = await graph.read(
        list_statement(shape, wanted.after is not None, wanted.before is not None, wanted.backward),
        t=tenant,
        now=now,
        at=_instant(wanted, now),
        lowest="",
        limit=wanted.limit + 1,
        after=wanted.after,
        before=wanted.before,
        **listing.where.values(),
    )
    return page_of(tenant, listing.scope, wanted, list(found), lambda row: listing.label.value(row[0]))


def _instant(wanted: Span, now: int) -> int:
    """The instant that the cursor of an earlier page kept, now on the first."""
    name, key = ("after", wanted.after) if wanted.after is not None else ("before", wanted.before)
    if key is None or len(key) <= len(_LATEST_VALID.keys):
        return now
    instant = key[len(_LATEST_VALID.keys)]
    if not isinstance(instant, int):
        raise BadInput(f"{name}: not a cursor of this connection", (name,))
    return instant


async def size(graph: Graph, tenant: str, listing: Listing, *, now: int) -> int:
    """How many members a list has. One statement."""
    shape = Listing(listing.label, listing.order, Where(listing.where.predicates, (), listing.where.start))
    values = listing.where.values()
    return int(await graph.read(size_statement(shape), t=tenant, now=now, at=now, lowest="", **values))
