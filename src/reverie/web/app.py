"""The application: routes, and what is open while it runs."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute
from strawberry.schema.base import BaseSchema

from reverie.api.schema import schema
from reverie.resources import Resources, open_resources
from reverie.services.changes import make_follower
from reverie.settings import Settings
from reverie.web import health
from reverie.web.assets import asset_routes
from reverie.web.auth import Callers
from reverie.web.http import GraphQLApp

log = logging.getLogger("reverie.web")

Companion = Callable[[Resources], Awaitable[None]]
"""Something that runs beside the server for as long as it runs."""
Opener = Callable[[Settings], AbstractAsyncContextManager[Resources]]


def create_app(
    settings: Settings,
    companions: Sequence[Companion] = (),
    opener: Opener = open_resources,
    *,
    executed: BaseSchema = schema,
) -> Starlette:
    """The ASGI application for these settings; its lifespan opens all it needs, and closes it in reverse.

    `state.end_streams` ends what would go on for as long as its clients like; `Server` calls it.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with opener(settings) as resources:
            app.state.resources = resources
            app.state.follower = make_follower(resources)
            running = [asyncio.create_task(_run(companion, resources)) for companion in companions]
            # what start-up made lives as long as the process: the collector needn't look at it again
            gc.collect()
            gc.freeze()
            try:
                yield
            finally:
                for task in running:
                    task.cancel()
                for task in running:
                    with suppress(asyncio.CancelledError):
                        await task
                await app.state.follower.close()

    graphql = GraphQLApp(Callers(settings.keys()), executed)
    app = Starlette(
        routes=[
            Route("/graphql", graphql),
            WebSocketRoute("/graphql", graphql),
            Route("/health/live", health.live),
            Route("/health/ready", health.ready),
            *asset_routes(),
        ],
        lifespan=lifespan,
    )
    app.state.end_streams = graphql.end_streams
    return app


async def _run(companion: Companion, resources: Resources) -> None:
    try:
        await companion(resources)
    except asyncio.CancelledError:
        raise
    except Exception:
        log.exception("something beside the server ended; it is started again with the server")
