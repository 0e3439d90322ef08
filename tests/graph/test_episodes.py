"""The sweep: it closes what nothing more was recorded of, by the server's clock alone, each episode once."""

import asyncio
from typing import Any

from tests.conftest import Api

from reverie.domain.clock import now_ms
from reverie.domain.dreaming import DreamingPolicy
from reverie.graph.episodes import sweep_idle
from reverie.resources import Resources

GAP = DreamingPolicy().idle_gap
AGE = """
MATCH (e:Episode {tenant: $t}) WHERE e.startedAt >= -9007199254740991 AND e.id > ''
SET e.recordedAt = $recorded
"""
STATES = "{ episodes(first: 200) { nodes { id consolidationStatus endedAt summary tags outcome } } }"
EVENTS = "mutation($input: RecordEventsInput!) { recordEvents(input: $input) { events { episode { id } } } }"


async def record(api: Api, *threads: str, occurred: str = "2026-03-01T12:00:00Z") -> list[str]:
    """One message in each thread; their episodes."""
    events = [
        {"eventType": "USER_MESSAGE", "content": f"about {thread}", "threadId": thread, "occurredAt": occurred}
        for thread in threads
    ]
    made = (await api(EVENTS, input={"events": events}))["recordEvents"]["events"]
    return [event["episode"]["id"] for event in made]


async def age(resources: Resources, api: Api, recorded: int) -> None:
    """Makes it as if the tenant's episodes had last grown at this time."""
    await resources.graph.execute(AGE, t=api.tenant, recorded=recorded)


async def states(api: Api) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = (await api(STATES))["episodes"]["nodes"]
    return nodes


async def test_what_was_recorded_long_ago_is_closed(api: Api, resources: Resources) -> None:
    (episode,) = await record(api, "keys")
    now = now_ms()
    await age(resources, api, now - GAP - 1)

    assert len(await sweep_idle(resources.graph, now, GAP, 1000)) >= 1

    assert await states(api) == [
        {
            "id": episode,
            "consolidationStatus": "PENDING",
            "endedAt": "2026-03-01T12:00:00.000Z",
            "summary": "about keys",
            "tags": ["keys"],
            "outcome": "ABANDONED",
        }
    ]


async def test_an_old_event_that_was_recorded_just_now_stays_open(api: Api, resources: Resources) -> None:
    await record(api, "t", occurred="1999-01-01T00:00:00Z")
    now = now_ms()
    await age(resources, api, now - GAP)

    await sweep_idle(resources.graph, now, GAP, 1000)

    assert [state["consolidationStatus"] for state in await states(api)] == ["OPEN"]


async def test_an_import_goes_on_after_the_sweep(api: Api, resources: Resources) -> None:
    first = await record(api, "t", occurred="1999-01-01T00:00:00Z")
    await age(resources, api, now_ms() - GAP - 1)
    await sweep_idle(resources.graph, now_ms(), GAP, 1000)

    assert await record(api, "t", occurred="1999-01-01T00:10:00Z") == first

    (state,) = await states(api)
    assert (state["consolidationStatus"], state["endedAt"]) == ("PENDING", "1999-01-01T00:10:00.000Z")


async def test_no_more_than_the_limit_at_once_and_in_the_end_all(api: Api, resources: Resources) -> None:
    await record(api, *(f"t{number}" for number in range(7)))
    await age(resources, api, now_ms() - GAP - 1)

    swept: list[int] = []
    while not swept or swept[-1]:
        swept.append(len(await sweep_idle(resources.graph, now_ms(), GAP, 3)))

    assert max(swept) == 3
    assert sum(swept) >= 7
    assert {state["consolidationStatus"] for state in await states(api)} == {"PENDING"}


async def test_several_sweeps_at_once_close_each_episode_once(api: Api, resources: Resources) -> None:
    await record(api, *(f"t{number}" for number in range(12)))
    await age(resources, api, now_ms() - GAP - 1)
    now = now_ms()

    swept = await asyncio.gather(*(sweep_idle(resources.graph, now, GAP, 1000) for _ in range(4)))

    assert {state["consolidationStatus"] for state in await states(api)} == {"PENDING"}
    assert sum(map(len, swept)) >= 12
    assert await sweep_idle(resources.graph, now, GAP, 1000) == []


async def test_an_event_that_arrives_with_the_sweep_is_in_an_episode(api: Api, resources: Resources) -> None:
    for round_ in range(5):
        thread = f"r{round_}"
        await record(api, thread)
        await age(resources, api, now_ms() - GAP - 1)

        _, (episode,) = await asyncio.gather(
            sweep_idle(resources.graph, now_ms(), GAP, 1000), record(api, thread, occurred="2026-03-01T12:01:00Z")
        )

        found = await api(
            "query($id: ID!) { episode(id: $id) { consolidationStatus endedAt events { totalCount } } }", id=episode
        )
        assert found["episode"]["events"]["totalCount"] == 2
        ended = {"OPEN": None, "PENDING": "2026-03-01T12:01:00.000Z"}
        assert found["episode"]["endedAt"] == ended[found["episode"]["consolidationStatus"]]


async def test_nothing_idle_is_one_statement(resources: Resources) -> None:
    before = resources.graph.statements

    assert await sweep_idle(resources.graph, 0, GAP, 1000) == []

    assert resources.graph.statements == before + 1
