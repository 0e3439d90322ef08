"""The endpoint on the wire: what it takes, what it refuses and how, and what of an error is shown to whom."""

import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
from tests.conftest import Api, app_of
from tests.openai_server import OpenAIServer

from reverie.domain.memories import MemoryDraft
from reverie.local import LocalNeo4j
from reverie.resources import Resources, open_resources
from reverie.services.memories import create_memory
from reverie.settings import Settings
from reverie.web.auth import DEFAULT_TENANT

VERSION = "{ server { version } }"
CREATE_TOPIC = 'mutation { createTopic(input: {name: "by get"}) { topic { id } } }'
JSON = {"content-type": "application/json"}


@pytest_asyncio.fixture
async def client(resources: Resources) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of a server that has two keys, but who brings none."""
    transport = httpx.ASGITransport(app=app_of(resources, {"key-1": "tenant-1", "key-2": "tenant-2"}))
    async with httpx.AsyncClient(transport=transport, base_url="http://reverie.test", timeout=60) as opened:
        yield opened


def only_error(answer: httpx.Response) -> dict[str, Any]:
    """The one error of an answer in JSON that has no data; its request id is the header's."""
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert not found.get("data")
    (error,) = found["errors"]
    assert error["extensions"]["requestId"] == answer.headers["x-request-id"]
    return dict(error)


# --- callers


@pytest.mark.parametrize("key", ["key-1", "key-2"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_known_key_is_answered(scheme: str, key: str, client: httpx.AsyncClient) -> None:
    answer = await client.post("/graphql", json={"query": VERSION}, headers={"authorization": f"{scheme} {key}"})

    assert answer.status_code == 200
    assert "errors" not in answer.json()


@pytest.mark.parametrize(
    ("authorization", "words"),
    [
        (None, "an API key is needed"),
        (b"", "an API key is needed"),
        (b"Bearer", "an API key is needed"),
        (b"Bearer   ", "an API key is needed"),
        (b"key-1", "an API key is needed"),
        (b"Basic key-1", "an API key is needed"),
        (b"Bearer key-3", "this API key is not known"),
        (b"Bearer key-1x", "this API key is not known"),
        (b"Bearer KEY-1", "this API key is not known"),
        (b"Bearer key-1,key-2", "this API key is not known"),
        (b"Bearer tenant-1", "this API key is not known"),
        (b"Bearer \xff\xfe", "this API key is not known"),
    ],
)
async def test_a_missing_or_unknown_key_is_not(
    authorization: bytes | None, words: str, client: httpx.AsyncClient
) -> None:
    headers = {} if authorization is None else {b"authorization": authorization}
    for answer in (
        await client.post("/graphql", json={"query": CREATE_TOPIC}, headers=headers),
        await client.get("/graphql", params={"query": VERSION}, headers=headers),
        # and: whoever has no key learns nothing of what he sent
        await client.post("/graphql", content=b"\xff", headers={**headers, b"content-type": b"application/json"}),
    ):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        error = only_error(answer)
        assert error["extensions"]["code"] == "UNAUTHENTICATED"
        assert words in error["message"]


async def test_health_and_the_page_need_no_key(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health/live")).status_code == 200
    assert (await client.get("/health/ready")).status_code == 200
    assert (await client.get("/graphiql")).status_code in (200, 404)


# --- requests


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"5",
        b"true",
        b'"text"',
        b"[]",
        b'[{"query": "{ server { version } }"}]',
        b"",
        b"{",
        b"\xff\xfe{}",
        b'{"query": "\xff"}',
        b'{"query": NaN}',
        b"{}",
        b'{"query": null}',
        b'{"query": ""}',
        b'{"query": 5}',
        b'{"query": ["{ server { version } }"]}',
        b'{"query": "{ server { version } }", "variables": 5}',
        b'{"query": "{ server { version } }", "variables": []}',
        b'{"query": "{ server { version } }", "variables": {"a": Infinity}}',
        b'{"query": "{ server { version } }", "operationName": 5}',
        b'{"query": "{ server { version } }", "operationName": []}',
        b'{"query": "{ server { version } }", "operationName": "another"}',
        b'{"query": "{ server { version } }", "extensions": 5}',
        b'{"query": "{ server { version } }", "variables": {"a": "\\u0000"}}',
        b'{"query": "{ server { version } }", "variables": {"a": "\\ud800"}}',
        b'{"query": "{ server { version } }", "variables": {"\\u0000": 1}}',
        b'{"query": "{ server { version } }\\u0000"}',
        b"[" * 100_000,
        b'{"query": "{ server { version } }", "variables": ' + b'{"a":' * 2_000 + b"1" + b"}" * 2_001,
    ],
    ids=lambda body: repr(body[:70]),
)
async def test_a_body_that_is_no_request_is_refused(body: bytes, api: Api) -> None:
    answer = await api.client.post("/graphql", content=body, headers=JSON)

    assert answer.status_code == 400
    assert only_error(answer)["extensions"]["code"] == "BAD_INPUT"


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/mixed"])
async def test_another_content_type_is_refused(content_type: str, api: Api) -> None:
    body = orjson.dumps({"query": VERSION})
    answer = await api.client.post("/graphql", content=body, headers={"content-type": content_type})

    assert answer.status_code == 400
    assert only_error(answer)["extensions"]["code"] == "BAD_INPUT"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_another_method_is_refused(method: str, api: Api) -> None:
    answer = await api.client.request(method, "/graphql", content=orjson.dumps({"query": VERSION}), headers=JSON)

    assert answer.status_code == 405
    assert only_error(answer)["extensions"]["code"] == "BAD_INPUT"


@pytest.mark.parametrize(
    "document",
    [
        "{ node(id: 1) " + "{ a " * 50_000,
        "{ search(query: " + "[" * 50_000 + "]" * 50_000 + ") { edges { score } } }",
        "{ " + "{" * 5_000,
        "{ server { version } } #" + "\N{COMBINING ACUTE ACCENT}" * 5_000 + "\n{",
    ],
    ids=["selections", "lists", "braces", "comment"],
)
async def test_a_document_that_is_none_or_too_deep_has_a_code(document: str, api: Api) -> None:
    answer = await api.client.post("/graphql", json={"query": document})

    assert answer.status_code < 500
    assert only_error(answer)["extensions"]["code"] == "GRAPHQL_PARSE_FAILED"


async def test_a_query_that_does_not_fit_the_schema_keeps_its_words(api: Api) -> None:
    (error,) = await api.errors("{ serverr { version } }")

    assert error["message"] == "Cannot query field 'serverr' on type 'Query'. Did you mean 'server'?"
    assert error["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert error["locations"] == [{"line": 1, "column": 3}]


# --- GET


async def test_a_query_by_get_is_answered_with_its_variables(api: Api) -> None:
    query = "query ($first: Int) { memories(first: $first) { totalCount } } query Other { server { version } }"
    parameters = {"query": query.replace("query (", "query One ("), "variables": '{"first": 1}', "operationName": "One"}

    answer = await api.client.get("/graphql", params=parameters)

    assert answer.json() == {"data": {"memories": {"totalCount": 0}}}


async def test_a_mutation_by_get_is_refused_and_not_carried_out(api: Api) -> None:
    answer = await api.client.get("/graphql", params={"query": CREATE_TOPIC})

    assert answer.status_code == 400
    assert only_error(answer)["message"] == "mutations are not allowed when using GET"
    assert await api('{ topic(name: "by get") { id } }') == {"topic": None}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"query": ""},
        {"variables": "{}"},
        {"query": VERSION, "variables": "5"},
        {"query": VERSION, "variables": "{"},
        {"query": VERSION, "variables": '{"a": NaN}'},
        {"query": VERSION, "variables": '{"a": "\\u0000"}'},
        {"query": VERSION, "extensions": "[]"},
        {"query": VERSION, "operationName": "another"},
    ],
    ids=str,
)
async def test_a_get_that_is_no_request_is_refused(parameters: dict[str, str], api: Api) -> None:
    answer = await api.client.get("/graphql", params=parameters, headers={"accept": "*/*"})

    assert answer.status_code == 400
    assert only_error(answer)["extensions"]["code"] == "BAD_INPUT"


# --- request ids


@pytest.mark.parametrize("given", ["a", "trace-1.2:3_4", "x" * 100])
async def test_a_plain_request_id_is_used(given: str, api: Api) -> None:
    answer = await api.client.post("/graphql", json={"query": "{ nothing }"}, headers={"x-request-id": given})

    assert answer.headers["x-request-id"] == given
    assert only_error(answer)["extensions"]["requestId"] == given


@pytest.mark.parametrize("given", [b"", b"a b", b"x" * 101, b"a\tb", b"\xe9", b"<script>", b"a;b"])
async def test_another_is_replaced(given: bytes, api: Api) -> None:
    answer = await api.client.post("/graphql", json={"query": VERSION}, headers={b"x-request-id": given})

    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", answer.headers["x-request-id"])


async def test_each_request_has_an_id_of_its_own(api: Api) -> None:
    answers = [await api.client.post("/graphql", json={"query": VERSION}) for _ in range(3)]

    assert len({answer.headers["x-request-id"] for answer in answers}) == 3


# --- faults of ours


async def test_a_fault_of_ours_is_masked_and_its_request_id_leads_to_it_in_the_log(
    blank_neo4j: LocalNeo4j, openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {
        "NEO4J_URI": blank_neo4j.uri,
        "NEO4J_PASSWORD": blank_neo4j.password,
        "REVERIE_EMBEDDING_DIMENSIONS": "32",
        "REVERIE_EMBEDDING_TIMEOUT": "60",
        "OPENAI_API_KEY": openai_server.api_key,
        "OPENAI_BASE_URL": openai_server.base_url,
    }
    async with open_resources(Settings.read(environ)) as resources:
        await create_memory(resources, DEFAULT_TENANT, MemoryDraft(content="kept"), None)
        # given: somebody has taken an index away under the running server
        await resources.graph.execute("DROP INDEX memory_embedding")
        transport = httpx.ASGITransport(app=app_of(resources, {"k": DEFAULT_TENANT}))
        headers = {"authorization": "Bearer k", "x-request-id": "request-4711"}
        async with httpx.AsyncClient(transport=transport, base_url="http://reverie.test", headers=headers) as client:
            query = '{ search(query: "kept") { edges { score } } memories { totalCount } }'
            with caplog.at_level(logging.ERROR, "reverie.api"):
                answer = await client.post("/graphql", json={"query": query}, timeout=60)

    # then: what can be answered is, and of the fault nothing is shown
    assert answer.status_code == 200
    assert answer.json() == {
        "data": {"search": None, "memories": {"totalCount": 1}},
        "errors": [
            {
                "message": "something went wrong on our side; the request id leads to it in the log",
                "locations": [{"line": 1, "column": 3}],
                "path": ["search"],
                "extensions": {"code": "INTERNAL", "requestId": "request-4711"},
            }
        ],
    }
    # and: the log tells it all
    (record,) = caplog.records
    assert "request-4711" in record.getMessage()
    assert "memory_embedding" in caplog.text


async def test_a_client_that_leaves_during_its_body_is_no_fault_of_ours(
    resources: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[Any] = []
    told = iter([{"type": "http.request", "body": b'{"query": "{', "more_body": True}, {"type": "http.disconnect"}])
    headers = [(b"content-type", b"application/json"), (b"authorization", b"Bearer k"), (b"content-length", b"99")]
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"},
        **{"path": "/graphql", "raw_path": b"/graphql", "query_string": b"", "headers": headers},
        **{"client": ("127.0.0.1", 9), "server": ("127.0.0.1", 8000), "root_path": ""},
    }

    async def receive() -> Any:
        return next(told)

    async def send(message: Any) -> None:
        sent.append(message)

    await app_of(resources, {"k": "t"})(scope, receive, send)

    assert sent == []
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
