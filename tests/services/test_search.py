"""Search: both arms complete under every filter, fused into one ranking, for any text, whatever the embedder does."""

import math
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import DIMENSIONS
from tests.openai_server import Fault, OpenAIServer, slow

from reverie.domain.beliefs import BeliefUpsert
from reverie.domain.clock import from_ms, now_ms
from reverie.domain.conversations import ConversationDraft
from reverie.domain.documents import TextDraft
from reverie.domain.entities import EntityDraft, EntityRef, EntityType
from reverie.domain.episodes import EpisodeClosing
from reverie.domain.events import EventDraft, EventType
from reverie.domain.facts import FactBatch, FactDraft
from reverie.domain.ids import new_id
from reverie.domain.memories import MemoryBatch, MemoryDraft, MemoryFilter, MemoryType
from reverie.domain.search import VECTOR_KINDS, Candidates, SearchFilter, SearchKind, SearchMode
from reverie.domain.topics import TopicRef
from reverie.errors import BadInput, Refusals, TooLarge, Unavailable, Unsupported
from reverie.graph import conversations, memories
from reverie.graph.schema import await_words
from reverie.graph.search import Asked, candidates
from reverie.graph.store import Graph
from reverie.graph.writes import Write
from reverie.resources import Resources
from reverie.services.beliefs import upsert_belief
from reverie.services.conversations import create_conversation
from reverie.services.documents import create_document, read_some
from reverie.services.embedding import embed_all
from reverie.services.entities import create_entity
from reverie.services.episodes import close_episode
from reverie.services.events import record_events
from reverie.services.facts import create_fact
from reverie.services.memories import create_memory
from reverie.services.search import Hits, search
from reverie.services.topics import create_topic

PAST, PRESENT, FUTURE = 1_500_000_000_000, 1_750_000_000_000, 4_000_000_000_000
QUERY = [1.0, *[0.0] * (DIMENSIONS - 1)]
"""The vector of what is asked, where a test gives it."""


ONLY_MEMORIES = SearchFilter(kinds=(SearchKind.MEMORY,))


def near(chance: random.Random, lean: float) -> list[float]:
    """A unit vector that leans so far to the query's: 1 for its own, -1 for the opposite."""
    noise = [chance.gauss(0, 1) for _ in range(DIMENSIONS - 1)]
    length = math.hypot(*noise)
    side = math.sqrt(1 - lean * lean)
    return [lean, *(side * part / length for part in noise)]


def ids(hits: Hits) -> list[str]:
    return [hit.node.id for hit in hits.edges]


async def write(
    resources: Resources, tenant: str, drafts: Sequence[tuple[MemoryDraft, list[float]]], *, at: int = PRESENT
) -> list[str]:
    """Memories written with vectors of the test's own, at an instant of the test's own; their ids."""
    made = [new_id() for _ in drafts]
    batch = MemoryBatch(tuple(draft for draft, _ in drafts), True, made, [vector for _, vector in drafts])
    number = await resources.tenant_number(tenant)
    job = [Write(tenant, number, "createMemories", batch, at, None, len(made))]
    await resources.graph.transact(lambda transaction: memories.create_memories(transaction, job))
    await await_words(resources.graph)
    return made


# ---------------------------------------------------------------- filters inside the arms


@dataclass(frozen=True)
class Haystack:
    """2,000 memories with the word asked for; three old ones and three of the future are the least near of them."""

    resources: Resources
    tenant: str
    conversation: str
    topic: str
    entity: str
    old: frozenset[str]
    future: frozenset[str]

    async def find(self, wanted: MemoryFilter, **given: Any) -> Hits:
        filter_ = SearchFilter(memory=wanted)
        return await search(self.resources, self.tenant, "harbour", wanted=filter_, first=200, vector=QUERY, **given)


LED_TO = "MATCH (t:Topic)<-[:HAS_TOPIC]-(:Memory {id: $id})-[:MENTIONS]->(e:Entity) RETURN [t.id, e.id]"


@pytest_asyncio.fixture(scope="module")
async def haystack(resources: Resources) -> Haystack:
    tenant = f"haystack-{uuid4().hex[:12]}"
    chance = random.Random(2_000)  # noqa: S311 - no secret
    number = await resources.tenant_number(tenant)
    thread = [Write(tenant, number, "createConversation", ConversationDraft("rare"), PRESENT)]
    (made,) = await resources.graph.transact(lambda tx: conversations.create_conversations(tx, thread))
    assert isinstance(made, dict)
    hay = [
        (
            MemoryDraft(
                content=f"harbour note {place}", importance=0.5, subject_id=f"s{place % 7}", agent_id=f"a{place % 7}"
            ),
            near(chance, 0.5 + place / 5_000),
        )
        for place in range(1_994)
    ]
    await write(resources, tenant, hay)
    # one word among many: last by word too
    faint = "harbour " + " ".join(f"filler{place}" for place in range(80))
    old = [
        (
            MemoryDraft(
                content=faint,
                memory_type=MemoryType.PROCEDURAL,
                importance=0.99,
                conversation_id=made["conversation"],
                topics=(TopicRef(name="rare"),),
                entities=(EntityRef(name="rare", type=EntityType.PLACE),),
                subject_id="rare",
                agent_id="rare",
                event_time=datetime(1815, 12, 10, tzinfo=UTC),
            ),
            near(chance, -0.9),
        )
        for _ in range(3)
    ]
    old_ids = await write(resources, tenant, old, at=PAST)
    future = [(MemoryDraft(content=faint, event_time=from_ms(FUTURE)), near(chance, -0.9)) for _ in range(3)]
    future_ids = await write(resources, tenant, future, at=FUTURE)
    topic, entity = await resources.graph.read(LED_TO, id=old_ids[0])
    return Haystack(resources, tenant, made["conversation"], topic, entity, frozenset(old_ids), frozenset(future_ids))


def in_both_arms(hits: Hits) -> bool:
    """Whether every hit has a rank in both arms, and the ranks leave no hole."""
    places = list(range(1, len(hits.edges) + 1))
    return (
        sorted(hit.ranked.semantic_rank or 0 for hit in hits.edges) == places
        and sorted(hit.ranked.keyword_rank or 0 for hit in hits.edges) == places
    )


OLD: dict[str, Callable[[Haystack], MemoryFilter]] = {
    "memory types": lambda _: MemoryFilter(memory_types=(MemoryType.PROCEDURAL, MemoryType.SEMANTIC)),
    "importance": lambda _: MemoryFilter(min_importance=0.99),
    "conversation": lambda hay: MemoryFilter(conversation_id=hay.conversation),
    "topics": lambda hay: MemoryFilter(topic_ids=(new_id(), hay.topic)),
    "entities": lambda hay: MemoryFilter(entity_ids=(hay.entity, hay.entity)),
    "subject": lambda _: MemoryFilter(subject_id="rare"),
    "agent": lambda _: MemoryFilter(agent_id="rare"),
    "created before": lambda _: MemoryFilter(created_before=from_ms(PAST + 1)),
    "happened before": lambda _: MemoryFilter(event_before=datetime(1900, 1, 1, tzinfo=UTC)),
    "topic and importance": lambda hay: MemoryFilter(topic_ids=(hay.topic,), min_importance=0.5),
    "topic, entity and conversation": lambda hay: MemoryFilter(
        topic_ids=(hay.topic,), entity_ids=(hay.entity,), conversation_id=hay.conversation
    ),
    "all of them": lambda hay: MemoryFilter(
        memory_types=(MemoryType.PROCEDURAL,),
        min_importance=0.9,
        conversation_id=hay.conversation,
        topic_ids=(hay.topic,),
        entity_ids=(hay.entity,),
        subject_id="rare",
        agent_id="rare",
        created_after=from_ms(PAST),
        created_before=from_ms(PAST + 1),
        event_after=datetime(1800, 1, 1, tzinfo=UTC),
        event_before=datetime(1900, 1, 1, tzinfo=UTC),
    ),
}


@pytest.mark.parametrize("name", OLD)
async def test_three_of_two_thousand_are_found_by_both_arms(haystack: Haystack, name: str) -> None:
    hits = await haystack.find(OLD[name](haystack))

    assert frozenset(ids(hits)) == haystack.old
    assert in_both_arms(hits)


@pytest.mark.parametrize(
    "wanted", [MemoryFilter(created_after=from_ms(FUTURE)), MemoryFilter(event_after=from_ms(FUTURE))], ids=str
)
async def test_three_of_the_future_are_found_by_both_arms(haystack: Haystack, wanted: MemoryFilter) -> None:
    hits = await haystack.find(wanted)

    assert frozenset(ids(hits)) == haystack.future
    assert in_both_arms(hits)


@pytest.mark.parametrize(
    "wanted",
    [
        MemoryFilter(subject_id="nobody"),
        MemoryFilter(topic_ids=()),
        MemoryFilter(entity_ids=("no id",)),
        MemoryFilter(memory_types=()),
        MemoryFilter(min_importance=1.0),
        MemoryFilter(conversation_id="rare"),
    ],
    ids=str,
)
async def test_a_filter_that_fits_nothing_finds_nothing(haystack: Haystack, wanted: MemoryFilter) -> None:
    assert ids(await haystack.find(wanted)) == []


async def test_a_filter_that_fits_most_fills_both_arms(haystack: Haystack) -> None:
    hits = await haystack.find(MemoryFilter(created_after=from_ms(PRESENT), min_importance=0.5))

    by_meaning = [hit for hit in hits.edges if hit.ranked.semantic_rank]
    assert sorted(hit.ranked.semantic_rank or 0 for hit in by_meaning) == list(range(1, 101))
    assert sorted(hit.ranked.keyword_rank for hit in hits.edges if hit.ranked.keyword_rank) == list(range(1, 101))
    assert not frozenset(ids(hits)) & haystack.old


async def test_what_expired_takes_no_place_in_either_arm(resources: Resources, tenant: str) -> None:
    chance = random.Random(9)  # noqa: S311 - no secret
    gone = MemoryDraft(content="harbour harbour harbour", expires_at=from_ms(PRESENT))
    await write(resources, tenant, [(gone, near(chance, 0.99)) for _ in range(450)])
    living = await write(resources, tenant, [(MemoryDraft(content="by the harbour"), near(chance, 0.1))] * 5)
    before = resources.graph.statements

    hits = await search(resources, tenant, "harbour", first=200, vector=QUERY)

    assert sorted(ids(hits)) == sorted(living)
    assert in_both_arms(hits)
    # only where expiry left too few is the store asked again
    assert resources.graph.statements - before == 2


async def test_a_search_is_one_statement_and_another_where_a_filter_left_too_few(haystack: Haystack) -> None:
    counts = []
    for wanted in (MemoryFilter(), MemoryFilter(min_importance=0.5), MemoryFilter(subject_id="rare")):
        before = haystack.resources.graph.statements
        await haystack.find(wanted)
        counts.append(haystack.resources.graph.statements - before)

    assert counts == [1, 1, 2]


# ---------------------------------------------------------------- ranks, scores and pages


async def test_ranks_and_scores_are_those_of_the_arms(resources: Resources, tenant: str) -> None:
    chance = random.Random(3)  # noqa: S311 - no secret
    leans = [0.9, 0.3, -0.2, 0.6, 0.0, -0.8]
    texts = ["crane", "harbour", "harbour harbour", "crane", "the harbour and a long tail of words", "crane"]
    made = await write(
        resources,
        tenant,
        [(MemoryDraft(content=text), near(chance, lean)) for text, lean in zip(texts, leans, strict=True)],
    )

    hits = await search(resources, tenant, "Harbour!", vector=QUERY)

    ranked = {hit.node.id: hit.ranked for hit in hits.edges}
    by_meaning = sorted(range(6), key=lambda place: -leans[place])
    assert [ranked[made[place]].semantic_rank for place in by_meaning] == [1, 2, 3, 4, 5, 6]
    for place, lean in enumerate(leans):
        assert ranked[made[place]].semantic_score == pytest.approx((1 + lean) / 2, abs=1e-4)
    # more of the word in less text is better
    assert [ranked[made[place]].keyword_rank for place in (2, 1, 4)] == [1, 2, 3]
    scores = [ranked[made[place]].keyword_score or 0.0 for place in (2, 1, 4)]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    for place in (0, 3, 5):
        assert (ranked[made[place]].keyword_rank, ranked[made[place]].keyword_score) == (None, None)
    for one in ranked.values():
        assert one.score == pytest.approx(
            sum(1 / (10 + rank) for rank in (one.semantic_rank, one.keyword_rank) if rank is not None)
        )
    fused = [hit.ranked.score for hit in hits.edges]
    assert fused == sorted(fused, reverse=True)


@pytest.mark.parametrize("sizes", [(7,), (1, 60, 200), (50, 50, 50, 50, 1)], ids=str)
async def test_pages_are_cut_from_one_ranking(haystack: Haystack, sizes: tuple[int, ...]) -> None:
    whole = await haystack.find(MemoryFilter())
    assert 100 <= len(whole.edges) <= 200
    assert not whole.has_next

    read: list[str] = []
    after: str | None = None
    for turn in range(len(whole.edges)):
        page = await search(
            haystack.resources,
            haystack.tenant,
            "harbour",
            wanted=SearchFilter(),
            first=sizes[turn % len(sizes)],
            after=after,
            vector=QUERY,
        )
        read += ids(page)
        assert page.has_previous is (turn > 0)
        assert page.has_next is (len(read) < len(whole.edges))
        after = page.page_info.end_cursor
        if not page.has_next:
            break

    assert read == ids(whole)
    assert len(set(read)) == len(read)
    behind = await search(haystack.resources, haystack.tenant, "harbour", first=5, after=after, vector=QUERY)
    assert (ids(behind), behind.has_next, behind.has_previous) == ([], False, True)


async def test_a_cursor_belongs_to_its_search(haystack: Haystack) -> None:
    def ask(**given: Any) -> Awaitable[Hits]:
        asked = {"query": "harbour", "tenant": haystack.tenant, "vector": QUERY, "first": 3, **given}
        return search(haystack.resources, **asked)

    cursor = (await ask()).edges[0].cursor
    await haystack.resources.tenant_number("another")
    before = haystack.resources.graph.statements
    others: list[dict[str, Any]] = [
        {"query": "harbours"},
        {"query": "harbour "},
        {"mode": SearchMode.KEYWORD},
        {"wanted": SearchFilter(kinds=(SearchKind.MEMORY,))},
        {"wanted": SearchFilter(memory=MemoryFilter(min_importance=0.1))},
        {"tenant": "another"},
        {"after": ""},
        {"after": cursor[:-2]},
        {"after": "🙂"},
    ]
    for other in others:
        with pytest.raises(BadInput, match="after: not a cursor"):
            await ask(**{"after": cursor, **other})

    assert haystack.resources.graph.statements == before
    assert len((await ask(after=cursor)).edges) == 3


@pytest.mark.parametrize("first", [-1, 201])
async def test_a_page_that_can_not_be_is_refused(resources: Resources, tenant: str, first: int) -> None:
    with pytest.raises(BadInput, match="first: must be from 0 to 200"):
        await search(resources, tenant, "harbour", first=first)


# ---------------------------------------------------------------- names and times


async def test_what_neighbours_lift_from_far_behind_is_read_too(
    resources: Resources, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    talk = (await create_conversation(resources, tenant, ConversationDraft("berth"), None)).id
    between = [(MemoryDraft(content=f"note {place}"), near(chance, 0.5)) for place in range(60)]
    turns = [(MemoryDraft(content="turn", conversation_id=talk), near(chance, lean)) for lean in (0.99, 0.0, 0.98)]
    made = await write(resources, tenant, [*between, *turns])

    before = resources.graph.statements
    hits = await search(resources, tenant, "berth", mode=SearchMode.SEMANTIC, first=6, vector=QUERY)

    lifted = next(hit for hit in hits.edges if hit.node.id == made[-2])
    assert (lifted.node.content, lifted.ranked.semantic_rank, len(hits.edges)) == ("turn", 63, 6)
    assert resources.graph.statements - before == 2

    async def and_one_goes(graph: Graph, asked: Asked) -> Candidates:
        found = await candidates(graph, asked)
        await graph.execute("MATCH (m:Memory {id: $id}) DETACH DELETE m", id=made[-2])
        return found

    monkeypatch.setattr("reverie.services.search.candidates", and_one_goes)
    left = await search(resources, tenant, "berth", mode=SearchMode.SEMANTIC, first=6, vector=QUERY)

    assert made[-2] not in ids(left)
    assert (len(left.edges), left.has_next) == (6, True)


async def test_what_mentions_an_entity_that_the_question_names_comes_first(resources: Resources, tenant: str) -> None:
    # given: memories that are alike, but for whom they mention
    ann = EntityRef(name="Ann Miller", type=EntityType.PERSON)
    bob = EntityRef(name="Bob", type=EntityType.PERSON)
    await create_entity(resources, tenant, EntityDraft("Ann Miller", EntityType.PERSON, ("Annie",)), None)
    drafts = [MemoryDraft(content="the gate is green", entities=(who,)) for who in (bob, ann, bob, ann)]
    made = await write(resources, tenant, [(draft, QUERY) for draft in drafts])
    # and: a namesake of another tenant
    await create_entity(resources, f"{tenant}-other", EntityDraft("green", EntityType.CONCEPT), None)

    async def found(query: str, mode: SearchMode = SearchMode.HYBRID) -> list[str]:
        return ids(await search(resources, tenant, query, wanted=ONLY_MEMORIES, vector=QUERY, mode=mode))

    for query in ("what colour is the gate of Ann Miller?", "ANNIE's gate, (annie)!", "Is Annie's gate green"):
        assert set((await found(query))[:2]) == {made[1], made[3]}
        assert set((await found(query, SearchMode.SEMANTIC))[:2]) == {made[1], made[3]}
    assert set((await found("bob: gate"))[:2]) == {made[0], made[2]}
    # none, and all alike: as if there were no names
    assert await found("gate of Ann Miller, and of Bob") == await found("gate") == sorted(made)


async def test_what_happened_when_the_question_says_comes_first(resources: Resources, tenant: str) -> None:
    may, june = datetime(2023, 5, 8, tzinfo=UTC), datetime(2023, 6, 8, tzinfo=UTC)
    drafts = [MemoryDraft(content="the gate is green", event_time=when) for when in (june, may, None, may)]
    made = await write(resources, tenant, [(draft, QUERY) for draft in drafts], at=now_ms() - 86_400_000)

    async def found(query: str) -> list[str]:
        return ids(await search(resources, tenant, query, wanted=ONLY_MEMORIES, vector=QUERY))

    assert set((await found("the gate on 9 May"))[:2]) == {made[1], made[3]}
    assert (await found("the gate in June 2023"))[0] == made[0]
    # what has no event happened when it was written
    assert (await found("the gate yesterday"))[0] == made[2]
    assert await found("the gate in June 2022") == sorted(made)


# ---------------------------------------------------------------- kinds


@dataclass(frozen=True)
class Quay:
    """A tenant with one thing of every kind that a word and a meaning lead to."""

    resources: Resources
    tenant: str
    by_kind: dict[SearchKind, str]

    async def find(self, query: str, **given: Any) -> Hits:
        return await search(self.resources, self.tenant, query, **{"first": 200, **given})


LINE = "ECONNREFUSED on 6f9619ff-8b86-d011-b42d-00cf4fc964ff: résumé 部署 プラン 🚀 C++ user_names.py v1.2.3 o'clock"


CHUNK = "MATCH (k:Chunk) WHERE k.tenant = $t RETURN k.id"


@pytest_asyncio.fixture(scope="module")
async def quay(resources: Resources) -> Quay:
    tenant = f"quay-{uuid4().hex[:12]}"
    memory = await create_memory(resources, tenant, MemoryDraft(content=f"The lighthouse is lit. {LINE}"), None)
    fact = await create_fact(
        resources, tenant, FactBatch(FactDraft("the lighthouse", "guides", "ships"), (memory.id,)), None
    )
    entity = await create_entity(resources, tenant, EntityDraft("Pharos", EntityType.PLACE, ("Lighthouse",)), None)
    topic = await create_topic(resources, tenant, "lighthouse keeping", None)
    conversation = await create_conversation(resources, tenant, ConversationDraft("On lighthouses", "quay"), None)
    belief = (await upsert_belief(resources, tenant, BeliefUpsert("mei", "likes", "lighthouses"), None)).belief
    told = EventDraft(EventType.USER_MESSAGE, "The lighthouse is out", "quay", user_id="mei")
    await record_events(resources, tenant, [told], None)
    episode = await close_episode(resources, tenant, EpisodeClosing(thread_id="quay"), None)
    await create_document(resources, tenant, TextDraft(title="Log", text="A lighthouse was seen."), None)
    while await read_some(resources):
        pass
    await embed_all(resources)
    await await_words(resources.graph)
    return Quay(
        resources,
        tenant,
        {
            SearchKind.MEMORY: memory.id,
            SearchKind.FACT: fact.id,
            SearchKind.ENTITY: entity.id,
            SearchKind.TOPIC: topic.id,
            SearchKind.CONVERSATION: conversation.id,
            SearchKind.BELIEF: belief.id,
            SearchKind.EPISODE: episode.id,
            SearchKind.CHUNK: await resources.graph.read(CHUNK, t=tenant),
        },
    )


async def test_every_kind_is_found_by_word_and_those_with_vectors_by_meaning(quay: Quay) -> None:
    hits = await quay.find("lighthouse")

    assert sorted(ids(hits)) == sorted(quay.by_kind.values())
    assert all(hit.ranked.keyword_rank for hit in hits.edges)
    by_meaning = {hit.node.id for hit in hits.edges if hit.ranked.semantic_rank}
    assert by_meaning == {quay.by_kind[kind] for kind in VECTOR_KINDS}
    assert all((hit.ranked.semantic_score is None) is (hit.ranked.semantic_rank is None) for hit in hits.edges)


@pytest.mark.parametrize("kinds", [(kind,) for kind in SearchKind] + [(SearchKind.TOPIC, SearchKind.FACT)], ids=str)
async def test_only_the_kinds_asked_for_are_found(quay: Quay, kinds: tuple[SearchKind, ...]) -> None:
    hits = await quay.find("lighthouse", wanted=SearchFilter(kinds=kinds))

    assert sorted(ids(hits)) == sorted(quay.by_kind[kind] for kind in kinds)


async def test_no_kinds_are_nothing(quay: Quay) -> None:
    assert ids(await quay.find("lighthouse", wanted=SearchFilter(kinds=()))) == []


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (MemoryFilter(min_importance=0.0), (SearchKind.MEMORY,)),
        (MemoryFilter(memory_types=(MemoryType.EPISODIC,)), (SearchKind.MEMORY,)),
        (MemoryFilter(event_before=datetime(2100, 1, 1, tzinfo=UTC)), (SearchKind.MEMORY,)),
        (
            MemoryFilter(created_after=datetime(2020, 1, 1, tzinfo=UTC)),
            (SearchKind.MEMORY, SearchKind.BELIEF, SearchKind.FACT, SearchKind.CONVERSATION),
        ),
        (
            MemoryFilter(created_before=datetime(2100, 1, 1, tzinfo=UTC)),
            (SearchKind.MEMORY, SearchKind.BELIEF, SearchKind.FACT, SearchKind.CONVERSATION),
        ),
        (MemoryFilter(created_before=datetime(2020, 1, 1, tzinfo=UTC)), ()),
    ],
    ids=str,
)
async def test_a_field_that_a_kind_lacks_excludes_it(
    quay: Quay, wanted: MemoryFilter, kinds: tuple[SearchKind, ...]
) -> None:
    hits = await quay.find("lighthouse", wanted=SearchFilter(memory=wanted))

    assert set(ids(hits)) == {quay.by_kind[kind] for kind in kinds}


@pytest.mark.parametrize("mode", SearchMode)
async def test_a_mode_leaves_the_other_arm_out(quay: Quay, mode: SearchMode) -> None:
    hits = await quay.find("lighthouse", mode=mode)

    semantic = {hit.ranked.semantic_rank is not None for hit in hits.edges}
    keyword = {hit.ranked.keyword_rank is not None for hit in hits.edges}
    assert hits.edges
    assert (
        semantic == {SearchMode.HYBRID: {True, False}, SearchMode.SEMANTIC: {True}, SearchMode.KEYWORD: {False}}[mode]
    )
    assert keyword == ({False} if mode is SearchMode.SEMANTIC else {True})


# ---------------------------------------------------------------- any text


@pytest.mark.parametrize(
    "query",
    [
        "ECONNREFUSED",
        "econnrefused",
        "why do we see ECONNREFUSED again?",
        "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        "6F9619FF-8B86-D011-B42D-00CF4FC964FF",
        "resume",
        "RÉSUMÉ",
        "部署",
        "プラン",
        "🚀",
        "C++",
        "user_names.py",
        "userNames",
        "1.2.3",
        "lighthouses",
    ],
)
async def test_a_word_finds_its_line(quay: Quay, query: str) -> None:
    hits = await quay.find(query, mode=SearchMode.KEYWORD)

    assert quay.by_kind[SearchKind.MEMORY] in ids(hits)


async def test_a_word_of_a_question_of_ten_thousand_finds_its_line(quay: Quay) -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    words = ["".join(chance.choices("abcdefghij", k=5)) for _ in range(10_000)]
    words[5_000] = "ECONNREFUSED"
    hits = await quay.find(" ".join(words), wanted=SearchFilter(kinds=(SearchKind.MEMORY,)))

    (hit,) = hits.edges
    assert (hit.ranked.keyword_rank, hit.ranked.semantic_rank) == (1, 1)


async def test_a_question_has_its_most_characters_and_no_more(quay: Quay) -> None:
    assert (await quay.find("lighthouse " * 9_090, mode=SearchMode.KEYWORD)).edges
    with pytest.raises(Refusals) as refused:
        await quay.find("x" * 100_001)
    (refusal,) = refused.value.refusals
    assert isinstance(refusal, TooLarge)
    assert refusal.path == ("query",)


@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000"])
@pytest.mark.parametrize("mode", SearchMode)
async def test_nothing_asked_is_nothing_found(quay: Quay, query: str, mode: SearchMode) -> None:
    before = quay.resources.graph.statements

    assert ids(await quay.find(query, mode=mode)) == []
    assert quay.resources.graph.statements == before


@pytest.mark.parametrize("query", ["!!! ??? ...", "+-&&||", "(", "--", "、。", "\u0301", "\u200d"])
async def test_signs_alone_leave_the_keyword_arm_out(quay: Quay, query: str) -> None:
    hits = await quay.find(query)

    assert {hit.ranked.keyword_rank for hit in hits.edges} == {None}
    assert ids(await quay.find(query, mode=SearchMode.KEYWORD)) == []


async def test_stop_words_alone_are_asked_for(quay: Quay) -> None:
    assert quay.by_kind[SearchKind.MEMORY] in ids(await quay.find("the is on", mode=SearchMode.KEYWORD))
    assert ids(await quay.find("whom", mode=SearchMode.KEYWORD)) == []


SYNTAX = (
    *"+-!(){}[]^\"~*?:\\/&|<>=@#'`,;.$%",
    *("&&", "||", "AND", "OR", "NOT", "TO", "~2", "^4", "words:", "*:*", "[a TO b]", "{a TO *}", "\\u0000", "/.*/"),
    *("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "\u0000", "\u202e", "_", "1m_lighthouse"),
)


@pytest.mark.parametrize("sign", SYNTAX, ids=ascii)
async def test_operators_and_signs_are_data_wherever_they_stand(quay: Quay, sign: str) -> None:
    for query in (
        f"{sign} lighthouse",
        f"lighthouse {sign}",
        f"lighthouse {sign} ship",
        f"{sign}{sign} lighthouse {sign}{sign}",
    ):
        assert quay.by_kind[SearchKind.MEMORY] in ids(await quay.find(query, mode=SearchMode.KEYWORD)), query
    for query in (sign, f"{sign}lighthouse", f"lighthouse{sign}", f"light{sign}house"):
        await quay.find(query, mode=SearchMode.KEYWORD)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(query=st.text(max_size=60))
async def test_any_text_is_a_legal_query(quay: Quay, query: str) -> None:
    assert len((await quay.find(query, mode=SearchMode.KEYWORD)).edges) <= len(quay.by_kind)


# ---------------------------------------------------------------- the embedder


@pytest.fixture
def provider(openai_server: OpenAIServer) -> Iterator[OpenAIServer]:
    """The provider of the vectors, in good health again afterwards."""
    healthy = openai_server.fault_for
    yield openai_server
    openai_server.fault_for = healthy


FAULTS = {
    "down": Fault(status=503, headers={"x-should-retry": "false"}, body={"error": {"message": "no"}}),
    "cut off": Fault(cut=True),
    "slow": slow(5),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_while_the_embedder_fails_words_are_found_all_the_same(
    quay: Quay, provider: OpenAIServer, name: str
) -> None:
    provider.fault_for = lambda _: FAULTS[name]
    impatient = replace(quay, resources=replace(quay.resources, embedding_timeout=0.5))
    query = f"lighthouse {uuid4().hex}"
    started = time.monotonic()

    hits = await impatient.find(query)

    assert time.monotonic() - started < 4
    assert sorted(ids(hits)) == sorted(quay.by_kind.values())
    assert {(hit.ranked.semantic_rank, hit.ranked.semantic_score) for hit in hits.edges} == {(None, None)}
    # nothing found by meaning alone would read as if there were nothing
    with pytest.raises(Unavailable, match="could not be embedded"):
        await impatient.find(query, mode=SearchMode.SEMANTIC)


async def test_all_pages_of_a_search_are_cut_from_one_ranking(quay: Quay, provider: OpenAIServer) -> None:
    healthy = provider.fault_for
    impatient = replace(quay, resources=replace(quay.resources, embedding_timeout=0.5))
    # given: a page of what was found by meaning too, and one of what was found by word while nothing else could be
    both, wordy = f"lighthouse {uuid4().hex}", f"lighthouse {uuid4().hex}"
    vector = await quay.resources.embedder.embed_query("lighthouse") if quay.resources.embedder is not None else []
    first = await quay.find(both, first=3, vector=vector)
    provider.fault_for = lambda _: FAULTS["down"]
    by_word = await impatient.find(wordy, first=3)

    # then: the one isn't gone on with by word, as if nothing were missing
    with pytest.raises(Unavailable, match="the pages before were found by meaning too"):
        await impatient.find(both, after=first.page_info.end_cursor)
    # and: the other isn't gone on with by meaning
    provider.fault_for = healthy
    rest = await quay.find(wordy, after=by_word.page_info.end_cursor)
    assert sorted(ids(by_word) + ids(rest)) == sorted(quay.by_kind.values())
    assert {hit.ranked.semantic_rank for hit in rest.edges} == {None}


async def test_without_an_embedder_search_is_by_word(quay: Quay) -> None:
    wordy = replace(quay, resources=replace(quay.resources, embedder=None))

    hits = await wordy.find("lighthouse")

    assert sorted(ids(hits)) == sorted(quay.by_kind.values())
    assert {hit.ranked.semantic_rank for hit in hits.edges} == {None}
    with pytest.raises(Unsupported) as refused:
        await wordy.find("lighthouse", mode=SearchMode.SEMANTIC)
    assert refused.value.path == ("mode",)


async def test_now_is_the_wall_clock() -> None:
    assert PAST < PRESENT < now_ms() < FUTURE
