"""The queries: each unpacks its arguments, reads once, and wraps what came."""

from typing import Annotated, Any

import strawberry
from strawberry import UNSET

from reverie import __version__
from reverie.api import reads
from reverie.api.context import Info
from reverie.api.types.beliefs import Belief
from reverie.api.types.communities import Community
from reverie.api.types.connections import (
    After,
    Before,
    BeliefChangeConnection,
    BeliefConnection,
    CommunityConnection,
    ConversationConnection,
    DocumentConnection,
    EntityConnection,
    EpisodeConnection,
    EventConnection,
    FactConnection,
    Filter,
    First,
    Last,
    MemoryConnection,
    Ordering,
    TopicConnection,
    page_args,
)
from reverie.api.types.context import Context, ContextInput
from reverie.api.types.conversations import Conversation
from reverie.api.types.documents import Document
from reverie.api.types.dreams import Dream
from reverie.api.types.entities import Entity
from reverie.api.types.episodes import Episode
from reverie.api.types.events import Event
from reverie.api.types.facts import Fact
from reverie.api.types.filters import (
    BeliefChangeFilter,
    BeliefFilter,
    EpisodeFilter,
    EventFilter,
    NameOrder,
    SearchFilter,
)
from reverie.api.types.given import given_or, given_or_none
from reverie.api.types.maps import Graph, GraphInput
from reverie.api.types.memories import Memory
from reverie.api.types.nodes import Node
from reverie.api.types.search import SearchConnection
from reverie.api.types.server import Server
from reverie.api.types.topics import Topic
from reverie.domain import (
    beliefs,
    communities,
    conversations,
    documents,
    entities,
    episodes,
    events,
    facts,
    memories,
    policy,
    topics,
)
from reverie.domain.changes import EVERY_CHANGE
from reverie.domain.communities import CommunityAlgorithm
from reverie.domain.entities import EntityType
from reverie.domain.search import SearchMode
from reverie.errors import BadInput, TooLarge
from reverie.services import context as remembering
from reverie.services import dreaming
from reverie.services import search as searching

Id = Annotated[strawberry.ID, strawberry.argument(description="Its id.")]
MaybeId = Annotated[strawberry.ID | None, strawberry.argument(description="Its id.")]
Name = Annotated[str | None, strawberry.argument(description="One of its names, instead of its id.")]
Thread = Annotated[str | None, strawberry.argument(description="Its thread, instead of its id.")]
Type = Annotated[EntityType | None, strawberry.argument(description="Of this type only.")]
StartsWith = Annotated[
    str | None, strawberry.argument(description="Only names that begin so, letter case and width aside.")
]
Contains = Annotated[
    str | None, strawberry.argument(description="Only titles that contain this, letter case and width aside.")
]
NameOrdering = Annotated[NameOrder | None, strawberry.argument(description="How to sort; by name unless given.")]
TitleOrdering = Annotated[
    NameOrder | None, strawberry.argument(description="How to sort; last changed first unless given.")
]
Exactly = "Only facts with this {}, letter case, width and blanks aside."


async def _node(info: Info, node_id: str, kind: type) -> Any:
    found = await info.context.loaders.node(node_id)
    return found if isinstance(found, kind) else None


def _one_of(**given: Any) -> None:
    """Refuses a look-up that names none, or several, of its ways."""
    names = [name for name, value in given.items() if given_or_none(value) is not None]
    if len(names) != 1:
        raise BadInput(f"takes one of {' and '.join(given)}", (next(iter(given)),))


@strawberry.type(description="What can be read.")
class Query:
    @strawberry.field(description="Anything by its id; null where the id leads nowhere.")
    async def node(self, info: Info, id: Id) -> Node | None:
        return await info.context.loaders.node(id)  # type: ignore[no-any-return]  # a domain value, known by is_type_of

    @strawberry.field(description="Things by their ids, in order; null in the place of an id that leads nowhere.")
    async def nodes(
        self, info: Info, ids: Annotated[list[strawberry.ID], strawberry.argument(description="At most 200 ids.")]
    ) -> list[Node | None] | None:
        if len(ids) > policy.REFERENCES_MOST:
            raise TooLarge(f"ids: has {len(ids)} members, {policy.REFERENCES_MOST} at most", ("ids",))
        return await info.context.loaders.nodes_by_id(ids)

    @strawberry.field(description="A memory by its id.")
    async def memory(self, info: Info, id: Id) -> Memory | None:
        return await _node(info, id, memories.Memory)  # type: ignore[no-any-return]  # a domain value

    @strawberry.field(description="The memories, newest first unless sorted otherwise.")
    async def memories(
        self,
        info: Info,
        filter: Filter = UNSET,
        order_by: Ordering = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> MemoryConnection | None:
        return await reads.memories(  # type: ignore[return-value]  # a page of domain values
            info.context,
            filter.to_domain() if filter else None,
            order_by.to_domain() if order_by else None,
            page_args(first, after, last, before),
        )

    @strawberry.field(description="A conversation by its id or its thread.")
    async def conversation(
        self,
        info: Info,
        id: MaybeId = UNSET,
        thread_id: Thread = UNSET,
    ) -> Conversation | None:
        _one_of(id=id, threadId=thread_id)
        found = given_or_none(id) or await reads.conversation_id(info.context, given_or(thread_id, ""))
        return None if found is None else await _node(info, found, conversations.Conversation)

    @strawberry.field(description="The conversations, last changed first unless sorted otherwise.")
    async def conversations(
        self,
        info: Info,
        title_contains: Contains = UNSET,
        order_by: TitleOrdering = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> ConversationConnection | None:
        return await reads.conversations_titled(  # type: ignore[return-value]  # a page of domain values
            info.context,
            given_or_none(title_contains),
            order_by.to_domain() if order_by else None,
            page_args(first, after, last, before),
        )

    @strawberry.field(description="A topic by its id or one of its names.")
    async def topic(
        self,
        info: Info,
        id: MaybeId = UNSET,
        name: Name = UNSET,
    ) -> Topic | None:
        _one_of(id=id, name=name)
        found = given_or_none(id) or await reads.topic_id(info.context, given_or(name, ""))
        return None if found is None else await _node(info, found, topics.Topic)

    @strawberry.field(description="The topics, by name unless sorted otherwise.")
    async def topics(
        self,
        info: Info,
        name_starts_with: StartsWith = UNSET,
        order_by: NameOrdering = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> TopicConnection | None:
        return await reads.topics_named(  # type: ignore[return-value]  # a page of domain values
            info.context,
            given_or_none(name_starts_with),
            order_by.to_domain() if order_by else None,
            page_args(first, after, last, before),
        )

    @strawberry.field(description="A fact by its id.")
    async def fact(self, info: Info, id: Id) -> Fact | None:
        return await _node(info, id, facts.Fact)  # type: ignore[no-any-return]  # a domain value

    @strawberry.field(description="The facts, newest first.")
    async def facts(
        self,
        info: Info,
        subject: Annotated[str | None, strawberry.argument(description=Exactly.format("subject"))] = UNSET,
        predicate: Annotated[str | None, strawberry.argument(description=Exactly.format("predicate"))] = UNSET,
        object: Annotated[str | None, strawberry.argument(description=Exactly.format("object"))] = UNSET,
        min_confidence: Annotated[
            float | None, strawberry.argument(description="Only facts at least this sure, 0 to 1.")
        ] = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> FactConnection | None:
        wanted = facts.FactFilter(
            subject=given_or_none(subject),
            predicate=given_or_none(predicate),
            object=given_or_none(object),
            min_confidence=given_or_none(min_confidence),
        )
        return await reads.facts(info.context, wanted, page_args(first, after, last, before))  # type: ignore[return-value]  # a page of domain values

    @strawberry.field(description="An entity by its id, or by a name that leads to one entity only.")
    async def entity(
        self,
        info: Info,
        id: MaybeId = UNSET,
        name: Name = UNSET,
        type: Type = UNSET,
    ) -> Entity | None:
        _one_of(id=id, name=name)
        if given_or_none(id) is not None:
            return await _node(info, given_or(id, strawberry.ID("")), entities.Entity)  # type: ignore[no-any-return]  # a domain value
        found = await reads.entity_ids(info.context, given_or(name, ""), type.value if type else None)
        if len(found) > 1:
            raise BadInput(f"{len(found)} entities have the name {name!r}: name a type too", ("type",))
        return await _node(info, found[0], entities.Entity) if found else None

    @strawberry.field(description="The entities, by name unless sorted otherwise.")
    async def entities(
        self,
        info: Info,
        type: Type = UNSET,
        name_starts_with: StartsWith = UNSET,
        order_by: NameOrdering = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> EntityConnection | None:
        return await reads.entities_named(  # type: ignore[return-value]  # a page of domain values
            info.context,
            type.value if type else None,
            given_or_none(name_starts_with),
            order_by.to_domain() if order_by else None,
            page_args(first, after, last, before),
        )

    @strawberry.field(description="A community by its id.")
    async def community(self, info: Info, id: Id) -> Community | None:
        return await _node(info, id, communities.Community)  # type: ignore[no-any-return]  # a domain value

    @strawberry.field(description="The communities, by name.")
    async def communities(
        self,
        info: Info,
        algorithm: Annotated[
            CommunityAlgorithm | None, strawberry.argument(description="Only those this algorithm found.")
        ] = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> CommunityConnection | None:
        chosen = algorithm.value if algorithm else None
        return await reads.communities(info.context, chosen, page_args(first, after, last, before))  # type: ignore[return-value]  # a page of domain values

    @strawberry.field(description="An event by its id.")
    async def event(self, info: Info, id: Id) -> Event | None:
        return await _node(info, id, events.Event)  # type: ignore[no-any-return]  # a domain value

    @strawberry.field(description="The events, last happened first.")
    async def events(
        self,
        info: Info,
        filter: Annotated[
            EventFilter | None, strawberry.argument(description="Only events for which all of this holds.")
        ] = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> EventConnection | None:
        return await reads.events(  # type: ignore[return-value]  # a page of domain values
            info.context, filter.to_domain() if filter else None, page_args(first, after, last, before)
        )

    @strawberry.field(description="An episode by its id.")
    async def episode(self, info: Info, id: Id) -> Episode | None:
        return await _node(info, id, episodes.Episode)  # type: ignore[no-any-return]  # a domain value

    @strawberry.field(description="The episodes, last begun first.")
    async def episodes(
        self,
        info: Info,
        filter: Annotated[
            EpisodeFilter | None, strawberry.argument(description="Only episodes for which all of this holds.")
        ] = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> EpisodeConnection | None:
        return await reads.episodes(  # type: ignore[return-value]  # a page of domain values
            info.context, filter.to_domain() if filter else None, page_args(first, after, last, before)
        )

    @strawberry.field(description="A version by its id, or the one that holds for a subject and key.")
    async def belief(
        self,
        info: Info,
        id: MaybeId = UNSET,
        subject_id: Annotated[
            str | None, strawberry.argument(description="Its subject, with `key` instead of an id.")
        ] = UNSET,
        key: Annotated[str | None, strawberry.argument(description="Its key, with `subjectId`.")] = UNSET,
    ) -> Belief | None:
        _one_of(id=id, subjectId=subject_id)
        if (given_or_none(subject_id) is None) != (given_or_none(key) is None):
            raise BadInput("subjectId and key go together", ("key",))
        if given_or_none(id) is not None:
            return await _node(info, given_or(id, strawberry.ID("")), beliefs.Belief)  # type: ignore[no-any-return]  # a domain value
        return await reads.current_belief(info.context, given_or(subject_id, ""), given_or(key, ""))  # type: ignore[return-value]  # a domain value

    @strawberry.field(description="The beliefs, those that began last first; ACTIVE ones alone unless asked otherwise.")
    async def beliefs(
        self,
        info: Info,
        filter: Annotated[
            BeliefFilter | None, strawberry.argument(description="Only versions for which all of this holds.")
        ] = UNSET,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> BeliefConnection | None:
        wanted = filter.to_domain() if filter else None
        return await reads.beliefs(info.context, wanted, page_args(first, after, last, before))  # type: ignore[return-value]  # a page of domain values

    @strawberry.field(
        description="The change log, oldest first; its cursors and the subscription's are the same. CURSOR_EXPIRED "
        "where the log doesn't reach back to `after`."
    )
    async def belief_changes(
        self,
        info: Info,
        filter: Annotated[
            BeliefChangeFilter | None, strawberry.argument(description="Only changes for which all of this holds.")
        ] = UNSET,
        first: First = UNSET,
        after: After = UNSET,
    ) -> BeliefChangeConnection | None:
        wanted = filter.to_domain() if filter else EVERY_CHANGE
        return await reads.belief_changes(info.context, wanted, given_or_none(first), given_or_none(after))  # type: ignore[return-value]  # a page of domain values

    @strawberry.field(
        description="Where the change log ends now: read it before a snapshot, then subscribe after it, and nothing "
        "is missed between the two."
    )
    async def changes_cursor(self, info: Info) -> str | None:
        return await reads.changes_cursor(info.context)

    @strawberry.field(
        description="What serves a question best, found by meaning and by word. Any text is a legal query; a page is "
        "cut from one ranking of at most 200 hits."
    )
    async def search(
        self,
        info: Info,
        query: Annotated[str, strawberry.argument(description="What is asked, in any words.")],
        mode: Annotated[
            SearchMode | None, strawberry.argument(description="By meaning, by word, or both.")
        ] = SearchMode.HYBRID,
        filter: Annotated[SearchFilter | None, strawberry.argument(description="What is searched.")] = UNSET,
        first: Annotated[int | None, strawberry.argument(description="How many hits: 0 to 200.")] = 10,
        after: After = UNSET,
    ) -> SearchConnection | None:
        return await searching.search(  # type: ignore[return-value]  # hits with domain values
            info.context.resources,
            info.context.tenant,
            query,
            mode=given_or(mode, SearchMode.HYBRID),
            wanted=filter.to_search() if filter else None,
            first=given_or(first, 10),
            after=given_or_none(after),
        )

    @strawberry.field(description="What of the memory serves a question, within a budget of tokens, prompt-ready.")
    async def context(
        self, info: Info, input: Annotated[ContextInput, strawberry.argument(description="What it is for.")]
    ) -> Context | None:
        request = input.to_domain()
        return await remembering.context(info.context.resources, info.context.tenant, request)  # type: ignore[return-value]  # domain values

    @strawberry.field(
        description="A part of the graph, to be drawn: what is around some nodes, or around the most connected."
    )
    async def graph(
        self,
        info: Info,
        input: Annotated[
            GraphInput | None, strawberry.argument(description="Around what, how far and how much.")
        ] = UNSET,
    ) -> Graph | None:
        return await reads.graph(info.context, (input or GraphInput()).to_domain())  # type: ignore[return-value]  # a domain value

    @strawberry.field(description="A dream by its id.")
    async def dream(self, info: Info, id: Id) -> Dream | None:
        return await dreaming.find_dream(info.context.resources, info.context.tenant, id)  # type: ignore[return-value]  # a domain value

    @strawberry.field(description="A document by its id.")
    async def document(self, info: Info, id: Id) -> Document | None:
        return await _node(info, id, documents.Document)  # type: ignore[no-any-return]  # a domain value

    @strawberry.field(description="The documents, newest first.")
    async def documents(
        self,
        info: Info,
        first: First = UNSET,
        after: After = UNSET,
        last: Last = UNSET,
        before: Before = UNSET,
    ) -> DocumentConnection | None:
        return await reads.documents(info.context, page_args(first, after, last, before))  # type: ignore[return-value]  # a page of domain values

    @strawberry.field(description="The server itself.")
    async def server(self, info: Info) -> Server | None:
        resources = info.context.resources
        embedder = resources.embedder
        return Server(
            version=__version__,
            neo4j_version=resources.neo4j_version,
            embedder=None if embedder is None else embedder.name,
            embedding_dimensions=None if embedder is None else embedder.dimensions,
            extractor=resources.extractor.name,
        )
