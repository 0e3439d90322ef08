"""GraphQL over WebSocket (graphql-transport-ws): Strawberry's handler with our frames, contexts and errors."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import Any, cast

import orjson
from starlette.websockets import WebSocketDisconnect, WebSocketState
from strawberry.asgi import ASGIWebSocketAdapter
from strawberry.http.exceptions import NonJsonMessageReceived, NonTextMessageReceived, WebSocketDisconnected
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler, Operation
from strawberry.subscriptions.protocols.graphql_transport_ws.types import Message, PingMessage, SubscribeMessage
from strawberry.types.execution import ExecutionResult, PreExecutionError
from strawberry.utils.aio import aclosing

from reverie.api.context import Context, EventLoaders
from reverie.domain.ids import new_id
from reverie.errors import TooLarge
from reverie.resources import Resources
from reverie.services.changes import Follower
from reverie.web.bodies import answer, check_texts, coded, guarded, refused

BAD_INPUT = "BAD_INPUT"
_OBJECT = (dict, type(None))
_TEXT = (str, type(None))
_MEMBERS: dict[str, dict[str, tuple[type, ...]]] = {
    "connection_init": {"payload": _OBJECT},
    "ping": {"payload": _OBJECT},
    "pong": {"payload": _OBJECT},
    "subscribe": {"id": (str,), "payload": (dict,)},
    "complete": {"id": (str,)},
}
_OPERATION = {"query": (str,), "variables": _OBJECT, "operationName": _TEXT, "extensions": _OBJECT}


@dataclass
class Socket:
    """One connection: what its operations need, and, once it has been acknowledged, whose it is."""

    resources: Resources
    follower: Follower
    event_loaders: EventLoaders
    authorization: str | None
    """The header of the handshake."""
    connection_params: dict[str, object] = field(default_factory=dict)
    tenant: str = ""

    @property
    def credentials(self) -> str | None:
        """What was given with `connection_init`, or else with the handshake; a text that is no key if it is no text."""
        for name, value in self.connection_params.items():
            if name.lower() == "authorization":
                return value if isinstance(value, str) else ""
        return self.authorization

    def context(self) -> Context:
        """The context of one operation."""
        return Context(self.resources, self.tenant, new_id(), self.follower, self.event_loaders)


class SocketAdapter(ASGIWebSocketAdapter):
    """Frames of text, read and written as JSON."""

    async def iter_json(self, *, ignore_parsing_errors: bool = False) -> AsyncGenerator[object, None]:
        try:
            while self.ws.application_state is not WebSocketState.DISCONNECTED:
                yield orjson.loads(await self.ws.receive_text())
        except JSONDecodeError as error:
            raise NonJsonMessageReceived from error
        except KeyError as error:
            raise NonTextMessageReceived from error
        except WebSocketDisconnect:
            return

    async def send_json(self, message: Mapping[str, object]) -> None:
        if self.ws.application_state is WebSocketState.DISCONNECTED:
            raise WebSocketDisconnected
        try:
            await self.ws.send_text(orjson.dumps(message).decode())
        except WebSocketDisconnect as error:
            raise WebSocketDisconnected from error

    async def close(self, code: int, reason: str) -> None:
        if self.ws.application_state is not WebSocketState.DISCONNECTED:
            await self.ws.close(code, reason)


class TransportWsHandler(BaseGraphQLTransportWSHandler["Context | Socket", None]):
    """One connection's protocol. A faulty frame closes it with 4400, a faulty operation ends that operation alone."""

    async def handle_message(self, message: Message) -> None:
        fault = fault_of(message)
        if fault is not None:
            await self.handle_invalid_message(fault)
            return
        if message["type"] == "connection_init" and message.get("payload") is None:
            message = {"type": "connection_init", "payload": {}}
        await super().handle_message(message)

    async def handle_ping(self, message: PingMessage) -> None:
        await self.send_message({**message, "type": "pong"})

    async def handle_subscribe(self, message: SubscribeMessage) -> None:
        most = self.max_subscriptions_per_connection
        if (
            self.connection_acknowledged
            and message["id"] not in self.operations
            and most is not None
            and len(self.operations) >= most
        ):
            error = TooLarge(f"one connection runs {most} operations at once, no more")
            payload = refused(error, new_id(), BAD_INPUT)
            await self.websocket.send_json({"id": message["id"], "type": "error", "payload": payload})
            return
        await super().handle_subscribe(message)

    async def run_operation(self, operation: "Operation[Context | Socket, None]") -> None:
        context = cast("Socket", self.context).context()
        try:
            try:
                errors = await self._run(operation, context)
            except WebSocketDisconnected:
                raise
            except Exception as error:
                errors = refused(error, context.request_id, "INTERNAL")
            if errors:
                await self._send(operation, {"id": operation.id, "type": "error", "payload": errors})
            else:
                await self._send(operation, {"id": operation.id, "type": "complete"})
        except WebSocketDisconnected:
            self.operations.pop(operation.id, None)

    async def _run(self, operation: "Operation[Context | Socket, None]", context: Context) -> list[dict[str, Any]]:
        """Sends the results; returns what kept the operation from being executed at all."""
        check_texts(
            {"query": operation.query, "variables": operation.variables, "operationName": operation.operation_name}
        )
        results = await self.schema.stream(
            operation.query,
            variable_values=operation.variables,
            context_value=context,
            operation_name=operation.operation_name,
        )
        async with aclosing(guarded(results)) as guarded_results:
            async for result in guarded_results:
                if isinstance(result, PreExecutionError):
                    return coded(result, context.request_id)
                payload = answer(cast("ExecutionResult", result), context.request_id)
                await self._send(operation, {"id": operation.id, "type": "next", "payload": payload})
        return []

    async def _send(self, operation: "Operation[Context | Socket, None]", message: dict[str, Any]) -> None:
        await operation.send_operation_message(cast("Message", message))


def fault_of(message: object) -> str | None:
    """What makes a frame none of the protocol's; None where it is one."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return "a message must be a JSON object with its type"
    members = _MEMBERS.get(message["type"])
    if members is None:
        return "this type of message is not known"
    fault = _misfit(message, members)
    if fault is None and message["type"] == "subscribe":
        fault = _misfit(message["payload"], _OPERATION)
    return fault


def _misfit(found: dict[str, Any], members: Mapping[str, tuple[type, ...]]) -> str | None:
    for name, types in members.items():
        if not isinstance(found.get(name), types):
            return f"{name}: not what the protocol has there"
    return None
