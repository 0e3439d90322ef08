"""Writes: what a mutation wants written, and what came of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.errors import Refusals
from reverie.graph.store import Transaction


@dataclass(slots=True)
class Write:
    """One mutation call: its tenant, what it wants written (checked), and the key that makes it happen once."""

    tenant: str
    number: int
    field: str
    draft: Any
    now: int
    key: str | None = None
    weight: int = 1
    logged: bool = False
    """Whether it takes numbers of the change log, whose lock is held to the commit: such writes come last. They write
    no words that a caller may search for as soon as they are acknowledged."""
    digest: str = ""


Done = dict[str, Any]
"""What a write made, as plain JSON: ids by the payload's field names."""
Outcome = Done | Refusals
Writer = Callable[[Transaction, Sequence[Write]], Awaitable[list[Outcome]]]
"""Carries out all waiting writes of one kind; an outcome for each, in order."""
