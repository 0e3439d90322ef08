"""The way every mutation takes: its write joins a commit, and what it made is read back."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from reverie.domain.clock import EARLIEST_MS, now_ms
from reverie.domain.ids import well_formed
from reverie.errors import NotFound, Refusals
from reverie.graph.commits import forget_receipts
from reverie.graph.nodes import nodes_by_id
from reverie.graph.writes import Done, Write, Writer
from reverie.resources import Resources

T = TypeVar("T")

FORGOTTEN_AT_ONCE = 1_000
"""Receipts taken away in one transaction."""


async def write(
    resources: Resources,
    tenant: str,
    field: str,
    writer: Writer,
    draft: Any,
    key: str | None,
    *,
    weight: int = 1,
    logged: bool = False,
    asked: Any = None,
) -> Done:
    """Has a checked draft written once; what was made, as ids by payload field.

    `asked` is what of the draft came from the caller, where the rest was made for it: a second use of the key must ask
    the same. `logged` is as in `Write`. Raises Refusals when it can't be, Unavailable when Neo4j doesn't answer.
    """
    number = await resources.tenant_number(tenant)
    wanted = Write(tenant, number, field, draft, now_ms(), key, weight, logged)
    return await resources.commits.write(writer, wanted, asked=draft if asked is None else asked)


async def forget_keys(resources: Resources) -> int:
    """Forgets some of the `clientMutationKey`s that count no more, each with its record of what was made; how many."""
    return await forget_receipts(resources.graph, now_ms(), FORGOTTEN_AT_ONCE)


async def read_back(resources: Resources, tenant: str, ids: Sequence[str], kind: type[T]) -> list[T]:
    """What a write made, as it stands now, even where it expires at once; NotFound when it went meanwhile."""
    found = await nodes_by_id(resources.graph, tenant, ids, now=EARLIEST_MS - 1)
    if any(not isinstance(thing, kind) for thing in found):
        raise Refusals([NotFound(f"what was written is gone: the {kind.__name__.lower()} was deleted meanwhile")])
    return cast(list[T], found)


async def write_one(
    resources: Resources,
    tenant: str,
    field: str,
    writer: Writer,
    draft: Any,
    key: str | None,
    kind: type[T],
    *,
    asked: Any = None,
) -> T:
    """As `write`, for what makes or changes one thing: that thing."""
    done = await write(resources, tenant, field, writer, draft, key, asked=asked)
    return (await read_back(resources, tenant, [done[kind.__name__.lower()]], kind))[0]


def check_id(given: str, kind: str, path: Sequence[str] = ("id",)) -> None:
    """Refuses what is no id at all, in the words for one that leads nowhere."""
    if not well_formed(given):
        raise Refusals([NotFound(f"no {kind} has this id", path)])
