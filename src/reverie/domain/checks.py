"""Checks of what a caller gave: every refusal is collected, so that one answer names all of them."""

from collections.abc import Sequence
from datetime import datetime
from math import isfinite
from typing import Any

import orjson

from reverie.domain import policy
from reverie.domain.names import display_name, normal_form
from reverie.errors import BadInput, Refusal, Refusals, TooLarge

Path = tuple[str | int, ...]


class Checks:
    """Collects refusals; `done` raises them together."""

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []

    def refuse(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)

    def bad(self, message: str, path: Path) -> None:
        self.refuse(BadInput(message, path))

    def done(self) -> None:
        if self.refusals:
            raise Refusals(self.refusals)

    def text(self, value: str, path: Path, most: int) -> str:
        """A text with something in it, kept to the letter."""
        if not value.strip():
            self.bad("must not be empty or blank", path)
        return self.short(value, path, most)

    def short(self, value: str, path: Path, most: int) -> str:
        if len(value) > most:
            self.refuse(TooLarge(f"has {len(value)} characters, {most} at most", path))
        return value

    def name(self, value: str, path: Path, most: int = policy.NAME_MOST) -> str:
        """A name, its outer blanks cut and inner ones collapsed."""
        shown = display_name(value)
        form = normal_form(shown)
        if not form:
            self.bad("must not be empty or blank", path)
        elif len(shown) <= most and len(form.encode()) > policy.FORM_MOST:
            # some characters stand for a whole phrase
            self.refuse(
                TooLarge(f"has {len(form.encode())} bytes in its normal form, {policy.FORM_MOST} at most", path)
            )
        return self.short(shown, path, most)

    def label(self, value: str | None, path: Path, most: int = policy.NAME_MOST) -> str | None:
        """An optional identifier of the caller's, kept to the letter."""
        return None if value is None else self.text(value, path, most)

    def unit(self, value: float, path: Path) -> float:
        """A number from 0 to 1."""
        if not 0 <= value <= 1:
            self.bad(f"must be from 0 to 1, not {value!r}", path)
        return value

    def weight(self, value: float, path: Path) -> float:
        if not (isfinite(value) and value >= 0):
            self.bad(f"must be a finite number of at least 0, not {value!r}", path)
        return value

    def few(self, values: Sequence[object], path: Path, most: int = policy.REFERENCES_MOST) -> None:
        if len(values) > most:
            self.refuse(TooLarge(f"has {len(values)} members, {most} at most", path))

    def metadata(self, value: object, path: Path) -> dict[str, Any] | None:
        """A JSON object, or nothing."""
        if value is None:
            return None
        if not isinstance(value, dict):
            self.bad("must be a JSON object", path)
            return None
        return value if self.json(value, path, policy.METADATA_MOST) else None

    def json(self, value: object, path: Path, most: int) -> bool:
        """Whether a JSON value can be kept, in at most so many bytes."""
        if _depth(value) > policy.METADATA_DEPTH:
            self.refuse(TooLarge(f"is nested deeper than {policy.METADATA_DEPTH} levels", path))
            return False
        try:
            size = len(orjson.dumps(value))
        except orjson.JSONEncodeError as error:
            self.bad(f"can't be kept as JSON: {error}", path)
            return False
        if size > most:
            self.refuse(TooLarge(f"has {size} bytes, {most} at most", path))
            return False
        return True

    def span(self, after: datetime | None, before: datetime | None, path: Path, names: tuple[str, str]) -> None:
        if after is not None and before is not None and after > before:
            self.bad(f"{names[0]} is later than {names[1]}", (*path, names[0]))


def _depth(value: object) -> int:
    """How many objects and lists are nested in a JSON value."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        held, depth = waiting.pop()
        if isinstance(held, (dict, list)):
            deepest = max(deepest, depth)
            waiting.extend((member, depth + 1) for member in (held.values() if isinstance(held, dict) else held))
    return deepest
