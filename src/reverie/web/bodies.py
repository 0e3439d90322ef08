"""What goes in and out as JSON, whatever the transport: what no text may hold, and answers with coded errors."""

from typing import Any

from graphql import GraphQLError
from strawberry.http import GraphQLHTTPResponse
from strawberry.types import ExecutionResult
from strawberry.types.execution import PreExecutionError

from reverie.api.errors import formatted
from reverie.errors import BadInput


def answer(result: ExecutionResult | PreExecutionError, request_id: str) -> GraphQLHTTPResponse:
    """The body of an answer, its errors with code and request id."""
    body: dict[str, Any] = {"data": result.data}
    if result.errors:
        body["errors"] = coded(result, request_id)
    if result.extensions:
        body["extensions"] = result.extensions
    return body  # type: ignore[return-value]  # errors carry extensions, which Strawberry's type leaves out


def coded(result: ExecutionResult | PreExecutionError, request_id: str) -> list[dict[str, Any]]:
    """The errors of a result with their codes."""
    stage = "GRAPHQL_VALIDATION_FAILED" if isinstance(result, PreExecutionError) else "BAD_INPUT"
    return [formatted(error, request_id, stage) for error in result.errors or ()]


def refused(error: Exception, request_id: str, stage: str) -> list[dict[str, Any]]:
    """The errors of an operation that was never executed."""
    located = error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
    return [formatted(located, request_id, stage)]


def check_texts(decoded: object) -> None:
    """Raises BadInput for a NUL in any text of a decoded body, which Bolt, Redis and models can't carry."""
    waiting: list[tuple[object, tuple[str | int, ...]]] = [(decoded, ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, str):
            if "\0" in value:
                raise BadInput(f"{'.'.join(map(str, path))}: holds a NUL, which no text may", path)
        elif isinstance(value, dict):
            waiting.extend((name, path) for name in value)
            waiting.extend((member, (*path, name)) for name, member in value.items())
        elif isinstance(value, list):
            waiting.extend((member, (*path, index)) for index, member in enumerate(value))
