"""Dreams, as callers start and watch them."""

from datetime import datetime

import strawberry
from strawberry import UNSET

from reverie.domain import dreaming as domain


@strawberry.type(description="A run over pending episodes.")
class Dream:
    id: strawberry.ID = strawberry.field(description="Its id.")
    episodes: int = strawberry.field(description="How many episodes it has.")
    done: int = strawberry.field(description="How many of them are consolidated.")
    failed: int = strawberry.field(description="How many of them failed.")
    beliefs_changed: int = strawberry.field(description="How many entries of the change log it made.")
    started_at: datetime = strawberry.field(description="When it began.")
    finished_at: datetime | None = strawberry.field(description="When all of it was done or failed; null until then.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Dream, cls))


@strawberry.input(description="What is to be dreamed.")
class DreamInput:
    episode_ids: list[strawberry.ID] | None = strawberry.field(
        default=UNSET, description="These episodes; all that are pending unless given."
    )
    wait: bool | None = strawberry.field(default=False, description="Answer when it is done, not at once.")


@strawberry.input(description="Whom to forget.")
class ForgetSubjectInput:
    subject_id: str = strawberry.field(
        description="The subject: a userId of events, a subjectId of beliefs and memories."
    )
