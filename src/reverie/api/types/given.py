"""What of an input was given: Strawberry's UNSET in the domain's words."""

from collections.abc import Iterable
from typing import Any, TypeVar

from strawberry import UNSET

from reverie.domain import unset

T = TypeVar("T")


def given_or_none(value: T | None) -> T | None:
    """The value; None where it is absent."""
    return None if value is UNSET else value


def given_or(value: T | None, default: T) -> T:
    """The value; the default where it is absent or null."""
    return default if value is None or value is UNSET else value


def members(values: Iterable[T] | None) -> tuple[T, ...]:
    """The members; none where the list is absent or null."""
    return () if values is None or values is UNSET else tuple(values)


def as_object(value: object) -> Any:
    """A JSON value on its way to the domain, which checks that it is an object."""
    return value


def kept(value: T | None) -> T | unset.Unset | None:
    """For updates: an absent value keeps what is stored, null clears it."""
    return unset.UNSET if value is UNSET else value
