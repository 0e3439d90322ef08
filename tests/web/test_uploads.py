"""GraphQL multipart requests: what comes in, what is refused and how, and that nothing is kept in memory or on disk."""

import asyncio
from contextlib import suppress
from typing import Any

import httpx
import orjson
import pytest
from tests import files
from tests.conftest import Api
from tests.serving import serving

from reverie.resources import Resources
from reverie.services.documents import read_some

UPLOAD = """mutation($input: UploadDocumentInput!) { uploadDocument(input: $input) {
  document { id title source mediaType sizeBytes status subjectId } errors { code message path } } }"""
PREFLIGHT = {"graphql-require-preflight": "1"}
Part = tuple[str | None, bytes, str]


def operations(**input_: Any) -> dict[str, Any]:
    return {"query": UPLOAD, "variables": {"input": {"file": None, **input_}}}


async def post(
    api: Api,
    request: Any,
    mapped: Any,
    *parts: tuple[str, Part],
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    texts = [(name, (None, orjson.dumps(value))) for name, value in (("operations", request), ("map", mapped))]
    return await api.client.post("/graphql", files=[*texts, *parts], headers=PREFLIGHT if headers is None else headers)


async def upload(api: Api, data: bytes, name: str, content_type: str, **input_: Any) -> dict[str, Any]:
    """The payload of one upload."""
    answer = await post(api, operations(**input_), {"0": ["variables.input.file"]}, ("0", (name, data, content_type)))
    assert answer.status_code == 200, answer.text
    payload: dict[str, Any] = answer.json()["data"]["uploadDocument"]
    return payload


async def test_a_file_comes_in(api: Api, resources: Resources) -> None:
    data = files.docx_file()

    payload = await upload(api, data, "Ünë report 😀.docx", "application/octet-stream", subjectId="ann")

    assert payload["errors"] == []
    document = payload["document"]
    assert document.pop("id")
    assert document == {
        "title": "Ünë report 😀.docx",
        "source": "FILE",
        "mediaType": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "sizeBytes": len(data),
        "status": "PENDING",
        "subjectId": "ann",
    }
    while await read_some(resources):
        pass
    read = await api("{ documents { nodes { status failure chunks { nodes { text position document { title } } } } } }")
    (node,) = read["documents"]["nodes"]
    assert (node["status"], node["failure"]) == ("READY", None)
    (chunk,) = node["chunks"]["nodes"]
    assert chunk["text"].startswith("# Gates")
    assert (chunk["position"], chunk["document"]) == (0, {"title": "Ünë report 😀.docx"})


async def test_the_same_key_takes_a_file_in_once(api: Api) -> None:
    first = await upload(api, b"The gates are green.", "a.txt", "text/plain", clientMutationKey="k")
    again = await upload(api, b"The gates are green.", "a.txt", "text/plain", clientMutationKey="k")
    other = await upload(api, b"The gates are red.", "a.txt", "text/plain", clientMutationKey="k")

    assert again == first
    assert [(error["code"], error["path"]) for error in other["errors"]] == [("CONFLICT", ["clientMutationKey"])]


@pytest.mark.parametrize(
    ("data", "name", "content_type", "input_", "expected"),
    [
        (b"\x89PNG", "a.png", "image/png", {}, [("UNSUPPORTED", "file")]),
        (b"x", "a.xyz", "application/octet-stream", {}, [("UNSUPPORTED", "file")]),
        (b"", "a.txt", "text/plain", {}, [("BAD_INPUT", "file")]),
        (b"x" * 20_000_001, "a.txt", "text/plain", {}, [("TOO_LARGE", "file")]),
        (b"x", "a.txt", "text/plain", {"title": " "}, [("BAD_INPUT", "title")]),
        (
            b"x",
            "a.png",
            "image/png",
            {"title": "x" * 501, "subjectId": ""},
            [("TOO_LARGE", "title"), ("BAD_INPUT", "subjectId"), ("UNSUPPORTED", "file")],
        ),
    ],
    ids=["picture", "unknown", "empty", "large", "untitled", "all"],
)
async def test_a_file_that_cannot_be_read_is_refused_in_the_payload(
    data: bytes, name: str, content_type: str, input_: dict[str, Any], expected: list[tuple[str, str]], api: Api
) -> None:
    payload = await upload(api, data, name, content_type, **input_)

    assert payload["document"] is None
    assert [(error["code"], ".".join(error["path"])) for error in payload["errors"]] == expected
    assert (await api("{ documents { totalCount } }"))["documents"]["totalCount"] == 0


@pytest.mark.parametrize("headers", [{}, {"origin": "https://elsewhere.example"}, {"x-requested-with": "form"}])
async def test_a_form_of_another_page_uploads_nothing(headers: dict[str, str], api: Api) -> None:
    part = ("0", ("a.txt", b"x", "text/plain"))

    answer = await post(api, operations(), {"0": ["variables.input.file"]}, part, headers=headers)

    assert answer.status_code == 403
    (error,) = answer.json()["errors"]
    assert error["extensions"]["code"] == "FORBIDDEN"
    assert "graphql-require-preflight" in error["message"]


async def test_apollos_header_will_do(api: Api) -> None:
    part = ("0", ("a.txt", b"x", "text/plain"))
    headers = {"apollo-require-preflight": "yes"}

    answer = await post(api, operations(), {"0": ["variables.input.file"]}, part, headers=headers)

    assert answer.status_code == 200


async def test_without_a_known_key_nothing_is_read(resources: Resources, api: Api) -> None:
    part = ("0", ("a.txt", b"x", "text/plain"))

    answer = await post(
        api, operations(), {"0": ["variables.input.file"]}, part, headers={**PREFLIGHT, "authorization": "Bearer no"}
    )

    assert answer.status_code == 401


FILE = ("0", ("a.txt", b"x", "text/plain"))


@pytest.mark.parametrize(
    ("request_", "mapped", "parts"),
    [
        (operations(), None, [FILE]),
        (operations(), [], [FILE]),
        (operations(), 5, [FILE]),
        (operations(), {}, [FILE]),
        (operations(), {"0": None}, [FILE]),
        (operations(), {"0": []}, [FILE]),
        (operations(), {"0": "variables.input.file"}, [FILE]),
        (operations(), {"0": [None]}, [FILE]),
        (operations(), {"0": ["variables.input.file", "variables.input.title"]}, [FILE]),
        (operations(), {"0": ["variables.input.file"], "1": ["variables.input.title"]}, [FILE]),
        (operations(), {"1": ["variables.input.file"]}, [FILE]),
        (operations(), {"0": ["variables.input.nothing"]}, [FILE]),
        (operations(), {"0": ["variables"]}, [FILE]),
        (operations(), {"0": ["query"]}, [FILE]),
        (operations(), {"0": [""]}, [FILE]),
        (operations(), {"0": ["variables.input.file.0"]}, [FILE]),
        (operations(title="given"), {"0": ["variables.input.title"]}, [FILE]),
        ({"query": UPLOAD, "variables": {"list": [None]}}, {"0": ["variables.list.7"]}, [FILE]),
        ({"query": UPLOAD, "variables": {"list": [None]}}, {"0": ["variables.list.-1"]}, [FILE]),
        ({"query": UPLOAD, "variables": {"list": [None]}}, {"0": [f"variables.list.{'9' * 5_000}"]}, [FILE]),
        ({"query": UPLOAD, "variables": {"list": [None]}}, {"0": ["variables.list.²"]}, [FILE]),
        (None, {"0": ["variables.input.file"]}, [FILE]),
        ([operations()], {"0": ["0.variables.input.file"]}, [FILE]),
        (operations(title="a\0b"), {"0": ["variables.input.file"]}, [FILE]),
        (operations(), {"0": ["variables.input.file"]}, []),
        (operations(), {"0": ["variables.input.file"]}, [FILE, FILE, FILE]),
        ({"query": "{ documents { totalCount } ", "variables": {"a": None}}, {"0": ["variables.a"]}, [FILE]),
        (
            operations(),
            {str(number): ["variables.input.file"] for number in range(11)},
            [(str(number), FILE[1]) for number in range(11)],
        ),
    ],
)
async def test_what_is_no_multipart_request_is_refused_and_never_breaks(
    request_: Any, mapped: Any, parts: list[tuple[str, Part]], api: Api
) -> None:
    answer = await post(api, request_, mapped, *parts)

    if mapped == {"0": ["variables.input.file"]} and len(parts) == 3:
        # of parts with one name, the last counts
        assert answer.status_code == 200
    else:
        assert answer.status_code in (200, 400), answer.text
        (error,) = answer.json()["errors"]
        assert error["extensions"]["code"] in ("BAD_INPUT", "GRAPHQL_PARSE_FAILED")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--x--"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"garbage"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--\r\n"),
        (
            "multipart/form-data; boundary=x; charset=no",
            b'--x\r\nContent-Disposition: form-data; name="map"\r\n\r\n\xff\r\n--x--\r\n',
        ),
        (
            "multipart/form-data; boundary=x; charset=utf-16",
            b'--x\r\nContent-Disposition: form-data; name="map"\r\n\r\n{}\r\n--x--\r\n',
        ),
    ],
)
async def test_a_broken_body_is_refused(content_type: str, body: bytes, api: Api) -> None:
    answer = await api.client.post("/graphql", content=body, headers={**PREFLIGHT, "content-type": content_type})

    assert answer.status_code == 400, answer.text
    assert answer.json()["errors"][0]["extensions"]["code"] == "BAD_INPUT"


async def test_a_text_in_a_files_place_is_refused(api: Api) -> None:
    errors = await api.errors(UPLOAD, input={"file": "a.txt"})

    assert [error["extensions"]["code"] for error in errors] == ["GRAPHQL_VALIDATION_FAILED"] or [
        error["extensions"]["code"] for error in errors
    ] == ["BAD_INPUT"]
    assert "multipart" in errors[0]["message"]


async def test_a_body_over_the_limit_is_ended_early(resources: Resources) -> None:
    head = (
        "POST /graphql HTTP/1.1\r\nHost: x\r\nGraphQL-Require-Preflight: 1\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n"
    )
    part = b'--x\r\nContent-Disposition: form-data; name="0"; filename="a.txt"\r\n\r\n'
    async with serving(resources) as (_, address), asyncio.timeout(60):
        host, _, port = address.rpartition(":")
        # given: a length that is too much, and a body that never ends
        for declared in (f"{head}Content-Length: 2000000000\r\n\r\n", f"{head}Transfer-Encoding: chunked\r\n\r\n"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(declared.encode())
            answered = asyncio.create_task(reader.readuntil(b"\r\n"))
            sent = 0
            with suppress(ConnectionError):
                while not answered.done() and "chunked" in declared:
                    data = part + b"x" * 1_000_000 if sent == 0 else b"x" * 1_000_000
                    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                    sent += len(data)
                    await writer.drain()

            assert (await answered).startswith(b"HTTP/1.1 413")
            assert sent < 200_000_000
            writer.close()
