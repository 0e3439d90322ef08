"""GraphQL over HTTP: Strawberry's ASGI parts with our context, errors and JSON."""

import re
from typing import Any

import orjson
from cross_web import HTTPException
from graphql import GraphQLError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.http import GraphQLHTTPResponse
from strawberry.types import ExecutionResult
from strawberry.types.execution import PreExecutionError

from reverie.api.context import Context
from reverie.api.errors import formatted
from reverie.api.schema import schema
from reverie.domain.ids import new_id
from reverie.errors import BadInput, ReverieError, Unauthenticated
from reverie.web.assets import redirect_to_page, wants_page
from reverie.web.auth import Callers

_PLAIN = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_SHOWN = 20
"""Characters of a body that isn't JSON, shown from where it isn't."""


class GraphQLApp(GraphQL[Context, None]):
    """The one endpoint of the API."""

    def __init__(self, callers: Callers) -> None:
        super().__init__(schema, graphql_ide=None, allow_queries_via_get=True, subscription_protocols=[])
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        request_id = _request_id(request.headers.get("x-request-id"))
        request.state.request_id = request_id
        response = redirect_to_page() if wants_page(request) else await self._answered(request, request_id)
        response.headers["x-request-id"] = request_id
        await response(scope, receive, send)

    async def _answered(self, request: Request, request_id: str) -> Response:
        try:
            return await self.run(request)
        except Unauthenticated as error:
            response = _failed(error, 401, request_id, "UNAUTHENTICATED")
            response.headers["www-authenticate"] = "Bearer"
            return response
        except ReverieError as error:
            return _failed(error, 400, request_id, "BAD_INPUT")
        except HTTPException as error:
            return _failed(GraphQLError(error.reason), error.status_code, request_id, "BAD_INPUT")
        except Exception as error:
            return _failed(error, 500, request_id, "INTERNAL")

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        tenant = self._callers.tenant(request.headers.get("authorization"))
        state = request.app.state
        return Context(state.resources, tenant, request.state.request_id, state.follower)

    def should_render_graphql_ide(self, request: object) -> bool:
        """Never: GraphiQL has a page of its own."""
        return False

    def decode_json(self, data: str | bytes) -> object:
        try:
            decoded = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            at = f"line {error.lineno}, column {error.colno}"
            shown = error.doc[error.pos : error.pos + _SHOWN]
            raise BadInput(f"the request is not JSON: {error.msg}, at {at}: {shown!r}") from error
        unfit = _unfit(decoded)
        if unfit is not None:
            raise BadInput(f"{'.'.join(map(str, unfit))}: holds a NUL, which no text may", unfit)
        # a body, that is; what comes as a parameter in the URL is a part of one
        if isinstance(data, bytes):
            if not isinstance(decoded, dict):
                raise BadInput("the request must be a JSON object, with the operation under `query`")
            if not isinstance(decoded.get("operationName"), str | None):
                raise BadInput("operationName: must be a text", ("operationName",))
        return decoded

    def encode_json(self, data: object) -> bytes:
        return orjson.dumps(data)

    async def process_result(
        self, request: Request, result: ExecutionResult, strict: bool = False
    ) -> GraphQLHTTPResponse:
        return answer(result, request.state.request_id)


def _request_id(given: str | None) -> str:
    """The caller's own id of a request where it is a plain one, a new one otherwise."""
    return given if given is not None and _PLAIN.fullmatch(given) else new_id()


def _failed(error: Exception, status: int, request_id: str, stage: str) -> Response:
    """The answer to a request that was never executed."""
    located = error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
    body = {"errors": [formatted(located, request_id, stage)]}
    return Response(orjson.dumps(body), status, media_type="application/json")


def answer(result: ExecutionResult | PreExecutionError, request_id: str) -> GraphQLHTTPResponse:
    """The body of an answer, its errors with code and request id."""
    body: dict[str, Any] = {"data": result.data}
    if result.errors:
        stage = "GRAPHQL_VALIDATION_FAILED" if isinstance(result, PreExecutionError) else "BAD_INPUT"
        body["errors"] = [formatted(error, request_id, stage) for error in result.errors]
    if result.extensions:
        body["extensions"] = result.extensions
    return body  # type: ignore[return-value]  # errors carry extensions, which Strawberry's type leaves out


def _unfit(decoded: object) -> tuple[str | int, ...] | None:
    """Where in a decoded body a NUL is, which Bolt, Redis and models can't carry; None where there is none."""
    waiting: list[tuple[object, tuple[str | int, ...]]] = [(decoded, ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, str):
            if "\0" in value:
                return path
        elif isinstance(value, dict):
            waiting.extend((name, path) for name in value)
            waiting.extend((member, (*path, name)) for name, member in value.items())
        elif isinstance(value, list):
            waiting.extend((member, (*path, index)) for index, member in enumerate(value))
    return None
