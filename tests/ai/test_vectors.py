"""Vectors from models are checked before anyone sees them."""

import math

import pytest

from reverie.ai.embedders import InputRefused
from reverie.ai.vectors import pooled, unit_vector
from reverie.errors import EmbeddingFailed


def test_a_vector_is_scaled_to_length_one() -> None:
    assert unit_vector([3, 4.0], 2) == pytest.approx([0.6, 0.8], abs=1e-7)


def test_a_unit_vector_has_the_numbers_that_32_bits_can_hold() -> None:
    once = unit_vector([0.1, 0.2, 0.3], 3)

    assert math.hypot(*once) == pytest.approx(1.0, abs=1e-6)
    assert unit_vector(once, 3) == pytest.approx(once, abs=1e-7)


@pytest.mark.parametrize("numbers", [None, "abc", {"a": 1}, (1.0, 2.0), b"12345678"])
def test_what_is_no_list_is_no_vector(numbers: object) -> None:
    with pytest.raises(EmbeddingFailed, match="list of numbers") as caught:
        unit_vector(numbers, 2)

    assert not isinstance(caught.value, InputRefused)


@pytest.mark.parametrize("numbers", [[], [1.0], [1.0, 2.0, 3.0]])
def test_a_wrong_dimension_is_no_text_s_fault(numbers: list[float]) -> None:
    with pytest.raises(EmbeddingFailed, match=f"{len(numbers)} dimensions where 2") as caught:
        unit_vector(numbers, 2)

    assert not isinstance(caught.value, InputRefused)


@pytest.mark.parametrize(
    "numbers",
    [[math.nan, 1.0], [math.inf, 1.0], [math.nan, math.inf], [0.0, 0.0], [1e-300, 0.0], [None, 1.0], ["1", 1.0]],
)
def test_a_vector_without_direction_is_refused(numbers: list[object]) -> None:
    with pytest.raises(InputRefused):
        unit_vector(numbers, 2)


def test_pooling_weighs_by_length() -> None:
    assert pooled([[1.0, 0.0], [0.0, 1.0]], [3, 4]) == pytest.approx([0.6, 0.8], abs=1e-7)


def test_pooling_one_vector_gives_it_back() -> None:
    assert pooled([[0.6, 0.8]], [7]) == [0.6, 0.8]


def test_vectors_that_cancel_out_are_refused() -> None:
    with pytest.raises(InputRefused):
        pooled([[1.0, 0.0], [-1.0, 0.0]], [1, 1])
