"""The change log in Neo4j: entries numbered without holes in the writer's own transaction, and how they are read."""

from collections.abc import Sequence
from typing import Any

from reverie.domain.beliefs import Change, Version
from reverie.domain.changes import BeliefChange, BeliefChangeFilter, LogHead, LogPosition, LogSlice
from reverie.domain.ids import new_id
from reverie.graph.filters import Where, change_where
from reverie.graph.records import CHANGE, whole
from reverie.graph.store import Graph, Transaction

LOG_CHANGES = """
MERGE (c:Counter {tenant: $t}) SET c.n = coalesce(c.n, 0) + size($rows)
WITH c.n - size($rows) AS last
UNWIND range(0, size($rows) - 1) AS place
WITH last + place + 1 AS number, $rows[place] AS row
MATCH (s:Slot {id: row.slot})
CREATE (x:Change:Node) SET x = row.properties, x.number = number
CREATE (x)-[:CHANGE_OF]->(s)
"""


async def log_changes(
    transaction: Transaction, told: Sequence[tuple[tuple[str, str, str], str, Change, Version]], now: int
) -> list[str]:
    """Writes entries of (identity, slot, change, its belief) and returns their ids, in order.

    The last thing of a transaction: whoever raises a tenant's counter holds its lock until the commit, so that the
    order of numbers is the order of commits. Counters are raised in the tenants' order.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    ids = []
    for (tenant, subject, key), slot, change, version in told:
        change_id = new_id()
        ids.append(change_id)
        properties = {
            "id": change_id,
            "tenant": tenant,
            "kind": change.kind.value,
            "subjectId": subject,
            "key": key,
            "domain": version.domain,
            "beliefType": version.belief_type.value,
            "statusAfter": change.status_after.value,
            "beliefId": change.belief,
            "previousId": change.previous,
            "rejectedId": change.rejected,
            "confidenceBefore": change.confidence_before,
            "confidenceAfter": change.confidence_after,
            "reason": change.reason,
            "episodeId": change.episode,
            "changedAt": now,
        }
        rows.setdefault(tenant, []).append({"slot": slot, "properties": properties})
    for tenant in sorted(rows):
        await transaction.run(LOG_CHANGES, t=tenant, rows=rows[tenant])
    return ids


LOG_HEAD = """
MATCH (s:Store {name: 'reverie'}) OPTIONAL MATCH (c:Counter {tenant: $t})
RETURN [s.epoch, coalesce(c.n, 0), coalesce(c.floor, 0)]
"""
READ_LOG = f"""
MATCH (x:Change) WHERE x.tenant = $t AND x.number > $after
WITH x ORDER BY x.tenant, x.number LIMIT $limit
RETURN collect([x.number, x.kind IS NULL, {CHANGE.row("x")}])
"""


async def log_head(graph: Graph, tenant: str, number: int) -> LogHead:
    """How far the log of the tenant of that number goes now."""
    epoch, last, floor = await graph.read(LOG_HEAD, t=tenant)
    return LogHead(LogPosition(epoch, number, last), floor)


@whole
async def read_log(graph: Graph, tenant: str, after: int, limit: int) -> LogSlice:
    """At most `limit` entries after a number, in order."""
    rows = await graph.read(READ_LOG, t=tenant, after=after, limit=limit)
    changes = tuple(CHANGE.value(row) for _, erased, row in rows if not erased)
    return LogSlice(changes, rows[-1][0] if rows else after)


def _found(where: Where) -> str:
    return " AND ".join(
        ("MATCH (x:Change) WHERE x.tenant = $t", "x.number > $after", "x.kind IS NOT NULL", *where.predicates)
    )


def find_changes_statement(where: Where) -> str:
    """At most `$limit` entries after a number that pass a filter, in order."""
    return f"{_found(where)} WITH x ORDER BY x.tenant, x.number LIMIT $limit RETURN collect({CHANGE.row('x')})"


def count_changes_statement(where: Where) -> str:
    """How many entries after a number pass a filter."""
    return f"{_found(where)} RETURN count(x)"


@whole
async def find_changes(
    graph: Graph, tenant: str, wanted: BeliefChangeFilter, after: int, limit: int
) -> list[BeliefChange]:
    """At most `limit` entries after a number that pass the filter, in order. One statement."""
    where = change_where(wanted)
    rows = await graph.read(find_changes_statement(where), t=tenant, after=after, limit=limit, **where.values())
    return [CHANGE.value(row) for row in rows]


async def count_changes(graph: Graph, tenant: str, wanted: BeliefChangeFilter, floor: int) -> int:
    """How many entries above the floor pass the filter. One statement."""
    where = change_where(wanted)
    return int(await graph.read(count_changes_statement(where), t=tenant, after=floor, **where.values()))
