"""Filters and orders, as callers write them."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import strawberry
from strawberry import UNSET

from reverie.api.types.enums import OrderDirection
from reverie.api.types.given import given_or_none
from reverie.domain import beliefs, changes, episodes, events, memories, search, topics
from reverie.domain.beliefs import BeliefChangeKind, BeliefType, EpistemicStatus
from reverie.domain.episodes import ConsolidationStatus, EpisodeOutcome
from reverie.domain.events import EventType
from reverie.domain.memories import MemoryOrderField, MemoryType
from reverie.domain.search import SearchKind
from reverie.domain.topics import NameOrderField

T = TypeVar("T")
AFTER, BEFORE = "at this instant or later", "before this instant"


@strawberry.input(description="Which memories; every field that is given must hold.")
class MemoryFilter:
    memory_types: list[MemoryType] | None = strawberry.field(default=UNSET, description="Of any of these types.")
    min_importance: float | None = strawberry.field(default=UNSET, description="At least this important, 0 to 1.")
    conversation_id: strawberry.ID | None = strawberry.field(default=UNSET, description="In this conversation.")
    topic_ids: list[strawberry.ID] | None = strawberry.field(default=UNSET, description="Having any of these topics.")
    entity_ids: list[strawberry.ID] | None = strawberry.field(
        default=UNSET, description="Mentioning any of these entities."
    )
    subject_id: str | None = strawberry.field(default=UNSET, description="About, or belonging to, this subject.")
    agent_id: str | None = strawberry.field(default=UNSET, description="Written by this agent.")
    created_after: datetime | None = strawberry.field(default=UNSET, description=f"Written {AFTER}.")
    created_before: datetime | None = strawberry.field(default=UNSET, description=f"Written {BEFORE}.")
    event_after: datetime | None = strawberry.field(
        default=UNSET, description=f"Happened {AFTER}; without an eventTime, written then."
    )
    event_before: datetime | None = strawberry.field(
        default=UNSET, description=f"Happened {BEFORE}; without an eventTime, written then."
    )

    def to_domain(self) -> memories.MemoryFilter:
        return memories.MemoryFilter(
            memory_types=_members(self.memory_types),
            min_importance=given_or_none(self.min_importance),
            conversation_id=given_or_none(self.conversation_id),
            topic_ids=_members(self.topic_ids),
            entity_ids=_members(self.entity_ids),
            subject_id=given_or_none(self.subject_id),
            agent_id=given_or_none(self.agent_id),
            created_after=given_or_none(self.created_after),
            created_before=given_or_none(self.created_before),
            event_after=given_or_none(self.event_after),
            event_before=given_or_none(self.event_before),
        )


@strawberry.input(description="What is searched; a field that a kind of thing lacks excludes that kind.")
class SearchFilter(MemoryFilter):
    kinds: list[SearchKind] | None = strawberry.field(default=UNSET, description="Only these kinds; all unless given.")

    def to_search(self) -> search.SearchFilter:
        return search.SearchFilter(kinds=_members(self.kinds), memory=self.to_domain())


@strawberry.input(description="Which events; every field that is given must hold.")
class EventFilter:
    thread_id: str | None = strawberry.field(default=UNSET, description="In this thread.")
    user_id: str | None = strawberry.field(default=UNSET, description="Of this user.")
    agent_id: str | None = strawberry.field(default=UNSET, description="Of this agent.")
    event_types: list[EventType] | None = strawberry.field(default=UNSET, description="Of any of these types.")
    occurred_after: datetime | None = strawberry.field(default=UNSET, description=f"Happened {AFTER}.")
    occurred_before: datetime | None = strawberry.field(default=UNSET, description=f"Happened {BEFORE}.")

    def to_domain(self) -> events.EventFilter:
        return events.EventFilter(
            thread_id=given_or_none(self.thread_id),
            user_id=given_or_none(self.user_id),
            agent_id=given_or_none(self.agent_id),
            event_types=_members(self.event_types),
            occurred_after=given_or_none(self.occurred_after),
            occurred_before=given_or_none(self.occurred_before),
        )


@strawberry.input(description="Which episodes; every field that is given must hold.")
class EpisodeFilter:
    thread_id: str | None = strawberry.field(default=UNSET, description="Of this thread.")
    user_id: str | None = strawberry.field(default=UNSET, description="Whose one user is this.")
    agent_id: str | None = strawberry.field(default=UNSET, description="Whose one agent is this.")
    consolidation_statuses: list[ConsolidationStatus] | None = strawberry.field(
        default=UNSET, description="In any of these states."
    )
    outcomes: list[EpisodeOutcome] | None = strawberry.field(default=UNSET, description="With any of these outcomes.")

    def to_domain(self) -> episodes.EpisodeFilter:
        return episodes.EpisodeFilter(
            thread_id=given_or_none(self.thread_id),
            user_id=given_or_none(self.user_id),
            agent_id=given_or_none(self.agent_id),
            consolidation_statuses=_members(self.consolidation_statuses),
            outcomes=_members(self.outcomes),
        )


@strawberry.input(description="Which versions; every field that is given must hold.")
class BeliefFilter:
    subject_id: str | None = strawberry.field(default=UNSET, description="About this subject.")
    keys: list[str] | None = strawberry.field(default=UNSET, description="Of any of these keys.")
    domains: list[str] | None = strawberry.field(default=UNSET, description="Of any of these domains.")
    belief_types: list[BeliefType] | None = strawberry.field(default=UNSET, description="Of any of these types.")
    epistemic_statuses: list[EpistemicStatus] | None = strawberry.field(
        default=UNSET, description="Standing in any of these ways; ACTIVE alone unless this or asOf is given."
    )
    min_confidence: float | None = strawberry.field(
        default=UNSET, description="At least this sure, 0 to 1, as of now or of asOf."
    )
    as_of: datetime | None = strawberry.field(
        default=UNSET, description="What held at this instant, with the confidence it had then."
    )

    def to_domain(self) -> beliefs.BeliefFilter:
        return beliefs.BeliefFilter(
            subject_id=given_or_none(self.subject_id),
            keys=_members(self.keys),
            domains=_members(self.domains),
            belief_types=_members(self.belief_types),
            epistemic_statuses=_members(self.epistemic_statuses),
            min_confidence=given_or_none(self.min_confidence),
            as_of=given_or_none(self.as_of),
        )


@strawberry.input(description="Which changes; every field that is given must hold.")
class BeliefChangeFilter:
    subject_ids: list[str] | None = strawberry.field(default=UNSET, description="About any of these subjects.")
    keys: list[str] | None = strawberry.field(default=UNSET, description="Of any of these keys.")
    domains: list[str] | None = strawberry.field(
        default=UNSET, description="Of any of these domains, as they were at the change."
    )
    belief_types: list[BeliefType] | None = strawberry.field(
        default=UNSET, description="Of any of these types, as they were at the change."
    )
    kinds: list[BeliefChangeKind] | None = strawberry.field(default=UNSET, description="Of any of these kinds.")

    def to_domain(self) -> changes.BeliefChangeFilter:
        return changes.BeliefChangeFilter(
            subject_ids=_members(self.subject_ids),
            keys=_members(self.keys),
            domains=_members(self.domains),
            belief_types=_members(self.belief_types),
            kinds=_members(self.kinds),
        )


@strawberry.input(description="How to sort memories.")
class MemoryOrder:
    field: MemoryOrderField = strawberry.field(description="What to sort by.")
    direction: OrderDirection = strawberry.field(default=OrderDirection.DESC, description="Which way.")

    def to_domain(self) -> memories.MemoryOrder:
        return memories.MemoryOrder(self.field, self.direction is OrderDirection.DESC)


@strawberry.input(description="How to sort named things.")
class NameOrder:
    field: NameOrderField = strawberry.field(description="What to sort by.")
    direction: OrderDirection = strawberry.field(default=OrderDirection.ASC, description="Which way.")

    def to_domain(self) -> topics.NameOrder:
        return topics.NameOrder(self.field, self.direction is OrderDirection.DESC)


def _members(given: Sequence[T] | None) -> tuple[T, ...] | None:
    return None if given is None or given is UNSET else tuple(given)
