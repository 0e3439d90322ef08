"""An application with a subscription that ticks, for tests of the transports, and a server that runs it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import strawberry
from strawberry.extensions import ParserCache, ValidationCache
from tests.serving import serving

from reverie.api.context import Context, Info
from reverie.api.executor import EventExecutor
from reverie.errors import Unavailable
from reverie.resources import Resources
from reverie.services.changes import make_follower
from reverie.web.server import Server

KEYS = {"key-1": "tenant-1", "key-2": "tenant-2"}
SECRET = "what nobody outside may read"  # noqa: S105 - no password


class Open:
    """How many subscriptions are open, and the loaders that their events were given."""

    def __init__(self) -> None:
        self.now = 0
        self.ticked = 0
        self.loaders: list[int] = []


open_subscriptions = Open()


@asynccontextmanager
async def counted() -> AsyncIterator[None]:
    open_subscriptions.now += 1
    try:
        yield
    finally:
        open_subscriptions.now -= 1


@strawberry.type
class Query:
    @strawberry.field
    def tenant(self, info: Info) -> str:
        return info.context.tenant

    @strawberry.field
    def fails(self) -> str:
        raise RuntimeError(SECRET)


@strawberry.type
class Mutation:
    @strawberry.mutation
    def shout(self, text: str) -> str:
        return text.upper()


@strawberry.type
class Inner:
    number: int

    @strawberry.field
    def inner(self) -> "Inner":
        return Inner(number=self.number)


@strawberry.type
class Tick:
    number: int
    filling: str = ""

    @strawberry.field
    def tenant(self, info: Info) -> str:
        return info.context.tenant

    @strawberry.field
    def request_id(self, info: Info) -> str:
        return info.context.request_id

    @strawberry.field
    def loaders(self, info: Info) -> str:
        open_subscriptions.loaders.append(id(info.context.loaders))
        return str(id(info.context.loaders))

    @strawberry.field
    def inner(self) -> Inner:
        return Inner(number=self.number)

    @strawberry.field
    def odd(self) -> int:
        if self.number % 2 == 0:
            raise RuntimeError(SECRET)
        return self.number

    @strawberry.field
    def available(self) -> int:
        raise Unavailable("Neo4j can't be reached")


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def ticks(self, to: int = 1_000_000_000, pause: float = 0, filling: int = 0) -> AsyncGenerator[Tick, None]:
        async with counted():
            for number in count(1):
                if number > to:
                    return
                open_subscriptions.ticked += 1
                yield Tick(number=number, filling="x" * filling)
                await asyncio.sleep(pause)

    @strawberry.subscription
    async def never(self) -> AsyncGenerator[Tick, None]:
        async with counted():
            await asyncio.Event().wait()
            yield Tick(number=0)

    @strawberry.subscription
    async def breaks(self) -> AsyncGenerator[Tick, None]:
        async with counted():
            yield Tick(number=1)
            raise RuntimeError(SECRET)

    @strawberry.subscription
    async def refuses(self) -> AsyncGenerator[Tick, None]:
        raise Unavailable("Neo4j can't be reached")
        yield Tick(number=0)


ticking_schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    execution_context_class=EventExecutor,
    extensions=[lambda: ParserCache(maxsize=50), lambda: ValidationCache(maxsize=50)],
)


@asynccontextmanager
async def ticking_server(resources: Resources, keys: dict[str, str] | None = None) -> AsyncIterator[tuple[Server, str]]:
    """The server on a free port, and its address without a scheme; told to stop at the end."""
    async with serving(resources, keys, executed=ticking_schema) as served:
        yield served


def fresh_context(resources: Resources) -> Context:
    return Context(resources, "tenant-1", "request-1", make_follower(resources))
