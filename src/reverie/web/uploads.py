"""Uploads: GraphQL multipart requests, their files within a limit and kept on disk.

As the GraphQL multipart request specification has it: a part `operations` with the request as JSON, whose variables
have null where files belong; a part `map` from the names of the files' parts to those places; then the files.
"""

from collections.abc import AsyncGenerator, Callable
from itertools import pairwise
from typing import Any, TypeGuard

from cross_web import HTTPException
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from reverie.errors import BadInput

PREFLIGHT = ("graphql-require-preflight", "apollo-require-preflight")
"""Headers that a form of another site's page can't send: a browser asks the server first whether it may."""
FILES_MOST = 10
REST_MOST = 2_000_000
"""Bytes of a request beside its files."""
_LONGEST_INDEX = 10


def is_upload(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "multipart/form-data"


def is_preflighted(request: Request) -> bool:
    """Whether the request can't come from a form of another site's page."""
    return any(header in request.headers for header in PREFLIGHT)


async def read_upload(request: Request, bytes_most: int) -> FormData:
    """The parts of a multipart request, whose files are the caller's to close.

    Raises HTTPException for what is too large, or no such request.
    """
    most = bytes_most + REST_MOST
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise _too_large(bytes_most)
    parser = MultiPartParser(
        request.headers,
        _counted(request.stream(), most, bytes_most),
        max_files=FILES_MOST,
        max_fields=2,
        max_part_size=REST_MOST,
    )
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise HTTPException(400, f"the multipart request can't be read: {error.message}") from error


async def _counted(stream: AsyncGenerator[bytes, None], most: int, bytes_most: int) -> AsyncGenerator[bytes, None]:
    read = 0
    async for part in stream:
        read += len(part)
        if read > most:
            raise _too_large(bytes_most)
        yield part


def _too_large(bytes_most: int) -> HTTPException:
    return HTTPException(413, f"the upload is too large: a document may have {bytes_most:,} bytes")


def with_files(form: FormData, decode: Callable[[str | bytes], object]) -> dict[str, Any]:
    """The request of a multipart request, its files in their places. Raises BadInput.

    `decode` reads JSON, of bytes that which may be a whole request.
    """
    operations, mapped = form.get("operations"), form.get("map")
    if not isinstance(operations, str) or not isinstance(mapped, str):
        raise BadInput("a multipart request has the parts `operations` and `map`, both JSON")
    request, places = decode(operations.encode()), decode(mapped)
    if not isinstance(request, dict) or not _is_map(places):
        raise BadInput("map: must be a JSON object of the names of files to lists with one path each", ("map",))
    files = {name: part for name, part in form.multi_items() if isinstance(part, UploadFile)}
    if files.keys() != places.keys():
        raise BadInput("map: must name each file of the request, and nothing else", ("map",))
    for name, (path,) in places.items():
        _put(request, path.split("."), files[name], name)
    return request


def _is_map(places: object) -> TypeGuard[dict[str, list[str]]]:
    return isinstance(places, dict) and all(
        isinstance(paths, list) and len(paths) == 1 and isinstance(paths[0], str) for paths in places.values()
    )


def _put(request: dict[str, Any], path: list[str], file: UploadFile, name: str) -> None:
    """Puts a file in the place of a null among the variables."""
    astray = BadInput(f"map.{name}: leads to no null among the variables", ("map", name))
    if path[0] != "variables":
        raise astray
    held: Any = request
    for step, following in pairwise([*path, None]):
        key = _key(held, step)
        if key is None:
            raise astray
        if following is not None:
            held = held[key]
        elif held[key] is not None:
            raise astray
        else:
            held[key] = file


def _key(held: object, step: str | None) -> Any:
    """How a step of a path leads into what is held; None where it doesn't."""
    if isinstance(held, dict):
        return step if step in held else None
    if isinstance(held, list) and step is not None and step.isdecimal() and len(step) < _LONGEST_INDEX:
        return int(step) if int(step) < len(held) else None
    return None
