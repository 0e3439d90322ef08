"""Search: both arms asked at once, fused into one ranking, read page by page."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import orjson

from reverie.domain import policy
from reverie.domain.clock import from_ms, now_ms
from reverie.domain.names import name_forms
from reverie.domain.pages import Edge, PageInfo, decode_cursor, encode_cursor
from reverie.domain.ranking import NAMED, TIMELY, Ranked, favour, fuse, lend
from reverie.domain.search import Candidates, SearchFilter, SearchMode, check_search, happened_at, searched_text
from reverie.domain.text import highlights, query_words
from reverie.domain.times import Month, Span, named_times
from reverie.errors import BadInput, Unavailable, Unsupported
from reverie.graph.search import candidates
from reverie.resources import Resources
from reverie.services.embedding import embed_query


@dataclass(slots=True)
class Hit(Edge[Any]):
    """One hit with how it was found."""

    ranked: Ranked[str]
    words: Sequence[str]

    @property
    def highlights(self) -> list[str]:
        """The words that matched, in their sentence."""
        return highlights(searched_text(self.node), self.words)


@dataclass
class Hits:
    """One page of a ranking."""

    edges: list[Hit]
    has_next: bool
    has_previous: bool

    @property
    def nodes(self) -> list[Any]:
        return [hit.node for hit in self.edges]

    @cached_property
    def page_info(self) -> PageInfo:
        ends = (self.edges[0].cursor, self.edges[-1].cursor) if self.edges else (None, None)
        return PageInfo(self.has_next, self.has_previous, *ends)


async def search(
    resources: Resources,
    tenant: str,
    query: str,
    *,
    mode: SearchMode = SearchMode.HYBRID,
    wanted: SearchFilter | None = None,
    first: int = 10,
    after: str | None = None,
    vector: Sequence[float] | None = None,
) -> Hits:
    """What serves the query best, of at most RANKING_MOST hits; `vector` is the query's, where it is known already.

    Raises Refusals or BadInput for arguments that can't be, Unsupported for SEMANTIC without an embedder, Unavailable
    for SEMANTIC while the embedder fails.
    """
    wanted = wanted or SearchFilter()
    check_search(query, wanted)
    if not 0 <= first <= policy.PAGE_MOST:
        raise BadInput(f"first: must be from 0 to {policy.PAGE_MOST}, not {first}", ("first",))
    if mode is SearchMode.SEMANTIC and resources.embedder is None and vector is None:
        raise Unsupported("mode: SEMANTIC needs an embedder, and this server has none", ("mode",))
    scope = _scope(query, mode, wanted)
    start = 0 if after is None else _rank(tenant, scope, after)
    if vector is None and mode is not SearchMode.KEYWORD:
        vector = await embed_query(resources, query)
        if vector is None and mode is SearchMode.SEMANTIC and query.strip():
            # no hits at all would read as if there were nothing to find
            raise Unavailable("the question could not be embedded, and mode is SEMANTIC: ask again, or by word")
    words, now = query_words(query), now_ms()
    found = await candidates(
        resources.graph,
        tenant,
        await resources.tenant_number(tenant),
        wanted.searched(),
        wanted.memory,
        vector if mode is not SearchMode.KEYWORD else None,
        words if mode is not SearchMode.SEMANTIC else (),
        forms=name_forms(query)[: policy.NAMES_ASKED],
        now=now,
    )
    ranking = rank(found, named_times(query, from_ms(now)))
    hits = [
        Hit(encode_cursor(tenant, scope, (start + place + 1,)), found.found[ranked.item], ranked, words)
        for place, ranked in enumerate(ranking[start : start + first])
    ]
    return Hits(hits, len(ranking) > start + first, start > 0)


def rank(found: Candidates, times: Sequence[Month | Span]) -> list[Ranked[str]]:
    """One ranking of what both arms found: fused, neighbours lending to each other, and then in favour of what mentions
    an entity that the question names, and of what is of a time that it names."""
    factors = {item: NAMED for item in found.naming if item in found.found}
    if times:
        for item, thing in found.found.items():
            moment = happened_at(thing)
            if moment is not None and any(time.covers(moment) for time in times):
                factors[item] = factors.get(item, 1.0) * TIMELY
    return favour(lend(fuse(found.semantic, found.keyword, most=policy.RANKING_MOST), found.places), factors)


def _scope(query: str, mode: SearchMode, wanted: SearchFilter) -> str:
    asked = orjson.dumps([query, mode, asdict(wanted)], option=orjson.OPT_SORT_KEYS)
    return f"search.{hashlib.blake2s(asked, digest_size=8).hexdigest()}"


def _rank(tenant: str, scope: str, after: str) -> int:
    key = decode_cursor(tenant, scope, after, "after")
    if len(key) != 1 or not isinstance(key[0], int):
        raise BadInput("after: not a cursor of this search", ("after",))
    return key[0]
