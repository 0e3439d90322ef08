"""Embeds texts with OpenAI's models, or those of a server compatible with OpenAI's API."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import openai
import orjson

from reverie.ai.embedders import InputRefused
from reverie.ai.openai_client import OpenAIClient, ProviderError
from reverie.ai.vectors import pooled, unit_vector
from reverie.ai.windows import legible, windows
from reverie.domain.secrets import masked
from reverie.errors import EmbeddingFailed

# OpenAI's models take 8,192 tokens. A script with less than 1.5 bytes to a token is refused, and then halved.
_WINDOW_BYTES = 12_000
_SMALLEST_WINDOW_BYTES = 64
# A token has at least one byte, so this stays under OpenAI's 300,000 tokens for a request.
_REQUEST_BYTES = 200_000
# More would only make single answers longer to read, in which time nothing else is served.
_REQUEST_TEXTS = 64
_PASSAGE_REQUESTS_AT_ONCE = 4
_QUERY_REQUESTS_AT_ONCE = 32
_ABOUT_THE_INPUT = frozenset({400, 413, 422})


@dataclass(frozen=True, kw_only=True)
class OpenAIOptions:
    """Where and how to ask; OpenAI itself without a `base_url`.

    `timeout` is for one try, `deadline` for all tries of a request, in seconds. `dimensions` is what the model gives;
    it is asked for only of the text-embedding-3 models, which can shorten theirs.
    """

    api_key: str = field(repr=False)
    base_url: str | None = None
    model: str = "text-embedding-3-small"
    dimensions: int = 1536
    timeout: float = 20.0
    deadline: float = 60.0
    max_attempts: int = 5

    @property
    def name(self) -> str:
        """The model, as the store records it."""
        return f"openai:{self.model}"


class OpenAIEmbedder:
    """An embedder (`reverie.ai.embedders.Embedder`) over POST /embeddings.

    Questions and passages are embedded alike, but a question doesn't queue behind the requests of passages. A text
    that the model finds too long is halved until it fits. Only vectors of the right number, size and length leave this
    class. Texts are sent without their secrets.
    """

    def __init__(self, options: OpenAIOptions) -> None:
        self._name = options.name
        self._model = options.model
        self._dimensions = options.dimensions
        self._client = OpenAIClient(
            api_key=options.api_key,
            base_url=options.base_url,
            timeout=options.timeout,
            deadline=options.deadline,
            max_attempts=options.max_attempts,
        )
        self._passage_slots = asyncio.Semaphore(_PASSAGE_REQUESTS_AT_ONCE)
        self._query_slots = asyncio.Semaphore(_QUERY_REQUESTS_AT_ONCE)

    @property
    def name(self) -> str:
        """The model, as the store records it."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return self._dimensions

    @property
    def batch_size(self) -> int:
        """How many texts travel in one request."""
        return _REQUEST_TEXTS

    async def embed_query(self, text: str) -> list[float]:
        """The unit vector of a question. Raises EmbeddingFailed."""
        (vector,) = await self._embed([text], self._query_slots)
        return vector

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The unit vectors of texts, in their order. Raises EmbeddingFailed; InputRefused where a text is to blame."""
        return await self._embed(texts, self._passage_slots)

    async def close(self) -> None:
        """Closes the connections; what is under way fails."""
        await self._client.close()

    async def _embed(self, texts: Sequence[str], slots: asyncio.Semaphore) -> list[list[float]]:
        # looking for secrets in long texts takes its time, which others' requests needn't wait for
        cut = await asyncio.to_thread(lambda: [windows(masked(legible(text)), _WINDOW_BYTES) for text in texts])
        batches = list(_batches([window for parts in cut for window in parts]))
        vectors = iter(await self._at_once(batches, slots))
        return [_joined(parts, [next(vectors) for _ in parts]) for parts in cut]

    async def _at_once(self, batches: list[list[str]], slots: asyncio.Semaphore) -> list[list[float]]:
        tasks = []
        failure: EmbeddingFailed | None = None
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._embedded(batch, slots)) for batch in batches]
        except* EmbeddingFailed as failures:
            failure = next(fault for fault in failures.exceptions if isinstance(fault, EmbeddingFailed))
        if failure:
            raise failure
        return [vector for task in tasks for vector in task.result()]

    async def _embedded(self, batch: list[str], slots: asyncio.Semaphore) -> list[list[float]]:
        try:
            async with slots:
                answer = await self._client.call(lambda client: self._request(client, batch))
        except ProviderError as fault:
            if fault.too_long and len(batch) > 1:
                return await self._divided(batch, slots)
            if fault.too_long and _size(batch[0]) >= 2 * _SMALLEST_WINDOW_BYTES:
                halves = windows(batch[0], (_size(batch[0]) + 1) // 2)
                # One by one, so that a text which is refused at any length costs few requests.
                return [_joined(halves, [vector for half in halves for vector in await self._embedded([half], slots)])]
            kind = InputRefused if fault.status in _ABOUT_THE_INPUT or fault.too_long else EmbeddingFailed
            raise kind(f"Embedding failed: {fault}.") from None
        return self._vectors(answer, len(batch))

    async def _divided(self, batch: list[str], slots: asyncio.Semaphore) -> list[list[float]]:
        """Embeds a batch of which something was too long as two, the longer texts apart from the shorter ones."""
        order = sorted(range(len(batch)), key=lambda place: _size(batch[place]))
        middle = len(batch) // 2
        halves = [[batch[place] for place in part] for part in (order[:middle], order[middle:])]
        vectors = await self._at_once(halves, slots)
        return [vector for _, vector in sorted(zip(order, vectors, strict=True))]

    async def _request(self, client: openai.AsyncOpenAI, batch: list[str]) -> object:
        # Raw, since the package takes ten times as long to make its own objects of an answer as to receive it.
        # "float", since many compatible servers don't know base64, which the package would ask for otherwise.
        answer = await client.embeddings.with_raw_response.create(
            input=batch,
            model=self._model,
            dimensions=self._dimensions if "text-embedding-3" in self._model else openai.omit,
            encoding_format="float",
        )
        try:
            return orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            # Takes the NaN that some servers write, so that it is found in its vector.
            return json.loads(answer.content)

    def _vectors(self, answer: object, count: int) -> list[list[float]]:
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise EmbeddingFailed(f"{self._client.host} answered with something else than embeddings.")
        if len(items) != count:
            raise EmbeddingFailed(f"{self._client.host} answered with {len(items)} vectors for {count} texts.")
        places = [item.get("index") for item in items]
        if any(place is not None for place in places):
            by_place = dict(zip(places, items, strict=True))
            if set(by_place) != set(range(count)):
                raise EmbeddingFailed(f"{self._client.host} answered with vectors whose indexes don't match the texts.")
            items = [by_place[place] for place in range(count)]
        return [unit_vector(item.get("embedding"), self._dimensions) for item in items]


def _batches(parts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for part in parts:
        if batch and (len(batch) == _REQUEST_TEXTS or size + _size(part) > _REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += _size(part)
    if batch:
        yield batch


def _joined(parts: list[str], vectors: list[list[float]]) -> list[float]:
    return pooled(vectors, [_size(part) for part in parts])


def _size(text: str) -> int:
    return len(text.encode())
