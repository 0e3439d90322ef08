"""Titles of threads, from what was said in them first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain import policy
from reverie.domain.conversations import thread_title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Tabs or  spaces?\nSpaces.", "Tabs or spaces? Spaces."),
        ("", None),
        (" \n\t", None),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 99 + "…"),
        ("word " * 30, "word " * 19 + "word…"),
    ],
)
def test_a_title_is_the_beginning_cut_between_words(text: str, title: str | None) -> None:
    assert thread_title(text) == title


@given(st.text(max_size=400))
def test_a_title_is_one_that_a_caller_could_have_given(text: str) -> None:
    title = thread_title(text)

    assert (title is None) == (not text.strip())
    if title is not None:
        assert len(title) <= policy.THREAD_TITLE_MOST
