"""Joined commits: writes that wait share a transaction, a bad one fails alone, nothing is lost or done twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from neo4j.exceptions import ClientError
from tests.conftest import Api
from tests.stored import counted

from reverie.domain.clock import now_ms
from reverie.errors import BadInput, Refusals
from reverie.graph.commits import JOINED_MOST, Commits
from reverie.graph.store import Graph, Transaction
from reverie.graph.writes import Done, Outcome, Write
from reverie.resources import Resources

CREATE = "CREATE (:Probe {tenant: $tenant, value: $value})"
VALUES = "MATCH (p:Probe {tenant: $tenant}) WITH p ORDER BY p.value RETURN collect(p.value)"
FORGET = "MATCH (p:Probe {tenant: $tenant}) DELETE p"
FAIL = "RETURN 1 / 0"


@dataclass
class Probes:
    """A writer of plain nodes, with a commit queue of its own; it tells what it was given in each transaction."""

    graph: Graph
    tenant: str
    commits: Commits
    taken: list[list[Any]] = field(default_factory=list)
    entered: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def writer(self, transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
        self.taken.append([write.draft for write in writes])
        self.entered.release()
        await self.gate.wait()
        outcomes: list[Outcome] = []
        for write in writes:
            if write.draft == "refused":
                outcomes.append(Refusals([BadInput("is refused", ("value",))]))
                continue
            await transaction.run(FAIL if write.draft == "fails" else CREATE, tenant=self.tenant, value=write.draft)
            outcomes.append({"value": write.draft})
        return outcomes

    def write(self, value: str, *, key: str | None = None, weight: int = 1) -> "asyncio.Task[Done]":
        wanted = Write(self.tenant, 0, "probe", value, now_ms(), key, weight)
        return asyncio.create_task(self.commits.write(self.writer, wanted, asked=value))

    async def held(self) -> "asyncio.Task[Done]":
        """A first write whose transaction stays open until the gate opens: what comes now has to wait."""
        task = self.write("first")
        await self.entered.acquire()
        return task

    async def values(self) -> list[str]:
        return list(await self.graph.read(VALUES, tenant=self.tenant))


@pytest_asyncio.fixture
async def probes(resources: Resources, tenant: str) -> AsyncIterator[Probes]:
    commits = Commits(resources.graph)
    probes = Probes(resources.graph, tenant, commits)
    yield probes
    probes.gate.set()
    await commits.close()
    await resources.graph.execute(FORGET, tenant=tenant)


async def test_writes_that_wait_share_one_transaction(probes: Probes) -> None:
    first = await probes.held()
    waiting = [probes.write(f"{number:02}") for number in range(31)]
    await asyncio.sleep(0)

    probes.gate.set()
    answers = await asyncio.gather(first, *waiting)

    assert answers == [{"value": "first"}, *({"value": f"{number:02}"} for number in range(31))]
    assert probes.commits.joined == 2
    assert probes.taken == [["first"], [f"{number:02}" for number in range(31)]]
    assert await probes.values() == [*(f"{number:02}" for number in range(31)), "first"]


async def test_a_transaction_takes_no_more_than_its_most(probes: Probes) -> None:
    await probes.held()
    heavy = [probes.write(f"heavy {number}", weight=40) for number in range(4)]
    light = [probes.write(f"light {number:03}") for number in range(2 * JOINED_MOST)]
    probes.gate.set()

    await asyncio.gather(*heavy, *light)

    assert [len(taken) for taken in probes.taken] == [1, 2, 2 + 20, JOINED_MOST, 80]
    assert len(await probes.values()) == 1 + 4 + 2 * JOINED_MOST


async def test_a_large_write_has_a_transaction_of_its_own_and_holds_up_no_small_one(probes: Probes) -> None:
    large = [probes.write(f"large {number}", weight=1_000) for number in range(3)]
    small = probes.write("small")

    for _ in range(3):
        await probes.entered.acquire()
    # two large ones at once; the third waits, the small one doesn't
    assert sorted(probes.taken) == [["large 0"], ["large 1"], ["small"]]
    probes.gate.set()
    await asyncio.gather(small, *large)

    assert probes.taken[3:] == [["large 2"]]
    assert await probes.values() == ["large 0", "large 1", "large 2", "small"]


async def test_a_bad_write_fails_alone(probes: Probes) -> None:
    await probes.held()
    good = [probes.write(f"{number:02}") for number in range(15)]
    bad = probes.write("fails")
    more = [probes.write(f"{number:02}") for number in range(15, 30)]
    probes.gate.set()

    with pytest.raises(ClientError, match="by zero"):
        await bad
    await asyncio.gather(*good, *more)

    # each of the others once, though the transaction that they shared was rolled back
    assert await probes.values() == [*(f"{number:02}" for number in range(30)), "first"]


async def test_a_refused_write_lets_the_others_be(probes: Probes) -> None:
    await probes.held()
    good, refused, more = probes.write("a"), probes.write("refused", key="k"), probes.write("b")
    probes.gate.set()

    with pytest.raises(Refusals, match="value: is refused"):
        await refused
    await asyncio.gather(good, more)

    assert await probes.values() == ["a", "b", "first"]
    assert probes.commits.joined == 2
    assert await counted(probes.graph, probes.tenant) == {}


async def test_a_caller_that_leaves_loses_nobody_else(probes: Probes) -> None:
    first = await probes.held()
    waiting = [probes.write(value) for value in ("a", "b", "c")]
    await asyncio.sleep(0)
    first.cancel()
    waiting[1].cancel()
    await asyncio.wait([first, waiting[1]])

    probes.gate.set()
    assert [await waiting[0], await waiting[2]] == [{"value": "a"}, {"value": "c"}]

    # what was taken is carried out, whether anybody waits for it or not
    assert await probes.values() == ["a", "b", "c", "first"]


async def test_close_waits_for_all_that_was_taken(probes: Probes) -> None:
    tasks = [await probes.held(), probes.write("small"), probes.write("large", weight=1_000)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(probes.commits.close())
    await asyncio.sleep(0.05)
    assert not closing.done()

    probes.gate.set()
    await closing

    assert [await task for task in tasks] == [{"value": "first"}, {"value": "small"}, {"value": "large"}]
    assert await probes.values() == ["first", "large", "small"]


async def test_one_key_in_one_transaction_is_carried_out_once(probes: Probes) -> None:
    await probes.held()
    same = [probes.write("same", key="k") for _ in range(16)]
    other = probes.write("other", key="k")
    apart = probes.write("apart", key="l")
    probes.gate.set()

    assert await asyncio.gather(*same) == [{"value": "same"}] * 16
    with pytest.raises(Refusals, match="clientMutationKey: was used before with another input"):
        await other
    await apart

    assert probes.taken[1:] == [["same", "apart"]]
    assert await probes.values() == ["apart", "first", "same"]
    assert (await counted(probes.graph, probes.tenant))["Receipt"] == 2


async def test_what_was_refused_leaves_its_key_to_the_next_in_the_same_transaction(probes: Probes) -> None:
    await probes.held()
    refused = [probes.write("refused", key="k") for _ in range(2)]
    good = [probes.write("good", key="k") for _ in range(2)]
    late = probes.write("late", key="k")
    probes.gate.set()

    assert await asyncio.gather(*good) == [{"value": "good"}] * 2
    for task in refused:
        with pytest.raises(Refusals, match="value: is refused"):
            await task
    with pytest.raises(Refusals, match="another input"):
        await late

    assert probes.taken[1:] == [["refused"], ["good"]]
    assert await probes.values() == ["first", "good"]


async def test_a_key_used_beside_a_write_that_fails_is_remembered(probes: Probes) -> None:
    await probes.held()
    bad, good = probes.write("fails"), probes.write("good", key="k")
    probes.gate.set()
    assert await good == {"value": "good"}
    with pytest.raises(ClientError):
        await bad

    assert await probes.write("good", key="k") == {"value": "good"}

    assert await probes.values() == ["first", "good"]


async def test_refused_memories_leave_nothing_behind_in_a_joined_commit(api: Api, resources: Resources) -> None:
    missing = {"conversationId": "01890000-0000-7000-8000-00000000abcd"}
    before = resources.commits.joined

    payloads = await asyncio.gather(
        *(
            api.mutate(
                "createMemory",
                "CreateMemoryInput",
                "memory { id }",
                {
                    "content": f"memory {number}",
                    "topics": [{"name": f"topic {number}"}],
                    "entities": [{"name": f"tool {number}", "type": "TOOL"}],
                    "facts": [{"subject": f"tool {number}", "predicate": "is", "object": "new"}],
                    "clientMutationKey": f"key {number}",
                    **(missing if number % 4 == 0 else {}),
                },
            )
            for number in range(32)
        )
    )

    assert [bool(payload["memory"]) for payload in payloads] == [number % 4 != 0 for number in range(32)]
    assert resources.commits.joined - before < 16
    counts = await counted(resources.graph, api.tenant)
    assert {label: counts[label] for label in ("Memory", "Topic", "Entity", "Fact", "Name", "Receipt")} == {
        "Memory": 24,
        "Topic": 24,
        "Entity": 24,
        "Fact": 24,
        "Name": 48,
        "Receipt": 24,
    }


async def test_tenants_share_transactions_and_nothing_else(api: Api, other_api: Api, resources: Resources) -> None:
    before = resources.commits.joined

    await asyncio.gather(
        *(
            caller.mutate(
                "createMemory",
                "CreateMemoryInput",
                "memory { id }",
                {"content": caller.tenant, "topics": [{"name": "Deployment"}], "clientMutationKey": str(number)},
            )
            for number in range(16)
            for caller in (api, other_api)
        )
    )

    assert resources.commits.joined - before < 16
    for caller in (api, other_api):
        found = await caller('{ topic(name: "deployment") { memories { totalCount nodes { content } } } }')
        assert found["topic"]["memories"] == {"totalCount": 16, "nodes": [{"content": caller.tenant}] * 16}
        counts = await counted(resources.graph, caller.tenant)
        assert (counts["Topic"], counts["Receipt"]) == (1, 16)
