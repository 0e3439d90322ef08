"""The web explorer over HTTP: the GraphiQL page, the files it loads, and the way there for a browser."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

ASSETS = Path(__file__).parent / "assets"

# On the files too: a worker obeys the policy of its own script's answer, not the page's.
POLICY = "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'none'"
# Monaco writes style elements and has images in its style sheet.
GRAPHIQL_POLICY = f"{POLICY}; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

REVALIDATED = "no-cache"
IMMUTABLE = "public, max-age=31536000, immutable"

# Named here because the machine's own table of types may hold anything, and nosniff makes browsers strict.
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
}

NOT_BUILT = (
    "This installation has no web explorer: it was installed with REVERIE_SKIP_EXPLORER set. "
    "Install Reverie again without that variable to get it. The API at /graphql works all the same.\n"
)
NO_SUCH_FILE = "The web explorer has no such file. Reload the page: Reverie may have been updated since.\n"

JSON_TYPES = {"application/json", "application/graphql-response+json"}


def asset_routes(folder: Path = ASSETS) -> list[BaseRoute]:
    """Routes for the web explorer as the package build left it in `folder`.

    `/graphiql` is the page and `/` leads there; `/static/…` are the files it loads, named by content and cached for
    ever; then the icon and the licences of the packages in the bundle. Where the explorer was not built they answer
    404 with a sentence that says so; that is decided on each request.
    """
    files = StaticFiles(directory=folder, check_dir=False)

    async def answer(request: Request, name: str, policy: str = POLICY, cache: str = REVALIDATED) -> Response:
        try:
            response = await files.get_response(name, request.scope)
        except HTTPException as error:
            built = (folder / "graphiql.html").is_file()
            response = PlainTextResponse(NO_SUCH_FILE if built else NOT_BUILT, error.status_code)
            cache = "no-store"
        else:
            response.headers["content-type"] = MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")
        return secured(response, policy, cache)

    async def graphiql(request: Request) -> Response:
        return await answer(request, "graphiql.html", GRAPHIQL_POLICY)

    async def static(request: Request) -> Response:
        return await answer(request, f"static/{request.path_params['name']}", cache=IMMUTABLE)

    async def icon(request: Request) -> Response:
        return await answer(request, "favicon.svg")

    async def licenses(request: Request) -> Response:
        return await answer(request, "THIRD_PARTY_LICENSES.txt")

    async def root(request: Request) -> Response:
        return redirect_to_page()

    return [
        Route("/", root),
        Route("/graphiql", graphiql),
        Route("/static/{name}", static),
        Route("/favicon.svg", icon),
        Route("/favicon.ico", icon),
        Route("/third-party-licenses.txt", licenses),
    ]


def wants_page(request: Request) -> bool:
    """Whether a request to the GraphQL endpoint is somebody opening it in a browser, who is better off on the page.

    Browsers name text/html when they navigate. A client that names a JSON type as well, or brings parameters, means
    the endpoint.
    """
    accepted = {entry.partition(";")[0].strip().lower() for entry in request.headers.get("accept", "").split(",")}
    return (
        request.method in ("GET", "HEAD")
        and not request.url.query
        and "text/html" in accepted
        and accepted.isdisjoint(JSON_TYPES)
    )


def redirect_to_page() -> Response:
    """Send a browser from the root or the GraphQL endpoint to GraphiQL, whatever path prefix they are under."""
    response = secured(RedirectResponse("graphiql"), POLICY, REVALIDATED)
    response.headers["vary"] = "accept"
    return response


def secured(response: Response, policy: str, cache: str) -> Response:
    """Add the headers that every answer of the explorer carries."""
    response.headers["content-security-policy"] = policy
    response.headers["cache-control"] = cache
    response.headers["x-content-type-options"] = "nosniff"
    response.headers["referrer-policy"] = "no-referrer"
    return response
