"""Search, as callers see it."""

from typing import Annotated

import strawberry

from reverie.api.types.beliefs import Belief
from reverie.api.types.connections import PageInfo
from reverie.api.types.conversations import Conversation
from reverie.api.types.documents import Chunk
from reverie.api.types.entities import Entity
from reverie.api.types.episodes import Episode
from reverie.api.types.facts import Fact
from reverie.api.types.memories import Memory
from reverie.api.types.topics import Topic
from reverie.services.search import Hit

SearchResult = Annotated[
    Memory | Belief | Fact | Entity | Topic | Conversation | Episode | Chunk,
    strawberry.union("SearchResult", description="Anything that a search can find."),
]


def _score(root: strawberry.Parent[Hit]) -> float:
    return root.ranked.score


def _semantic_rank(root: strawberry.Parent[Hit]) -> int | None:
    return root.ranked.semantic_rank


def _semantic_score(root: strawberry.Parent[Hit]) -> float | None:
    return root.ranked.semantic_score


def _keyword_rank(root: strawberry.Parent[Hit]) -> int | None:
    return root.ranked.keyword_rank


def _keyword_score(root: strawberry.Parent[Hit]) -> float | None:
    return root.ranked.keyword_score


@strawberry.type(description="One hit, with how it was found.")
class SearchEdge:
    cursor: str = strawberry.field(description="Leads on from this hit: pass it to after.")
    node: SearchResult = strawberry.field(description="What was found.")
    score: float = strawberry.field(
        resolver=_score, description="The fused score, by which hits are sorted; comparable within one answer only."
    )
    semantic_rank: int | None = strawberry.field(
        resolver=_semantic_rank, description="Its rank by meaning, 1 the best; null: not among those candidates."
    )
    semantic_score: float | None = strawberry.field(
        resolver=_semantic_score, description="Its cosine similarity to the query, brought from -1…1 to 0…1."
    )
    keyword_rank: int | None = strawberry.field(
        resolver=_keyword_rank, description="Its rank by word, 1 the best; null: not among those candidates."
    )
    keyword_score: float | None = strawberry.field(resolver=_keyword_score, description="Its BM25 score by word.")
    highlights: list[str] = strawberry.field(description="The words that matched, in their sentence; plain text.")


@strawberry.type(description="One page of a search's ranking of at most 200 hits.")
class SearchConnection:
    edges: list[SearchEdge] = strawberry.field(description="The hits, best first.")
    nodes: list[SearchResult] = strawberry.field(description="What was found, best first.")
    page_info: PageInfo = strawberry.field(description="Where this page lies.")
