"""Context: what of the memory serves a question, ready for a prompt."""

import asyncio
from collections.abc import Iterable

from reverie.ai.tokens import count_tokens
from reverie.domain import policy
from reverie.domain.beliefs import Belief
from reverie.domain.clock import from_ms, now_ms
from reverie.domain.context import Context, ContextItem, ContextRequest, check_context, compose
from reverie.domain.memories import MemoryFilter
from reverie.domain.search import SearchFilter, SearchKind, SearchMode
from reverie.graph.episodes import latest_of_thread
from reverie.resources import Resources
from reverie.services.embedding import embed_query
from reverie.services.search import Hit, search


async def context(resources: Resources, tenant: str, request: ContextRequest) -> Context:
    """What serves the question best within the budget. Raises Refusals for a request that can't be."""
    check_context(request)
    wanted = request.wanted()
    vector = await embed_query(resources, request.query)
    mode = SearchMode.KEYWORD if vector is None else SearchMode.HYBRID
    rankings = await asyncio.gather(
        *(
            search(
                resources,
                tenant,
                request.query,
                mode=mode,
                wanted=looked,
                first=policy.PAGE_MOST,
                vector=vector,
                least_sure=request.min_confidence,
            )
            for looked in _searches(request, wanted)
        )
    )
    hits = [hit for hits in rankings for hit in hits.edges]
    items = _believed(resources, hits, request.min_confidence)
    if request.thread_id is not None and SearchKind.EPISODE in wanted:
        latest = await latest_of_thread(resources.graph, tenant, request.thread_id, request.subject_id)
        if latest is not None:
            best = max((item.score for item in items), default=1.0)
            items = [ContextItem(latest, best), *(item for item in items if item.thing.id != latest.id)]
    items.sort(key=lambda item: -item.score)
    # counting the tokens of many long texts takes its time, which others' requests needn't wait for
    return await asyncio.to_thread(compose, items, request.token_budget, count_tokens)


def _searches(request: ContextRequest, wanted: tuple[SearchKind, ...]) -> Iterable[SearchFilter]:
    """What is searched: all at once, or, of one subject, its episodes apart, which know it as their user."""
    if request.subject_id is None:
        kinds = {wanted: MemoryFilter()}
    else:
        kinds = {
            tuple(kind for kind in wanted if kind is not SearchKind.EPISODE): MemoryFilter(
                subject_id=request.subject_id
            ),
            tuple(kind for kind in wanted if kind is SearchKind.EPISODE): MemoryFilter(user_id=request.subject_id),
        }
    return [SearchFilter(kinds=some, memory=filter_) for some, filter_ in kinds.items() if some]


def _believed(resources: Resources, hits: Iterable[Hit], least: float) -> list[ContextItem]:
    """The hits but for beliefs that are less sure than that by now."""
    now = from_ms(now_ms())
    items = []
    for hit in hits:
        sure = None
        if isinstance(hit.node, Belief):
            sure = hit.node.confidence(now, resources.dreaming.half_lives)
            if sure < least:
                continue
        items.append(ContextItem(hit.node, hit.ranked.score, sure))
    return items
