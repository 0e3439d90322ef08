"""How the web explorer's files are served, and what they are allowed to do."""

import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from starlette.types import Message

from reverie.web.assets import ASSETS, MEDIA_TYPES, asset_routes, redirect_to_page, wants_page

BASE_POLICY = "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'none'"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Assets as a build leaves them, and a secret beside them."""
    assets = tmp_path / "assets"
    (assets / "static").mkdir(parents=True)
    (assets / "graphiql.html").write_text("<!doctype html><title>page</title>")
    (assets / "favicon.svg").write_text("<svg/>")
    (assets / "THIRD_PARTY_LICENSES.txt").write_text("Licences")
    for name in ("page-0a.js", "page-0b.css", "icons-0c.ttf", "data-0d.bin"):
        (assets / "static" / name).write_text(name)
    (tmp_path / "secret.js").write_text("secret")
    (assets / "static" / "linked.js").symlink_to(tmp_path / "secret.js")
    return assets


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    async def endpoint(request: Request) -> Response:
        return redirect_to_page() if wants_page(request) else PlainTextResponse("endpoint")

    routes = [*asset_routes(folder), Route("/graphql", endpoint, methods=["GET", "POST"])]
    app = Starlette(routes=[Mount("/prefix", routes=routes), *routes])
    with TestClient(app, follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/graphiql", "text/html; charset=utf-8"),
        ("/static/page-0a.js", "text/javascript; charset=utf-8"),
        ("/static/page-0b.css", "text/css; charset=utf-8"),
        ("/static/icons-0c.ttf", "font/ttf"),
        ("/static/data-0d.bin", "application/octet-stream"),
        ("/favicon.svg", "image/svg+xml"),
        ("/favicon.ico", "image/svg+xml"),
        ("/third-party-licenses.txt", "text/plain; charset=utf-8"),
    ],
)
def test_every_file_answers_get_and_head_with_its_type_and_the_security_headers(
    client: TestClient, path: str, media_type: str
) -> None:
    got, head = client.get(path), client.head(path)

    assert (got.status_code, head.status_code) == (200, 200)
    assert got.content
    assert not head.content
    assert head.headers == got.headers
    assert got.headers["content-type"] == media_type
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["referrer-policy"] == "no-referrer"
    assert got.headers["content-security-policy"].startswith(BASE_POLICY)


def test_only_the_page_may_have_inline_styles_and_data_images(client: TestClient) -> None:
    def policy(path: str) -> str:
        return client.get(path).headers["content-security-policy"]

    assert policy("/graphiql") == f"{BASE_POLICY}; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
    assert policy("/static/page-0a.js") == BASE_POLICY
    assert policy("/favicon.svg") == BASE_POLICY
    assert policy("/static/missing.js") == BASE_POLICY


def test_only_files_named_by_their_content_are_cached_for_ever(client: TestClient) -> None:
    def cache(path: str) -> str:
        return client.get(path).headers["cache-control"]

    assert cache("/static/page-0a.js") == "public, max-age=31536000, immutable"
    assert cache("/graphiql") == "no-cache"
    assert cache("/favicon.svg") == "no-cache"
    assert cache("/static/missing.js") == "no-store"


def test_an_unchanged_page_is_not_sent_again(client: TestClient) -> None:
    page = client.get("/graphiql")
    again = client.get("/graphiql", headers={"if-none-match": page.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("prefix", ["", "/prefix"])
def test_the_root_leads_to_the_page_under_any_prefix(client: TestClient, prefix: str) -> None:
    answer = client.get(f"{prefix}/")

    assert answer.is_redirect
    assert answer.headers["location"] == "graphiql"
    assert client.get(f"{prefix}/", follow_redirects=True).url.path == f"{prefix}/graphiql"


@pytest.mark.parametrize(
    "name", ["%2e%2e", "%2e", "..%5Csecret.js", "%00", "page-0a.js%00", "linked.js", "x" * 5000, "missing.js"]
)
def test_a_name_that_is_no_file_of_the_folder_is_not_found(client: TestClient, name: str) -> None:
    answer = client.get(f"/static/{name}")

    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert answer.text.startswith("The web explorer has no such file.")


@pytest.mark.parametrize(
    "path", ["../secret.js", "../../secret.js", "../graphiql.html", "./page-0a.js", "//page-0a.js"]
)
async def test_a_path_leads_nowhere(folder: Path, path: str) -> None:
    """Sent as a server decodes it, since clients tidy such paths up."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": f"/static/{path}", "query_string": b"", "headers": []}
    await Starlette(routes=asset_routes(folder))(scope, receive, send)

    assert sent[0]["status"] == HTTPStatus.NOT_FOUND


def test_other_methods_are_refused(client: TestClient) -> None:
    for path in ("/graphiql", "/static/page-0a.js", "/favicon.svg"):
        assert client.post(path).status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_without_the_explorer_every_address_says_how_to_get_it(tmp_path: Path) -> None:
    with TestClient(Starlette(routes=asset_routes(tmp_path / "assets"))) as client:
        for path in ("/", "/graphiql", "/static/page-0a.js", "/favicon.ico", "/third-party-licenses.txt"):
            answer = client.get(path)
            assert answer.status_code == HTTPStatus.NOT_FOUND
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert "installed with REVERIE_SKIP_EXPLORER set" in answer.text


def test_the_explorer_is_served_as_soon_as_it_is_built(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    with TestClient(Starlette(routes=asset_routes(assets))) as client:
        before = client.get("/graphiql").status_code
        assets.mkdir()
        (assets / "graphiql.html").write_text("<!doctype html>")

        assert (before, client.get("/graphiql").status_code) == (404, 200)


@pytest.mark.parametrize(
    ("method", "path", "accept", "page"),
    [
        ("GET", "/graphql", BROWSER, True),
        ("HEAD", "/graphql", BROWSER, True),
        ("GET", "/graphql", "TEXT/HTML;q=0.5", True),
        ("GET", "/graphql?query={__typename}", BROWSER, False),
        ("GET", "/graphql?extensions={}", BROWSER, False),
        ("POST", "/graphql", BROWSER, False),
        ("GET", "/graphql", "application/json, text/html", False),
        ("GET", "/graphql", "application/graphql-response+json;q=0.9, text/html", False),
        ("GET", "/graphql", "text/html-like", False),
        ("GET", "/graphql", "*/*", False),
        ("GET", "/graphql", "", False),
    ],
)
def test_only_a_browser_that_opens_the_endpoint_is_sent_to_the_page(
    client: TestClient, method: str, path: str, accept: str, page: bool
) -> None:
    answer = client.request(method, path, headers={"accept": accept})

    assert answer.is_redirect == page
    if page:
        assert answer.headers["location"] == "graphiql"
        assert answer.headers["vary"] == "accept"


@pytest.mark.skipif(not (ASSETS / "graphiql.html").is_file(), reason="the web explorer was not built")
def test_the_built_explorer_holds_only_what_is_known_to_be_served() -> None:
    files = [path.relative_to(ASSETS) for path in ASSETS.rglob("*") if path.is_file() and path.name[0] != "."]

    assert {path.suffix for path in files} <= MEDIA_TYPES.keys()
    assert {os.fspath(path) for path in files if path.parts[0] != "static"} == {
        "graphiql.html",
        "favicon.svg",
        "THIRD_PARTY_LICENSES.txt",
    }
    assert {len(path.parts) for path in files if path.parts[0] == "static"} == {2}


@pytest.mark.skipif(not (ASSETS / "graphiql.html").is_file(), reason="the web explorer was not built")
def test_the_licences_name_the_packages_of_pages_and_workers() -> None:
    text = (ASSETS / "THIRD_PARTY_LICENSES.txt").read_text()

    for package in ("graphiql 5.", "react 19.", "monaco-editor 0.", "picomatch-browser 2."):
        assert f"\n{package}" in text
    assert "THIRD-PARTY SOFTWARE NOTICES AND INFORMATION" in text
