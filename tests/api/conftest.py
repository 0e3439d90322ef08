"""A second server on the same Neo4j, for tests of what several of them do at once."""

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.conftest import Api, caller

from reverie.resources import Resources, open_resources
from reverie.settings import Settings


@pytest_asyncio.fixture(scope="session")
async def second_resources(settings: Settings, resources: Resources) -> AsyncIterator[Resources]:
    """What another server with the same settings holds open: a driver, commits and an embedder of its own."""
    async with open_resources(settings) as opened:
        assert opened.commits is not resources.commits
        yield opened


@pytest_asyncio.fixture
async def second_server(second_resources: Resources, tenant: str) -> AsyncIterator[Api]:
    """The other server's API, as seen by the test's tenant."""
    async with caller(second_resources, tenant) as client:
        yield Api(client, tenant)
