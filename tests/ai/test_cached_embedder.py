"""A cached embedder asks the other one as seldom as it can, and mixes up nobody's texts."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest
from tests.openai_server import OpenAIServer, failing, slow

from reverie.ai.cached_embedder import CachedEmbedder
from reverie.ai.embedders import InputRefused
from reverie.ai.local_embedder import LocalEmbedder
from reverie.ai.openai_embedder import OpenAIEmbedder, OpenAIOptions
from reverie.errors import EmbeddingFailed


@pytest.fixture
async def cached(openai_options: OpenAIOptions) -> AsyncIterator[CachedEmbedder]:
    embedder = CachedEmbedder(OpenAIEmbedder(openai_options), entries=300)
    yield embedder
    await embedder.close()


def asked(server: OpenAIServer) -> list[list[str]]:
    return [call.inputs for call in server.calls]


async def all_of(embedder: CachedEmbedder, texts: Iterable[str]) -> list[list[list[float]] | BaseException]:
    """What as many callers get who ask for one passage each at the same time."""
    return await asyncio.gather(*(embedder.embed_passages([text]) for text in texts), return_exceptions=True)


async def test_a_text_known_isn_t_asked_for(openai_server: OpenAIServer, cached: CachedEmbedder) -> None:
    first = await cached.embed_passages(["a", "b", "a"])
    again = await cached.embed_passages(["b", "a", "c"])

    assert (again[0], again[1]) == (first[1], first[0])
    assert asked(openai_server) == [["a", "b"], ["c"]]


async def test_a_question_and_a_passage_of_the_same_words_are_two_texts(
    openai_server: OpenAIServer, cached: CachedEmbedder, local_embedder: LocalEmbedder
) -> None:
    await cached.embed_query("same words")
    await cached.embed_query("same words")
    await cached.embed_passages(["same words"])
    local = CachedEmbedder(local_embedder)

    assert asked(openai_server) == [["same words"], ["same words"]]
    assert await local.embed_query("same words") != (await local.embed_passages(["same words"]))[0]


async def test_the_text_used_longest_ago_is_forgotten(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    cached = CachedEmbedder(openai_embedder, entries=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await cached.embed_query(text)

    assert asked(openai_server) == [["a"], ["b"], ["c"], ["b"]]


async def test_more_texts_than_are_kept_are_embedded_all_the_same(openai_embedder: OpenAIEmbedder) -> None:
    cached = CachedEmbedder(openai_embedder, entries=2)
    texts = [f"text {number}" for number in range(5)]

    assert await cached.embed_passages(texts) == await openai_embedder.embed_passages(texts)


async def test_equal_texts_at_once_are_asked_for_once(openai_server: OpenAIServer, cached: CachedEmbedder) -> None:
    openai_server.fault_for = lambda _: slow(0.2)

    questions = await asyncio.gather(*(cached.embed_query("the same question") for _ in range(32)))
    passages = await all_of(cached, ["the same passage"] * 32)

    assert asked(openai_server) == [["the same question"], ["the same passage"]]
    assert all(vector == questions[0] for vector in questions)
    assert all(vectors == passages[0] for vectors in passages)


async def test_small_calls_at_once_travel_together(
    openai_server: OpenAIServer, cached: CachedEmbedder, openai_embedder: OpenAIEmbedder
) -> None:
    texts = [f"text {number}" for number in range(32)]

    vectors = await all_of(cached, texts)

    assert asked(openai_server) == [texts]
    assert vectors == [[vector] for vector in await openai_embedder.embed_passages(texts)]


async def test_small_calls_wait_for_the_next_joined_one_while_enough_are_under_way(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    cached = CachedEmbedder(openai_embedder, calls_at_once=1)
    openai_server.fault_for = lambda _: slow(0.3)
    first = asyncio.create_task(cached.embed_passages(["first"]))
    await openai_server.until_called()

    await asyncio.gather(first, *(cached.embed_passages([text]) for text in ("second", "third", "fourth")))

    assert asked(openai_server) == [["first"], ["second", "third", "fourth"]]


async def test_a_large_call_is_no_one_s_company(openai_server: OpenAIServer, cached: CachedEmbedder) -> None:
    large = [f"text {number}" for number in range(40)]

    await asyncio.gather(cached.embed_passages(large), cached.embed_passages(["small"]))

    assert sorted(map(len, asked(openai_server))) == [1, 40]


async def test_a_refused_text_fails_only_its_own_caller(openai_server: OpenAIServer, cached: CachedEmbedder) -> None:
    openai_server.fault_for = lambda call: failing(400) if "poison" in call.inputs else None

    answers = await all_of(cached, ["a", "poison", "b"])

    assert [isinstance(answer, InputRefused) for answer in answers] == [False, True, False]
    joined, *alone = asked(openai_server)
    assert joined == ["a", "poison", "b"]
    assert sorted(alone) == [["a"], ["b"], ["poison"]]


async def test_a_failure_isn_t_remembered(openai_server: OpenAIServer, cached: CachedEmbedder) -> None:
    openai_server.faults.append(failing(403))

    answers = await all_of(cached, ["a", "b"])

    assert all(isinstance(answer, EmbeddingFailed) for answer in answers)
    assert len(await cached.embed_passages(["a", "b"])) == 2


async def test_a_cancelled_caller_takes_nothing_from_another(
    openai_server: OpenAIServer, cached: CachedEmbedder
) -> None:
    openai_server.fault_for = lambda _: slow(0.3)
    one = asyncio.create_task(cached.embed_query("the same"))
    other = asyncio.create_task(cached.embed_query("the same"))
    await openai_server.until_called()

    one.cancel()

    assert len(await other) == 64
    assert one.cancelled()
    assert len(openai_server.calls) == 1


async def test_a_call_that_nobody_waits_for_is_dropped(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    cached = CachedEmbedder(openai_embedder, calls_at_once=1)
    openai_server.fault_for = lambda _: slow(20.0)
    under_way = asyncio.create_task(cached.embed_passages(["under way"]))
    await openai_server.until_called()
    waiting = asyncio.create_task(cached.embed_passages(["waiting"]))
    await asyncio.sleep(0.05)

    for caller in (waiting, under_way):
        caller.cancel()
    await asyncio.wait([waiting, under_way])
    openai_server.fault_for = lambda _: None

    assert len(await asyncio.wait_for(cached.embed_passages(["under way", "next"]), 10.0)) == 2
    assert asked(openai_server) == [["under way"], ["under way", "next"]]


async def test_closing_fails_all_callers(openai_server: OpenAIServer, openai_options: OpenAIOptions) -> None:
    cached = CachedEmbedder(OpenAIEmbedder(openai_options), calls_at_once=1)
    openai_server.fault_for = lambda _: slow(20.0)
    under_way = asyncio.create_task(cached.embed_passages(["under way"]))
    await openai_server.until_called()
    waiting = asyncio.create_task(cached.embed_passages(["waiting"]))
    question = asyncio.create_task(cached.embed_query("question"))
    await openai_server.until_called(2)

    await cached.close()

    everyone = asyncio.gather(under_way, waiting, question, return_exceptions=True)
    answers = await asyncio.wait_for(everyone, 10.0)
    assert [type(answer) for answer in answers] == [EmbeddingFailed] * 3


async def test_a_fault_of_the_other_s_own_reaches_the_caller() -> None:
    class Broken:
        name, dimensions, batch_size = "broken", 1, 128

        async def embed_query(self, text: str) -> list[float]:
            raise ZeroDivisionError(text)

        async def embed_passages(self, texts: object) -> list[list[float]]:
            raise ZeroDivisionError(texts)

        async def close(self) -> None:
            """Has nothing open."""

    cached = CachedEmbedder(Broken())

    with pytest.raises(ZeroDivisionError):
        await cached.embed_query("a")
    with pytest.raises(ZeroDivisionError):
        await cached.embed_passages(["a"])
