"""What an embedder is, and how texts are embedded within a time limit."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from reverie.errors import EmbeddingFailed

_LANES = 4
_REFUSALS_THAT_ARE_NO_ACCIDENT = 8

log = logging.getLogger(__name__)


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how near their meanings are.

    Any text is legal: empty, of any length and any script. Texts longer than the model's window are embedded in
    windows, and their vectors pooled.
    """

    @property
    def name(self) -> str:
        """What the store records, such as "openai:text-embedding-3-small": another name, vectors not comparable."""

    @property
    def dimensions(self) -> int:
        """The length of each vector."""

    @property
    def batch_size(self) -> int:
        """How many texts one call takes best; 1 where a batch is no faster than its texts one by one."""

    async def embed_query(self, text: str) -> list[float]:
        """The unit vector of a question. Raises EmbeddingFailed."""

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The unit vectors of texts to be found, in their order. Raises EmbeddingFailed, for all of them."""

    async def close(self) -> None:
        """Ends what the embedder holds open; calls still running fail with EmbeddingFailed."""


class InputRefused(EmbeddingFailed):
    """The model can't embed one of the texts of a call; the other texts may do better without it."""


async def embed_within(embedder: Embedder, texts: Sequence[str], seconds: float) -> list[list[float] | None]:
    """Embeds what can be embedded in `seconds`: vectors in the order of the texts, None for those without.

    Texts travel in chunks of the embedder's batch size, a few at a time. A chunk that is refused for one of its texts
    is divided until that text stands alone. Nothing is raised for an embedder's faults: one warning is logged for all.
    """
    vectors: list[list[float] | None] = [None] * len(texts)
    size = embedder.batch_size
    chunks = deque(range(start, min(start + size, len(texts))) for start in range(0, len(texts), size))
    faults: list[EmbeddingFailed] = []
    refused = 0

    async def work() -> None:
        nonlocal refused
        while chunks:
            chunk = chunks.popleft()
            try:
                vectors[chunk.start : chunk.stop] = await embedder.embed_passages([texts[index] for index in chunk])
            except InputRefused as fault:
                if len(chunk) > 1:
                    middle = chunk.start + len(chunk) // 2
                    chunks.extendleft((range(middle, chunk.stop), range(chunk.start, middle)))
                    continue
                faults.append(fault)
                refused += 1
                # A provider that refuses everything must not be asked twice for every text.
                if refused >= _REFUSALS_THAT_ARE_NO_ACCIDENT and not any(vectors):
                    chunks.clear()
            except EmbeddingFailed as fault:
                faults.append(fault)

    lanes = [asyncio.create_task(work()) for _ in range(min(_LANES, len(chunks)))]
    try:
        if lanes:
            await asyncio.wait(lanes, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        late = [lane for lane in lanes if lane.cancel()]
        if late:
            await asyncio.wait(late)
    for lane in lanes:
        if not lane.cancelled():
            lane.result()
    missing = sum(vector is None for vector in vectors)
    if missing:
        reason = str(faults[-1]) if faults else f"The embedder didn't answer within {seconds:g} s."
        log.warning(
            "%d of %d texts weren't embedded: %s",
            missing,
            len(texts),
            reason,
            extra={"embedder": embedder.name, "texts": len(texts), "missing": missing, "reason": reason},
        )
    return vectors
