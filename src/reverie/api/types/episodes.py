"""Episodes, as callers see and close them."""

from datetime import datetime

import strawberry
from strawberry import UNSET

from reverie.api.types.connections import BeliefConnection, EventConnection, LazyConversation, one, related
from reverie.api.types.given import given_or_none
from reverie.api.types.nodes import Node
from reverie.domain import episodes as domain
from reverie.domain.episodes import ConsolidationStatus, EpisodeOutcome


@strawberry.type(description="A run of one thread's events without a long pause.")
class Episode(Node):
    thread_id: str = strawberry.field(description="Its thread, by the caller's own id.")
    user_id: str | None = strawberry.field(description="Its events' one user; null where there are several, or none.")
    agent_id: str | None = strawberry.field(description="Its events' one agent; null where there are several, or none.")
    summary: str | None = strawberry.field(
        description="What it was about; null until it is closed, and where nothing in it can be read."
    )
    tags: list[str] = strawberry.field(description="A few telling words; none until it is closed.")
    outcome: EpisodeOutcome | None = strawberry.field(description="How it went; null until it is closed.")
    consolidation_status: ConsolidationStatus = strawberry.field(
        description="How far learning from it has come, OPEN while it grows."
    )
    started_at: datetime = strawberry.field(description="When its first event happened.")
    ended_at: datetime | None = strawberry.field(description="When its last event happened; null until it is closed.")
    attempts: int = strawberry.field(description="How often the worker took it.")
    failure: str | None = strawberry.field(description="Why the last attempt failed.")
    conversation: LazyConversation | None = one("Episode", "conversation", "Its thread's conversation.")
    events: EventConnection = related("Episode", "events", "Its events, in the order in which they happened.")

    beliefs: BeliefConnection = related(
        "Episode", "beliefs", "The beliefs learned or strengthened in it, those that began last first."
    )

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Episode, cls))


@strawberry.input(description="An episode to close: by its id, or as the open one of its thread that began last.")
class CloseEpisodeInput:
    id: strawberry.ID | None = strawberry.field(default=UNSET, description="The episode.")
    thread_id: str | None = strawberry.field(default=UNSET, description="Its thread, instead of its id.")
    outcome: EpisodeOutcome | None = strawberry.field(
        default=UNSET, description="How it went; told from its last words unless given."
    )
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.EpisodeClosing:
        return domain.EpisodeClosing(given_or_none(self.id), given_or_none(self.thread_id), given_or_none(self.outcome))


@strawberry.input(description="A failed episode to try again.")
class RetryEpisodeInput:
    id: strawberry.ID = strawberry.field(description="The episode.")
