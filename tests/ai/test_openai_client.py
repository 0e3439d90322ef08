"""Calls to a provider are tried again where that helps, and not where it doesn't."""

import asyncio
import email.utils
import logging
import time
from collections.abc import AsyncIterator, Callable

import openai
import pytest
from tests.openai_server import Fault, OpenAIServer, cut, failing, garbage, half_body, rate_limited, slow, too_long

from reverie.ai.openai_client import OPENAI_URL, OpenAIClient, ProviderError
from reverie.errors import ConfigurationError

MakeClient = Callable[..., OpenAIClient]


@pytest.fixture
async def make_client(openai_server: OpenAIServer) -> AsyncIterator[MakeClient]:
    clients: list[OpenAIClient] = []

    def make(
        *,
        api_key: str = openai_server.api_key,
        timeout: float = 10.0,
        deadline: float = 30.0,
        max_attempts: int = 3,
    ) -> OpenAIClient:
        clients.append(
            OpenAIClient(
                api_key=api_key,
                base_url=openai_server.base_url,
                timeout=timeout,
                deadline=deadline,
                max_attempts=max_attempts,
            )
        )
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


async def embed(client: openai.AsyncOpenAI) -> int:
    answer = await client.embeddings.create(
        input="a secret text", model="text-embedding-3-small", dimensions=8, encoding_format="float"
    )
    return len(answer.data)


def pauses(server: OpenAIServer) -> list[float]:
    return [later.at - earlier.at for earlier, later in zip(server.calls, server.calls[1:], strict=False)]


@pytest.mark.parametrize(
    "fault",
    [failing(500), failing(503), failing(408), failing(409), rate_limited(), cut(), half_body(), garbage(), slow(5.0)],
    ids=["500", "503", "408", "409", "429", "cut", "half a body", "garbage", "slow"],
)
async def test_a_passing_fault_is_tried_again(
    openai_server: OpenAIServer, make_client: MakeClient, fault: Fault
) -> None:
    openai_server.faults.append(fault)

    assert await make_client(timeout=2.0).call(embed) == 1
    assert len(openai_server.calls) == 2


@pytest.mark.parametrize("status", [400, 403, 404, 422])
async def test_a_lasting_fault_is_not_tried_again(
    openai_server: OpenAIServer, make_client: MakeClient, status: int
) -> None:
    openai_server.faults.append(failing(status, "no: a secret text", "not_allowed"))

    with pytest.raises(ProviderError) as caught:
        await make_client().call(embed)

    assert (str(caught.value), caught.value.status) == (f"127.0.0.1 answered {status} (not_allowed)", status)
    assert len(openai_server.calls) == 1


async def test_a_wrong_key_is_said_without_the_key(openai_server: OpenAIServer, make_client: MakeClient) -> None:
    with pytest.raises(ProviderError) as caught:
        await make_client(api_key="sk-wrong-key").call(embed)

    assert str(caught.value) == "127.0.0.1 answered 401 (invalid_api_key)"
    assert openai_server.calls == []


async def test_the_provider_may_forbid_another_try(openai_server: OpenAIServer, make_client: MakeClient) -> None:
    openai_server.faults.append(rate_limited(x_should_retry="false"))

    with pytest.raises(ProviderError, match="429"):
        await make_client().call(embed)

    assert len(openai_server.calls) == 1


async def test_attempts_are_counted_and_pauses_grow(openai_server: OpenAIServer, make_client: MakeClient) -> None:
    openai_server.fault_for = lambda _: failing(500)

    with pytest.raises(ProviderError, match="answered 500"):
        await make_client(max_attempts=3).call(embed)

    first, second = pauses(openai_server)
    assert first >= 0.25
    assert second >= 0.5


def http_date() -> Fault:
    return rate_limited(retry_after=email.utils.formatdate(time.time() + 3.0, usegmt=True))


@pytest.mark.parametrize(
    ("make_fault", "least"),
    [
        (lambda: rate_limited(retry_after="1"), 1.0),
        (lambda: rate_limited(retry_after="1.2"), 1.2),
        (lambda: rate_limited(retry_after_ms="1100", retry_after="60"), 1.1),
        # A date has whole seconds, and was named before the request was made.
        (http_date, 1.0),
        (lambda: Fault(status=503, headers={"retry-after": "1"}, body="down for a moment"), 1.0),
    ],
    ids=["seconds", "part of a second", "milliseconds", "date", "503"],
)
async def test_the_pause_that_the_provider_asks_for_is_kept(
    openai_server: OpenAIServer, make_client: MakeClient, make_fault: Callable[[], Fault], least: float
) -> None:
    openai_server.faults.append(make_fault())

    assert await make_client().call(embed) == 1

    (pause,) = pauses(openai_server)
    assert least - 0.01 <= pause < 10.0


@pytest.mark.parametrize("nonsense", ["soon", "-5", "0", "nan", "Mon, 01 Jan 2001 00:00:00 GMT", "Mon, 99 Jan", ""])
async def test_a_pause_that_means_nothing_is_our_own(
    openai_server: OpenAIServer, make_client: MakeClient, nonsense: str
) -> None:
    openai_server.faults.append(rate_limited(retry_after=nonsense))

    assert await make_client().call(embed) == 1

    (pause,) = pauses(openai_server)
    assert 0.25 <= pause < 10.0


@pytest.mark.parametrize("asked", ["3600", "inf", "1e999"])
async def test_a_pause_beyond_the_deadline_fails_at_once(
    openai_server: OpenAIServer, make_client: MakeClient, asked: str
) -> None:
    openai_server.faults.append(rate_limited(retry_after=asked))
    client = make_client(deadline=20.0)
    start = time.monotonic()

    with pytest.raises(ProviderError, match="answered 429"):
        await client.call(embed)
    with pytest.raises(ProviderError, match=r"answered 429 .* asked to be left alone"):
        await client.call(embed)

    assert time.monotonic() - start < 10.0
    assert len(openai_server.calls) == 1


async def test_every_call_keeps_a_pause(openai_server: OpenAIServer, make_client: MakeClient) -> None:
    openai_server.faults.append(rate_limited(retry_after="1"))
    client = make_client()
    first = asyncio.create_task(client.call(embed))
    await openai_server.until_called()
    await asyncio.sleep(0.2)

    await asyncio.gather(first, client.call(embed), client.call(embed))

    assert len(openai_server.calls) == 4
    assert pauses(openai_server)[0] >= 0.99


async def test_the_deadline_is_for_all_tries(openai_server: OpenAIServer, make_client: MakeClient) -> None:
    openai_server.fault_for = lambda _: slow(20.0)
    start = time.monotonic()

    with pytest.raises(ProviderError, match="didn't answer"):
        await make_client(timeout=0.7, deadline=1.5, max_attempts=50).call(embed)

    assert time.monotonic() - start < 8.0
    assert 1 <= len(openai_server.calls) <= 3


async def test_no_server_is_a_fault_of_the_connection() -> None:
    client = OpenAIClient(
        api_key="k", base_url="http://user:password@127.0.0.1:9/v1", timeout=5.0, deadline=5.0, max_attempts=1
    )

    with pytest.raises(ProviderError, match=r"^the connection to 127\.0\.0\.1 failed \(\w+\)$"):
        await client.call(embed)

    await client.close()


async def test_without_an_address_it_is_openai_s_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")
    client = OpenAIClient(api_key="k", base_url=None, timeout=5.0, deadline=5.0, max_attempts=1)

    async def address(inner: openai.AsyncOpenAI) -> str:
        return str(inner.base_url)

    assert (client.host, await client.call(address)) == ("api.openai.com", f"{OPENAI_URL}/")
    await client.close()


@pytest.mark.parametrize(
    ("key", "url", "words"),
    [
        ("", None, "API key is empty or has"),
        ("sk-key\n", None, "API key is empty or has"),
        ("sk-schlüssel", None, "API key is empty or has"),
        ("k", "localhost:11434/v1", "base URL must begin with"),
        ("k", "http:///v1", "base URL must begin with"),
        ("k", "http://[1/v1", "base URL must begin with"),
    ],
)
def test_a_key_or_address_that_can_t_work_is_refused_at_once(key: str, url: str | None, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        OpenAIClient(api_key=key, base_url=url, timeout=5.0, deadline=5.0, max_attempts=1)

    assert not key or key not in str(caught.value)


async def test_a_closed_client_fails(openai_server: OpenAIServer, make_client: MakeClient) -> None:
    openai_server.fault_for = lambda _: slow(20.0)
    client = make_client()
    under_way = asyncio.create_task(client.call(embed))
    await openai_server.until_called()

    await client.close()

    with pytest.raises(ProviderError):
        await asyncio.wait_for(under_way, 10.0)
    with pytest.raises(ProviderError, match="closed"):
        await client.call(embed)


@pytest.mark.parametrize(
    ("status", "message", "is_too_long"),
    [
        (400, "This model's maximum context length is 8192 tokens, however you requested 8193 tokens.", True),
        (400, "Invalid 'input[0]': maximum input length is 8192 tokens.", True),
        (400, "Requested 300100 tokens, max 300000 tokens per request", False),
        (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 777", True),
        (500, "input is too large to process. increase the physical batch size", True),
        (400, "the request exceeds the available context size, try increasing it", True),
        (400, "input length exceeds maximum context length", True),
        (400, "the input length exceeds the context length", True),
        (400, "This model does not support specifying dimensions.", False),
        (400, "'$.input' is invalid.", False),
        (500, "The server had an error.", False),
        (403, "maximum context length", False),
    ],
)
async def test_an_input_over_the_window_is_told_from_other_faults(
    openai_server: OpenAIServer, make_client: MakeClient, status: int, message: str, is_too_long: bool
) -> None:
    openai_server.fault_for = lambda _: failing(status, message)

    with pytest.raises(ProviderError) as caught:
        await make_client(max_attempts=1).call(embed)

    assert caught.value.too_long is is_too_long
    assert len(openai_server.calls) == 1


async def test_the_server_s_own_refusals_are_told_apart_too(
    openai_server: OpenAIServer, make_client: MakeClient
) -> None:
    openai_server.bytes_per_token = 0.001

    with pytest.raises(ProviderError) as caught:
        await make_client().call(embed)
    assert caught.value.too_long

    openai_server.faults.append(too_long())
    with pytest.raises(ProviderError) as caught:
        await make_client().call(embed)
    assert caught.value.too_long


async def test_neither_texts_nor_keys_are_logged(
    openai_server: OpenAIServer, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "reverie")
    openai_server.faults += [failing(500, "I don't like: a secret text"), rate_limited()]

    await make_client(max_attempts=4).call(embed)

    records = [record for record in caplog.records if record.name == "reverie.ai.openai_client"]
    assert [record.__dict__["status"] for record in records] == [500, 429]
    assert "secret" not in caplog.text
    assert openai_server.api_key not in caplog.text


async def test_what_the_provider_asked_for_is_told(openai_server: OpenAIServer, make_client: MakeClient) -> None:
    openai_server.faults += [rate_limited(), rate_limited(retry_after="200")]
    client = make_client(max_attempts=1)

    with pytest.raises(ProviderError) as caught:
        await client.call(embed)
    assert caught.value.retry_after is None

    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            await client.call(embed)
        assert caught.value.retry_after == pytest.approx(200, abs=3)
    assert len(openai_server.calls) == 2


@pytest.mark.parametrize(("param", "told"), [("temperature", "temperature"), ("a secret text", None), (7, None)])
async def test_the_wrong_field_is_told_where_it_is_one(
    openai_server: OpenAIServer, make_client: MakeClient, param: object, told: str | None
) -> None:
    body = {"error": {"message": "no", "type": "invalid_request_error", "param": param, "code": None}}
    openai_server.faults.append(Fault(status=400, body=body))

    with pytest.raises(ProviderError) as caught:
        await make_client().call(embed)

    assert caught.value.param == told
