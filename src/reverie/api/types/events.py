"""Events, as callers see and record them."""

from datetime import datetime

import strawberry
from strawberry import UNSET
from strawberry.scalars import JSON

from reverie.api.types.connections import LazyConversation, LazyEpisode, one
from reverie.api.types.given import given_or_none
from reverie.api.types.nodes import Node
from reverie.domain import events as domain
from reverie.domain.events import EventType

EVENT_TYPE = "What kind of event it is."
CONTENT = "What was said or done: any JSON."
THREAD_ID = "The thread it belongs to, by the caller's own id."
USER_ID = "Whose thread it is, by the caller's own id."
AGENT_ID = "Which agent took part, by the caller's own id."


@strawberry.type(description="Something that was lived, exactly as it was received; it never changes.")
class Event(Node):
    event_type: EventType = strawberry.field(description=EVENT_TYPE)
    content: JSON = strawberry.field(description=CONTENT)
    text: str = strawberry.field(description="The readable part of its content; empty where there is none.")
    thread_id: str = strawberry.field(description=THREAD_ID)
    user_id: str | None = strawberry.field(description=USER_ID)
    agent_id: str | None = strawberry.field(description=AGENT_ID)
    occurred_at: datetime = strawberry.field(description="When it happened, by the caller's clock.")
    recorded_at: datetime = strawberry.field(description="When it was recorded, by the server's clock.")
    episode: LazyEpisode | None = one("Event", "episode", "The episode it is part of.")
    conversation: LazyConversation | None = one("Event", "conversation", "Its thread's conversation.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Event, cls))


@strawberry.input(description="An event to record.")
class EventDraft:
    client_event_id: str | None = strawberry.field(
        default=UNSET, description="The caller's own id of it: sent again, in whatever batch, it is still one event."
    )
    event_type: EventType = strawberry.field(description=EVENT_TYPE)
    content: JSON = strawberry.field(description=f"{CONTENT[:-1]} of at most 100,000 bytes.")
    thread_id: str = strawberry.field(description=THREAD_ID)
    user_id: str | None = strawberry.field(default=UNSET, description=USER_ID)
    agent_id: str | None = strawberry.field(default=UNSET, description=AGENT_ID)
    occurred_at: datetime | None = strawberry.field(
        default=UNSET, description="When it happened; when it is recorded, unless given."
    )

    def to_domain(self) -> domain.EventDraft:
        return domain.EventDraft(
            event_type=self.event_type,
            content=self.content,
            thread_id=self.thread_id,
            client_event_id=given_or_none(self.client_event_id),
            user_id=given_or_none(self.user_id),
            agent_id=given_or_none(self.agent_id),
            occurred_at=given_or_none(self.occurred_at),
        )


@strawberry.input(description="Events to record together, all or none.")
class RecordEventsInput:
    events: list[EventDraft] = strawberry.field(description="At most 1,000.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> list[domain.EventDraft]:
        return [event.to_domain() for event in self.events]
