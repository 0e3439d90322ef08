"""Vectors: made in the request where the embedder is in time, otherwise by the loop in the background."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from reverie.ai.embedders import Embedder, embed_within
from reverie.domain.clock import now_ms
from reverie.errors import ConfigurationError, EmbeddingFailed, Unavailable
from reverie.graph import embeddings
from reverie.graph.schema import forget_embedder, record_embedder
from reverie.resources import Resources

log = logging.getLogger("reverie.embedding")

AT_ONCE = 64
REST = 5.0
"""Seconds between two looks at what waits, when nothing rings."""
LONGEST_REST = 60.0


async def embed(resources: Resources, texts: Sequence[str]) -> list[list[float] | None]:
    """The texts' vectors, None for each that wasn't made within the time limit."""
    if resources.embedder is None:
        return [None] * len(texts)
    return await embed_within(resources.embedder, texts, resources.embedding_timeout)


async def embed_query(resources: Resources, query: str) -> list[float] | None:
    """The vector of a question; None where there is no embedder or it isn't in time."""
    if resources.embedder is None or not query.strip():
        return None
    try:
        async with asyncio.timeout(resources.embedding_timeout):
            return await resources.embedder.embed_query(query)
    except (EmbeddingFailed, TimeoutError) as error:
        reason = str(error) or f"not within {resources.embedding_timeout:g} s"
        log.warning("a question could not be embedded (%s): it was searched by word only", reason)
        log.debug("where that was", exc_info=error)
        return None


def ring(resources: Resources, vectors: Sequence[list[float] | None]) -> None:
    """Wakes the background loop when something was written without its vector."""
    if any(vector is None for vector in vectors):
        resources.unembedded.set()


async def embed_waiting(resources: Resources) -> None:
    """Embeds what waits, for ever; an outage makes it rest longer, a text that fails goes to the end of the queue."""
    if resources.embedder is None:
        return
    rest = 0.0
    while True:
        if rest:
            try:
                async with asyncio.timeout(rest):
                    await resources.unembedded.wait()
            except TimeoutError:
                pass
        resources.unembedded.clear()
        try:
            done, failed = await embed_some(resources, resources.embedder)
        except (Unavailable, EmbeddingFailed) as error:
            log.warning("waiting vectors could not be made (%s); they are tried again", error)
            log.debug("where that was", exc_info=error)
            done, failed = 0, 1
        if done:
            rest = 0.0
            continue
        rest = min(LONGEST_REST, max(REST, rest * 2)) if failed else REST


async def embed_some(resources: Resources, embedder: Embedder) -> tuple[int, int]:
    """Embeds a batch of what waits; how many got their vector, and how many failed."""
    waiting = await embeddings.unembedded(resources.graph, AT_ONCE, now_ms())
    if not waiting:
        return 0, 0
    vectors = await embed_within(embedder, [node.text for node in waiting], 60.0)
    made = [(node, vector) for node, vector in zip(waiting, vectors, strict=True) if vector is not None]
    failed = [node.id for node, vector in zip(waiting, vectors, strict=True) if vector is None]
    if failed:
        await embeddings.note_failures(resources.graph, failed)
    if made:
        await embeddings.set_vectors(resources.graph, made, now_ms())
    return len(made), len(failed)


async def embed_all(resources: Resources) -> None:
    """Embeds what waits now, and returns when nothing more can be done."""
    if resources.embedder is not None:
        while (await embed_some(resources, resources.embedder))[0]:
            pass


async def reembed(resources: Resources, embedder: Embedder, progress: Callable[[int, int], None]) -> int:
    """Makes every vector anew with another embedder; returns how many. `progress` gets (done, all).

    Interrupted, it leaves a store without an embedder, which refuses to choose one in passing, or, once all vectors of
    the former one are gone, one whose rest waits for the new one. Raises EmbeddingFailed where the new one doesn't
    work, before anything is changed.
    """
    await embedder.embed_passages(["Is anybody there?"])
    await forget_embedder(resources.graph)
    total = await embeddings.mark_all(resources.graph)
    record = await record_embedder(resources.graph, embedder.name, embedder.dimensions)
    if (record.embedder, record.dimensions) != (embedder.name, embedder.dimensions):
        raise ConfigurationError(
            f"another process gave this store {record.embedder} meanwhile; stop it and run `reverie reembed` again"
        )
    done = 0
    progress(done, total)
    while True:
        made, failed = await embed_some(resources, embedder)
        done += made
        progress(min(done, total), total)
        if not made and failed:
            raise EmbeddingFailed(
                f"{failed} texts could not be embedded; what is left will be tried again by `reverie serve`"
            )
        if not made:
            return done
