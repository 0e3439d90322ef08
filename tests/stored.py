"""All that a tenant has in the store, to the letter: what tests compare to show that nothing changed."""

from collections import Counter
from typing import Any

import orjson

from reverie.graph.store import Graph

_FOUND_BY = {
    "Memory": "n.createdAt >= 0 AND n.id >= ''",
    "Conversation": "n.createdAt >= 0 AND n.id >= ''",
    "Topic": "n.createdAt >= 0 AND n.id >= ''",
    "Entity": "n.createdAt >= 0 AND n.id >= ''",
    "Fact": "n.createdAt >= 0 AND n.id >= ''",
    "Community": "n.form >= '' AND n.id >= ''",
    "Event": "n.occurredAt >= -9007199254740991 AND n.id >= ''",
    "Episode": "n.startedAt >= -9007199254740991 AND n.id >= ''",
    "Document": "n.createdAt >= 0 AND n.id >= ''",
    "Name": "n.kind >= '' AND n.form >= '' AND n.type >= ''",
    "Detection": "n.algorithm >= ''",
    "Receipt": "n.field >= '' AND n.key >= ''",
}
"""Every label with what its index needs beside the tenant: other tests' tenants may be large."""
_EACH = " UNION ALL ".join(
    f"MATCH (n:{label}) WHERE n.tenant = $t AND {found_by} RETURN n" for label, found_by in _FOUND_BY.items()
)
_PARTS = """
MATCH (d:Document) WHERE d.tenant = $t AND d.createdAt >= 0 AND d.id >= ''
MATCH (n:Chunk|Original)-[:PART_OF|ORIGINAL_OF]->(d) RETURN n
"""
STORED = f"""
CALL () {{ {_EACH} UNION ALL {_PARTS} }}
RETURN collect([labels(n), properties(n), [(n)-[r]->(m) | [type(r), properties(r), coalesce(m.id, m.form)]]])
"""
_LOCKS = {"locked", "lockedAt"}
"""Properties that are written to take a lock, and never read."""


async def stored(graph: Graph, tenant: str) -> list[bytes]:
    """Every node with its labels, properties and outgoing relationships, in an order that depends on nothing else."""
    return sorted(
        orjson.dumps(
            [sorted(labels), _without_locks(properties), sorted(map(_relationship, relationships))],
            bytes.hex,
            orjson.OPT_SORT_KEYS,
        )
        for labels, properties, relationships in await graph.read(STORED, t=tenant)
    )


async def counted(graph: Graph, tenant: str) -> Counter[str]:
    """How many nodes of each label, and relationships of each type, a tenant has."""
    counts: Counter[str] = Counter()
    for labels, _, relationships in await graph.read(STORED, t=tenant):
        counts.update(labels)
        counts.update(kind for kind, _, _ in relationships)
    return counts


def _without_locks(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in _LOCKS}


def _relationship(row: list[Any]) -> str:
    return orjson.dumps(row, option=orjson.OPT_SORT_KEYS).decode()
