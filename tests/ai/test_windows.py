"""Any text becomes legible, and windows that together are the text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.ai.windows import BLANK, legible, windows

ANYTHING = st.text(st.characters(codec=None), max_size=400)
BLANKS = st.sampled_from(["", " ", "\n\t ", "\0", "\0 \0", "\u3000"])


@settings(deadline=None)
@given(ANYTHING)
def test_a_legible_text_can_be_sent_and_has_something_to_read(text: str) -> None:
    made = legible(text)

    made.encode()
    assert "\0" not in made
    assert made.strip()


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip))
def test_a_text_that_is_legible_already_is_left_alone(text: str) -> None:
    assert legible(text) == text


@settings(deadline=None)
@given(BLANKS)
def test_a_blank_text_is_read_as_a_dot(text: str) -> None:
    assert legible(text) == BLANK


def test_nul_and_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert legible("a\0b") == "a b"
    assert legible("a\ud800b") == "a\ufffdb"
    assert legible("\ud83d\ude00") == "😀"


@settings(deadline=None)
@given(ANYTHING.map(legible), st.integers(4, 60))
def test_windows_are_the_text_in_pieces_no_larger_than_the_limit(text: str, limit: int) -> None:
    cut = windows(text, limit)

    assert all(0 < len(window.encode()) <= limit for window in cut)
    assert all(window.strip() for window in cut)
    assert "".join("".join(cut).split()) == "".join(text.split())


def test_a_text_that_fits_is_one_window() -> None:
    assert windows("two words", 9) == ["two words"]


def test_a_window_ends_after_a_blank_in_its_second_half() -> None:
    assert windows("the quick brown fox jumps", 12) == ["the quick ", "brown fox ", "jumps"]
    assert windows("a " + "b" * 20, 12) == ["a " + "b" * 10, "b" * 10]


def test_cjk_text_is_cut_after_its_own_signs() -> None:
    assert windows("今日は雨です。明日は晴れます。", 27) == ["今日は雨です。", "明日は晴れます。"]


def test_no_character_is_cut_apart() -> None:
    assert windows("😀" * 5, 11) == ["😀😀", "😀😀", "😀"]


def test_a_limit_that_may_hold_no_character_is_refused() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        windows("abc", 3)
