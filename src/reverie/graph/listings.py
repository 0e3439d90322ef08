"""The tenant's lists, one per label: keyset pages read from the index that keeps their order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reverie.domain.facts import FactFilter
from reverie.domain.memories import MemoryFilter, MemoryOrder
from reverie.domain.names import normal_form
from reverie.domain.pages import Page, PageArgs, span
from reverie.domain.topics import NameOrder, NameOrderField
from reverie.graph.filters import NOTHING, VISIBLE, Where, entity_where, fact_where, memory_where
from reverie.graph.records import COMMUNITY, CONVERSATION, ENTITY, FACT, MEMORY, TOPIC, Label
from reverie.graph.relations import BY_NAME, NEWEST, Order, SortKey, bounds, memory_order, order_by, page_of
from reverie.graph.store import Graph

LOWEST: dict[str, str] = {
    "createdAt": "-9007199254740991",
    "updatedAt": "-9007199254740991",
    "happenedAt": "-9007199254740991",
    "importance": "0.0",
    "form": "''",
}
"""Below every value of the property: a range that lets the index serve the order."""
BY_COUNT_ALIAS = "memories"
_COUNTED = {
    "Topic": "COUNT { (x)<-[:HAS_TOPIC]-() }",
    "Entity": "COUNT { (x)<-[:MENTIONS]-() }",
    "Conversation": "COUNT { (x)<-[:BELONGS_TO]-() }",
}


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
        else Where(("x.form CONTAINS $f_part",), (("f_part", normal_form(title_contains)),))
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
    return NOTHING if prefix is None else Where(("x.form STARTS WITH $f_prefix",), (("f_prefix", normal_form(prefix)),))


def _source(listing: Listing, *, after: bool, before: bool, backward: bool) -> str:
    """MATCH and WHERE up to the members of the list that lie between the bounds, in a form the index serves."""
    label, keys = listing.label.name, listing.order.keys
    visible = VISIBLE.format(x="x") if listing.label is MEMORY else "x.tenant = $t"
    limits = bounds(listing.order, after=after, before=before)
    if keys[0].expression == BY_COUNT_ALIAS:
        predicates = " AND ".join((visible, *listing.where.predicates))
        counted = f"MATCH (x:{label}) WHERE {predicates} WITH x, {_COUNTED[label]} AS {BY_COUNT_ALIAS}"
        return f"{counted} WHERE {' AND '.join(limits)}" if limits else counted
    if listing.where.start is not None:
        predicates = " AND ".join((visible, *listing.where.predicates, *limits))
        return (
            f"{listing.where.start} WHERE {predicates}"
            if "WITH DISTINCT" in listing.where.start
            else f"{listing.where.start} WITH x WHERE {predicates}"
        )
    column = keys[0].expression.removeprefix("x.")
    ranges = [f"{keys[0].expression} >= {LOWEST[column]}"]
    for given, name, against in ((after, "after", False), (before, "before", True)):
        if given:
            # the whole bound as OR would keep the index from being used: first the range, then what it leaves
            sign = "<" if keys[0].descending != against else ">"
            ranges.append(
                f"{keys[0].expression} {sign}= ${name}[0] AND ({keys[0].expression} {sign} ${name}[0] OR {keys[1].expression} {sign} ${name}[1])"
            )
    # memories keep several orders, so the planner is told which index; other labels have one for each order
    hint = f" USING INDEX x:{label}(tenant, {column}, id)"
    return (
        f"MATCH (x:{label}){hint} WHERE {' AND '.join((visible, *ranges, 'x.id > $lowest', *listing.where.predicates))}"
    )


@lru_cache(maxsize=4096)
def list_statement(listing: Listing, after: bool, before: bool, backward: bool) -> str:
    """One page of a list: [[row, key], …]."""
    keys = listing.order.keys
    leading = "x.tenant DESC, " if keys[0].descending != backward else "x.tenant, "
    by_index = listing.where.start is None and keys[0].expression != BY_COUNT_ALIAS
    return (
        f"{_source(listing, after=after, before=before, backward=backward)} "
        f"WITH * ORDER BY {leading if by_index else ''}{order_by(keys, backward=backward)} LIMIT $limit "
        f"RETURN collect([{listing.label.row('x')}, [{', '.join(key.expression for key in keys)}]])"
    )


@lru_cache(maxsize=4096)
def size_statement(listing: Listing) -> str:
    """How many members a list has."""
    visible = VISIBLE.format(x="x") if listing.label is MEMORY else "x.tenant = $t"
    source = listing.where.start or f"MATCH (x:{listing.label.name})"
    return f"{source} WITH x WHERE {' AND '.join((visible, *listing.where.predicates))} RETURN count(x)"


async def page(graph: Graph, tenant: str, listing: Listing, args: PageArgs, *, now: int) -> Page[Any]:
    """One page of a list. One statement; BadInput for arguments that can't be."""
    wanted = span(args, tenant, listing.scope)
    shape = Listing(listing.label, listing.order, Where(listing.where.predicates, (), listing.where.start))
    found: Sequence[Any] = await graph.read(
        list_statement(shape, wanted.after is not None, wanted.before is not None, wanted.backward),
        t=tenant,
        now=now,
        limit=wanted.limit + 1,
        after=wanted.after,
        before=wanted.before,
        lowest="",
        **listing.where.values(),
    )
    return page_of(tenant, listing.scope, wanted, list(found), lambda row: listing.label.value(row[0]))


async def size(graph: Graph, tenant: str, listing: Listing, *, now: int) -> int:
    """How many members a list has. One statement."""
    shape = Listing(listing.label, listing.order, Where(listing.where.predicates, (), listing.where.start))
    return int(await graph.read(size_statement(shape), t=tenant, now=now, **listing.where.values()))
