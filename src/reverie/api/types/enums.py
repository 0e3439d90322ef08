"""The domain's enumerations as GraphQL enums, each value described."""

from enum import StrEnum
from typing import TypeVar

import strawberry

from reverie.domain.beliefs import BeliefChangeKind, BeliefType, EpistemicStatus
from reverie.domain.communities import CommunityAlgorithm
from reverie.domain.documents import DocumentSource, DocumentStatus
from reverie.domain.entities import EntityType
from reverie.domain.episodes import ConsolidationStatus, EpisodeOutcome
from reverie.domain.events import EventType
from reverie.domain.maps import GraphKind
from reverie.domain.memories import EnrichmentStatus, MemoryOrderField, MemoryType
from reverie.domain.search import SearchKind, SearchMode
from reverie.domain.topics import NameOrderField

E = TypeVar("E", bound=type[StrEnum])


def described(enum: E, description: str, **values: str) -> E:
    """Makes a domain enumeration a GraphQL enum of its own name; a value without a description is an error."""
    strawberry.enum(enum, description=description)
    for value in enum.__strawberry_definition__.values:  # type: ignore[attr-defined]  # set by strawberry.enum
        value.description = values[value.name]
    return enum


class OrderDirection(StrEnum):
    ASC = "ASC"
    DESC = "DESC"


class InputErrorCode(StrEnum):
    BAD_INPUT = "BAD_INPUT"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    TOO_LARGE = "TOO_LARGE"
    UNSUPPORTED = "UNSUPPORTED"


described(
    MemoryType,
    "What kind of memory it is.",
    EPISODIC="Something that happened.",
    SEMANTIC="Something that is known.",
    PROCEDURAL="How something is done.",
)
described(
    EnrichmentStatus,
    "How far the search for topics, entities and facts in a memory has come.",
    PENDING="Waiting for its turn.",
    PROCESSING="Being read.",
    DONE="Finished, or never asked for.",
    FAILED="Given up after its attempts.",
)
described(
    MemoryOrderField,
    "What memories are sorted by.",
    CREATED_AT="When the memory was written.",
    UPDATED_AT="When the memory was last changed.",
    EVENT_TIME="When it happened: its eventTime, or where there is none, when it was written.",
    IMPORTANCE="Its importance.",
)
described(
    NameOrderField,
    "What named things are sorted by.",
    NAME="Their name or title, letter case and width aside.",
    CREATED_AT="When they were made.",
    UPDATED_AT="When they were last changed.",
    MEMORIES="How many memories they have.",
)
described(
    OrderDirection, "Which way a list is sorted.", ASC="Smallest or earliest first.", DESC="Largest or latest first."
)
described(
    EntityType,
    "What kind of thing an entity is.",
    PERSON="A person.",
    TOOL="A tool: software, a service, a machine.",
    PROJECT="A project or product.",
    CONCEPT="An idea or a technique.",
    ORGANIZATION="A company, team or other organization.",
    PLACE="A place.",
)
described(
    CommunityAlgorithm,
    "How communities are found in the graph of topics.",
    LEIDEN="The Leiden method.",
    LOUVAIN="The Louvain method.",
    LABEL_PROPAGATION="Label propagation.",
)
described(
    GraphKind,
    "A kind of node on a map.",
    MEMORY="A memory.",
    CONVERSATION="A conversation.",
    TOPIC="A topic.",
    FACT="A fact.",
    ENTITY="An entity.",
    COMMUNITY="A community of topics.",
    EPISODE="An episode.",
    BELIEF="A version of a belief.",
    DOCUMENT="A document.",
    CHUNK="A passage of a document.",
    SUBJECT="Somebody or something that beliefs are held about.",
)
described(
    BeliefType,
    "What kind of belief it is, which decides how fast its confidence fades.",
    FACT="Something that is so; halves in a year.",
    BELIEF="Something held to be so; halves in two months.",
    PREFERENCE="Something liked or wanted; halves in half a year.",
    TENET="Something that never fades and yields to no dreamed evidence, only to upsertBelief.",
)
described(
    EpistemicStatus,
    "How a version of a belief stands.",
    ACTIVE="It holds.",
    SUPERSEDED="Another version took its place.",
    CONTRADICTED="It lost against the version that was current.",
    RETRACTED="It ended, or was never true.",
)
described(
    BeliefChangeKind,
    "What happened to a belief.",
    CREATED="A new version.",
    STRENGTHENED="It was confirmed.",
    SUPERSEDED="It took the place of another version, which is `previous`.",
    CONTRADICTED="It was weakened by what lost against it, which is `rejected`.",
    RETRACTED="It holds no longer, or was never true.",
)
described(
    EventType,
    "What kind of event it is.",
    USER_MESSAGE="What a user said.",
    AGENT_RESPONSE="What an agent said.",
    TOOL_CALL="What a tool was asked, or answered.",
    SYSTEM_LOG="What the system noted.",
)
described(
    EpisodeOutcome,
    "How an episode went.",
    COMPLETED="It came to its end.",
    ABANDONED="A user's last word was left without an answer.",
    ESCALATED="Somebody asked to hand it over.",
)
described(
    ConsolidationStatus,
    "How far learning from an episode has come.",
    OPEN="It still grows.",
    PENDING="It is over, and waits for its turn.",
    PROCESSING="It is being read.",
    CONSOLIDATED="What it says was learned.",
    FAILED="Given up after its attempts.",
)
described(
    DocumentSource,
    "How a document came here.",
    TEXT="A caller wrote it out.",
    FILE="It was uploaded.",
    LINK="It was fetched from a link.",
)
described(
    DocumentStatus,
    "How far reading a document has come.",
    PENDING="It waits to be read, or is being read.",
    READY="It was read: its chunks are there.",
    FAILED="It can't be read; `failure` says why. The same content sent again is tried again.",
)
described(
    SearchMode,
    "Which ways a search goes.",
    HYBRID="By meaning and by word, both rankings fused.",
    SEMANTIC="By meaning alone; needs an embedder.",
    KEYWORD="By word alone.",
)
described(
    SearchKind,
    "A kind of thing that can be found.",
    MEMORY="Memories, by meaning and by word.",
    BELIEF="Beliefs that hold, by meaning and by the words of subject, key and value.",
    FACT="Facts, by word.",
    ENTITY="Entities, by the words of their names.",
    TOPIC="Topics, by meaning and by the words of their names.",
    CONVERSATION="Conversations, by the words of their titles.",
    EPISODE="Closed episodes, by the meaning and the words of their summaries.",
    CHUNK="Passages of documents, by meaning and by word.",
)
described(
    InputErrorCode,
    "Why an input was refused.",
    BAD_INPUT="A value that isn't allowed.",
    NOT_FOUND="A reference that leads nowhere.",
    CONFLICT="It contradicts what is stored.",
    ALREADY_EXISTS="Another one has this name; existingId says which.",
    TOO_LARGE="Over a cap.",
    UNSUPPORTED="This server can't do it.",
)
