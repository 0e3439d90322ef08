"""Tokens counted by a real vocabulary, for any text, in linear time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.ai.tokens import count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("hello world", 2), ("tiktoken is great!", 6), ("<|endoftext|>", 7)]
)
def test_known_counts(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.text(max_size=200))
def test_no_more_tokens_than_bytes(text: str) -> None:
    assert count_tokens(text) <= len(text.encode())


def test_a_long_run_of_one_letter_is_no_trap() -> None:
    assert 0 < count_tokens("a" * 2_000_000) < 2_000_000
