"""What the tests of embedders share: a server in place of OpenAI's, and the local model, loaded once."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.openai_server import OpenAIServer

from reverie.ai.local_embedder import LocalEmbedder, local_embedder_available
from reverie.ai.openai_embedder import OpenAIEmbedder, OpenAIOptions


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def openai_options(openai_server: OpenAIServer) -> OpenAIOptions:
    """Short vectors, since the tests' server makes them in Python."""
    return OpenAIOptions(
        api_key=openai_server.api_key, base_url=openai_server.base_url, dimensions=64, timeout=30.0, deadline=30.0
    )


@pytest.fixture
async def openai_embedder(openai_options: OpenAIOptions) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(openai_options)
    yield embedder
    await embedder.close()


@pytest.fixture(scope="session")
async def local_embedder() -> AsyncIterator[LocalEmbedder]:
    if reason := local_embedder_available():
        pytest.skip(reason)
    embedder = LocalEmbedder()
    embedder.start()
    yield embedder
    await embedder.close()
