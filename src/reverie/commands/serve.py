"""`reverie serve`: the server, with its private Neo4j where no other is named."""

import asyncio
import importlib
import socket as sockets
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext

import click
import uvloop

from reverie.commands.notices import embedder_sentence, extractor_sentence, listen_socket, say
from reverie.commands.signals import on_first_signal
from reverie.resources import Resources, open_resources
from reverie.settings import Settings
from reverie.web.server import Server
from reverie.worker.loop import work

Work = Callable[[Resources], Awaitable[None]]


def serve(settings: Settings, companions: Sequence[Work] = (), prepare: Work | None = None) -> None:
    """Serves until SIGTERM or Ctrl-C; `companions` run beside the server, `prepare` before anybody is served.

    Raises StartupError or Unavailable, one sentence for the terminal.
    """
    with (
        listen_socket(settings.host, settings.port) as listening,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        own = (work,) if settings.worker == "on" else ()
        runner.run(_Serving(settings, listening).run((*own, *companions), prepare))


class _Serving:
    """One run. The first signal abandons what opens, or lets what serves finish its requests; a second one ends all."""

    def __init__(self, settings: Settings, listening: sockets.socket) -> None:
        self._settings = settings
        self._listening = listening
        self._running: asyncio.Task[None] | None = None
        self._server: Server | None = None
        self._told_to_stop = False

    async def run(self, companions: Sequence[Work], prepare: Work | None) -> None:
        self._running = asyncio.current_task()
        on_first_signal(self._stop)
        try:
            await self._open_and_serve(companions, prepare)
        except asyncio.CancelledError:
            if not self._told_to_stop:
                raise

    def _stop(self) -> None:
        self._told_to_stop = True
        if self._server is not None:
            self._server.should_exit = True
        elif self._running is not None:
            self._running.cancel()

    async def _open_and_serve(self, companions: Sequence[Work], prepare: Work | None) -> None:
        # Reading the API's modules takes a good part of the time of Neo4j's start, so they are read beside it.
        reading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "reverie.web.app"))
        try:
            async with open_resources(self._settings, say, progress=sys.stderr.isatty()) as resources:
                if prepare is not None:
                    await prepare(resources)
                await reading
                self._server = _server(self._settings, resources, companions)
                _announce(self._settings, self._listening.getsockname()[1], resources)
                await self._server.serve(sockets=[self._listening])
        finally:
            await asyncio.wait([reading])


def _server(settings: Settings, resources: Resources, companions: Sequence[Work]) -> Server:
    from reverie.web.app import create_app  # noqa: PLC0415 - read by now

    return Server(create_app(settings, companions, lambda _: nullcontext(resources)))


def _announce(settings: Settings, port: int, resources: Resources) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    where = f"http://{host}:{port}"
    say("")
    say(f"  Reverie is ready.  GraphiQL  {click.style(f'{where}/graphiql', bold=True)}")
    say(f"                     API       {where}/graphql")
    say("")
    say(f"  {extractor_sentence(settings, resources)}")
    say(f"  {embedder_sentence(settings, resources)}")
    say("  Stop with Ctrl-C.")
