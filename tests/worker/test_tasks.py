"""The worker's jobs that run for ever: one that fails goes on."""

import asyncio
from dataclasses import replace
from typing import Any

from tests.conftest import Api

from reverie.resources import Resources
from reverie.worker import tasks

COMMUNITIES = "{ communities { nodes { name size } } }"


async def test_communities_are_found_in_the_background(api: Api, resources: Resources) -> None:
    memories = [{"content": "tea in a cup", "topics": [{"name": "tea"}, {"name": "cups"}], "enrich": False}] * 10
    made = await api.mutate("createMemories", "CreateMemoriesInput", "memories { id }", {"memories": memories})
    assert made["errors"] == []
    looking = asyncio.create_task(tasks.find_communities(replace(resources, communities_interval=0.05)))

    found: list[dict[str, Any]] = []
    async with asyncio.timeout(120):
        while not found:
            await asyncio.sleep(0.1)
            found = (await api(COMMUNITIES))["communities"]["nodes"]
    looking.cancel()

    assert found == [{"name": "cups, tea", "size": 2}]
