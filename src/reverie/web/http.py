"""GraphQL over HTTP: Strawberry's ASGI parts with our context, errors and JSON."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, cast

import orjson
from cross_web import AsyncHTTPRequestAdapter, HTTPException, StarletteRequestAdapter
from graphql import GraphQLError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.exceptions import ConnectionRejectionError
from strawberry.http import GraphQLHTTPResponse, GraphQLRequestData
from strawberry.http.streaming import SSETransport
from strawberry.http.websocket_origin import is_same_origin
from strawberry.schema.base import BaseSchema
from strawberry.subscriptions import GRAPHQL_SSE_PROTOCOL, GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult, SubscriptionExecutionResult
from strawberry.types.graphql import OperationType
from strawberry.types.unset import UNSET, UnsetType

from reverie.api.context import Context, EventLoaders
from reverie.api.schema import schema
from reverie.domain.ids import new_id
from reverie.errors import BadInput, ReverieError, Unauthenticated
from reverie.web.assets import redirect_to_page, wants_page
from reverie.web.auth import Callers
from reverie.web.bodies import NOT_EXECUTED, answer, as_bad_input, check_texts, guarded, refused
from reverie.web.uploads import PREFLIGHT, is_preflighted, is_upload, read_upload, with_files
from reverie.web.websocket import Socket, SocketAdapter, TransportWsHandler

_PLAIN = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_SHOWN = 20
"""Characters of a body that isn't JSON, shown from where it isn't."""


class _RequestAdapter(StarletteRequestAdapter):
    """As Strawberry's, with the way to the request itself."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.request = request


class GraphQLApp(GraphQL[Context | Socket, None]):
    """The one endpoint of the API: JSON by POST and GET, streams of server-sent events, and WebSockets."""

    request_adapter_class = _RequestAdapter
    websocket_adapter_class = SocketAdapter
    graphql_transport_ws_handler_class = TransportWsHandler

    def __init__(self, callers: Callers, executed: BaseSchema = schema) -> None:
        super().__init__(
            executed,
            graphql_ide=None,
            allow_queries_via_get=True,
            multipart_uploads_enabled=True,
            subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL, GRAPHQL_SSE_PROTOCOL],
        )
        self._callers = callers
        self._event_loaders = EventLoaders()
        self._streams: set[asyncio.Timeout] = set()
        self._ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self.run(WebSocket(scope, receive, send))
            return
        request = Request(scope, receive)
        request_id = _request_id(request.headers.get("x-request-id"))
        request.state.request_id = request_id
        try:
            response = redirect_to_page() if wants_page(request) else await self._answered(request, request_id)
        except ClientDisconnect:
            # nobody is there to be answered
            return
        response.headers["x-request-id"] = request_id
        if isinstance(response, StreamingResponse):
            await self._stream(response, scope, receive, send)
        else:
            await response(scope, receive, send)

    def end_streams(self) -> None:
        """Ends the streams of events that are open, as a lost connection would, so that clients come back."""
        self._ending = True
        for stream in self._streams:
            stream.reschedule(asyncio.get_running_loop().time())

    async def _stream(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(0 if self._ending else None) as stream:
                self._streams.add(stream)
                try:
                    await response(scope, receive, send)
                finally:
                    self._streams.discard(stream)
        except TimeoutError:
            if not stream.expired():
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answered(self, request: Request, request_id: str) -> Response:
        try:
            if (forbidden := _forbidden(request)) is not None:
                return _failed(GraphQLError(forbidden), 403, request_id, "FORBIDDEN")
            return await self.run(request)
        except Unauthenticated as error:
            response = _failed(error, 401, request_id, "UNAUTHENTICATED")
            response.headers["www-authenticate"] = "Bearer"
            return response
        except ReverieError as error:
            return _failed(error, 400, request_id, "BAD_INPUT")
        except ClientDisconnect:
            raise
        except HTTPException as error:
            return _failed(GraphQLError(error.reason), error.status_code, request_id, "BAD_INPUT")
        except Exception as error:
            return _failed(error, 500, request_id, "INTERNAL")
        finally:
            if (form := getattr(request.state, "upload", None)) is not None:
                await form.close()

    async def parse_multipart(self, request: AsyncHTTPRequestAdapter) -> dict[str, Any]:
        """A multipart request with its files in their places, which are closed when it is answered."""
        if not isinstance(request, _RequestAdapter):
            raise AssertionError("every request is adapted so")
        of = request.request
        of.state.upload = await read_upload(of, of.app.state.resources.documents.bytes_most)
        return with_files(of.state.upload, self.decode_json)

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context | Socket:
        state = request.app.state
        if isinstance(request, WebSocket):
            return Socket(state.resources, state.follower, self._event_loaders, request.headers.get("authorization"))
        tenant = self._callers.tenant(request.headers.get("authorization"))
        return Context(state.resources, tenant, request.state.request_id, state.follower, self._event_loaders)

    async def on_ws_connect(self, context: Context | Socket) -> UnsetType:
        if isinstance(context, Socket):
            try:
                context.tenant = self._callers.tenant(context.credentials)
            except Unauthenticated as error:
                raise ConnectionRejectionError from error
        no_payload: UnsetType = UNSET
        return no_payload

    async def execute_single(
        self,
        request: Request,
        request_adapter: AsyncHTTPRequestAdapter,
        sub_response: Response,
        context: Context | Socket,
        root_value: None,
        request_data: GraphQLRequestData,
    ) -> ExecutionResult:
        """One answer to one operation, which can't be a subscription."""
        allowed = OperationType.from_http(request_adapter.method) - {OperationType.SUBSCRIPTION}
        try:
            return await self.schema.execute(
                request_data.query,
                variable_values=request_data.variables,
                context_value=context,
                operation_name=request_data.operation_name,
                allowed_operation_types=allowed,
                operation_extensions=request_data.extensions,
            )
        except NOT_EXECUTED as error:
            raise as_bad_input(error, request_adapter.method) from error

    async def execute_operation(
        self,
        request: Request,
        request_adapter: AsyncHTTPRequestAdapter,
        request_data: GraphQLRequestData | list[GraphQLRequestData],
        context: Context | Socket,
        root_value: None,
        sub_response: Response,
    ) -> ExecutionResult | list[ExecutionResult] | SubscriptionExecutionResult:
        """As Strawberry does it, but for what a stream raises before it begins."""
        result = await super().execute_operation(
            request, request_adapter, request_data, context, root_value, sub_response
        )
        return cast("SubscriptionExecutionResult", guarded(result)) if isinstance(result, AsyncIterator) else result

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
        check_texts(decoded)
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


def _wants_stream(request: Request) -> bool:
    return SSETransport().accepts(request.headers.get("accept", ""))


def _forbidden(request: Request) -> str | None:
    """Why a page of another site may be behind a request; None where none can be."""
    if _wants_stream(request) and _is_foreign(request):
        return "pages of other sites are not served"
    if is_upload(request) and not is_preflighted(request):
        return f"an upload needs the header {PREFLIGHT[0]}, with any value"
    return None


def _is_foreign(request: Request) -> bool:
    """Whether a browser says that a page of another site asks."""
    origin = request.headers.get("origin")
    return (
        origin is not None
        and request.headers.get("sec-fetch-site") != "same-origin"
        and not is_same_origin(origin, request.headers.get("host"))
    )


def _request_id(given: str | None) -> str:
    """The caller's own id of a request where it is a plain one, a new one otherwise."""
    return given if given is not None and _PLAIN.fullmatch(given) else new_id()


def _failed(error: Exception, status: int, request_id: str, stage: str) -> Response:
    """The answer to a request that was never executed."""
    body = {"errors": refused(error, request_id, stage)}
    return Response(orjson.dumps(body), status, media_type="application/json")
