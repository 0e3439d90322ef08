"""Things of any kind by id: one look-up over the label that all of them share."""

from collections.abc import Iterable, Sequence
from typing import Any

from reverie.graph.filters import visible_any
from reverie.graph.records import any_row, any_value, whole
from reverie.graph.store import Graph, Transaction

NODES_BY_ID = f"""
UNWIND range(0, size($ids) - 1) AS place MATCH (n:Node {{id: $ids[place]}})
WHERE {visible_any("n")}
RETURN collect([place, {any_row("n")}])
"""

LOCK_NODES = "MATCH (n:Node) WHERE n.id IN $ids AND n.tenant = $t WITH n ORDER BY n.id SET n.lockedAt = $now"
VECTORS_BY_ID = """
UNWIND range(0, size($ids) - 1) AS place MATCH (n:Node {id: $ids[place]})
WHERE n.tenant = $t AND n.embedding IS NOT NULL
RETURN collect([place, n.embedding])
"""


@whole
async def nodes_by_id(graph: Graph, tenant: str, ids: Sequence[str], *, now: int) -> list[Any]:
    """The things with these ids, in order; None for one that isn't the tenant's. One statement."""
    found = dict(await graph.read(NODES_BY_ID, t=tenant, ids=list(ids), now=now))
    return [any_value(found[place]) if place in found else None for place in range(len(ids))]


async def lock_nodes(transaction: Transaction, tenant: str, ids: Iterable[str], now: int) -> None:
    """Locks those of a tenant's things that are there, in the order of ids, against whoever locks them, too."""
    await transaction.run(LOCK_NODES, ids=list(ids), t=tenant, now=now)


async def vectors_by_id(graph: Graph, tenant: str, ids: Sequence[str]) -> list[list[float] | None]:
    """The vectors of the things with these ids, in order; None where there is none. One statement."""
    found = dict(await graph.read(VECTORS_BY_ID, t=tenant, ids=list(ids)))
    return [found.get(place) for place in range(len(ids))]
