"""Checks the vectors that models give, and pools those of a long text's windows."""

import math
import operator
from array import array
from collections.abc import Sequence

from reverie.ai.embedders import InputRefused
from reverie.errors import EmbeddingFailed

_SHORTEST = 1e-12


def unit_vector(numbers: object, dimensions: int) -> list[float]:
    """The vector scaled to length 1, in 32-bit precision: what is kept and compared everywhere.

    Raises EmbeddingFailed for what is no list of `dimensions` numbers, which no other text would better, and
    InputRefused for a vector that has a NaN, an infinity or no length.
    """
    if not isinstance(numbers, list):
        raise EmbeddingFailed("The embedder gave something else than a list of numbers.")
    if len(numbers) != dimensions:
        raise EmbeddingFailed(
            f"The embedder gave a vector of {len(numbers)} dimensions where {dimensions} are expected."
        )
    try:
        length = math.hypot(*numbers)
    except TypeError:
        raise InputRefused("The embedder gave a vector with something else than numbers in it.") from None
    if not math.isfinite(length):
        raise InputRefused("The embedder gave a vector with a number that isn't finite.")
    if length < _SHORTEST:
        raise InputRefused("The embedder gave a vector without length.")
    return array("f", [number / length for number in numbers]).tolist()


def pooled(vectors: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    """One unit vector for several: the mean of unit vectors by weight, scaled to length 1; a single one stays as it is.

    Raises InputRefused where they cancel each other out.
    """
    if len(vectors) == 1:
        return list(vectors[0])
    mean = [math.fsum(map(operator.mul, weights, column)) for column in zip(*vectors, strict=True)]
    return unit_vector(mean, len(mean))
