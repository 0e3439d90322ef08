"""Texts are sent to OpenAI as it takes them, and only sound vectors come back."""

import asyncio
import dataclasses
import math

import pytest
from tests.openai_server import Call, Fault, OpenAIServer, bag_of_words, failing, one_vector_less, slow, with_vector

from reverie.ai.embedders import InputRefused
from reverie.ai.openai_embedder import OpenAIEmbedder, OpenAIOptions
from reverie.errors import EmbeddingFailed


async def test_a_request_says_what_openai_must_know(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    (vector,) = await openai_embedder.embed_passages(["one text"])

    assert vector == pytest.approx(bag_of_words("one text", 64), abs=1e-6)
    assert [call.body for call in openai_server.calls] == [
        {"input": ["one text"], "model": "text-embedding-3-small", "dimensions": 64, "encoding_format": "float"}
    ]


async def test_secrets_stay_here(openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder) -> None:
    key = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"

    await openai_embedder.embed_passages([f"The key is {key}, keep it.", "no secret"])
    await openai_embedder.embed_query(f"whose is {key}?")

    sent = [text for call in openai_server.calls for text in call.body["input"]]
    assert [key in text for text in sent] == [False] * 3
    assert sent[0].startswith("The key is ")
    assert sent[1] == "no secret"


async def test_the_usual_model_has_1536_dimensions(openai_server: OpenAIServer) -> None:
    embedder = OpenAIEmbedder(OpenAIOptions(api_key=openai_server.api_key, base_url=openai_server.base_url))

    assert (embedder.name, embedder.dimensions) == ("openai:text-embedding-3-small", 1536)
    assert len(await embedder.embed_query("a")) == 1536
    await embedder.close()


async def test_dimensions_are_asked_only_of_models_that_take_them(
    openai_server: OpenAIServer, openai_options: OpenAIOptions
) -> None:
    openai_server.dimensions["nomic-embed-text"] = 32
    embedder = OpenAIEmbedder(dataclasses.replace(openai_options, model="nomic-embed-text", dimensions=32))

    assert len(await embedder.embed_query("a")) == 32
    assert "dimensions" not in openai_server.calls[0].body
    assert embedder.name == "openai:nomic-embed-text"
    await embedder.close()


def test_options_don_t_show_the_key() -> None:
    assert "sk-secret" not in repr(OpenAIOptions(api_key="sk-secret"))


async def test_requests_stay_within_the_provider_s_limits(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    openai_server.bytes_per_token = 1.5
    short = [f"text {number}" for number in range(300)]
    long = [f"{number} ".ljust(11_000, "x") for number in range(40)]

    vectors = await openai_embedder.embed_passages(short + long)

    together = list(openai_server.calls)
    for place in (0, 63, 64, 299, 300, 339):
        assert vectors[place] == await openai_embedder.embed_query((short + long)[place])
    assert sum(len(call.inputs) for call in together) == 340
    assert all(len(call.inputs) <= 256 for call in together)
    assert all(sum(len(text.encode()) for text in call.inputs) <= 300_000 for call in together)


async def test_few_requests_are_under_way_at_once(openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder) -> None:
    openai_server.fault_for = lambda _: slow(0.5)

    await openai_embedder.embed_passages([f"text {number}" for number in range(64 * 6)])

    begun = [call.at for call in openai_server.calls]
    assert len(begun) == 6
    assert begun[4] - begun[0] >= 0.5


async def test_a_question_doesn_t_queue_behind_passages(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    openai_server.fault_for = lambda call: slow(20.0) if len(call.inputs) > 1 else None
    passages = asyncio.create_task(openai_embedder.embed_passages([f"text {number}" for number in range(1_000)]))
    await openai_server.until_called(4)

    assert len(await asyncio.wait_for(openai_embedder.embed_query("question"), 10.0)) == 64

    passages.cancel()
    await asyncio.wait([passages])


async def test_a_text_over_the_window_is_pooled_by_length(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    (vector,) = await openai_embedder.embed_passages(["a" * 12_000 + "b" * 4_000])

    assert [call.inputs for call in openai_server.calls] == [["a" * 12_000, "b" * 4_000]]
    one, other = bag_of_words("a" * 12_000, 64), bag_of_words("b" * 4_000, 64)
    mean = [3 * x + y for x, y in zip(one, other, strict=True)]
    assert vector == pytest.approx([number / math.hypot(*mean) for number in mean], abs=1e-6)


async def test_a_text_that_is_refused_as_too_long_is_halved_until_it_fits(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    openai_server.bytes_per_token = 0.4
    dense = " ".join(f"word{number}" for number in range(1_000))
    others = [f"text {number}" for number in range(20)]

    vectors = await openai_embedder.embed_passages([*others[:10], dense, *others[10:]])

    assert vectors[:10] + vectors[11:] == await openai_embedder.embed_passages(others)
    assert vectors[10] == (await openai_embedder.embed_passages([dense]))[0]
    assert max(len(text.encode()) for text in openai_server.calls[-1].inputs) <= 0.4 * 8_192


async def test_a_text_that_is_too_long_at_any_length_is_refused(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    openai_server.bytes_per_token = 0.0001

    with pytest.raises(InputRefused, match="answered 400"):
        await openai_embedder.embed_passages(["some words " * 50])

    assert len(openai_server.calls) < 10


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (one_vector_less(), "1 vectors for 2 texts"),
        (with_vector([1.0] * 63), "63 dimensions where 64"),
        (with_vector("AAAAAA=="), "list of numbers"),
        (with_vector(None), "list of numbers"),
        (Fault(edit=lambda answer: answer | {"data": None}), "something else"),
        (Fault(edit=lambda answer: answer | {"data": [None, None]}), "something else"),
        (Fault(edit=lambda _: {"error": "with status 200"}), "something else"),
        (Fault(edit=lambda _: []), "something else"),
        (Fault(edit=lambda _: 7), "something else"),
        (Fault(edit=lambda answer: answer | {"data": [item | {"index": 0} for item in answer["data"]]}), "indexes"),
    ],
)
async def test_an_answer_that_is_wrong_in_form_fails(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder, fault: Fault, words: str
) -> None:
    openai_server.faults.append(fault)

    with pytest.raises(EmbeddingFailed, match=words) as caught:
        await openai_embedder.embed_passages(["a", "b"])

    assert not isinstance(caught.value, InputRefused)
    assert len(openai_server.calls) == 1


@pytest.mark.parametrize("number", [math.nan, math.inf, None, 0.0])
async def test_a_vector_that_means_nothing_is_refused(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder, number: float | None
) -> None:
    openai_server.faults.append(with_vector([number] * 64, place=1))

    with pytest.raises(InputRefused):
        await openai_embedder.embed_passages(["a", "b"])


async def test_vectors_are_ordered_by_their_index(openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder) -> None:
    right = await openai_embedder.embed_passages(["a", "b", "c"])
    openai_server.faults.append(Fault(edit=lambda answer: answer | {"data": answer["data"][::-1]}))

    assert await openai_embedder.embed_passages(["a", "b", "c"]) == right


async def test_vectors_without_an_index_keep_their_order(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    right = await openai_embedder.embed_passages(["a", "b"])
    openai_server.faults.append(
        Fault(edit=lambda answer: answer | {"data": [{"embedding": item["embedding"]} for item in answer["data"]]})
    )

    assert await openai_embedder.embed_passages(["a", "b"]) == right


async def test_vectors_of_another_length_than_one_are_scaled(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    openai_server.faults.append(with_vector([2.0] + [0.0] * 63))

    assert await openai_embedder.embed_query("a") == [1.0] + [0.0] * 63


async def test_one_failing_request_fails_the_call(openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder) -> None:
    def on_the_second(call: Call) -> Fault | None:
        return failing(403) if "text 130" in call.inputs else slow(0.2)

    openai_server.fault_for = on_the_second

    with pytest.raises(EmbeddingFailed, match=r"^Embedding failed: 127\.0\.0\.1 answered 403\.$"):
        await openai_embedder.embed_passages([f"text {number}" for number in range(300)])


async def test_closing_fails_what_is_under_way(openai_server: OpenAIServer, openai_options: OpenAIOptions) -> None:
    openai_server.fault_for = lambda _: slow(20.0)
    embedder = OpenAIEmbedder(openai_options)
    under_way = asyncio.create_task(embedder.embed_query("a"))
    await openai_server.until_called()

    await embedder.close()

    with pytest.raises(EmbeddingFailed):
        await asyncio.wait_for(under_way, 10.0)
    with pytest.raises(EmbeddingFailed, match="closed"):
        await embedder.embed_query("a")
