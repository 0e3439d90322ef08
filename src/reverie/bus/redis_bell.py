"""The door-bell over Redis: one channel, heard by every process; what is lost with a connection stays lost."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from reverie.bus.bells import MOST_WAITING, Listener, Notice, NoticeKind, decoded
from reverie.bus.local_bell import LocalBell
from reverie.domain.ids import new_id

log = logging.getLogger("reverie.bus")

PREFIX = "reverie:"
_ANSWER_WITHIN = 5.0
"""Seconds for connecting and for any answer."""
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
_MOST_AT_ONCE = 100
_LOST = "Redis can't be reached: what other processes do is noticed late, and by asking Neo4j alone (%s)"


class RedisBell:
    """Heard in this process at once, and in the others through Redis.

    Connects by itself, again and again; while Redis can't be reached, only this process hears its own rings. Made
    within a running event loop.
    """

    def __init__(self, url: str, *, prefix: str = PREFIX, answer_within: float = _ANSWER_WITHIN) -> None:
        self._channel = f"{prefix}notices"
        self._answer_within = answer_within
        self._local = LocalBell()
        self._sender = new_id()
        self._outbox: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._filled = asyncio.Event()
        self._listening = asyncio.Event()
        self._told = False
        self._redis = Redis.from_url(
            url,
            socket_timeout=answer_within,
            socket_connect_timeout=answer_within,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
        )
        self._running = [asyncio.create_task(self._for_ever(one)) for one in (self._hear, self._send)]

    @property
    def listening(self) -> bool:
        """Whether the rings of other processes are heard now."""
        return self._listening.is_set()

    async def wait_until_listening(self) -> None:
        """Returns when the rings of other processes are heard."""
        await self._listening.wait()

    def ring(self, notice: Notice) -> None:
        self._local.ring(notice)
        self._outbox.append(notice.encoded(self._sender))
        self._filled.set()

    def listen(self, *kinds: NoticeKind, tenant: str | None = None) -> Listener:
        return self._local.listen(*kinds, tenant=tenant)

    async def close(self) -> None:
        running = set(self._running)
        while running:
            # again and again: asyncio.wait_for of Python 3.11 can lose a cancellation that comes with its result
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=0.1)
        await self._redis.aclose()
        await self._local.close()

    async def _for_ever(self, work: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        """Runs a task that ends only by losing its connection, with growing pauses in between."""
        pause = _SHORTEST_PAUSE

        def went_well() -> None:
            nonlocal pause
            pause = _SHORTEST_PAUSE

        while True:
            try:
                await work(went_well)
            except Exception as error:
                self._listening.clear()
                if not self._told:
                    self._told = True
                    known = isinstance(error, RedisError | OSError)
                    log.warning(_LOST, error, exc_info=None if known else error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _hear(self, went_well: Callable[[], None]) -> None:
        async with self._redis.pubsub() as pubsub:
            await pubsub.subscribe(self._channel)
            while True:
                message = await self._next(pubsub)
                if message["type"] == "subscribe":
                    went_well()
                    self._listening.set()
                    if self._told:
                        self._told = False
                        log.warning("Redis is reached again")
                elif message["type"] == "message":
                    self._take(message["data"])

    async def _next(self, pubsub: PubSub) -> dict[str, Any]:
        """The next message; asks for a sign of life where none comes, since a dead connection is silent too."""
        message: dict[str, Any] | None = await pubsub.get_message(timeout=self._answer_within)
        if message is None:
            await pubsub.ping()
            message = await pubsub.get_message(timeout=self._answer_within)
        if message is None:
            raise RedisConnectionError("it doesn't answer")
        return message

    def _take(self, data: bytes) -> None:
        try:
            sender, notice = decoded(data)
        except ValueError:
            log.debug("something else than a notice came over %s", self._channel)
            return
        if sender != self._sender:
            self._local.ring(notice)

    async def _send(self, went_well: Callable[[], None]) -> None:
        while True:
            while not self._outbox:
                self._filled.clear()
                await self._filled.wait()
            async with self._redis.pipeline(transaction=False) as pipeline:
                for _ in range(min(len(self._outbox), _MOST_AT_ONCE)):
                    pipeline.publish(self._channel, self._outbox.popleft())
                await pipeline.execute()
            went_well()
