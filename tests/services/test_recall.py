"""What search finds beside memories, and memories found through what was said around them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.conftest import Api

from reverie.ai.embedders import Embedder
from reverie.domain.conversations import ConversationDraft
from reverie.domain.memories import MemoryChange, MemoryDraft
from reverie.domain.text import ANALYSIS_VERSION
from reverie.graph.schema import await_words, set_up
from reverie.resources import Resources
from reverie.services.conversations import create_conversation
from reverie.services.embedding import embed_all
from reverie.services.memories import create_memories, create_memory, delete_memory, update_memory

SEARCH = """
query($query: String!, $mode: SearchMode, $filter: SearchFilter) {
  search(query: $query, mode: $mode, filter: $filter) { nodes {
    __typename ... on Belief { subjectId key value epistemicStatus } ... on Episode { summary }
    ... on Memory { content }
  } }
}
"""
CONTEXT = "MATCH (m:Memory {id: $id}) RETURN [m.saidAfter, m.place, m.embedding IS NOT NULL, m:Unembedded]"
WORDLESS = (
    "MATCH (n:Node) WHERE n.tenant = $t SET n.words = null, n.place = null, n.embedding = null REMOVE n:Unembedded"
)
NO_PLACES = "MATCH (c:Conversation) WHERE c.tenant = $t SET c.places = null"
NO_ANALYSIS = "MATCH (s:Store {name: 'reverie'}) SET s.analysis = 1"


async def found(api: Api, query: str, mode: str = "KEYWORD", **wanted: Any) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = (await api(SEARCH, query=query, mode=mode, filter=wanted))["search"]["nodes"]
    return nodes


async def upsert(api: Api, subject: str, key: str, value: str) -> str:
    given = {"subjectId": subject, "key": key, "value": value}
    payload = await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", given)
    return str(payload["belief"]["id"])


async def test_beliefs_are_found_while_they_hold(api: Api, resources: Resources) -> None:
    await upsert(api, "alex", "preference.code_style", "tabs")
    await upsert(api, "alex", "preference.code_style", "spaces")
    other = await upsert(api, "robin", "preference.code_style", "tabs")
    await await_words(resources.graph)
    await embed_all(resources)

    for mode in ("KEYWORD", "SEMANTIC"):
        nodes = await found(api, "which code style does alex prefer", mode, kinds=["BELIEF"])
        assert {(one["subjectId"], one["value"]) for one in nodes} == {("alex", "spaces"), ("robin", "tabs")}
        assert {one["epistemicStatus"] for one in nodes} == {"ACTIVE"}
        nodes = await found(api, "which code style does alex prefer", mode, subjectId="alex")
        assert [(one["__typename"], one["value"]) for one in nodes] == [("Belief", "spaces")]

    await api.mutate("retractBelief", "RetractBeliefInput", "belief { id }", {"id": other})
    await await_words(resources.graph)

    for mode in ("KEYWORD", "SEMANTIC"):
        nodes = await found(api, "code style", mode, kinds=["BELIEF"])
        assert [one["value"] for one in nodes] == ["spaces"]


async def test_closed_episodes_are_found_by_their_summary(api: Api, resources: Resources) -> None:
    for thread, text in (("one", "The harbour crane is stuck again"), ("two", "The invoices of May are missing")):
        event = {"eventType": "USER_MESSAGE", "content": text, "threadId": thread, "userId": "u", "agentId": thread}
        await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": [event]})
    assert await found(api, "harbour crane", kinds=["EPISODE"]) == []

    for thread in ("one", "two"):
        await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", {"threadId": thread})
    await await_words(resources.graph)
    await embed_all(resources)

    for mode in ("KEYWORD", "SEMANTIC"):
        (best, *_) = await found(api, "harbour crane", mode, kinds=["EPISODE"])
        assert "crane is stuck" in best["summary"]
        nodes = await found(api, "harbour crane", mode, agentId="two", kinds=["EPISODE"])
        assert ["invoices" in one["summary"] for one in nodes] in ([], [True])


async def test_a_vector_knows_what_was_said_before(resources: Resources, tenant: str) -> None:
    told: list[str] = []
    embedder = _Listening(resources.embedder, told)
    listening = replace(resources, embedder=embedder)
    thread = (await create_conversation(resources, tenant, ConversationDraft("harbour"), None)).id
    first = await create_memory(listening, tenant, MemoryDraft(content="Where is it?", conversation_id=thread), None)
    batch = [MemoryDraft(content=text, conversation_id=thread) for text in ("In the shed.", "Thank you.")]
    second, third = await create_memories(listening, tenant, batch, None)
    await create_memory(listening, tenant, MemoryDraft(content="Elsewhere."), None)

    assert told == ["Where is it?", "Where is it?\nIn the shed.", "In the shed.\nThank you.", "Elsewhere."]
    assert [await resources.graph.read(CONTEXT, id=one.id) for one in (first, second, third)] == [
        [None, 1, True, False],
        [first.id, 2, True, False],
        [second.id, 3, True, False],
    ]

    # when: one is told anew, those that knew of it are made anew
    told.clear()
    await update_memory(listening, tenant, MemoryChange(id=second.id, content="In the hall."), None)
    assert await resources.graph.read(CONTEXT, id=third.id) == [None, 3, False, True]
    await embed_all(listening)
    assert told == ["Where is it?\nIn the hall.", "In the hall.\nThank you."]
    assert await resources.graph.read(CONTEXT, id=third.id) == [second.id, 3, True, False]

    # and: when one goes, nothing of it is left in a vector
    told.clear()
    await delete_memory(resources, tenant, second.id, None)
    assert await resources.graph.read(CONTEXT, id=third.id) == [None, 3, False, True]
    await embed_all(listening)
    assert told == ["Where is it?\nThank you."]
    assert await resources.graph.read(CONTEXT, id=third.id) == [first.id, 3, True, False]


async def test_no_vector_knows_of_what_went_while_it_was_made(resources: Resources, tenant: str) -> None:
    thread = (await create_conversation(resources, tenant, ConversationDraft("harbour"), None)).id
    first = await create_memory(resources, tenant, MemoryDraft(content="A secret.", conversation_id=thread), None)
    slow = _Listening(resources.embedder, [], pause=1.0)
    writing = asyncio.create_task(
        create_memory(
            replace(resources, embedder=slow), tenant, MemoryDraft(content="Well.", conversation_id=thread), None
        )
    )
    await slow.asked.wait()
    await delete_memory(resources, tenant, first.id, None)

    second = await writing

    assert await resources.graph.read(CONTEXT, id=second.id) == [None, 2, False, True]


@pytest.mark.parametrize("change", [False, True], ids=["new", "changed"])
async def test_no_vector_knows_words_that_were_changed_while_it_was_made(
    resources: Resources, tenant: str, change: bool
) -> None:
    thread = (await create_conversation(resources, tenant, ConversationDraft("harbour"), None)).id
    first = await create_memory(resources, tenant, MemoryDraft(content="A secret.", conversation_id=thread), None)
    draft = MemoryDraft(content="Well.", conversation_id=thread)
    written = await create_memory(resources, tenant, draft, None) if change else None
    slow = replace(resources, embedder=(listening := _Listening(resources.embedder, [], pause=1.0)))
    writing = asyncio.create_task(
        create_memory(slow, tenant, draft, None)
        if written is None
        else update_memory(slow, tenant, MemoryChange(id=written.id, content="Oh."), None)
    )
    await listening.asked.wait()
    await update_memory(resources, tenant, MemoryChange(id=first.id, content="Nothing."), None)

    second = await writing

    assert await resources.graph.read(CONTEXT, id=second.id) == [None, 2, False, True]


async def test_32_writers_of_one_conversation_take_turns(resources: Resources, tenant: str) -> None:
    thread = (await create_conversation(resources, tenant, ConversationDraft("harbour"), None)).id
    drafts = [MemoryDraft(content=f"line {n}", conversation_id=thread) for n in range(32)]

    made = await asyncio.gather(*(create_memory(resources, tenant, draft, None) for draft in drafts))

    places = [(await resources.graph.read(CONTEXT, id=one.id))[1] for one in made]
    assert sorted(places) == list(range(1, 33))


async def test_an_answer_is_found_through_its_question(resources: Resources, api: Api, tenant: str) -> None:
    for question in ("Where do you keep the sextant?", "Is there tea?"):
        thread = (await create_conversation(resources, tenant, ConversationDraft(question), None)).id
        batch = [MemoryDraft(content=text, conversation_id=thread) for text in (question, "Second drawer on the left.")]
        await create_memories(resources, tenant, batch, None)

    nodes = await found(api, "where is the sextant", "HYBRID", kinds=["MEMORY"])

    assert [one["content"] for one in nodes[:2]] == ["Where do you keep the sextant?", "Second drawer on the left."]


async def test_words_of_another_analysis_are_made_anew(resources: Resources, api: Api, tenant: str) -> None:
    thread = (await create_conversation(resources, tenant, ConversationDraft("harbour talk"), None)).id
    batch = [MemoryDraft(content=f"crane number {n}", conversation_id=thread) for n in range(3)]
    made = await create_memories(resources, tenant, batch, None)
    await upsert(api, "alex", "likes.cranes", "old")
    await upsert(api, "alex", "likes.cranes", "new")
    for statement in (WORDLESS, NO_PLACES):
        await resources.graph.execute(statement, t=tenant)
    await resources.graph.execute(NO_ANALYSIS)
    await await_words(resources.graph)
    assert await found(api, "crane") == []

    said: list[str] = []
    record = await set_up(resources.graph, analysis=ANALYSIS_VERSION, notify=said.append)
    await await_words(resources.graph)

    assert record.analysis == ANALYSIS_VERSION
    assert said
    nodes = await found(api, "crane")
    assert {one.get("content", one.get("value")) for one in nodes} == {*(draft.content for draft in batch), "new"}
    assert [(await resources.graph.read(CONTEXT, id=one.id))[1:] for one in made] == [
        [place, False, True] for place in (1, 2, 3)
    ]


class _Listening:
    """The session's embedder, with what it was told, and a pause before it answers."""

    def __init__(self, embedder: Embedder | None, told: list[str], pause: float = 0.0) -> None:
        assert embedder is not None
        self._embedder = embedder
        self._told = told
        self._pause = pause
        self.asked = asyncio.Event()
        self.name, self.dimensions, self.batch_size = embedder.name, embedder.dimensions, embedder.batch_size

    async def embed_query(self, text: str) -> list[float]:
        return await self._embedder.embed_query(text)

    async def embed_passages(self, texts: Any) -> list[list[float]]:
        self._told.extend(texts)
        self.asked.set()
        await asyncio.sleep(self._pause)
        return await self._embedder.embed_passages(texts)

    async def close(self) -> None:
        """The session's embedder is the session's to close."""
