"""Reads what a link leads to, from public addresses alone, within limits on bytes, time and redirects."""

import asyncio
import hashlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast
from urllib.parse import urljoin

import httpcore2 as httpcore
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from reverie.domain.documents import MediaType, link_trouble, media_type_of, unreadable_link
from reverie.errors import BadInput, TooLarge, Unsupported

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""All addresses of a host, as texts; OSError where it has none."""

_PATH = ("url",)
_IN_MEMORY = 1_000_000
"""Bytes of a body that are kept in memory before it goes on in a file."""
_CONNECTING = 5.0
"""Seconds for one of a host's addresses to take a connection, before the next one is tried."""
_RESOLVERS = ThreadPoolExecutor(8, thread_name_prefix="resolver")
"""Threads of their own: a name whose server never answers must hold up nothing but other names."""
_REDIRECTS = {301, 302, 303, 307, 308}
_HEADERS = [
    (b"user-agent", b"reverie"),
    (b"accept", b"text/html, text/markdown, text/plain, application/pdf, */*;q=0.5"),
    (b"accept-encoding", b"identity"),
]
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_TEREDO = IPv6Network("2001::/32")
_INSIDE_CLOUDS = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))
"""Public by number, in part, and yet providers' own services that answer their machines alone."""


def is_public(address: Address) -> bool:
    """Whether an address is one that anybody on the internet could reach.

    Of the forms of IPv6 that carry an IPv4 address, that one counts.
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not _is_inside_a_cloud(address)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address.sixtofour is not None:
        return is_public(address.sixtofour)
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _GLOBAL_UNICAST and address not in _TEREDO and address.is_global


def _is_inside_a_cloud(address: IPv4Address) -> bool:
    return any(address in network for network in _INSIDE_CLOUDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPolicy:
    """What may be read of a link, and from where."""

    bytes_most: int = 20_000_000
    seconds: float = 20.0
    """For all of it, redirects included."""
    redirects: int = 5
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """What may be read from though it isn't public."""

    def allows(self, address: Address) -> bool:
        return is_public(address) or any(address in network for network in self.networks)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a link led to: the file is at its beginning, and the caller's to close."""

    file: BinaryIO
    media_type: MediaType
    size: int
    hash: str
    """SHA-256, in hexadecimal."""


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """All addresses that this machine finds for a host."""
    find = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_RESOLVERS, find)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class _Refused(Exception):
    """The connection isn't made; the message says why."""


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the very addresses that were checked: a name isn't looked up a second time."""

    def __init__(self, policy: LinkPolicy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._connections = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            found = [ip_address(text) for text in await self._resolve(host.strip("[]"), port)]
        except (OSError, ValueError, UnicodeError):
            found = []
        if not found:
            raise _Refused("its host can't be found")
        if not all(self._policy.allows(address) for address in found):
            raise _Refused("leads to an address that isn't public, which is not read from")
        trouble: Exception = _Refused("its host takes no connection")
        for address in found:
            try:
                return await self._connections.connect_tcp(
                    str(address), port, timeout=_CONNECTING, local_address=local_address, socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                trouble = error
        raise trouble

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def fetch(url: str, policy: LinkPolicy, resolve: Resolve = system_addresses) -> Fetched:
    """What a link leads to. Raises BadInput, TooLarge or Unsupported, whose path is the link."""
    try:
        async with asyncio.timeout(policy.seconds):
            return await _follow(url, policy, resolve)
    except TimeoutError:
        raise BadInput(f"did not answer in full within {policy.seconds:g} s", _PATH) from None
    except _Refused as error:
        raise BadInput(str(error), _PATH) from None
    except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as error:
        if isinstance(error.__context__, ssl.SSLCertVerificationError):
            raise BadInput("its host's certificate isn't valid", _PATH) from None
        raise BadInput("its host takes no connection, or broke it off", _PATH) from None
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
        raise BadInput("its host doesn't answer as HTTP wants it", _PATH) from None


async def _follow(url: str, policy: LinkPolicy, resolve: Resolve) -> Fetched:
    async with httpcore.AsyncConnectionPool(network_backend=_CheckedBackend(policy, resolve)) as pool:
        for _ in range(policy.redirects + 1):
            async with _answer(pool, url) as response:
                headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
                if response.status not in _REDIRECTS or b"location" not in headers:
                    return await _body(response, url, headers, policy)
                url = _redirected(url, headers[b"location"])
    raise _Refused(f"redirects more than {policy.redirects} times")


def _redirected(url: str, location: str) -> str:
    try:
        url = urljoin(url, location)
    except ValueError:
        raise _Refused("redirects to what is no address") from None
    if (trouble := link_trouble(url)) is not None:
        raise _Refused(f"redirects to what {trouble}")
    return url


@asynccontextmanager
async def _answer(pool: httpcore.AsyncConnectionPool, url: str) -> AsyncIterator[httpcore.Response]:
    try:
        parts = parse_url(url)
    except LocationParseError:
        raise _Refused("is no address of a page") from None
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    asked = httpcore.URL(
        scheme=(parts.scheme or "").encode(),
        host=(parts.host or "").encode(),
        port=parts.port,
        target=target.encode(),
    )
    async with pool.stream("GET", asked, headers=_HEADERS) as response:
        yield response


async def _body(response: httpcore.Response, url: str, headers: dict[bytes, str], policy: LinkPolicy) -> Fetched:
    if response.status != 200:  # noqa: PLR2004 - OK
        raise _Refused(f"answers with the status {response.status}")
    if headers.get(b"content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise Unsupported("answers compressed though asked not to", _PATH)
    content_type = headers.get(b"content-type")
    media_type = media_type_of(content_type, parse_url(url).path or "")
    if media_type is None:
        raise Unsupported(unreadable_link(content_type, url), _PATH)
    length = headers.get(b"content-length", "")
    if length.isdigit() and int(length) > policy.bytes_most:
        raise _too_large(policy)
    file = cast(BinaryIO, SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115 - the caller closes it
    try:
        size, digest = 0, hashlib.sha256()
        async for part in response.aiter_stream():
            size += len(part)
            if size > policy.bytes_most:
                raise _too_large(policy)
            digest.update(part)
            file.write(part)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return Fetched(file, media_type, size, digest.hexdigest())


def _too_large(policy: LinkPolicy) -> TooLarge:
    return TooLarge(f"has more than {policy.bytes_most:,} bytes", _PATH)
