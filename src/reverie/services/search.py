"""Search: both arms asked at once, fused into one ranking, read page by page."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import orjson

from reverie.domain import policy
from reverie.domain.clock import from_ms, now_ms
from reverie.domain.names import name_forms
from reverie.domain.pages import Edge, PageInfo, decode_cursor, encode_cursor
from reverie.domain.ranking import Ranked, rank
from reverie.domain.search import SearchFilter, SearchMode, check_search, searched_text
from reverie.domain.text import highlights, query_words
from reverie.domain.times import named_times
from reverie.errors import BadInput, Unavailable, Unsupported
from reverie.graph.nodes import nodes_by_id
from reverie.graph.search import Asked, candidates
from reverie.graph.store import Graph
from reverie.resources import Resources
from reverie.services.embedding import embed_query

_READ_BESIDE = 20
"""Candidates of each arm that are read whole beyond the page's end: most that rise onto the page are among them."""


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
    least_sure: float | None = None,
) -> Hits:
    """What serves the query best, of at most RANKING_MOST hits; `vector` is the query's, where it is known already.

    Beliefs that are less sure than `least_sure` are left out.

    Raises Refusals or BadInput for arguments that can't be, Unsupported for SEMANTIC without an embedder, Unavailable
    for SEMANTIC, and for a further page of what was found by meaning, while the embedder fails.
    """
    wanted = wanted or SearchFilter()
    check_search(query, wanted)
    if not 0 <= first <= policy.PAGE_MOST:
        raise BadInput(f"first: must be from 0 to {policy.PAGE_MOST}, not {first}", ("first",))
    if mode is SearchMode.SEMANTIC and resources.embedder is None and vector is None:
        raise Unsupported("mode: SEMANTIC needs an embedder, and this server has none", ("mode",))
    scope = _scope(query, mode, wanted)
    begun = _Begun(0, now_ms(), mode is not SearchMode.KEYWORD) if after is None else _begun(tenant, scope, after)
    if not begun.by_meaning:
        vector = None
    elif vector is None:
        vector = await embed_query(resources, query)
        if vector is None and query.strip() and (mode is SearchMode.SEMANTIC or after is not None):
            # no hits at all would read as if there were nothing to find, and other hits as if they were the next
            asked = "mode is SEMANTIC" if mode is SearchMode.SEMANTIC else "the pages before were found by meaning too"
            raise Unavailable(f"the question could not be embedded, and {asked}: ask again, or by word")
    by_meaning, words, times = vector is not None, query_words(query), named_times(query, from_ms(begun.at))
    start = begun.rank
    looked_for = Asked(
        tenant=tenant,
        number=await resources.tenant_number(tenant),
        kinds=wanted.searched(),
        wanted=wanted.memory,
        vector=vector,
        words=words if mode is not SearchMode.SEMANTIC else (),
        forms=list(islice(name_forms(query), policy.NAMES_ASKED)),
        sure=None if least_sure is None else (least_sure, resources.dreaming.half_lives),
        # a named time is looked for in all of them
        whole=policy.ARM_DEPTH if times else start + first + _READ_BESIDE,
        now=now_ms(),
    )
    found = await candidates(resources.graph, looked_for)
    page = slice(start, start + first)
    ranking, things = await _with_things(resources.graph, looked_for, rank(found, times), page, found.found)
    # where nothing depends on the instant, equal searches have equal cursors
    at = begun.at if times else 0
    hits = [
        Hit(encode_cursor(tenant, scope, (start + place, at, int(by_meaning))), thing, ranked, words)
        for place, (ranked, thing) in enumerate(zip(ranking[page], things, strict=True), start=1)
    ]
    return Hits(hits, len(ranking) > start + first, start > 0)


async def _with_things(
    graph: Graph, asked: Asked, ranking: Sequence[Ranked[str]], page: slice, found: Mapping[str, object]
) -> tuple[Sequence[Ranked[str]], list[object]]:
    """The ranking with the things of one page of it: those that were found whole, and the others, which are read now.

    What went meanwhile is in the ranking no more.
    """
    others: dict[str, object] = {}
    while missing := [one.item for one in ranking[page] if one.item not in found and one.item not in others]:
        others.update(zip(missing, await nodes_by_id(graph, asked.tenant, missing, now=asked.now), strict=True))
        ranking = [one for one in ranking if others.get(one.item, one) is not None]
    return ranking, [others[one.item] if one.item in others else found[one.item] for one in ranking[page]]


class _Begun(NamedTuple):
    """How far a search was read, when its first page was, and whether it goes by meaning: what all its pages share."""

    rank: int
    at: int
    by_meaning: bool


def _scope(query: str, mode: SearchMode, wanted: SearchFilter) -> str:
    asked = orjson.dumps([query, mode, asdict(wanted)], option=orjson.OPT_SORT_KEYS)
    return f"search.{hashlib.blake2s(asked, digest_size=8).hexdigest()}"


def _begun(tenant: str, scope: str, after: str) -> _Begun:
    match decode_cursor(tenant, scope, after, "after"):
        case (int(rank), int(at), 0 | 1 as by_meaning) if 0 <= rank <= policy.RANKING_MOST and 0 <= at <= now_ms():
            return _Begun(rank, at, bool(by_meaning))
    raise BadInput("after: not a cursor of this search", ("after",))
