"""The door-bell within one process."""

from reverie.bus.bells import Listener, Notice, NoticeKind


class LocalBell:
    """Heard by this process alone, at once."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    @property
    def listeners(self) -> int:
        """How many are listening."""
        return len(self._listeners)

    def ring(self, notice: Notice) -> None:
        for listener in self._listeners:
            listener.hear(notice)

    def listen(self, *kinds: NoticeKind, tenant: str | None = None) -> Listener:
        listener = Listener(frozenset(kinds), tenant, self._listeners.discard)
        self._listeners.add(listener)
        return listener

    async def close(self) -> None:
        self._listeners.clear()
