"""What mutations answer: the thing that was written, or what stood against it."""

import strawberry

from reverie.api.types.beliefs import Belief, BeliefChange
from reverie.api.types.communities import Community
from reverie.api.types.conversations import Conversation
from reverie.api.types.documents import Document
from reverie.api.types.dreams import Dream
from reverie.api.types.entities import Entity
from reverie.api.types.enums import InputErrorCode
from reverie.api.types.episodes import Episode
from reverie.api.types.events import Event
from reverie.api.types.facts import Fact
from reverie.api.types.memories import Memory
from reverie.api.types.topics import Topic

DELETED = "The id of what was deleted."


@strawberry.type(description="Something that stands against an input; nothing was written.")
class InputError:
    code: InputErrorCode = strawberry.field(description="What kind of trouble it is.")
    message: str = strawberry.field(description="What is wrong, for a person.")
    path: list[str] = strawberry.field(description="Where in `input`, from the outside in.")
    existing_id: strawberry.ID | None = strawberry.field(
        default=None, description="Which one has the name already, where that is the trouble."
    )


@strawberry.type
class Payload:
    errors: list[InputError] = strawberry.field(
        default_factory=list, description="What stood against it; empty when it was done."
    )


@strawberry.type(description="The answer to createMemory.")
class CreateMemoryPayload(Payload):
    memory: Memory | None = strawberry.field(default=None, description="The memory that was written.")


@strawberry.type(description="The answer to createMemories.")
class CreateMemoriesPayload(Payload):
    memories: list[Memory] | None = strawberry.field(default=None, description="The memories, in the order given.")


@strawberry.type(description="The answer to updateMemory.")
class UpdateMemoryPayload(Payload):
    memory: Memory | None = strawberry.field(default=None, description="The memory as it is now.")


@strawberry.type(description="The answer to deleteMemory.")
class DeleteMemoryPayload(Payload):
    deleted_id: strawberry.ID | None = strawberry.field(default=None, description=DELETED)


@strawberry.type(description="The answer to relateMemories.")
class RelateMemoriesPayload(Payload):
    memory: Memory | None = strawberry.field(default=None, description="The memory the relation points from.")
    related: Memory | None = strawberry.field(default=None, description="The memory it points to.")


@strawberry.type(description="The answer to createConversation.")
class CreateConversationPayload(Payload):
    conversation: Conversation | None = strawberry.field(default=None, description="The conversation that was made.")


@strawberry.type(description="The answer to updateConversation.")
class UpdateConversationPayload(Payload):
    conversation: Conversation | None = strawberry.field(default=None, description="The conversation as it is now.")


@strawberry.type(description="The answer to deleteConversation.")
class DeleteConversationPayload(Payload):
    deleted_id: strawberry.ID | None = strawberry.field(default=None, description=DELETED)
    deleted_memories: int | None = strawberry.field(default=None, description="How many memories went with it.")


@strawberry.type(description="The answer to createTopic.")
class CreateTopicPayload(Payload):
    topic: Topic | None = strawberry.field(default=None, description="The topic that was made.")


@strawberry.type(description="The answer to updateTopic.")
class UpdateTopicPayload(Payload):
    topic: Topic | None = strawberry.field(default=None, description="The topic as it is now.")


@strawberry.type(description="The answer to mergeTopics.")
class MergeTopicsPayload(Payload):
    topic: Topic | None = strawberry.field(default=None, description="The topic that stays.")


@strawberry.type(description="The answer to deleteTopic.")
class DeleteTopicPayload(Payload):
    deleted_id: strawberry.ID | None = strawberry.field(default=None, description=DELETED)


@strawberry.type(description="The answer to createFact.")
class CreateFactPayload(Payload):
    fact: Fact | None = strawberry.field(default=None, description="The fact that was written.")


@strawberry.type(description="The answer to updateFact.")
class UpdateFactPayload(Payload):
    fact: Fact | None = strawberry.field(default=None, description="The fact as it is now.")


@strawberry.type(description="The answer to deleteFact.")
class DeleteFactPayload(Payload):
    deleted_id: strawberry.ID | None = strawberry.field(default=None, description=DELETED)


@strawberry.type(description="The answer to createEntity.")
class CreateEntityPayload(Payload):
    entity: Entity | None = strawberry.field(default=None, description="The entity that was made.")


@strawberry.type(description="The answer to updateEntity.")
class UpdateEntityPayload(Payload):
    entity: Entity | None = strawberry.field(default=None, description="The entity as it is now.")


@strawberry.type(description="The answer to mergeEntities.")
class MergeEntitiesPayload(Payload):
    entity: Entity | None = strawberry.field(default=None, description="The entity that stays.")


@strawberry.type(description="The answer to deleteEntity.")
class DeleteEntityPayload(Payload):
    deleted_id: strawberry.ID | None = strawberry.field(default=None, description=DELETED)


@strawberry.type(description="The answer to relateEntities.")
class RelateEntitiesPayload(Payload):
    entity: Entity | None = strawberry.field(default=None, description="The entity the relation points from.")
    related: Entity | None = strawberry.field(default=None, description="The entity it points to.")


@strawberry.type(description="The answer to unrelate.")
class UnrelatePayload(Payload):
    removed: int | None = strawberry.field(default=None, description="How many relations were taken away.")


BELIEF = "The version that the caller's word is about."
ENTRY = "The entry of the change log; null where only the past changed."


@strawberry.type(description="The answer to upsertBelief.")
class UpsertBeliefPayload(Payload):
    belief: Belief | None = strawberry.field(default=None, description=BELIEF)
    change: BeliefChange | None = strawberry.field(default=None, description=ENTRY)


@strawberry.type(description="The answer to retractBelief.")
class RetractBeliefPayload(Payload):
    belief: Belief | None = strawberry.field(default=None, description=BELIEF)
    change: BeliefChange | None = strawberry.field(default=None, description=ENTRY)


@strawberry.type(description="The answer to recordEvents.")
class RecordEventsPayload(Payload):
    events: list[Event] | None = strawberry.field(
        default=None, description="The events, in the order given; for a re-sent one that which was recorded first."
    )


@strawberry.type(description="The answer to closeEpisode.")
class CloseEpisodePayload(Payload):
    episode: Episode | None = strawberry.field(default=None, description="The episode as it is now.")


@strawberry.type(description="The answer to retryEpisode.")
class RetryEpisodePayload(Payload):
    episode: Episode | None = strawberry.field(default=None, description="The episode as it is now.")


DOCUMENT = "The document; that which has the same content and subject, where there is one."


@strawberry.type(description="The answer to createDocument.")
class CreateDocumentPayload(Payload):
    document: Document | None = strawberry.field(default=None, description=DOCUMENT)


@strawberry.type(description="The answer to uploadDocument.")
class UploadDocumentPayload(Payload):
    document: Document | None = strawberry.field(default=None, description=DOCUMENT)


@strawberry.type(description="The answer to linkDocument.")
class LinkDocumentPayload(Payload):
    document: Document | None = strawberry.field(default=None, description=DOCUMENT)


@strawberry.type(description="The answer to deleteDocument.")
class DeleteDocumentPayload(Payload):
    deleted_id: strawberry.ID | None = strawberry.field(default=None, description=DELETED)


@strawberry.type(description="The answer to dream.")
class DreamPayload(Payload):
    dream: Dream | None = strawberry.field(default=None, description="The run, as far as it has come.")


@strawberry.type(description="The answer to detectCommunities.")
class DetectCommunitiesPayload(Payload):
    communities: list[Community] | None = strawberry.field(
        default=None, description="All communities that the algorithm finds now, the largest first."
    )


@strawberry.type(description="How much of one kind went.")
class DeletedCount:
    kind: str = strawberry.field(description="The kind.")
    count: int = strawberry.field(description="How many.")


@strawberry.type(description="The answer to forgetSubject.")
class ForgetSubjectPayload(Payload):
    deleted: list[DeletedCount] | None = strawberry.field(
        default=None, description="What went, by kind; kinds of which there was nothing are left out."
    )
