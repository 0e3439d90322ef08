"""The GraphiQL page in a real browser, with every address but the server's own blocked."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import urlencode

import pytest
import strawberry
import uvicorn
from playwright.async_api import Browser, ConsoleMessage, Page, Request, Route, WebSocket, async_playwright, expect
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute
from starlette.routing import Route as HttpRoute
from strawberry.asgi import GraphQL
from strawberry.scalars import JSON
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL

from reverie.resources import Resources
from reverie.settings import Settings
from reverie.web.app import create_app
from reverie.web.assets import ASSETS, asset_routes

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.skipif(not (ASSETS / "graphiql.html").is_file(), reason="the web explorer was not built"),
]

# Runs before the page's own scripts. Workers report their violations to the console instead.
WATCH_POLICY = """
    globalThis.violations = [];
    document.addEventListener('securitypolicyviolation', (event) =>
        violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
INTROSPECTION = "IntrospectionQuery"
QUERY_EDITOR = ".graphiql-query-editor .view-lines"
WELCOME = ["Memories", "CreateMemory", "Search", "Learn", "Beliefs", "BeliefChanges"]


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[str]:
    """A server on a free loopback port; gives its address without a slash at the end."""
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="on", ws="websockets-sansio")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started or running.done())
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


@pytest.fixture(scope="session")
async def app_url(resources: Resources) -> AsyncIterator[str]:
    """The address of the real application, without any key."""
    app = create_app(Settings.read({}), opener=lambda _: nullcontext(resources))
    async with serving(app) as address:
        yield address


# ---------------------------------------------------------------- a subscription, under a path prefix


@strawberry.type
class Tick:
    number: int
    connection: JSON


@strawberry.type
class Query:
    @strawberry.field
    def ready(self) -> bool:
        return True


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def ticks(self, info: strawberry.Info, to: int) -> AsyncGenerator[Tick, None]:
        for number in range(1, to + 1):
            yield Tick(number=number, connection=info.context["connection_params"])


@pytest.fixture
async def ticks_url() -> AsyncIterator[str]:
    """The address of an application under a path prefix, with a subscription and the GraphiQL page."""
    endpoint = GraphQL[Any, None](
        strawberry.Schema(query=Query, subscription=Subscription),
        graphql_ide=None,
        subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL],
    )
    routes = [*asset_routes(), HttpRoute("/graphql", endpoint), WebSocketRoute("/graphql", endpoint)]
    async with serving(Starlette(routes=[Mount("/team/reverie", routes=routes)])) as address:
        yield f"{address}/team/reverie"


# ---------------------------------------------------------------- the browser


class Visit:
    """One page in a fresh browser profile, and all that it asked for or complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.origin = ""
        self._opened = ""
        self.refused: list[str] = []
        self.operations: list[dict[str, Any]] = []
        self.sockets: list[WebSocket] = []
        self.complaints: list[str] = []
        page.on("request", self._on_request)
        page.on("websocket", self._on_websocket)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def gate(self, route: Route) -> None:
        if self.origin and route.request.url.startswith((self.origin, "data:")):
            await route.continue_()
        else:
            self.refused.append(route.request.url)
            await route.abort()

    def _on_request(self, request: Request) -> None:
        if request.method == "POST":
            body = json.loads(request.post_data or "null")
            self.operations.append(body | {"authorization": request.headers.get("authorization")})

    def _on_websocket(self, socket: WebSocket) -> None:
        self.sockets.append(socket)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    async def open(self, address: str) -> None:
        """Open a page and wait until its editor is there and knows the schema."""
        self.origin = "/".join(address.split("/")[:3]) + "/"
        await self.page.goto(address)
        await self.ready()

    async def ready(self) -> None:
        await expect(self.page.locator(QUERY_EDITOR)).to_be_visible(timeout=30_000)
        await until(self._schema_known)
        self._opened = await self.text("operation.graphql")

    async def _schema_known(self) -> bool:
        label = "Re-fetch GraphQL schema"
        spinning = self.page.get_by_role("button", name=label).locator(".graphiql-spin")
        asked = any(operation["operationName"] == INTROSPECTION for operation in self.operations)
        return asked and await spinning.count() == 0

    async def text(self, editor: str) -> str:
        """The whole text of one of the editors; the DOM holds only the lines in sight."""
        found: str = await self.page.evaluate(
            "(name) => __MONACO.editor.getModels().find((model) => model.uri.path.endsWith(name)).getValue()", editor
        )
        return found

    async def show_tab(self, name: str) -> None:
        """Switch to a tab."""
        await self.page.get_by_role("tab", name=name).click()
        await until(lambda: self._holds(f" {name}"))

    async def _holds(self, text: str) -> bool:
        return text in await self.text("operation.graphql")

    async def _parsed(self) -> bool:
        """Whether GraphiQL has parsed what is in the query editor: it sends the operation's name, as it keeps it."""
        query = await self.text("operation.graphql")
        named = re.search(r"\b(?:query|mutation|subscription)\s+(\w+)", query)
        kept = await self.page.evaluate(
            "Object.entries(localStorage).find(([key]) => key.endsWith('graphiql:tabState'))?.[1]"
        )
        if kept is None:
            return query == self._opened
        tabs = json.loads(kept)
        tab = tabs["tabs"][tabs["activeTabIndex"]]
        return (tab["query"], tab["operationName"]) == (query, named and named[1])

    async def write(self, editor: str, text: str) -> None:
        await self.page.locator(editor).click()
        await self.page.keyboard.press("ControlOrMeta+A")
        await self.page.keyboard.press("Delete")
        await self.page.keyboard.insert_text(text)

    async def write_headers(self, text: str) -> None:
        await self.page.get_by_role("button", name="Headers").click()
        await self.write(".graphiql-editor-tool .graphiql-editor:not(.hidden) .view-lines", text)

    async def execute(self) -> None:
        """Send off what is in the query editor, once GraphiQL has parsed it."""
        await until(self._parsed)
        await self.page.get_by_role("button", name="Execute query").click()

    async def run(self) -> dict[str, Any]:
        """Run what is in the query editor and give the answer."""
        before = len(self.operations)
        await self.execute()
        await until(lambda: len(self.operations) > before)
        answer = ""

        async def answered() -> bool:
            nonlocal answer
            answer = await self.text("response.json")
            return bool(answer)

        await until(answered)
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    async def stored(self) -> str:
        """All that the page keeps for the next visit, once its delayed writes are through."""
        await asyncio.sleep(0.8)
        kept: str = await self.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        return kept


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60) -> None:
    """Wait for a condition. (Playwright's own wait_for_function needs eval, which the page's policy refuses.)"""
    async with asyncio.timeout(seconds):
        while True:
            met = condition()
            if met if isinstance(met, bool) else await met:
                return
            await asyncio.sleep(0.05)


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # --no-sandbox: Chromium refuses to start as root, which is whom containers run as, with its sandbox on.
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            ],
        )
        yield browser
        await browser.close()


@pytest.fixture
async def visit(browser: Browser) -> AsyncIterator[Visit]:
    """A visit that fails its test if the page asks for an outside address, breaks its policy or logs an error."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    await context.add_init_script(WATCH_POLICY)
    visit = Visit(await context.new_page())
    await context.route("**/*", visit.gate)
    yield visit
    faults = [*visit.refused, *await visit.page.evaluate("violations"), *visit.complaints]
    await context.close()
    assert faults == []


# ---------------------------------------------------------------- tests


async def test_the_page_opens_with_its_welcome_tabs_and_runs_none_of_them(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")
    await asyncio.sleep(1)

    assert await visit.page.title() == "Reverie · GraphiQL"
    assert await visit.page.get_by_role("tab").all_inner_texts() == WELCOME
    assert "query Memories" in await visit.text("operation.graphql")
    assert await visit.text("response.json") == ""
    assert {operation["operationName"] for operation in visit.operations} == {INTROSPECTION}


async def test_the_root_leads_to_the_page(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/")

    assert visit.page.url == f"{app_url}/graphiql"


async def test_the_welcome_tabs_answer(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")

    await visit.show_tab("CreateMemory")
    created = (await visit.run())["data"]["createMemory"]
    await visit.show_tab("Memories")
    read = await visit.run()
    await visit.show_tab("Search")
    found = await visit.run()

    assert created["errors"] == []
    content = created["memory"]["content"]
    assert "errors" not in read
    memory = next(node for node in read["data"]["memories"]["nodes"] if node["content"] == content)
    entities = [
        entity
        for topic in memory["topics"]["nodes"]
        for sibling in topic["memories"]["nodes"]
        for entity in sibling["entities"]["nodes"]
    ]
    assert {"predicate": "depends on", "object": "payments database"} in entities[0]["facts"]["nodes"]
    assert "errors" not in found
    assert content in [edge["node"].get("content") for edge in found["data"]["search"]["edges"]]


@pytest.mark.usefixtures("worker")
async def test_the_welcome_tabs_teach_and_show_what_was_learned_and_follow_it(visit: Visit, app_url: str) -> None:
    async def followed() -> bool:
        return '"cursor"' in await visit.text("response.json")

    await visit.open(f"{app_url}/graphiql")

    await visit.show_tab("Learn")
    learned = (await visit.run())["data"]
    await visit.show_tab("Beliefs")
    believed = await visit.run()
    await visit.show_tab("BeliefChanges")
    await visit.execute()
    await until(followed)

    assert [payload["errors"] for payload in learned.values()] == [[], [], []]
    assert learned["dream"]["dream"]["failed"] == 0
    (belief,) = (one for one in believed["data"]["beliefs"]["nodes"] if one["key"] == "preference.indentation")
    assert (belief["subjectId"], belief["value"], belief["epistemicStatus"]) == ("alex", "spaces", "ACTIVE")
    assert [one["value"] for one in belief["history"]["nodes"]] == ["spaces", "tabs"]


async def test_a_link_fills_a_tab_once_and_runs_nothing(visit: Visit, app_url: str) -> None:
    operation = "query Linked { memories(first: 1) { nodes { content } } }"
    await visit.open(f"{app_url}/graphiql?" + urlencode({"query": operation, "variables": '{"a": 1}'}))
    await asyncio.sleep(1)
    opened = await visit.text("operation.graphql"), await visit.text("variables.json")
    tabs = await visit.page.get_by_role("tab").all_inner_texts()
    await visit.page.reload()
    await visit.ready()

    assert opened == (operation, '{"a": 1}')
    assert tabs == ["Linked", *WELCOME]
    assert visit.page.url == f"{app_url}/graphiql"
    assert await visit.page.get_by_role("tab").all_inner_texts() == tabs
    assert await visit.text("response.json") == ""
    assert {operation["operationName"] for operation in visit.operations} == {INTROSPECTION}


async def test_a_link_opens_beside_the_tabs_of_an_earlier_visit(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")
    await visit.write(QUERY_EDITOR, "query Mine { memories(first: 1) { nodes { content } } }")
    await visit.stored()
    await visit.open(f"{app_url}/graphiql?" + urlencode({"query": "query Linked { memories { nodes { id } } }"}))

    assert await visit.page.get_by_role("tab").all_inner_texts() == ["Mine", *WELCOME[1:], "Linked"]
    assert (await visit.text("operation.graphql")).startswith("query Linked")


async def test_names_are_completed_from_the_schema(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")
    await visit.write(QUERY_EDITOR, "{ mem")
    await visit.page.keyboard.press("Control+Space")

    suggestion = visit.page.locator(".suggest-widget .monaco-list-row").filter(has_text="memories")
    await expect(suggestion.first).to_be_visible(timeout=10_000)


async def test_an_unknown_field_is_marked(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")
    await visit.write(QUERY_EDITOR, "{ memoriesOfTomorrow }")

    await expect(visit.page.locator(".graphiql-query-editor .squiggly-error").first).to_be_visible(timeout=10_000)


async def test_documentation_explorer_and_history_open(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")
    await visit.write(QUERY_EDITOR, "query Few { memories(first: 1) { nodes { content } } }")
    await visit.run()
    panel = visit.page.locator(".graphiql-plugin")

    await visit.page.get_by_role("button", name="Show Documentation Explorer").click()
    await panel.get_by_role("link", name="Mutation").click()
    await expect(panel).to_contain_text("createMemory")

    await visit.page.get_by_role("button", name="Show GraphiQL Explorer").click()
    await expect(panel.locator("input").first).to_have_value("Few")
    await panel.get_by_text("search", exact=True).click()
    await until(lambda: holds(visit, "search(query:"))

    await visit.page.get_by_role("button", name="Show History").click()
    await expect(panel).to_contain_text("Few")


async def holds(visit: Visit, text: str) -> bool:
    return text in " ".join((await visit.text("operation.graphql")).split())


async def test_a_key_in_the_headers_is_sent_and_not_kept(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")
    await visit.write_headers('{"Authorization": "Bearer not-to-be-kept"}')
    await visit.run()

    assert visit.operations[-1]["authorization"] == "Bearer not-to-be-kept"
    kept = await visit.stored()
    assert "query Memories" in kept
    assert "not-to-be-kept" not in kept


async def test_headers_are_kept_for_as_long_as_the_user_wants_it(visit: Visit, app_url: str) -> None:
    await visit.open(f"{app_url}/graphiql")
    await visit.write_headers('{"Authorization": "Bearer to-be-kept"}')
    await keep_headers(visit, "On")
    await visit.run()
    await visit.stored()
    await visit.page.reload()
    await visit.ready()
    await visit.run()
    after_reload = visit.operations[-1]["authorization"]
    kept = await visit.stored()
    await keep_headers(visit, "Off")

    assert after_reload == "Bearer to-be-kept"
    assert "to-be-kept" in kept
    assert "to-be-kept" not in await visit.stored()


async def keep_headers(visit: Visit, choice: str) -> None:
    await visit.page.get_by_role("button", name="Open settings dialog").click()
    section = visit.page.locator(".graphiql-dialog-section", has_text="Persist headers")
    await section.get_by_role("button", name=choice, exact=True).click()
    await visit.page.keyboard.press("Escape")


async def test_a_subscription_streams_with_the_headers_as_connection_parameters(ticks_url: str, visit: Visit) -> None:
    await visit.open(f"{ticks_url}/graphiql")
    await visit.write(QUERY_EDITOR, "subscription Ticks { ticks(to: 3) { number connection } }")
    await visit.write_headers('{"Authorization": "Bearer for-the-socket"}')
    await visit.execute()

    await until(lambda: shown(visit, '"number": 3'))
    tick = json.loads(await visit.text("response.json"))["data"]["ticks"]
    assert tick == {"number": 3, "connection": {"Authorization": "Bearer for-the-socket"}}
    assert [socket.url for socket in visit.sockets] == [f"{ticks_url}/graphql".replace("http", "ws", 1)]


async def shown(visit: Visit, text: str) -> bool:
    return text in await visit.text("response.json")


async def test_the_theme_follows_the_system_while_the_page_is_open(visit: Visit, app_url: str) -> None:
    await visit.page.emulate_media(color_scheme="dark")
    await visit.open(f"{app_url}/graphiql")
    dark = await brightness(visit)
    await visit.page.emulate_media(color_scheme="light")
    await asyncio.sleep(0.5)
    light = await brightness(visit)

    assert dark == {"page": "dark", "text": "light"}
    assert light == {"page": "light", "text": "dark"}


async def brightness(visit: Visit) -> dict[str, str]:
    """Whether the page's ground and the text in the query editor are light or dark."""
    found: dict[str, str] = await visit.page.evaluate("""() => {
        const shade = (selector, property) => {
            const color = getComputedStyle(document.querySelector(selector))[property];
            const [red, green, blue] = color.match(/[\\d.]+/g).map(Number);
            return red + green + blue > 382 ? 'light' : 'dark';
        };
        return {page: shade('.graphiql-container', 'backgroundColor'),
                text: shade('.graphiql-query-editor .bracket-highlighting-0, .graphiql-query-editor .mtk1', 'color')};
    }""")
    return found
