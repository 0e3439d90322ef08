"""A TCP proxy in front of a service, for tests of what happens when the way to it breaks.

It keeps its own address whatever becomes of the service: `target` may change between two connections.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Self

Seen = Callable[[bytes], bool]


class TcpProxy:
    """The proxy; used as an asynchronous context manager."""

    def __init__(self) -> None:
        self.target: tuple[str, int] | None = None
        """Where new connections lead; None: they are closed at once."""
        self.port = 0
        self.cut_before: Seen | None = None
        """Cuts a connection instead of passing on what its client sent, once."""
        self.cut_after: Seen | None = None
        """Cuts a connection after passing on what its client sent, as soon as the service has answered it, once."""
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hold(self) -> None:
        """Connections stay open, but nothing passes any more."""
        self._flowing.clear()

    def release(self) -> None:
        """What was held passes on."""
        self._flowing.set()

    def cut(self) -> None:
        """Breaks every connection there is."""
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._track(asyncio.current_task())
        self._open.add(writer)
        try:
            if self.target is None:
                return
            service_reader, service_writer = await asyncio.open_connection(*self.target)
            self._open.add(service_writer)
            doomed = asyncio.Event()
            back = asyncio.create_task(self._pass(service_reader, writer, doomed))
            self._track(back)
            await self._send(reader, service_writer, doomed)
        except OSError:
            pass
        finally:
            writer.transport.abort()

    def _track(self, task: "asyncio.Task[None] | None") -> None:
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, client: asyncio.StreamReader, service: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        """From the client to the service."""
        with contextlib.suppress(OSError), contextlib.closing(service.transport):
            while sent := await client.read(65_536):
                await self._flowing.wait()
                if self.cut_before is not None and self.cut_before(sent):
                    self.cut_before = None
                    return
                if self.cut_after is not None and self.cut_after(sent):
                    self.cut_after = None
                    doomed.set()
                service.write(sent)
                await service.drain()

    async def _pass(self, service: asyncio.StreamReader, client: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        """From the service to the client."""
        with contextlib.suppress(OSError):
            while answered := await service.read(65_536):
                await self._flowing.wait()
                if doomed.is_set():
                    break
                client.write(answered)
                await client.drain()
        client.transport.abort()
