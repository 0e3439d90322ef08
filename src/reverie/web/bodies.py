"""What goes in and out as JSON, whatever the transport: what no text may hold, and answers with coded errors."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from graphql import GraphQLError
from strawberry.exceptions import MissingQueryError
from strawberry.http import GraphQLHTTPResponse
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types import ExecutionResult
from strawberry.types.execution import PreExecutionError
from strawberry.types.graphql import OperationType

from reverie.api.errors import formatted
from reverie.errors import BadInput

NotExecuted = MissingQueryError | CannotGetOperationTypeError | InvalidOperationTypeError
NOT_EXECUTED = (MissingQueryError, CannotGetOperationTypeError, InvalidOperationTypeError)


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
    errors = result.errors or []
    if isinstance(result, PreExecutionError):
        return [formatted(_reworded(error), request_id, "GRAPHQL_VALIDATION_FAILED") for error in errors]
    return [formatted(error, request_id, "BAD_INPUT") for error in errors]


async def guarded(results: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """The results of a stream; what is raised before its first one comes as a result too.

    Strawberry lets the errors of an extension that parses, such as its parser cache, out of the stream.
    """
    begun = False
    try:
        async for result in results:
            begun = True
            yield result
    except Exception as error:
        if begun:
            raise
        yield PreExecutionError(data=None, errors=[_located(error)])
    finally:
        if isinstance(results, AsyncGenerator):
            await results.aclose()


def as_bad_input(error: NotExecuted, method: str) -> BadInput:
    """Why Strawberry finds nothing to execute in a request, in our words; `method` is that of HTTP."""
    match error:
        case MissingQueryError():
            return BadInput("the request has no operation under `query`")
        case CannotGetOperationTypeError():
            return BadInput(error.as_http_error_reason())
        case InvalidOperationTypeError(operation_type=OperationType.SUBSCRIPTION):
            return BadInput(
                "a subscription needs a stream: WebSocket with graphql-transport-ws, or Accept: text/event-stream"
            )
        case InvalidOperationTypeError():
            return BadInput(error.as_http_error_reason(method))


def _reworded(error: GraphQLError) -> GraphQLError:
    original = error.original_error
    if isinstance(original, NOT_EXECUTED):
        # GET is the only method that some operations are refused
        return _located(as_bad_input(original, "GET"))
    return error


def _located(error: Exception) -> GraphQLError:
    return error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)


def refused(error: Exception, request_id: str, stage: str) -> list[dict[str, Any]]:
    """The errors of an operation that was never executed."""
    return [formatted(_located(error), request_id, stage)]


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
