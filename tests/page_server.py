"""A web server of raw answers: what links lead to in tests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(
    body: bytes, content_type: str | None = "text/html; charset=utf-8", status: str = "200 OK", **headers: str
) -> bytes:
    """An answer of HTTP with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines.extend(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def redirect(to: str) -> bytes:
    return answer(b"", status="302 Found", Location=to)


@dataclass
class PageServer:
    """Answers by path; `asked` has the first line and the headers of each request."""

    port: int = 0
    pages: dict[str, bytes | Handler] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head)
            page = self.pages.get(head.split(" ")[1], answer(b"nothing here", status="404 Not Found"))
            if isinstance(page, bytes):
                writer.write(page)
                await writer.drain()
            else:
                await page(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            # the one who asked has gone
            pass
        finally:
            writer.close()


@asynccontextmanager
async def page_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[PageServer]:
    """A server on a free port of loopback, of HTTPS where a context is given."""
    made = PageServer()
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
