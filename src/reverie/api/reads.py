"""Reads that need no decision: pages along the graph's relations, and the tenant's lists."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reverie.api.context import Context
from reverie.domain.beliefs import Belief, BeliefFilter, check_belief_filter
from reverie.domain.changes import BeliefChange, BeliefChangeFilter, LogHead, check_change_filter, log_position
from reverie.domain.episodes import EpisodeFilter
from reverie.domain.events import EventFilter, check_event_filter
from reverie.domain.facts import FactFilter, check_fact_filter
from reverie.domain.maps import Graph, MapQuery, check_map_query
from reverie.domain.memories import MemoryFilter, MemoryOrder, check_memory_filter
from reverie.domain.pages import Edge, Page, PageArgs, PageInfo, span
from reverie.domain.topics import NameOrder
from reverie.errors import CursorExpired
from reverie.graph import beliefs as belief_graph
from reverie.graph import changes, conversations, entities, listings, maps, topics
from reverie.graph.filters import NOTHING, Where, belief_where, entity_where, memory_where
from reverie.graph.listings import Listing
from reverie.graph.records import BELIEF_THEN
from reverie.graph.relations import TABLE, Order, Relation, Wanted, memory_order


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of the change log, whose cursors are the log's."""

    nodes: Sequence[BeliefChange]
    edges: Sequence[Edge[BeliefChange]]
    page_info: PageInfo


@dataclass
class Connected:
    """A page with the way to count the whole of which it is a part."""

    page: Page[Any] | LogPage
    count: Callable[[], Awaitable[int]]

    @property
    def edges(self) -> Sequence[Any]:
        return self.page.edges

    @property
    def nodes(self) -> Sequence[Any]:
        return self.page.nodes

    @property
    def page_info(self) -> Any:
        return self.page.page_info


async def related_page(context: Context, owner: str, name: str, node_id: str, args: PageArgs) -> Connected:
    """One page of a relation, in its own order."""
    relation = TABLE[(owner, name)]
    return await _page(context, relation, relation.order, NOTHING, node_id, args)


async def related_memories_page(
    context: Context,
    owner: str,
    node_id: str,
    args: PageArgs,
    wanted: MemoryFilter | None,
    order: MemoryOrder | None,
) -> Connected:
    """One page of a relation's memories, filtered and sorted."""
    if wanted is not None:
        check_memory_filter(wanted)
    return await _page(context, TABLE[(owner, "memories")], memory_order(order), memory_where(wanted), node_id, args)


async def related_entities_page(
    context: Context, owner: str, node_id: str, args: PageArgs, type_: str | None
) -> Connected:
    """One page of a relation's entities, of one type where asked."""
    relation = TABLE[(owner, "entities")]
    return await _page(context, relation, relation.order, entity_where(type_), node_id, args)


async def related_beliefs_page(
    context: Context, owner: str, node_id: str, args: PageArgs, wanted: BeliefFilter | None
) -> Connected:
    """One page of a relation's beliefs, filtered as the tenant's list is."""
    relation = TABLE[(owner, "beliefs")]
    if wanted is not None:
        check_belief_filter(wanted)
    where = belief_where(wanted, context.resources.dreaming.half_lives)
    if wanted is None or wanted.as_of is None:
        return await _page(context, relation, relation.order, where, node_id, args)
    then = replace(relation, steps=(*relation.steps[:-1], replace(relation.steps[-1], to=BELIEF_THEN)))
    return _as_of(await _page(context, then, relation.order, where, node_id, args), wanted.as_of)


def _as_of(found: Connected, moment: datetime) -> Connected:
    """The same beliefs, told as of an instant."""
    return Connected(replace(found.page, nodes=[replace(one, as_of=moment) for one in found.nodes]), found.count)


async def _page(
    context: Context, relation: Relation, order: Order, where: Where, node_id: str, args: PageArgs
) -> Connected:
    loaders = context.loaders
    wanted = Wanted(span(args, context.tenant, f"{relation.scope}.{order.name}"), order, where)
    page = await loaders.page(relation, wanted, node_id)
    return Connected(page, lambda: loaders.count(relation, where, node_id))


async def related_one(context: Context, owner: str, name: str, node_id: str) -> Any:
    """The one member of a relation, None where there is none."""
    return await context.loaders.one(TABLE[(owner, name)], node_id)


async def listed(context: Context, listing: Listing, args: PageArgs) -> Connected:
    """One page of a list of the tenant."""
    loaders = context.loaders
    page = await listings.page(loaders.graph, context.tenant, listing, args, now=loaders.now)
    return Connected(page, lambda: listings.size(loaders.graph, context.tenant, listing, now=loaders.now))


async def memories(
    context: Context, wanted: MemoryFilter | None, order: MemoryOrder | None, args: PageArgs
) -> Connected:
    if wanted is not None:
        check_memory_filter(wanted)
    return await listed(context, listings.memories(wanted, order), args)


async def conversations_titled(
    context: Context, title_contains: str | None, order: NameOrder | None, args: PageArgs
) -> Connected:
    return await listed(context, listings.conversations(title_contains, order), args)


async def topics_named(
    context: Context, name_starts_with: str | None, order: NameOrder | None, args: PageArgs
) -> Connected:
    return await listed(context, listings.topics(name_starts_with, order), args)


async def entities_named(
    context: Context, type_: str | None, name_starts_with: str | None, order: NameOrder | None, args: PageArgs
) -> Connected:
    return await listed(context, listings.entities(type_, name_starts_with, order), args)


async def documents(context: Context, args: PageArgs) -> Connected:
    return await listed(context, listings.documents(), args)


async def facts(context: Context, wanted: FactFilter, args: PageArgs) -> Connected:
    return await listed(context, listings.facts(check_fact_filter(wanted)), args)


async def events(context: Context, wanted: EventFilter | None, args: PageArgs) -> Connected:
    if wanted is not None:
        check_event_filter(wanted)
    return await listed(context, listings.events(wanted), args)


async def episodes(context: Context, wanted: EpisodeFilter | None, args: PageArgs) -> Connected:
    return await listed(context, listings.episodes(wanted), args)


async def communities(context: Context, algorithm: str | None, args: PageArgs) -> Connected:
    return await listed(context, listings.communities(algorithm), args)


async def beliefs(context: Context, wanted: BeliefFilter | None, args: PageArgs) -> Connected:
    if wanted is not None:
        check_belief_filter(wanted)
    listing = listings.beliefs(wanted, context.resources.dreaming.half_lives)
    found = await listed(context, listing, args)
    if wanted is None or wanted.as_of is None:
        return found
    return _as_of(found, wanted.as_of)


async def current_belief(context: Context, subject: str, key: str) -> Belief | None:
    """The version of a subject's key that is ACTIVE."""
    return await belief_graph.current_belief(context.loaders.graph, context.tenant, subject, key)


async def belief_changes(
    context: Context, wanted: BeliefChangeFilter, first: int | None, after: str | None
) -> Connected:
    """Entries of the log that pass a filter, oldest first. Raises CursorExpired where `after` is out of its reach."""
    limit = span(PageArgs(first), context.tenant, "").limit
    graph, tenant = context.loaders.graph, context.tenant
    check_change_filter(wanted)
    head = await _log_head(context)
    start = head.position.at(head.floor) if after is None else log_position(after)
    if not head.reaches(start):
        raise CursorExpired("after: the log doesn't reach back to this cursor", ("after",))
    found = await changes.find_changes(graph, tenant, wanted, start.number, limit + 1)
    more, found = len(found) > limit, found[:limit]
    edges = [Edge(head.position.at(change.number).cursor, change) for change in found]
    ends = (edges[0].cursor, edges[-1].cursor) if edges else (None, None)
    info = PageInfo(has_next_page=more, has_previous_page=after is not None, start_cursor=ends[0], end_cursor=ends[1])
    page = LogPage(found, edges, info)
    return Connected(page, lambda: changes.count_changes(graph, tenant, wanted, head.floor))


async def changes_cursor(context: Context) -> str:
    """The cursor of where the log ends now."""
    return (await _log_head(context)).position.cursor


async def _log_head(context: Context) -> LogHead:
    number = await context.resources.tenant_number(context.tenant)
    return await changes.log_head(context.loaders.graph, context.tenant, number)


async def conversation_id(context: Context, thread: str) -> str | None:
    """The id of a thread's conversation."""
    return await conversations.conversation_by_thread(context.loaders.graph, context.tenant, thread)


async def topic_id(context: Context, name: str) -> str | None:
    """The id of the topic that has a name."""
    return await topics.topic_by_name(context.loaders.graph, context.tenant, name)


async def entity_ids(context: Context, name: str, type_: str | None) -> list[str]:
    """The ids of the entities that have a name."""
    return await entities.entities_by_name(context.loaders.graph, context.tenant, name, type_)


async def graph(context: Context, wanted: MapQuery) -> Graph:
    """A part of the tenant's graph, to be drawn."""
    loaders = context.loaders
    return await maps.read_map(loaders.graph, context.tenant, check_map_query(wanted), now=loaders.now)
