"""Evidence recorded in Neo4j: in whatever order it arrives, the stored timeline is that of the pure fold."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.domain.test_beliefs import histories

from reverie.domain.beliefs import Evidence, EvidenceKind, timeline
from reverie.domain.clock import NEVER_MS, now_ms
from reverie.domain.dreaming import HALF_LIVES
from reverie.graph.beliefs import Identity, lock_slots, record, write_slots
from reverie.graph.store import Graph, Transaction
from reverie.resources import Resources

EXAMPLES = int(os.environ.get("REVERIE_TEST_EXAMPLES", "10"))
VERSIONS = """
MATCH (s:Slot {tenant: $t, subjectId: $subject, key: $key})
RETURN [s.versions, [(s)<-[:VERSION_OF]-(b:Belief) | {
  founded_by: b.foundedBy, value: b.value, status: b.epistemicStatus, valid_from: b.validFrom, valid_to: b.validTo,
  base: b.base, reinforced_at: b.reinforcedAt, type: b.beliefType, domain: b.domain, number: b.version,
  dissolved: b.dissolved, slot: b.activeSlot, count: b.evidenceCount,
  evidence: [(b)<-[:SUPPORTS]-(e:Evidence) | e.id]
}]]
"""
NUMBERS = """
RETURN [
  COLLECT { MATCH (c:Change) WHERE c.tenant = $t AND c.number >= 0 RETURN c.number ORDER BY c.number },
  COLLECT { MATCH (c:Counter {tenant: $t}) RETURN c.n }
]
"""
COUNT_EVIDENCE = "RETURN COUNT { MATCH (e:Evidence {tenant: $t}) }"


async def record_alone(graph: Graph, identity: Identity, one: Evidence) -> int:
    """Records a piece of evidence in a transaction of its own; how many entries of the log it wrote."""

    async def work(transaction: Transaction) -> int:
        now = now_ms()
        slots = await lock_slots(transaction, [identity], HALF_LIVES, now)
        changes = record(slots[identity], one)
        await write_slots(transaction, list(slots.values()), now)
        return len(changes)

    return await graph.transact(work)


def named(one: Evidence, subject: str) -> Evidence:
    """The same evidence with ids that are that subject's alone, in the same order."""
    return replace(one, id=f"{subject} {one.id}")


async def stored_timeline(graph: Graph, identity: Identity, evidence: int) -> list[dict[str, Any]]:
    """What is stored of an identity, dissolved versions aside, as far as it may not depend on the order of arrival."""
    tenant, subject, key = identity
    last, rows = await graph.read(VERSIONS, t=tenant, subject=subject, key=key)
    assert sorted(row["number"] for row in rows) == list(range(1, len(rows) + 1))
    assert last == len(rows)
    active = [row for row in rows if row["status"] == "ACTIVE"]
    assert len(active) <= 1
    assert [row for row in rows if row["slot"] is not None] == active
    supporting = [held for row in rows for held in row["evidence"]]
    assert len(supporting) == len(set(supporting)) <= evidence
    for row in rows:
        assert row["count"] == len(row["evidence"])
        assert 0 <= row["base"] <= 1
        assert row["dissolved"] == (row["evidence"] == [])
    living = [row for row in rows if not row["dissolved"]]
    for row in living:
        row["founded_by"] = row["founded_by"].removeprefix(f"{subject} ")
        row["evidence"] = sorted(held.removeprefix(f"{subject} ") for held in row["evidence"])
        for name in ("number", "dissolved", "slot", "count"):
            del row[name]
    return sorted(living, key=lambda row: row["founded_by"])


def folded(history: Sequence[Evidence]) -> list[dict[str, Any]]:
    """What the pure fold makes of it, in the same form."""
    rows = [
        {
            "founded_by": version.founded_by,
            "value": version.value,
            "status": version.status.value,
            "valid_from": version.valid_from,
            "valid_to": NEVER_MS if version.valid_to is None else version.valid_to,
            "base": version.base,
            "reinforced_at": version.reinforced_at,
            "type": version.belief_type.value,
            "domain": version.domain,
            "evidence": sorted(version.evidence),
        }
        for version in timeline(history, HALF_LIVES).versions
    ]
    return sorted(rows, key=lambda row: row["founded_by"])


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(), random=st.randoms(use_true_random=False))
async def test_any_order_of_arrival_stores_the_timeline_of_the_fold(
    resources: Resources, history: list[Evidence], random: Any
) -> None:
    tenant = f"tenant-{uuid4().hex[:12]}"
    told = 0
    for _ in range(2):
        arriving = random.sample(history, len(history))
        identity = (tenant, uuid4().hex, "editor.indentation")
        for one in arriving:
            told += await record_alone(resources.graph, identity, named(one, identity[1]))

        assert await stored_timeline(resources.graph, identity, len(history)) == folded(history)

    numbers, counters = await resources.graph.read(NUMBERS, t=tenant)
    assert numbers == list(range(1, told + 1))
    assert counters == ([told] if told else [])


async def test_the_same_evidence_of_an_event_counts_once(resources: Resources, tenant: str) -> None:
    identity = (tenant, "alex", "editor.indentation")
    seen = Evidence(id=uuid4().hex, kind=EvidenceKind.STATE, value="Tabs", time=1, episode="a", event=uuid4().hex)

    told = [
        await record_alone(resources.graph, identity, replace(seen, id=uuid4().hex, value=value, episode=episode))
        for value, episode in (("Tabs", "a"), (" tabs", "a"), ("tabs", "b"))
    ]

    assert told == [1, 0, 0]
    assert await resources.graph.read(COUNT_EVIDENCE, t=tenant) == 1
    (version,) = await stored_timeline(resources.graph, identity, 1)
    assert (version["value"], version["base"]) == ("Tabs", 1.0)
