"""The difference between a value that is absent and one that is null."""

from enum import Enum
from typing import Final, Literal, TypeAlias, TypeGuard, TypeVar

T = TypeVar("T")


class _Unset(Enum):
    UNSET = "UNSET"


Unset: TypeAlias = Literal[_Unset.UNSET]
UNSET: Final = _Unset.UNSET


def given(value: T | Unset) -> TypeGuard[T]:
    """Whether a value, null included, was given at all."""
    return value is not UNSET
