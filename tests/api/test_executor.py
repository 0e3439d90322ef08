"""Events of a subscription: each is executed by itself, sees fresh loaders, and leaves nothing behind."""

import gc
from contextlib import aclosing

from strawberry.types import ExecutionResult
from tests.web.ticking import fresh_context, open_subscriptions, ticking_schema

from reverie.api.executor import EventExecutor
from reverie.api.schema import schema
from reverie.resources import Resources

NESTED = "subscription($to: Int!) { ticks(to: $to) { number inner { number inner { inner { number } } } } }"


async def numbers(resources: Resources, query: str, to: int) -> list[int]:
    """The numbers of the ticks that come."""
    found = []
    stream = await ticking_schema.stream(query, variable_values={"to": to}, context_value=fresh_context(resources))
    async with aclosing(stream) as results:
        async for result in results:
            assert isinstance(result, ExecutionResult)
            assert result.errors is None
            assert result.data is not None
            found.append(result.data["ticks"]["number"])
    return found


def test_the_api_executes_so() -> None:
    assert schema.execution_context_class is EventExecutor


async def test_each_event_has_loaders_of_its_own(resources: Resources) -> None:
    open_subscriptions.loaders.clear()

    query = "subscription($to: Int!) { ticks(to: $to) { number loaders again: loaders } }"
    await numbers(resources, query, 5)

    seen = open_subscriptions.loaders
    # then: one set within an event, and another one in the next
    assert seen[::2] == seen[1::2]
    assert all(one != next_one for one, next_one in zip(seen[::2], seen[2::2], strict=False))


async def test_ten_thousand_events_leave_nothing_behind(resources: Resources) -> None:
    counts = []
    stream = await ticking_schema.stream(NESTED, variable_values={"to": 10_000}, context_value=fresh_context(resources))
    async with aclosing(stream) as results:
        at = 0
        async for _ in results:
            at += 1
            if at % 2_500 == 0:
                gc.collect()
                counts.append(len(gc.get_objects()))

    assert at == 10_000
    assert max(counts) - min(counts) < 100, counts
