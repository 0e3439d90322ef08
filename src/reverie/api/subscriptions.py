"""The subscriptions: each follows one use case."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Any

import strawberry
from strawberry import UNSET

from reverie.api.context import Info
from reverie.api.types.beliefs import BeliefChange, ChangeCheckpoint, ChangeGap
from reverie.api.types.dreams import Dream
from reverie.api.types.episodes import Episode
from reverie.api.types.filters import BeliefChangeFilter, EpisodeFilter
from reverie.api.types.given import given_or_none
from reverie.domain.changes import EVERY_CHANGE, check_change_filter, log_position
from reverie.services import dreaming, episodes

BeliefChangeEvent = Annotated[
    BeliefChange | ChangeCheckpoint | ChangeGap,
    strawberry.union("BeliefChangeEvent", description="What a follower of the change log is told."),
]


@strawberry.type(description="What can be followed live.")
class Subscription:
    @strawberry.subscription(
        description="The change log from `after` on, or from now on, each entry once and in order. First comes a "
        "checkpoint, and another when the log moved on without anything for this filter; a gap where the log doesn't "
        "reach back to `after`. Each event's cursor resumes after it, on any server."
    )
    async def belief_changes(
        self,
        info: Info,
        filter: Annotated[
            BeliefChangeFilter | None, strawberry.argument(description="Only changes for which all of this holds.")
        ] = UNSET,
        after: Annotated[
            str | None, strawberry.argument(description="A cursor of an earlier event, or changesCursor.")
        ] = UNSET,
    ) -> AsyncGenerator[BeliefChangeEvent | None, None]:
        wanted = check_change_filter(filter.to_domain()) if filter else EVERY_CHANGE
        position = None if given_or_none(after) is None else log_position(str(after))
        async for event in info.context.follower.subscribe(info.context.tenant, wanted, position):
            yield event  # type: ignore[misc]  # a domain value, known by is_type_of

    @strawberry.subscription(
        description="The episodes that aren't consolidated yet, at most 200, then each whenever its status changes."
    )
    async def episode_changes(
        self,
        info: Info,
        filter: Annotated[
            EpisodeFilter | None, strawberry.argument(description="Only episodes for which all of this holds.")
        ] = UNSET,
    ) -> AsyncGenerator[Episode | None, None]:
        context = info.context
        wanted = filter.to_domain() if filter else None
        async for event in episodes.follow_episodes(context.resources, context.tenant, wanted):
            yield event  # type: ignore[misc]  # a domain value

    @strawberry.subscription(
        description="How far a dream has come, or the tenant's running ones; ends with the dream that was asked for."
    )
    async def dream_progress(
        self,
        info: Info,
        id: Annotated[
            strawberry.ID | None, strawberry.argument(description="The dream; those that run, unless given.")
        ] = UNSET,
    ) -> AsyncGenerator[Dream | None, None]:
        context = info.context
        source: AsyncIterator[Any] = dreaming.follow_dreams(context.resources, context.tenant, given_or_none(id))
        async for event in source:
            yield event
