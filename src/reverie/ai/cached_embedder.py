"""Spares an embedder work: remembers vectors, asks once for what several want at once, and joins small calls."""

import asyncio
import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from typing import Any, Literal

from reverie.ai.embedders import Embedder, InputRefused
from reverie.errors import EmbeddingFailed

_Kind = Literal["query", "passage"]


class _Wanted:
    """A text on its way, and how many callers wait for its vector."""

    def __init__(self, key: bytes, text: str) -> None:
        self.key = key
        self.text = text
        self.callers = 0
        self.vector: asyncio.Future[array[float]] = asyncio.get_running_loop().create_future()


class CachedEmbedder:
    """An embedder (`reverie.ai.embedders.Embedder`) over another one.

    Remembers the vectors of the `entries` texts used last (by a hash, in 4 bytes a dimension). Where the other one
    gains from batches, calls for few passages that come together, or while `calls_at_once` joined ones are under way,
    are joined into one; if it is refused for one of its texts, each caller's texts are tried by themselves. A call
    whose callers have all been cancelled is cancelled too.
    """

    def __init__(self, embedder: Embedder, *, entries: int = 4096, calls_at_once: int = 4) -> None:
        self._embedder = embedder
        self._entries = entries
        self._calls_at_once = calls_at_once
        self._known: OrderedDict[bytes, array[float]] = OrderedDict()
        self._wanted: dict[bytes, _Wanted] = {}
        self._calls: dict[asyncio.Task[None], list[_Wanted]] = {}
        self._small: list[list[_Wanted]] = []
        self._joined_calls = 0

    @property
    def name(self) -> str:
        """The other one's name."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return self._embedder.dimensions

    @property
    def batch_size(self) -> int:
        """How many texts one call takes best."""
        return self._embedder.batch_size

    async def embed_query(self, text: str) -> list[float]:
        """The unit vector of a question. Raises EmbeddingFailed."""
        (vector,) = await self._vectors("query", [text])
        return vector

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The unit vectors of texts, in their order. Raises EmbeddingFailed."""
        return await self._vectors("passage", texts)

    async def close(self) -> None:
        """Closes the other one; calls still running fail with EmbeddingFailed."""
        for group in self._small:
            self._fail(group, _closed())
        self._small.clear()
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(list(self._calls))
        await self._embedder.close()

    async def _vectors(self, kind: _Kind, texts: Sequence[str]) -> list[list[float]]:
        keys = [_key(kind, text) for text in texts]
        found: dict[bytes, array[float]] = {}
        awaited: dict[bytes, _Wanted] = {}
        new: list[_Wanted] = []
        for key, text in dict(zip(keys, texts, strict=True)).items():
            if key in self._known:
                self._known.move_to_end(key)
                found[key] = self._known[key]
                continue
            if key not in self._wanted:
                self._wanted[key] = _Wanted(key, text)
                new.append(self._wanted[key])
            awaited[key] = self._wanted[key]
            awaited[key].callers += 1
        if new:
            self._send(kind, new)
        try:
            for key, wanted in awaited.items():
                found[key] = await asyncio.shield(wanted.vector)
        finally:
            for wanted in awaited.values():
                wanted.callers -= 1
            self._forget([wanted for wanted in awaited.values() if not wanted.callers and not wanted.vector.done()])
        return [found[key].tolist() for key in keys]

    def _send(self, kind: _Kind, new: list[_Wanted]) -> None:
        if kind == "query":
            self._call(self._ask_query(new[0]), new)
        elif len(new) > self.batch_size // 4:
            self._call(self._ask_passages(new), new)
        else:
            self._small.append(new)
            # The loop's next round, so that the calls of one round are joined.
            asyncio.get_running_loop().call_soon(self._depart)

    def _depart(self) -> None:
        while self._small and self._joined_calls < self._calls_at_once:
            groups: list[list[_Wanted]] = []
            while self._small and sum(map(len, groups)) + len(self._small[0]) <= self.batch_size:
                waiting = [wanted for wanted in self._small.pop(0) if not wanted.vector.done()]
                if waiting:
                    groups.append(waiting)
            if groups:
                self._joined_calls += 1
                self._call(self._ask_joined(groups), [wanted for group in groups for wanted in group])

    def _call(self, ask: Coroutine[Any, Any, None], texts: list[_Wanted]) -> None:
        call = asyncio.create_task(ask)
        self._calls[call] = texts
        call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Task[None]) -> None:
        """Leaves no caller waiting after a call that was cancelled, or failed as no embedder should."""
        texts = self._calls.pop(call)
        self._fail(texts, _closed() if call.cancelled() else call.exception() or _closed())

    async def _ask_query(self, wanted: _Wanted) -> None:
        try:
            vector = await self._embedder.embed_query(wanted.text)
        except EmbeddingFailed as fault:
            self._fail([wanted], fault)
        else:
            self._learn([wanted], [vector])

    async def _ask_passages(self, texts: list[_Wanted]) -> None:
        try:
            vectors = await self._embedder.embed_passages([wanted.text for wanted in texts])
        except EmbeddingFailed as fault:
            self._fail(texts, fault)
        else:
            self._learn(texts, vectors)

    async def _ask_joined(self, groups: list[list[_Wanted]]) -> None:
        texts = [wanted for group in groups for wanted in group]
        try:
            vectors = await self._embedder.embed_passages([wanted.text for wanted in texts])
        except InputRefused as fault:
            if len(groups) == 1:
                self._fail(texts, fault)
            else:
                await asyncio.gather(*map(self._ask_passages, groups))
        except EmbeddingFailed as fault:
            self._fail(texts, fault)
        else:
            self._learn(texts, vectors)
        finally:
            self._joined_calls -= 1
            asyncio.get_running_loop().call_soon(self._depart)

    def _learn(self, texts: list[_Wanted], vectors: list[list[float]]) -> None:
        for wanted, vector in zip(texts, vectors, strict=True):
            kept = self._known[wanted.key] = array("f", vector)
            if len(self._known) > self._entries:
                self._known.popitem(last=False)
            if self._wanted.get(wanted.key) is wanted:
                del self._wanted[wanted.key]
            if not wanted.vector.done():
                wanted.vector.set_result(kept)

    def _fail(self, texts: list[_Wanted], fault: BaseException) -> None:
        for wanted in texts:
            if self._wanted.get(wanted.key) is wanted:
                del self._wanted[wanted.key]
            if not wanted.vector.done():
                wanted.vector.set_exception(fault)
                # Marks it as seen: whoever waited for it may have gone after another text's failure.
                wanted.vector.exception()

    def _forget(self, texts: list[_Wanted]) -> None:
        for wanted in texts:
            del self._wanted[wanted.key]
            wanted.vector.cancel()
        for call, travelling in self._calls.items():
            if all(wanted.vector.cancelled() for wanted in travelling):
                call.cancel()


def _closed() -> EmbeddingFailed:
    return EmbeddingFailed("The embedder is closed.")


def _key(kind: _Kind, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind.encode()).digest()
