"""The application: what is open while it runs, and what runs beside it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette

from reverie.errors import Unavailable
from reverie.resources import Resources
from reverie.settings import Settings
from reverie.web.app import create_app


@asynccontextmanager
async def client_of(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A caller while the application's lifespan lasts."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://reverie.test", timeout=60) as client,
    ):
        yield client


async def test_it_opens_what_its_settings_name_and_closes_it_again(settings: Settings) -> None:
    app = create_app(settings)

    async with client_of(app) as client:
        answer = await client.post("/graphql", json={"query": "{ server { embedder embeddingDimensions } }"})
        assert answer.json() == {
            "data": {"server": {"embedder": "openai:text-embedding-3-small", "embeddingDimensions": 64}}
        }
        assert (await client.get("/health/ready")).status_code == 200
        resources: Resources = app.state.resources
        assert "answer" in await resources.graph.read("RETURN 'answer'")

    with pytest.raises(Unavailable):
        await resources.graph.read("RETURN 'answer'")


async def test_what_runs_beside_it_ends_with_it_and_takes_nothing_down(
    resources: Resources, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    async def lasting(_: Resources) -> None:
        seen.append("began")
        try:
            await asyncio.sleep(3_600)
        finally:
            seen.append("ended")

    async def failing(_: Resources) -> None:
        raise RuntimeError("out of order")

    @asynccontextmanager
    async def opened(_: Settings) -> AsyncIterator[Resources]:
        seen.append("opened")
        yield resources
        seen.append("closed")

    with caplog.at_level(logging.ERROR, "reverie.web"):
        async with client_of(create_app(settings, (failing, lasting), opened)) as client:
            assert (await client.get("/health/ready")).status_code == 200

    assert seen == ["opened", "began", "ended", "closed"]
    assert "out of order" in caplog.text
