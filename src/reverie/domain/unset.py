"""The difference between a value that is absent and one that is null."""

from enum import Enum
from typing import Final, Literal, TypeAlias, TypeGuard, TypeVar

T = TypeVar("T")


class _Unset(Enum):
    # no text of a caller's can hold this, so that an absent value never looks like a given one
    UNSET = "\0"


Unset: TypeAlias = Literal[_Unset.UNSET]
UNSET: Final = _Unset.UNSET


def given(value: T | Unset) -> TypeGuard[T]:
    """Whether a value, null included, was given at all."""
    return value is not UNSET
