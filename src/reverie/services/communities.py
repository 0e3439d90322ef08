"""Communities: found on request, and by the worker where a tenant's topics changed enough."""

import asyncio
import logging

from anyio import to_process

from reverie.domain.clock import now_ms
from reverie.domain.communities import (
    Community,
    Detection,
    Edge,
    changed_enough,
    check_detection,
    detect,
    named_groups,
    strongest,
)
from reverie.domain.policy import RELATED_TOPICS_MOST
from reverie.errors import Refusals, ReverieError, TooLarge
from reverie.graph import communities
from reverie.graph.commits import JOINED_MOST
from reverie.graph.communities import Found
from reverie.graph.nodes import nodes_by_id
from reverie.resources import Resources
from reverie.services.writing import write

log = logging.getLogger("reverie.communities")


async def detect_communities(resources: Resources, tenant: str, wanted: Detection) -> list[Community]:
    """Finds a tenant's communities anew, by one algorithm, and relates the topics that occur together.

    Those that the algorithm had found before are replaced all at once; the largest come first. Refusals where it takes
    longer than it may.
    """
    check_detection(wanted)
    graph, now = resources.graph, now_ms()
    number = await communities.begin_detection(graph, tenant, wanted.algorithm)
    topics = await communities.topics_by_size(graph, tenant)
    edges = await communities.co_occurrences(graph, tenant, topics, now)
    groups = await _detected(resources, edges, wanted)
    names = {topic.id: topic.name for topic in topics}
    found = Found(wanted, number, named_groups(groups, edges, names, {topic.id: topic.memories for topic in topics}))
    # many nodes and edges: it doesn't make small writes wait for it
    done = await write(
        resources, tenant, "detectCommunities", communities.replace_communities, found, None, weight=JOINED_MOST
    )
    await communities.relate_topics(graph, tenant, topics, strongest(edges, RELATED_TOPICS_MOST))
    await communities.note_counts(graph, tenant)
    # one that another detection has replaced meanwhile is left out
    read = await nodes_by_id(graph, tenant, done["communities"], now=now)
    return sorted(
        (one for one in read if isinstance(one, Community)), key=lambda one: (-one.size, one.name.casefold(), one.id)
    )


async def _detected(resources: Resources, edges: list[Edge], wanted: Detection) -> list[list[str]]:
    """The groups, found in a process of their own, one detection at a time; Refusals where it takes too long."""
    if not edges:
        return []
    async with resources.detecting:
        try:
            async with asyncio.timeout(resources.detection_limit):
                return await to_process.run_sync(detect, edges, wanted, cancellable=True)
        except TimeoutError:
            message = f"could not be done with {len(edges)} pairs of topics in {resources.detection_limit:g} seconds"
            raise Refusals([TooLarge(message, ("algorithm",))]) from None


async def look_through(resources: Resources) -> None:
    """Looks at every tenant: notes how connected its topics and entities are, and finds its communities anew where
    its topics changed enough. Of several workers one does it for each tenant."""
    graph = resources.graph
    pause = round(resources.communities_interval * 1000)
    async for tenant in communities.tenants(graph):
        # whatever goes wrong for one tenant, the next one has its turn
        try:
            if await communities.take_turn(graph, tenant, now_ms(), pause // 2):
                await _look_at(resources, tenant)
        except ReverieError as error:
            log.warning("communities of a tenant could not be looked at: %s", error)
        except Exception:
            log.exception("communities of a tenant could not be looked at")


async def _look_at(resources: Resources, tenant: str) -> None:
    graph = resources.graph
    await communities.weigh(graph, tenant)
    if not changed_enough(*await communities.changed_links(graph, tenant)):
        return
    for wanted in await communities.detections(graph, tenant):
        try:
            await detect_communities(resources, tenant, wanted)
        except Refusals as error:
            log.warning("communities could not be found by %s: %s", wanted.algorithm, error)
            # it would be no quicker the next time
            await communities.note_counts(graph, tenant)
