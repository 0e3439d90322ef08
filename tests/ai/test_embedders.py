"""The contract that every embedder keeps, and embedding within a time limit."""

import logging
import math
import operator
import time

import pytest
from tests.openai_server import Call, Fault, OpenAIServer, failing, slow, with_vector

from reverie.ai.cached_embedder import CachedEmbedder
from reverie.ai.embedders import Embedder, embed_within
from reverie.ai.local_embedder import LocalEmbedder
from reverie.ai.openai_embedder import OpenAIEmbedder, OpenAIOptions

LEGAL_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "nul": "a\0b",
    "only nul": "\0",
    "lone surrogate": "half \ud83d a smile",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈😀",
    "chinese": "部署失败了,因为数据库无法访问。",
    "japanese": "昨日のデプロイに問題がありました。",
    "korean": "어제 배포에 문제가 있었습니다.",
    "arabic": "صلى الله عليه وسلم ﷺ",
    "sign that grows when spelled out": "ﷺ" * 40,
    "combining marks": "Z̸̡̛̺͍͔a̵l̶g̷o̸",
    "control characters": "\x01\x02\x7f\u200b\u202e\ufeff",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "signs": '++-&&||!(){}[]^"~*?:\\/',
    "100,000 characters": "cell".ljust(500) * 200,
    "nowhere to cut": "=" * 2_100,
}


@pytest.fixture(params=["openai", "local", "openai, cached", "local, cached"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    kind, _, cached = request.param.partition(", ")
    inner: Embedder = request.getfixturevalue(f"{kind}_embedder")
    return CachedEmbedder(inner) if cached else inner


def cosine(one: list[float], other: list[float]) -> float:
    return math.fsum(map(operator.mul, one, other))


def is_unit_vector_of(embedder: Embedder, vector: list[float]) -> bool:
    return len(vector) == embedder.dimensions and math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-6)


async def test_it_says_what_it_is(embedder: Embedder) -> None:
    assert (embedder.name, embedder.dimensions) in {
        ("openai:text-embedding-3-small", 64),
        ("local:multilingual-e5-small-q4", 384),
    }
    assert embedder.batch_size >= 1


async def test_passages_come_in_order_and_are_the_same_alone_and_together(embedder: Embedder) -> None:
    texts = ["the build is red", "lunch at noon", "the build is red", "we deploy on Friday"]

    together = await embedder.embed_passages(texts)
    alone = [(await embedder.embed_passages([text]))[0] for text in texts]

    assert all(is_unit_vector_of(embedder, vector) for vector in together)
    assert together == alone
    assert together[0] == together[2]
    assert together[0] != together[1]


async def test_no_passages_give_no_vectors(embedder: Embedder) -> None:
    assert await embedder.embed_passages([]) == []


async def test_a_question_is_nearest_to_the_passage_that_answers_it(embedder: Embedder) -> None:
    passages = ["The deployment of the billing service failed.", "Anna likes hiking.", "Lunch is at noon on Friday."]

    question = await embedder.embed_query("which deployment of the billing service failed?")
    near = [cosine(question, vector) for vector in await embedder.embed_passages(passages)]

    assert is_unit_vector_of(embedder, question)
    assert near[0] == max(near)
    assert near[0] > sorted(near)[-2]


@pytest.mark.parametrize("text", LEGAL_TEXTS.values(), ids=LEGAL_TEXTS.keys())
async def test_any_text_is_legal(embedder: Embedder, text: str) -> None:
    assert is_unit_vector_of(embedder, await embedder.embed_query(text))
    (vector,) = await embedder.embed_passages([text])
    assert is_unit_vector_of(embedder, vector)


async def test_the_end_of_a_long_text_counts(embedder: Embedder) -> None:
    filler = "word".ljust(500) * 25
    plain, with_end, end = await embedder.embed_passages(
        [filler, filler + " pineapple pizza recipe", "pineapple pizza recipe"]
    )

    assert cosine(with_end, end) > cosine(plain, end)


async def test_a_returned_vector_is_the_callers_own(embedder: Embedder) -> None:
    first = await embedder.embed_query("mine")
    kept = list(first)
    first[0] = 7.0

    assert await embedder.embed_query("mine") == kept


# --- embed_within


def texts(count: int) -> list[str]:
    return [f"text number {number}" for number in range(count)]


async def test_within_its_time_everything_is_embedded(embedder: Embedder) -> None:
    asked = texts(5)

    assert await embed_within(embedder, asked, 20.0) == await embedder.embed_passages(asked)
    assert await embed_within(embedder, [], 1.0) == []


async def test_what_is_done_in_time_is_kept(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    last = texts(300)[-1]
    openai_server.fault_for = lambda call: slow(20.0) if last in call.inputs else None
    start = time.monotonic()

    vectors = await embed_within(openai_embedder, texts(300), 2.0)

    assert time.monotonic() - start < 10.0
    assert [vector is not None for vector in vectors] == [True] * 256 + [False] * 44
    (record,) = [record for record in caplog.records if record.name == "reverie.ai.embedders"]
    assert record.levelno == logging.WARNING
    assert record.__dict__["embedder"] == "openai:text-embedding-3-small"
    assert record.__dict__["texts"] == 300
    assert record.__dict__["missing"] == 44
    assert "2 s" in record.__dict__["reason"]


async def test_a_failing_chunk_loses_no_other(openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder) -> None:
    openai_server.fault_for = lambda call: failing(403) if "text number 0" in call.inputs else None

    vectors = await embed_within(openai_embedder, texts(200), 10.0)

    assert [vector is not None for vector in vectors] == [False] * 64 + [True] * 136


@pytest.mark.parametrize("fault", [failing(400, "This text isn't allowed."), with_vector([math.nan] * 64)])
async def test_a_text_that_is_refused_loses_no_other(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    def on_the_poison(call: Call) -> Fault | None:
        return fault if "text number 17" in call.inputs else None

    openai_server.fault_for = on_the_poison
    asked = texts(40)

    vectors = await embed_within(openai_embedder, asked, 10.0)

    assert [place for place, vector in enumerate(vectors) if vector is None] == [17]
    openai_server.fault_for = lambda _: None
    assert vectors[:17] + vectors[18:] == await openai_embedder.embed_passages(asked[:17] + asked[18:])
    assert len([record for record in caplog.records if record.name == "reverie.ai.embedders"]) == 1
    assert "text number" not in caplog.text


async def test_a_provider_that_refuses_everything_is_left_alone(
    openai_server: OpenAIServer, openai_embedder: OpenAIEmbedder
) -> None:
    openai_server.fault_for = lambda _: failing(400, "No.")

    assert await embed_within(openai_embedder, texts(500), 10.0) == [None] * 500
    assert len(openai_server.calls) < 60


async def test_a_provider_that_is_down_raises_nothing(openai_options: OpenAIOptions) -> None:
    embedder = OpenAIEmbedder(
        OpenAIOptions(api_key="k", base_url="http://127.0.0.1:9/v1", max_attempts=1, timeout=2.0, deadline=2.0)
    )

    assert await embed_within(embedder, ["a", "b"], 5.0) == [None, None]
    await embedder.close()


async def test_a_fault_that_is_no_provider_s_is_raised(local_embedder: LocalEmbedder) -> None:
    with pytest.raises(AttributeError):
        await embed_within(local_embedder, [None], 10.0)  # type: ignore[list-item] # the fault


async def test_a_time_limit_leaves_no_work_behind(local_embedder: LocalEmbedder) -> None:
    vectors = await embed_within(local_embedder, [f"{number} " * 300 for number in range(200)], 0.5)
    start = time.monotonic()

    await local_embedder.embed_passages(["short"])

    assert None in vectors
    assert time.monotonic() - start < 10.0
