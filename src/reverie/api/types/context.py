"""Context for a prompt, as callers see it."""

import strawberry
from strawberry import UNSET

from reverie.api.types.beliefs import Belief
from reverie.api.types.documents import Chunk
from reverie.api.types.episodes import Episode
from reverie.api.types.given import given_or, given_or_none
from reverie.api.types.memories import Memory
from reverie.domain import beliefs, context, documents, episodes, memories
from reverie.domain.context import ContextItem, ContextRequest
from reverie.domain.search import SearchKind

SCORE = "Its fused score; comparable within one answer only."


def _belief(root: strawberry.Parent[ContextItem]) -> Belief:
    return root.thing  # type: ignore[no-any-return]  # a domain value


def _episode(root: strawberry.Parent[ContextItem]) -> Episode:
    return root.thing  # type: ignore[no-any-return]  # as above


def _memory(root: strawberry.Parent[ContextItem]) -> Memory:
    return root.thing  # type: ignore[no-any-return]  # as above


@strawberry.type(description="A belief that the context's text has.")
class ContextBelief:
    score: float = strawberry.field(description=SCORE)
    belief: Belief = strawberry.field(resolver=_belief, description="The belief.")


@strawberry.type(description="An episode that the context's text has.")
class ContextEpisode:
    score: float = strawberry.field(description=SCORE)
    episode: Episode = strawberry.field(resolver=_episode, description="The episode.")


@strawberry.type(description="A memory that the context's text has.")
class ContextMemory:
    score: float = strawberry.field(description=SCORE)
    memory: Memory = strawberry.field(resolver=_memory, description="The memory.")


def _chunk(root: strawberry.Parent[ContextItem]) -> Chunk:
    return root.thing  # type: ignore[no-any-return]  # as above


@strawberry.type(description="A passage of a document that the context's text has.")
class ContextChunk:
    score: float = strawberry.field(description=SCORE)
    chunk: Chunk = strawberry.field(resolver=_chunk, description="The passage.")


def _beliefs(root: strawberry.Parent[context.Context]) -> list[ContextBelief]:
    return root.of(beliefs.Belief)  # type: ignore[return-value]  # items with domain values


def _episodes(root: strawberry.Parent[context.Context]) -> list[ContextEpisode]:
    return root.of(episodes.Episode)  # type: ignore[return-value]  # as above


def _memories(root: strawberry.Parent[context.Context]) -> list[ContextMemory]:
    return root.of(memories.Memory)  # type: ignore[return-value]  # as above


def _chunks(root: strawberry.Parent[context.Context]) -> list[ContextChunk]:
    return root.of(documents.Chunk)  # type: ignore[return-value]  # as above


@strawberry.type(description="What of the memory serves a question, ready for a prompt.")
class Context:
    text: str = strawberry.field(
        description="Prompt-ready: memory fenced as data, each line with its source mark; empty where nothing serves."
    )
    token_count: int = strawberry.field(description="The tokens of the text, by the o200k vocabulary.")
    truncated: bool = strawberry.field(description="Whether something relevant did not fit tokenBudget.")
    beliefs: list[ContextBelief] = strawberry.field(resolver=_beliefs, description="The beliefs in it, best first.")
    episodes: list[ContextEpisode] = strawberry.field(resolver=_episodes, description="The episodes in it, best first.")
    memories: list[ContextMemory] = strawberry.field(resolver=_memories, description="The memories in it, best first.")
    chunks: list[ContextChunk] = strawberry.field(resolver=_chunks, description="The passages in it, best first.")


@strawberry.input(description="What a context is for.")
class ContextInput:
    query: str = strawberry.field(description="What is asked, in any words.")
    subject_id: str | None = strawberry.field(
        default=UNSET, description="Only what belongs to this subject; all of the tenant unless given."
    )
    thread_id: str | None = strawberry.field(
        default=UNSET, description="The thread that the context is for: its own latest episode is added."
    )
    token_budget: int | None = strawberry.field(default=2_000, description="At most so many tokens of text.")
    min_confidence: float | None = strawberry.field(
        default=0.3, description="Only beliefs at least this sure as of now, 0 to 1."
    )
    kinds: list[SearchKind] | None = strawberry.field(
        default=UNSET, description="Only these kinds, of BELIEF, EPISODE, MEMORY and CHUNK; all of them unless given."
    )

    def to_domain(self) -> ContextRequest:
        kinds = given_or_none(self.kinds)
        return ContextRequest(
            query=self.query,
            subject_id=given_or_none(self.subject_id),
            thread_id=given_or_none(self.thread_id),
            token_budget=given_or(self.token_budget, 2_000),
            min_confidence=given_or(self.min_confidence, 0.3),
            kinds=None if kinds is None else tuple(kinds),
        )
