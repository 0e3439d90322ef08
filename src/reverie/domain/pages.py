"""Pages of connections: what was asked for, what came back, and the cursors between.

A cursor is a keyset token: the sort key and id of one member, so that writes between two pages neither lose nor repeat
a member. It is bound to its connection, its order and its tenant; any other is refused.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2s
from typing import Generic, TypeVar

import orjson

from reverie.domain import policy
from reverie.errors import BadInput

Key = tuple[str | int | float, ...]
T = TypeVar("T")

_VERSION = 1
_MARK = 6


def encode_cursor(tenant: str, scope: str, key: Key) -> str:
    """The opaque token of one member of the connection `scope`."""
    body = orjson.dumps([_VERSION, scope, *key])
    return urlsafe_b64encode(_mark(tenant, body) + body).decode().rstrip("=")


def decode_cursor(tenant: str, scope: str, cursor: str, name: str) -> Key:
    """The key in a token; BadInput, naming the argument, when it is not one of this connection's."""
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        mark, body = raw[:_MARK], raw[_MARK:]
        found = orjson.loads(body) if mark == _mark(tenant, body) else None
    except (Base64Error, ValueError):
        found = None
    if (
        not isinstance(found, list)
        or found[:2] != [_VERSION, scope]
        or not all(map(_may_be_part, found[2:]))
        or cursor != encode_cursor(tenant, scope, tuple(found[2:]))
    ):
        raise BadInput(f"{name}: not a cursor of this connection", (name,))
    return tuple(found[2:])


def _may_be_part(part: object) -> bool:
    """Whether it may be part of a key: a text, or a number that Neo4j has, too."""
    return type(part) in (str, float) or (type(part) is int and -(2**63) <= part < 2**63)


def _mark(tenant: str, body: bytes) -> bytes:
    return blake2s(body, key=blake2s(tenant.encode()).digest(), digest_size=_MARK).digest()


@dataclass(frozen=True, slots=True)
class PageArgs:
    """The four arguments of a connection, as a caller gave them."""

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A checked request for one page: `limit` members from one end of what lies between two keys."""

    limit: int
    backward: bool
    after: Key | None
    before: Key | None


def span(args: PageArgs, tenant: str, scope: str) -> Span:
    """Checks the arguments of a connection; BadInput names the argument that is wrong."""
    if args.first is not None and args.last is not None:
        raise BadInput("first and last exclude each other", ("last",))
    for name, size in (("first", args.first), ("last", args.last)):
        if size is not None and not 0 <= size <= policy.PAGE_MOST:
            raise BadInput(f"{name}: must be from 0 to {policy.PAGE_MOST}, not {size}", (name,))
    limit = args.first if args.first is not None else args.last
    return Span(
        policy.PAGE_DEFAULT if limit is None else limit,
        args.last is not None,
        None if args.after is None else decode_cursor(tenant, scope, args.after, "after"),
        None if args.before is None else decode_cursor(tenant, scope, args.before, "before"),
    )


@dataclass(slots=True)
class Edge(Generic[T]):
    """One member of a page, with its cursor."""

    cursor: str
    node: T


@dataclass(frozen=True, slots=True)
class PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@dataclass
class Page(Generic[T]):
    """One page of a connection: its members in order, each with its key."""

    tenant: str
    scope: str
    nodes: Sequence[T]
    keys: Sequence[Key]
    has_next: bool
    has_previous: bool

    def cursor(self, index: int) -> str:
        return encode_cursor(self.tenant, self.scope, self.keys[index])

    @cached_property
    def edges(self) -> Sequence[Edge[T]]:
        return [Edge(self.cursor(index), node) for index, node in enumerate(self.nodes)]

    @property
    def page_info(self) -> PageInfo:
        ends = (self.cursor(0), self.cursor(len(self.nodes) - 1)) if self.nodes else (None, None)
        return PageInfo(self.has_next, self.has_previous, *ends)
