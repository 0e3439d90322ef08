"""The real server on a free loopback port, within the test's own process."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext

import orjson
from strawberry.schema.base import BaseSchema

from reverie.api.schema import schema
from reverie.resources import Resources
from reverie.services.changes import Follower
from reverie.settings import Settings
from reverie.web.app import create_app
from reverie.web.server import Server


@asynccontextmanager
async def serving(
    resources: Resources,
    keys: dict[str, str] | None = None,
    *,
    executed: BaseSchema = schema,
    follower: Follower | None = None,
    port: int = 0,
) -> AsyncIterator[tuple[Server, str]]:
    """The server, on a free port unless one is given, and its address without a scheme; told to stop at the end.

    It follows the log as it does by default, or by a given follower.
    """
    environ = {} if keys is None else {"REVERIE_API_KEYS": orjson.dumps(keys).decode()}
    app = create_app(Settings.read(environ), (), lambda _: nullcontext(resources), executed=executed)
    server = Server(app)
    server.config.port = port
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        if follower is not None:
            app.state.follower = follower
        yield server, f"127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        # the lifespan freezes what there is, which other tests count on being collected
        gc.unfreeze()


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Waits for a condition."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is the test's own
            await asyncio.sleep(0.01)
