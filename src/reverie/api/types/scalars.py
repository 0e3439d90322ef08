"""Scalars: DateTime, strict on the way in, and Upload."""

import re
from datetime import UTC, datetime

import strawberry
from graphql import GraphQLError
from starlette.datastructures import UploadFile

_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


def parse_datetime(value: object) -> datetime:
    """The UTC instant of an RFC 3339 text with an offset; GraphQLError for any other value."""
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise GraphQLError(f"DateTime: {value!r} is not an RFC 3339 date and time with an offset")
    text = value.upper().replace("Z", "+00:00")
    # the standard library reads at most six digits of a second
    text = re.sub(r"(\.\d{6})\d+", r"\1", text)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise GraphQLError(f"DateTime: {value!r} is not an instant: {error}") from None


def serialize_datetime(value: datetime) -> str:
    """RFC 3339, UTC, milliseconds."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_upload(value: object) -> UploadFile:
    """The file that came with the request; GraphQLError for any other value."""
    if not isinstance(value, UploadFile):
        raise GraphQLError("Upload: takes a variable whose file comes in a multipart request")
    return value


def serialize_upload(value: object) -> str:
    """Never: files only come in."""
    raise GraphQLError("Upload: can't be read")


DateTime = strawberry.scalar(
    name="DateTime",
    description="An instant as RFC 3339 text: with any offset on the way in, in UTC with milliseconds on the way out.",
    serialize=serialize_datetime,
    parse_value=parse_datetime,
    specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
)

Upload = strawberry.scalar(
    name="Upload",
    description="A file, sent as the GraphQL multipart request specification has it: null in the variables, and mapped "
    "to a part of the request.",
    serialize=serialize_upload,
    parse_value=parse_upload,
    specified_by_url="https://github.com/jaydenseric/graphql-multipart-request-spec",
)
