"""Errors on their way out: ours with their code and words, all others masked and logged."""

import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

from graphql import GraphQLError, GraphQLSyntaxError

from reverie.api.types.enums import InputErrorCode
from reverie.api.types.payloads import InputError, Payload
from reverie.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    CursorExpired,
    NotFound,
    Refusal,
    Refusals,
    ReverieError,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unsupported,
)

log = logging.getLogger("reverie.api")
P = TypeVar("P", bound=Payload)

MASKED = "something went wrong on our side; the request id leads to it in the log"
_INPUT_CODES: dict[type[Refusal], InputErrorCode] = {
    BadInput: InputErrorCode.BAD_INPUT,
    NotFound: InputErrorCode.NOT_FOUND,
    Conflict: InputErrorCode.CONFLICT,
    AlreadyExists: InputErrorCode.ALREADY_EXISTS,
    TooLarge: InputErrorCode.TOO_LARGE,
    Unsupported: InputErrorCode.UNSUPPORTED,
}
_REQUEST_CODES: dict[type[ReverieError], str] = {
    NotFound: "NOT_FOUND",
    Conflict: "CONFLICT",
    CursorExpired: "CURSOR_EXPIRED",
    Unauthenticated: "UNAUTHENTICATED",
    Unavailable: "UNAVAILABLE",
}


async def answered(payload: type[P], work: Awaitable[dict[str, Any]]) -> P:
    """The payload of a mutation: what the work gives by field, or what stood against it."""
    try:
        return payload(**await work)
    except Refusals as error:
        refusals: tuple[Refusal, ...] = error.refusals
    except Refusal as error:
        refusals = (error,)
    return payload(
        errors=[
            InputError(
                code=_INPUT_CODES[type(refusal)],
                message=refusal.message,
                path=list(refusal.path),
                existing_id=refusal.existing_id,  # type: ignore[arg-type]  # an ID is a string
            )
            for refusal in refusals
        ]
    )


def formatted(error: GraphQLError, request_id: str, stage: str) -> dict[str, Any]:
    """An error of the answer; `stage` is the code of errors that execution didn't raise."""
    original = error.original_error
    while isinstance(original, GraphQLError) and original.original_error is not None:
        original = original.original_error
    shown: dict[str, Any] = {"message": error.message}
    if error.locations:
        shown["locations"] = [{"line": at.line, "column": at.column} for at in error.locations]
    if error.path is not None:
        shown["path"] = error.path
    if isinstance(error, GraphQLSyntaxError):
        code = "GRAPHQL_PARSE_FAILED"
    elif original is None or isinstance(original, GraphQLError):
        # what execution reports by itself: a null where the schema allows none is our fault, all else the caller's
        code = stage
    elif isinstance(original, Refusals):
        code, shown["message"] = _code(original.refusals[0]), str(original)
    elif isinstance(original, ReverieError):
        code, shown["message"] = _code(original), str(original)
    else:
        code, shown["message"] = "INTERNAL", MASKED
        log.error("request %s failed at %s", request_id, error.path, exc_info=original)
    shown["extensions"] = {"code": code, "requestId": request_id}
    return shown


def _code(error: ReverieError) -> str:
    return next((code for kind, code in _REQUEST_CODES.items() if isinstance(error, kind)), "BAD_INPUT")
