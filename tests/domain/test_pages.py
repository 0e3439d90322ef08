"""Cursors: what was encoded comes back, and nothing else is taken, not even with a mark that is right."""

from base64 import urlsafe_b64encode
from hashlib import blake2s

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.pages import decode_cursor, encode_cursor
from reverie.errors import BadInput

INTEGERS = st.integers(-(2**63), 2**63 - 1)
KEYS = st.lists(st.text() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False), max_size=4).map(tuple)


def marked(tenant: str, body: bytes) -> str:
    """A cursor that somebody made who knows how they are made."""
    mark = blake2s(body, key=blake2s(tenant.encode()).digest(), digest_size=6).digest()
    return urlsafe_b64encode(mark + body).decode().rstrip("=")


@given(key=KEYS)
def test_a_key_comes_back_from_its_cursor(key: tuple[str | int | float, ...]) -> None:
    cursor = encode_cursor("tenant", "memories", key)

    assert cursor == marked("tenant", orjson.dumps([1, "memories", *key]))
    assert decode_cursor("tenant", "memories", cursor, "after") == key


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[1]",
        b'[1,"memories",null]',
        b'[1,"memories",true]',
        b'[1,"memories",9223372036854775808]',
        b'[1,"memories",{"a":1}]',
        b'[1,"memories",' + b"[" * 400 + b"]" * 400 + b"]",
        b'[1,"memories",' + b"[" * 100_000 + b"]" * 100_000 + b"]",
        b'[ 1,"memories"]',
    ],
    ids=["empty", "object", "short", "null", "bool", "too large", "member object", "deep", "deeper", "blank"],
)
def test_a_mark_alone_makes_no_cursor(body: bytes) -> None:
    with pytest.raises(BadInput, match=r"^after: not a cursor of this connection$"):
        decode_cursor("tenant", "memories", marked("tenant", body), "after")
