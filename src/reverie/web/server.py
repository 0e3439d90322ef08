"""uvicorn as Reverie runs it: which protocols, how long it waits, and how it ends what would never end by itself."""

import socket as sockets
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

PING_EVERY = 15.0
"""Seconds between pings of a WebSocket."""
PONG_WITHIN = 75.0
"""Seconds to wait for the pong. A client that stops reading for a minute doesn't answer, and is not gone."""
KEEP_ALIVE = 75
"""Seconds that an idle connection is kept."""
FINISH_WITHIN = 10
"""Seconds that requests get to finish when the server is told to stop."""


class Server(uvicorn.Server):
    """Serves an application until `should_exit` is set.

    Signals are left to the caller: uvicorn's own handling begins too late, and ends the process by them. At the end
    WebSockets are closed with 1012, which has clients connect again, and streams of events end.
    """

    def __init__(self, app: Starlette) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            ws_ping_interval=PING_EVERY,
            ws_ping_timeout=PONG_WITHIN,
            # longer than clients and balancers keep an idle connection: none sends into one that is being closed
            timeout_keep_alive=KEEP_ALIVE,
            lifespan="on",
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=FINISH_WITHIN,
        )
        super().__init__(config)
        self._app = app

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[sockets.socket] | None = None) -> None:
        self._app.state.end_streams()
        await super().shutdown(sockets)
