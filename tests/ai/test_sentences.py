"""Which sentences of a text are its writer's own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.ai.sentences import LONGEST, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith, e.g. at 5 p.m. on Monday. Next", ["Dr. Smith, e.g. at 5 p.m. on Monday.", "Next"]),
        ("node.js and 3.10 stay whole", ["node.js and 3.10 stay whole"]),
        ("a line\nthat goes on\nA new one", ["a line\nthat goes on", "A new one"]),
        ("- one\n- two\n3. three", ["one", "two", "three"]),
        ("before\n```py\ncode\n```\nAfter", ["before", "After"]),
        ("~~~\ncode without an end", []),
        ("> quoted\n>> twice\nown", ["own"]),
        ("| a | table |\nown", ["own"]),
        ('"Not mine. Nor this." Mine.', ["Mine."]),
        ("\u201cNot mine. Nor this.\u201d Mine.", ["Mine."]),
        ("It's mine, and the users' data. That too.", ["It's mine, and the users' data.", "That too."]),
        ("He: 'one. two.' Mine.", ["He: 'one.", "Mine."]),
        ("She wrote:\nnot mine\n\nNor this", ["She wrote:"]),
        ("Things to know:\nmine", ["Things to know:\nmine"]),
        ("x" * (LONGEST + 1) + ". Short.", ["Short."]),
    ],
)
def test_own_sentences(text: str, expected: list[str]) -> None:
    assert [one.text for one in sentences(text)] == expected


def test_questions_are_known() -> None:
    assert [one.asks for one in sentences('Is it? It is. Really?! "No?" What (now?)')] == [True, False, True, True]


def test_the_plain_form_has_plain_signs_in_the_same_places() -> None:
    (one,) = sentences("I\u2019m\u00a0here")

    assert (one.text, one.plain) == ("I\u2019m\u00a0here", "I'm here")


@settings(deadline=None)  # the machine may be busy
@given(st.text(st.sampled_from("aB .!?\n'\"\u2019\u201c>`~-:1|\u0301"), max_size=200))
def test_sentences_are_parts_of_their_text(text: str) -> None:
    for one in sentences(text):
        assert one.text in text
        assert len(one.text) == len(one.plain) <= LONGEST
