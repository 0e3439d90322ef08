"""Search: both arms asked at once, fused into one ranking, read page by page."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import orjson

from reverie.domain import policy
from reverie.domain.clock import now_ms
from reverie.domain.pages import Edge, PageInfo, decode_cursor, encode_cursor
from reverie.domain.ranking import Ranked, fuse, lend
from reverie.domain.search import SearchFilter, SearchMode, check_search, searched_text
from reverie.domain.text import highlights, query_words
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
    words = query_words(query)
    found = await candidates(
        resources.graph,
        tenant,
        await resources.tenant_number(tenant),
        wanted.searched(),
        wanted.memory,
        vector if mode is not SearchMode.KEYWORD else None,
        words if mode is not SearchMode.SEMANTIC else (),
        now=now_ms(),
    )
    ranking = lend(fuse(found.semantic, found.keyword, most=policy.RANKING_MOST), found.places)
    hits = [
        Hit(encode_cursor(tenant, scope, (start + place + 1,)), found.found[ranked.item], ranked, words)
        for place, ranked in enumerate(ranking[start : start + first])
    ]
    return Hits(hits, len(ranking) > start + first, start > 0)


def _scope(query: str, mode: SearchMode, wanted: SearchFilter) -> str:
    asked = orjson.dumps([query, mode, asdict(wanted)], option=orjson.OPT_SORT_KEYS)
    return f"search.{hashlib.blake2s(asked, digest_size=8).hexdigest()}"


def _rank(tenant: str, scope: str, after: str) -> int:
    key = decode_cursor(tenant, scope, after, "after")
    if len(key) != 1 or not isinstance(key[0], int):
        raise BadInput("after: not a cursor of this search", ("after",))
    return key[0]
