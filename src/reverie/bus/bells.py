"""Door-bells: notices that something of a tenant changed, which tell where to look and may be lost."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol, Self

import orjson

MOST_WAITING = 1_000
"""Notices kept for a listener, or for Redis; beyond it the oldest are lost."""


class NoticeKind(StrEnum):
    """What a notice is about, and what its body holds."""

    CHANGES = "changes"
    """The change log grew: `number`, its last entry's, where it is known."""
    EPISODES = "episodes"
    """An episode was opened, or its status changed: `id`."""
    DREAMS = "dreams"
    """A dream began (`id`), or dreams came on or ended."""
    WORK = "work"
    """There is work for the worker: an episode or a memory that waits. The body is empty."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One ring. The body holds ids and numbers alone, never what a caller wrote."""

    kind: NoticeKind
    tenant: str
    body: dict[str, Any] = field(default_factory=dict)

    def encoded(self, sender: str) -> bytes:
        """As JSON, with who sent it."""
        return orjson.dumps({"sender": sender, "kind": self.kind, "tenant": self.tenant, "body": self.body})


def decoded(data: bytes) -> tuple[str, Notice]:
    """The sender and the notice of a JSON text; ValueError for anything else."""
    match orjson.loads(data):
        case {"sender": str(sender), "kind": str(kind), "tenant": str(tenant), "body": dict(body)}:
            return sender, Notice(NoticeKind(kind), tenant, body)
    raise ValueError("not a notice")


class Listener:
    """Gives the notices it is for, oldest first, from when it is made until it is left (`with`).

    For one consumer. Who lags behind by more than MOST_WAITING loses the oldest.
    """

    def __init__(self, kinds: frozenset[NoticeKind], tenant: str | None, left: "Callable[[Listener], object]") -> None:
        self._kinds = kinds
        self._tenant = tenant
        self._left = left
        self._waiting: deque[Notice] = deque(maxlen=MOST_WAITING)
        self._rung = asyncio.Event()

    def hear(self, notice: Notice) -> None:
        """Keeps a notice if it is one of those that are wanted."""
        if notice.kind in self._kinds and self._tenant in (None, notice.tenant):
            self._waiting.append(notice)
            self._rung.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._left(self)

    def __aiter__(self) -> Self:
        return self

    def take_waiting(self) -> list[Notice]:
        """What waits already, which may be nothing; for who answers many rings by looking once."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    async def __anext__(self) -> Notice:
        while not self._waiting:
            self._rung.clear()
            await self._rung.wait()
        return self._waiting.popleft()


class Bell(Protocol):
    """What rings and is heard, in this process and, where there is Redis, in all others."""

    def ring(self, notice: Notice) -> None:
        """Tells everybody, without waiting and without ever raising; who doesn't hear it must look by himself."""

    def listen(self, *kinds: NoticeKind, tenant: str | None = None) -> Listener:
        """What rings from now on, of these kinds and of this tenant (None: of all), until the listener is left."""

    async def close(self) -> None:
        """Ends what runs for the bell."""
