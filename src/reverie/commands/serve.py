"""`reverie serve`: the server, with its private Neo4j where no other is named."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import click
import uvicorn

from reverie.commands.notices import listen_socket, say
from reverie.resources import Resources, open_resources
from reverie.services.embedding import embed_waiting
from reverie.settings import Settings
from reverie.web.app import Companion, create_app

log = logging.getLogger("reverie")


Prepare = Callable[[Resources], Awaitable[None]]
"""What is to be done with the open store before anybody is served."""


def serve(settings: Settings, companions: Sequence[Companion] = (), prepare: Prepare | None = None) -> None:
    """Serves until it is told to stop. Raises StartupError or Unavailable with one sentence."""
    socket = listen_socket(settings.host, settings.port)
    port = socket.getsockname()[1]
    failure: list[BaseException] = []

    @asynccontextmanager
    async def opened(given: Settings) -> AsyncIterator[Resources]:
        try:
            async with open_resources(given, say, progress=sys.stderr.isatty()) as resources:
                if prepare is not None:
                    await prepare(resources)
                _announce(given, port, resources)
                yield resources
        except BaseException as error:
            failure.append(error)
            raise

    app = create_app(settings, (embed_waiting, *companions), opened)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        lifespan="on",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=10,
    )
    with socket:
        uvicorn.Server(config).run(sockets=[socket])
    if failure and not isinstance(failure[0], (asyncio.CancelledError, GeneratorExit)):
        raise failure[0]


def _announce(settings: Settings, port: int, resources: Resources) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    where = f"http://{host}:{port}"
    say("")
    say(f"  Reverie is ready.  GraphiQL  {click.style(f'{where}/graphiql', bold=True)}")
    say(f"                     API       {where}/graphql")
    say("")
    if resources.embedder is None:
        say(f"  Search is by word only: {resources.embedder_note}")
    elif resources.embedder.name.startswith("openai:"):
        base = settings.openai_base_url or "OpenAI"
        say(f"  Vectors come from {base}: the texts of memories, topics and searches are sent there.")
    else:
        say(f"  Vectors are made on this machine ({resources.embedder.name}); nothing leaves it.")
    say("  Stop with Ctrl-C.")
