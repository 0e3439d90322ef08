"""Chunks: nothing lost, none too long, cut at headings and sentences."""

import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.chunking import chunks

SENTENCE = "The harbour has three gates that are painted in spring. "


def test_a_section_is_kept_together_where_it_fits() -> None:
    text = "\n\n".join(f"# Part {number}\n\n{SENTENCE * 5}" for number in range(4))

    found = chunks(text, 400, 0)

    assert len(found) == 4
    assert [chunk.splitlines()[0] for chunk in found] == [f"# Part {number}" for number in range(4)]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    found = chunks(SENTENCE * 20, 200, 0)

    assert len(found) > 3
    assert all(chunk.startswith("The harbour") and chunk.endswith("spring.") for chunk in found)


def test_chunks_overlap_by_whole_sentences() -> None:
    sentences = [f"This is the sentence with the number {number}." for number in range(30)]

    found = chunks(" ".join(sentences), 200, 60)

    for chunk, following in pairwise(found):
        assert following.startswith(chunk.rpartition(". ")[2])


@settings(deadline=None, max_examples=200)
@given(st.text(), st.integers(100, 400))
def test_any_text_is_cut_without_loss_and_none_is_too_long(text: str, size: int) -> None:
    found = chunks(text, size, 0)

    assert all(0 < len(chunk) <= size for chunk in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_million_characters_without_a_blank_are_cut_in_good_time() -> None:
    begin = time.monotonic()

    found = chunks("a" * 1_000_000, 1_200, 150)

    assert max(map(len, found)) <= 1_200
    assert time.monotonic() - begin < 60
