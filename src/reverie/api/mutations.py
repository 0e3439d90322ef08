"""The mutations: each unpacks its input, calls one service, and wraps what came in its payload."""

from typing import Annotated, Any, Protocol

import strawberry
from strawberry import UNSET

from reverie.api.context import Info
from reverie.api.errors import answered
from reverie.api.types.beliefs import RetractBeliefInput, UpsertBeliefInput
from reverie.api.types.communities import DetectCommunitiesInput
from reverie.api.types.conversations import CreateConversationInput, DeleteConversationInput, UpdateConversationInput
from reverie.api.types.documents import (
    CreateDocumentInput,
    DeleteDocumentInput,
    LinkDocumentInput,
    UploadDocumentInput,
)
from reverie.api.types.dreams import DreamInput, ForgetSubjectInput
from reverie.api.types.entities import CreateEntityInput, DeleteEntityInput, MergeEntitiesInput, UpdateEntityInput
from reverie.api.types.episodes import CloseEpisodeInput, RetryEpisodeInput
from reverie.api.types.events import RecordEventsInput
from reverie.api.types.facts import CreateFactInput, DeleteFactInput, UpdateFactInput
from reverie.api.types.given import given_or, given_or_none
from reverie.api.types.memories import CreateMemoriesInput, CreateMemoryInput, DeleteMemoryInput, UpdateMemoryInput
from reverie.api.types.payloads import (
    CloseEpisodePayload,
    CreateConversationPayload,
    CreateDocumentPayload,
    CreateEntityPayload,
    CreateFactPayload,
    CreateMemoriesPayload,
    CreateMemoryPayload,
    CreateTopicPayload,
    DeleteConversationPayload,
    DeletedCount,
    DeleteDocumentPayload,
    DeleteEntityPayload,
    DeleteFactPayload,
    DeleteMemoryPayload,
    DeleteTopicPayload,
    DetectCommunitiesPayload,
    DreamPayload,
    ForgetSubjectPayload,
    LinkDocumentPayload,
    MergeEntitiesPayload,
    MergeTopicsPayload,
    RecordEventsPayload,
    RelateEntitiesPayload,
    RelateMemoriesPayload,
    RetractBeliefPayload,
    RetryEpisodePayload,
    UnrelatePayload,
    UpdateConversationPayload,
    UpdateEntityPayload,
    UpdateFactPayload,
    UpdateMemoryPayload,
    UpdateTopicPayload,
    UploadDocumentPayload,
    UpsertBeliefPayload,
)
from reverie.api.types.refs import RelateEntitiesInput, RelateMemoriesInput, UnrelateInput
from reverie.api.types.topics import CreateTopicInput, DeleteTopicInput, MergeTopicsInput, UpdateTopicInput
from reverie.resources import Resources
from reverie.services import (
    beliefs,
    communities,
    conversations,
    documents,
    dreaming,
    entities,
    episodes,
    events,
    facts,
    forgetting,
    memories,
    topics,
)

GIVEN = strawberry.argument(description="What is to be done, with the key that makes it happen once.")


class _Keyed(Protocol):
    client_mutation_key: str | None


def _key(given: _Keyed) -> str | None:
    return given_or_none(given.client_mutation_key)


def _caller(info: Info) -> tuple[Resources, str]:
    return info.context.resources, info.context.tenant


@strawberry.type(
    description="What can be written. Refusals are in a payload's errors; outages are errors of the request."
)
class Mutation:
    @strawberry.mutation(description="Writes a memory.")
    async def create_memory(
        self,
        info: Info,
        input: Annotated[CreateMemoryInput, GIVEN],
    ) -> CreateMemoryPayload | None:
        async def work() -> dict[str, Any]:
            return {"memory": await memories.create_memory(*_caller(info), input.to_domain(), _key(input))}

        return await answered(CreateMemoryPayload, work())

    @strawberry.mutation(description="Writes memories together, all or none, in order.")
    async def create_memories(
        self,
        info: Info,
        input: Annotated[CreateMemoriesInput, GIVEN],
    ) -> CreateMemoriesPayload | None:
        async def work() -> dict[str, Any]:
            return {"memories": await memories.create_memories(*_caller(info), input.to_domain(), _key(input))}

        return await answered(CreateMemoriesPayload, work())

    @strawberry.mutation(description="Changes a memory.")
    async def update_memory(
        self,
        info: Info,
        input: Annotated[UpdateMemoryInput, GIVEN],
    ) -> UpdateMemoryPayload | None:
        async def work() -> dict[str, Any]:
            return {"memory": await memories.update_memory(*_caller(info), input.to_domain(), _key(input))}

        return await answered(UpdateMemoryPayload, work())

    @strawberry.mutation(description="Deletes a memory, with the facts whose only source it was.")
    async def delete_memory(
        self,
        info: Info,
        input: Annotated[DeleteMemoryInput, GIVEN],
    ) -> DeleteMemoryPayload | None:
        async def work() -> dict[str, Any]:
            return {"deleted_id": await memories.delete_memory(*_caller(info), input.id, _key(input))}

        return await answered(DeleteMemoryPayload, work())

    @strawberry.mutation(description="Relates two memories.")
    async def relate_memories(
        self,
        info: Info,
        input: Annotated[RelateMemoriesInput, GIVEN],
    ) -> RelateMemoriesPayload | None:
        async def work() -> dict[str, Any]:
            memory, related = await memories.relate_memories(*_caller(info), input.to_domain(), _key(input))
            return {"memory": memory, "related": related}

        return await answered(RelateMemoriesPayload, work())

    @strawberry.mutation(description="Makes a conversation.")
    async def create_conversation(
        self,
        info: Info,
        input: Annotated[CreateConversationInput, GIVEN],
    ) -> CreateConversationPayload | None:
        async def work() -> dict[str, Any]:
            return {
                "conversation": await conversations.create_conversation(*_caller(info), input.to_domain(), _key(input))
            }

        return await answered(CreateConversationPayload, work())

    @strawberry.mutation(description="Gives a conversation another title.")
    async def update_conversation(
        self,
        info: Info,
        input: Annotated[UpdateConversationInput, GIVEN],
    ) -> UpdateConversationPayload | None:
        async def work() -> dict[str, Any]:
            return {
                "conversation": await conversations.update_conversation(
                    *_caller(info), input.id, input.title, _key(input)
                )
            }

        return await answered(UpdateConversationPayload, work())

    @strawberry.mutation(description="Deletes a conversation, with its memories where asked.")
    async def delete_conversation(
        self,
        info: Info,
        input: Annotated[DeleteConversationInput, GIVEN],
    ) -> DeleteConversationPayload | None:
        async def work() -> dict[str, Any]:
            gone, count = await conversations.delete_conversation(
                *_caller(info), input.id, delete_memories=given_or(input.delete_memories, False), key=_key(input)
            )
            return {"deleted_id": gone, "deleted_memories": count}

        return await answered(DeleteConversationPayload, work())

    @strawberry.mutation(description="Makes a topic.")
    async def create_topic(
        self,
        info: Info,
        input: Annotated[CreateTopicInput, GIVEN],
    ) -> CreateTopicPayload | None:
        async def work() -> dict[str, Any]:
            return {"topic": await topics.create_topic(*_caller(info), input.name, _key(input))}

        return await answered(CreateTopicPayload, work())

    @strawberry.mutation(description="Renames a topic.")
    async def update_topic(
        self,
        info: Info,
        input: Annotated[UpdateTopicInput, GIVEN],
    ) -> UpdateTopicPayload | None:
        async def work() -> dict[str, Any]:
            return {"topic": await topics.update_topic(*_caller(info), input.id, input.name, _key(input))}

        return await answered(UpdateTopicPayload, work())

    @strawberry.mutation(description="Merges topics into one, which keeps all memories, relations and names.")
    async def merge_topics(
        self,
        info: Info,
        input: Annotated[MergeTopicsInput, GIVEN],
    ) -> MergeTopicsPayload | None:
        async def work() -> dict[str, Any]:
            return {"topic": await topics.merge_topics(*_caller(info), input.into_id, input.from_ids, _key(input))}

        return await answered(MergeTopicsPayload, work())

    @strawberry.mutation(description="Deletes a topic; its memories stay.")
    async def delete_topic(
        self,
        info: Info,
        input: Annotated[DeleteTopicInput, GIVEN],
    ) -> DeleteTopicPayload | None:
        async def work() -> dict[str, Any]:
            return {"deleted_id": await topics.delete_topic(*_caller(info), input.id, _key(input))}

        return await answered(DeleteTopicPayload, work())

    @strawberry.mutation(description="Writes a fact.")
    async def create_fact(
        self,
        info: Info,
        input: Annotated[CreateFactInput, GIVEN],
    ) -> CreateFactPayload | None:
        async def work() -> dict[str, Any]:
            return {"fact": await facts.create_fact(*_caller(info), input.to_domain(), _key(input))}

        return await answered(CreateFactPayload, work())

    @strawberry.mutation(description="Changes a fact.")
    async def update_fact(
        self,
        info: Info,
        input: Annotated[UpdateFactInput, GIVEN],
    ) -> UpdateFactPayload | None:
        async def work() -> dict[str, Any]:
            return {"fact": await facts.update_fact(*_caller(info), input.to_domain(), _key(input))}

        return await answered(UpdateFactPayload, work())

    @strawberry.mutation(description="Deletes a fact.")
    async def delete_fact(
        self,
        info: Info,
        input: Annotated[DeleteFactInput, GIVEN],
    ) -> DeleteFactPayload | None:
        async def work() -> dict[str, Any]:
            return {"deleted_id": await facts.delete_fact(*_caller(info), input.id, _key(input))}

        return await answered(DeleteFactPayload, work())

    @strawberry.mutation(description="Makes an entity.")
    async def create_entity(
        self,
        info: Info,
        input: Annotated[CreateEntityInput, GIVEN],
    ) -> CreateEntityPayload | None:
        async def work() -> dict[str, Any]:
            return {"entity": await entities.create_entity(*_caller(info), input.to_domain(), _key(input))}

        return await answered(CreateEntityPayload, work())

    @strawberry.mutation(description="Changes an entity.")
    async def update_entity(
        self,
        info: Info,
        input: Annotated[UpdateEntityInput, GIVEN],
    ) -> UpdateEntityPayload | None:
        async def work() -> dict[str, Any]:
            return {"entity": await entities.update_entity(*_caller(info), input.to_domain(), _key(input))}

        return await answered(UpdateEntityPayload, work())

    @strawberry.mutation(
        description="Merges entities into one: the survivor keeps every edge and, as aliases, every name."
    )
    async def merge_entities(
        self,
        info: Info,
        input: Annotated[MergeEntitiesInput, GIVEN],
    ) -> MergeEntitiesPayload | None:
        async def work() -> dict[str, Any]:
            return {"entity": await entities.merge_entities(*_caller(info), input.into_id, input.from_ids, _key(input))}

        return await answered(MergeEntitiesPayload, work())

    @strawberry.mutation(description="Deletes an entity; memories and facts stay.")
    async def delete_entity(
        self,
        info: Info,
        input: Annotated[DeleteEntityInput, GIVEN],
    ) -> DeleteEntityPayload | None:
        async def work() -> dict[str, Any]:
            return {"deleted_id": await entities.delete_entity(*_caller(info), input.id, _key(input))}

        return await answered(DeleteEntityPayload, work())

    @strawberry.mutation(description="Relates two entities.")
    async def relate_entities(
        self,
        info: Info,
        input: Annotated[RelateEntitiesInput, GIVEN],
    ) -> RelateEntitiesPayload | None:
        async def work() -> dict[str, Any]:
            entity, related = await entities.relate_entities(*_caller(info), input.to_domain(), _key(input))
            return {"entity": entity, "related": related}

        return await answered(RelateEntitiesPayload, work())

    @strawberry.mutation(
        description="Takes the relations between two memories, topics or entities away, whichever way they point."
    )
    async def unrelate(
        self,
        info: Info,
        input: Annotated[UnrelateInput, GIVEN],
    ) -> UnrelatePayload | None:
        async def work() -> dict[str, Any]:
            removed = await entities.unrelate(
                *_caller(info), input.from_id, input.to_id, given_or_none(input.relation), _key(input)
            )
            return {"removed": removed}

        return await answered(UnrelatePayload, work())

    @strawberry.mutation(
        description="Says what is to be believed of a subject: a new version, or the same one strengthened."
    )
    async def upsert_belief(self, info: Info, input: Annotated[UpsertBeliefInput, GIVEN]) -> UpsertBeliefPayload | None:
        async def work() -> dict[str, Any]:
            return (await beliefs.upsert_belief(*_caller(info), input.to_domain(), _key(input)))._asdict()

        return await answered(UpsertBeliefPayload, work())

    @strawberry.mutation(
        description="Says that a version's value was never true: what it had superseded may hold again."
    )
    async def retract_belief(
        self, info: Info, input: Annotated[RetractBeliefInput, GIVEN]
    ) -> RetractBeliefPayload | None:
        async def work() -> dict[str, Any]:
            return (await beliefs.retract_belief(*_caller(info), input.to_domain(), _key(input)))._asdict()

        return await answered(RetractBeliefPayload, work())

    @strawberry.mutation(description="Records events, all or none; each goes into an episode of its thread.")
    async def record_events(
        self,
        info: Info,
        input: Annotated[RecordEventsInput, GIVEN],
    ) -> RecordEventsPayload | None:
        async def work() -> dict[str, Any]:
            return {"events": await events.record_events(*_caller(info), input.to_domain(), _key(input))}

        return await answered(RecordEventsPayload, work())

    @strawberry.mutation(
        description="Ends an open episode, so that dreaming may take it: what happens later is no part of it."
    )
    async def close_episode(
        self,
        info: Info,
        input: Annotated[CloseEpisodeInput, GIVEN],
    ) -> CloseEpisodePayload | None:
        async def work() -> dict[str, Any]:
            return {"episode": await episodes.close_episode(*_caller(info), input.to_domain(), _key(input))}

        return await answered(CloseEpisodePayload, work())

    @strawberry.mutation(description="Sends a failed episode back to pending.")
    async def retry_episode(
        self,
        info: Info,
        input: Annotated[RetryEpisodeInput, GIVEN],
    ) -> RetryEpisodePayload | None:
        async def work() -> dict[str, Any]:
            return {"episode": await episodes.retry_episode(*_caller(info), input.id)}

        return await answered(RetryEpisodePayload, work())

    @strawberry.mutation(description="Takes in a document that the caller writes out; it is read in the background.")
    async def create_document(
        self, info: Info, input: Annotated[CreateDocumentInput, GIVEN]
    ) -> CreateDocumentPayload | None:
        async def work() -> dict[str, Any]:
            return {"document": await documents.create_document(*_caller(info), input.to_domain(), _key(input))}

        return await answered(CreateDocumentPayload, work())

    @strawberry.mutation(
        description="Takes in a file, sent as a GraphQL multipart request; it is read in the background."
    )
    async def upload_document(
        self, info: Info, input: Annotated[UploadDocumentInput, GIVEN]
    ) -> UploadDocumentPayload | None:
        async def work() -> dict[str, Any]:
            file = input.file.file
            return {"document": await documents.upload_document(*_caller(info), input.to_domain(), file, _key(input))}

        return await answered(UploadDocumentPayload, work())

    @strawberry.mutation(
        description="Takes in what a link leads to: it is fetched at once, from public addresses alone, and read in "
        "the background."
    )
    async def link_document(self, info: Info, input: Annotated[LinkDocumentInput, GIVEN]) -> LinkDocumentPayload | None:
        async def work() -> dict[str, Any]:
            return {"document": await documents.link_document(*_caller(info), input.to_domain(), _key(input))}

        return await answered(LinkDocumentPayload, work())

    @strawberry.mutation(description="Deletes a document with its chunks.")
    async def delete_document(
        self, info: Info, input: Annotated[DeleteDocumentInput, GIVEN]
    ) -> DeleteDocumentPayload | None:
        async def work() -> dict[str, Any]:
            return {"deleted_id": await documents.delete_document(*_caller(info), input.id, _key(input))}

        return await answered(DeleteDocumentPayload, work())

    @strawberry.mutation(
        description="Runs pending episodes now; with `wait`, answers when they are done. UNSUPPORTED where no "
        "worker runs."
    )
    async def dream(
        self,
        info: Info,
        input: Annotated[
            DreamInput | None, strawberry.argument(description="Which episodes, and whether to wait.")
        ] = UNSET,
    ) -> DreamPayload | None:
        wanted = input or DreamInput()
        ids = given_or_none(wanted.episode_ids)

        async def work() -> dict[str, Any]:
            return {"dream": await dreaming.dream(*_caller(info), ids, wait=given_or(wanted.wait, False))}

        return await answered(DreamPayload, work())

    @strawberry.mutation(
        description="Finds the groups of topics that occur together, in the place of those found before. The worker "
        "does it too, where topics changed enough."
    )
    async def detect_communities(
        self,
        info: Info,
        input: Annotated[
            DetectCommunitiesInput | None, strawberry.argument(description="By which algorithm, and how fine.")
        ] = UNSET,
    ) -> DetectCommunitiesPayload | None:
        wanted = input or DetectCommunitiesInput()

        async def work() -> dict[str, Any]:
            return {"communities": await communities.detect_communities(*_caller(info), wanted.to_domain())}

        return await answered(DetectCommunitiesPayload, work())

    @strawberry.mutation(
        description="Erases all of one subject: events, episodes, beliefs, memories, documents, and what rested on "
        "them alone."
    )
    async def forget_subject(
        self, info: Info, input: Annotated[ForgetSubjectInput, GIVEN]
    ) -> ForgetSubjectPayload | None:
        async def work() -> dict[str, Any]:
            gone = await forgetting.forget_subject(*_caller(info), input.subject_id)
            return {"deleted": [DeletedCount(kind=kind, count=count) for kind, count in sorted(gone.items())]}

        return await answered(ForgetSubjectPayload, work())
