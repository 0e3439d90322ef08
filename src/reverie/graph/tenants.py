"""Tenants' numbers, which prefix the words in the full-text index."""

from reverie.graph.store import Graph, Transaction

TENANT_NUMBER = "MATCH (n:Tenant {name: $name}) RETURN n.number"
NEXT_TENANT = """
MERGE (s:Store {name: 'reverie'}) SET s.tenants = coalesce(s.tenants, 0) + 1
WITH s
MERGE (n:Tenant {name: $name}) ON CREATE SET n.number = s.tenants
RETURN n.number
"""


async def tenant_number(graph: Graph, tenant: str) -> int:
    """The tenant's number, given at its first use and never changed. Numbers may have holes."""
    found = await graph.read(TENANT_NUMBER, name=tenant)
    if found is not None:
        return int(found)

    async def next_number(transaction: Transaction) -> int:
        return int(await transaction.run(NEXT_TENANT, name=tenant))

    return await graph.transact(next_number)
