"""Conversations, as callers see and write them."""

from datetime import datetime

import strawberry
from strawberry import UNSET

from reverie.api.types.connections import (
    EpisodeConnection,
    EventConnection,
    MemoryConnection,
    TopicConnection,
    related,
    related_memories,
)
from reverie.api.types.given import given_or_none
from reverie.api.types.nodes import Node
from reverie.domain import conversations as domain

TITLE = "What it is called: 1 to 500 characters."


@strawberry.type(description="A thread that memories and events belong to.")
class Conversation(Node):
    title: str = strawberry.field(description="What it is called.")
    thread_id: str = strawberry.field(
        description="Its thread, by the caller's own id; its own id where none was given."
    )
    created_at: datetime = strawberry.field(description="When it was made.")
    updated_at: datetime = strawberry.field(description="When the last memory or event was added.")
    memories: MemoryConnection = related_memories("Conversation", "Its memories.")
    topics: TopicConnection = related("Conversation", "topics", "The topics of its memories, by name.")
    events: EventConnection = related("Conversation", "events", "Its events, in the order in which they happened.")
    episodes: EpisodeConnection = related("Conversation", "episodes", "Its episodes, in the order in which they began.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Conversation, cls))


@strawberry.input(description="A conversation to make.")
class CreateConversationInput:
    title: str = strawberry.field(description=TITLE)
    thread_id: str | None = strawberry.field(default=UNSET, description="Its thread; a thread has one conversation.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.ConversationDraft:
        return domain.ConversationDraft(self.title, given_or_none(self.thread_id))


@strawberry.input(description="A conversation's new title.")
class UpdateConversationInput:
    id: strawberry.ID = strawberry.field(description="The conversation.")
    title: str = strawberry.field(description=TITLE)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")


@strawberry.input(description="A conversation to delete.")
class DeleteConversationInput:
    id: strawberry.ID = strawberry.field(description="The conversation.")
    delete_memories: bool | None = strawberry.field(
        default=False, description="Delete its memories too; otherwise they stay, without a conversation."
    )
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")
