"""Beliefs and the changes of them, as callers see and write them."""

from datetime import datetime
from typing import Any

import strawberry
from strawberry import UNSET

from reverie.api.context import Info
from reverie.api.types.connections import (
    BeliefChangeConnection,
    BeliefConnection,
    EpisodeConnection,
    EventConnection,
    LazyBelief,
    LazyEntity,
    LazyEpisode,
    one,
    related,
)
from reverie.api.types.given import given_or, given_or_none
from reverie.api.types.nodes import Node
from reverie.domain import beliefs, changes
from reverie.domain.beliefs import BeliefChangeKind, BeliefType, EpistemicStatus
from reverie.domain.clock import from_ms

SUBJECT = "Whom or what it is about: the caller's own id of a user, or any other."
KEY = "What about the subject: letters, digits and _ in parts joined by full stops, such as `likes.hiking`."
VALUE = "What is believed; compared as text, letter case, width and blanks aside."
CONFIDENCE = "How sure, 0 to 1."
DOMAIN = "A field such as settings, workflow, personal, technical."
EXPECTED = "The version that must be current, 0 for none; CONFLICT otherwise."
REASON = "Why, in the caller's words; kept in the change log."
IDEMPOTENCY = "Idempotency key."


def _confidence(root: strawberry.Parent[beliefs.Belief], info: Info) -> float:
    context = info.context
    return root.confidence(from_ms(context.loaders.now), context.resources.dreaming.half_lives)


async def _entity(root: strawberry.Parent[beliefs.Belief], info: Info) -> Any:
    return await info.context.loaders.entity_of_subject(root.subject_id)


@strawberry.type(description="One version of a belief: a new value is a new version.")
class Belief(Node):
    subject_id: str = strawberry.field(description="Whom or what it is about.")
    key: str = strawberry.field(description="What about the subject.")
    value: str = strawberry.field(description="What is believed.")
    confidence: float = strawberry.field(
        resolver=_confidence,
        description="How sure, 0 to 1, as of now or of the filter's asOf: it fades by itself, by beliefType, since "
        "reinforcedAt. A version that ended keeps what it had then.",
    )
    belief_type: BeliefType = strawberry.field(description="What kind of belief it is.")
    epistemic_status: EpistemicStatus = strawberry.field(description="How this version stands.")
    domain: str = strawberry.field(description="The field it belongs to; general unless told.")
    version: int = strawberry.field(description="1, 2, … within subjectId and key, in the order of recording.")
    valid_from: datetime = strawberry.field(description="From when it holds: the time of its first evidence.")
    valid_to: datetime | None = strawberry.field(description="Until when it held; null while it holds.")
    created_at: datetime = strawberry.field(description="When it was recorded.")
    reinforced_at: datetime = strawberry.field(description="When it was last confirmed.")
    evidence_count: int = strawberry.field(description="How many pieces of evidence it rests on, upserts included.")
    supersedes: LazyBelief | None = one("Belief", "supersedes", "The version whose place it took.")
    superseded_by: LazyBelief | None = one("Belief", "supersededBy", "The version that took its place.")
    history: BeliefConnection = related("Belief", "history", "Every version of its subject and key, newest first.")
    audit: BeliefChangeConnection = related("Belief", "audit", "Every change of its subject and key, oldest first.")
    evidence: EventConnection = related("Belief", "evidence", "The events it rests on, oldest first.")
    episodes: EpisodeConnection = related("Belief", "episodes", "The episodes it was learned in, oldest first.")
    entity: LazyEntity | None = strawberry.field(
        resolver=_entity, description="The subject, where one of an entity's names is the subject's id."
    )

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (beliefs.Belief, cls))


async def _cursor(root: strawberry.Parent[changes.BeliefChange], info: Info) -> str:
    return (await info.context.log_position(root.number)).cursor


def _by_id(name: str, description: str) -> Any:
    async def resolve(root: strawberry.Parent[changes.BeliefChange], info: Info) -> Any:
        node_id = getattr(root, name)
        return None if node_id is None else await info.context.loaders.node(node_id)

    return strawberry.field(resolver=resolve, description=description)


@strawberry.type(description="One entry of the change log: what happened to a belief.")
class BeliefChange(Node):
    cursor: str = strawberry.field(resolver=_cursor, description="Where it is in the log: pass it to `after`.")
    kind: BeliefChangeKind = strawberry.field(description="What happened.")
    subject_id: str = strawberry.field(description="Whom or what the belief is about.")
    key: str = strawberry.field(description="What about the subject.")
    status_after: EpistemicStatus = strawberry.field(description="How `belief` stood by this change.")
    belief: LazyBelief | None = _by_id("belief_id", "The version it happened to, as it stands now.")
    previous: LazyBelief | None = _by_id("previous_id", "The version that gave way.")
    rejected: LazyBelief | None = _by_id("rejected_id", "CONTRADICTED: the version that lost against `belief`.")
    confidence_before: float | None = strawberry.field(description="How sure `belief` was, just before.")
    confidence_after: float = strawberry.field(description="How sure it was just after.")
    reason: str | None = strawberry.field(description="Why, in the extractor's or the caller's words.")
    episode: LazyEpisode | None = _by_id(
        "episode_id", "The episode it was learned in; null when an agent or a person made the change."
    )
    changed_at: datetime = strawberry.field(description="When it was recorded.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (changes.BeliefChange, cls))


@strawberry.input(description="What is to be believed.")
class UpsertBeliefInput:
    subject_id: str = strawberry.field(description=SUBJECT)
    key: str = strawberry.field(description=KEY)
    value: str = strawberry.field(description=VALUE)
    confidence: float | None = strawberry.field(default=0.8, description=CONFIDENCE)
    belief_type: BeliefType | None = strawberry.field(default=BeliefType.BELIEF, description="What kind of belief.")
    domain: str | None = strawberry.field(default="general", description=DOMAIN)
    valid_from: datetime | None = strawberry.field(
        default=UNSET,
        description="From when it held; from now on unless given. An instant of the past takes its place in history.",
    )
    reason: str | None = strawberry.field(default=UNSET, description=REASON)
    expected_version: int | None = strawberry.field(default=UNSET, description=EXPECTED)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description=IDEMPOTENCY)

    def to_domain(self) -> beliefs.BeliefUpsert:
        return beliefs.BeliefUpsert(
            self.subject_id,
            self.key,
            self.value,
            given_or(self.confidence, 0.8),
            given_or(self.belief_type, BeliefType.BELIEF),
            given_or(self.domain, "general"),
            given_or_none(self.valid_from),
            given_or_none(self.reason),
            given_or_none(self.expected_version),
        )


@strawberry.input(description="A version whose value was never true.")
class RetractBeliefInput:
    id: strawberry.ID = strawberry.field(description="The version.")
    reason: str | None = strawberry.field(default=UNSET, description=REASON)
    expected_version: int | None = strawberry.field(default=UNSET, description=EXPECTED)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description=IDEMPOTENCY)

    def to_domain(self) -> beliefs.BeliefRetraction:
        return beliefs.BeliefRetraction(self.id, given_or_none(self.reason), given_or_none(self.expected_version))


def _checkpoint_cursor(root: strawberry.Parent[Any]) -> Any:
    return root.position.cursor


@strawberry.type(description="Where the log is: sent first, and when it moved on without anything for this filter.")
class ChangeCheckpoint:
    cursor: str = strawberry.field(resolver=_checkpoint_cursor, description="Pass it to `after` to go on from here.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (changes.ChangeCheckpoint, cls))


@strawberry.type(
    description="The log doesn't reach back to `after`: read what you follow anew, then go on from this cursor."
)
class ChangeGap:
    cursor: str = strawberry.field(resolver=_checkpoint_cursor, description="From where the stream goes on.")
    missed_from: str = strawberry.field(description="The cursor that was asked for.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (changes.ChangeGap, cls))
