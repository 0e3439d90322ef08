"""`reverie demo` as a process: filled before anybody is served, searched both ways, dreaming, gone afterwards."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
from tests.commands.program import asked, client_of, running, small_neo4j

from reverie.demo.data import demo_conversations
from reverie.demo.episodes import past_events

SEARCH = """
query($query: String!) {
  search(query: $query, first: 3) { edges { semanticRank keywordRank node { ... on Memory { content } } } }
}
"""

BELIEFS = """
{
  server { worker { running pendingEpisodes failedEpisodes } }
  beliefs(filter: {epistemicStatuses: [ACTIVE, SUPERSEDED, CONTRADICTED, RETRACTED]}, first: 200) {
    nodes { subjectId key value version epistemicStatus supersedes { value } evidence { nodes { text } } }
  }
}
"""


async def changes(client: httpx.AsyncClient, subscription: str) -> AsyncIterator[dict[str, Any]]:
    """The entries of the change log, as they arrive."""
    stream = {"accept": "text/event-stream"}
    async with client.stream("POST", "/graphql", json={"query": subscription}, headers=stream) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data:") and (data := line.removeprefix("data:").strip()):
                event = orjson.loads(data)["data"]["beliefChanges"]
                if event:
                    yield event


async def watch(client: httpx.AsyncClient, subscription: str) -> list[dict[str, Any]]:
    """What happens to the first belief of which the live episodes tell, up to its being superseded."""
    seen = []
    async for change in changes(client, subscription):
        if change["key"] == "preference.indentation":
            seen.append(change)
            if change["kind"] == "SUPERSEDED":
                break
    return seen


async def test_the_demo_is_filled_found_in_both_ways_and_gone_afterwards(tmp_path: Path, cache_dir: Path) -> None:
    told = {memory.content: memory for thread in demo_conversations(datetime.now(UTC)) for memory in thread.memories}
    events = len(past_events(datetime.now(UTC)))
    (tmp_path / "temporary").mkdir()
    # given: settings for another store and its callers, which the demo takes no notice of
    others = {
        "REVERIE_DATA_DIR": str(tmp_path / "mine"),
        "REVERIE_API_KEYS": '{"k": "acme"}',
        "NEO4J_URI": "bolt://127.0.0.1:9",
        "NEO4J_DATABASE": "mine",
        "TMPDIR": str(tmp_path / "temporary"),
        "REVERIE_WORKER": "off",
    }
    variables = {**small_neo4j(tmp_path, cache_dir), **others, "REVERIE_EMBEDDING_TIMEOUT": "60"}
    with running(tmp_path, "demo", "--port", "0", **variables) as demo:
        address = demo.ready()
        (subscription,) = re.findall(r"^  (subscription \{.*\})$", demo.until("} }\n"), re.MULTILINE)
        # then: it says what it did, and nothing else
        assert re.match(
            r"Starting Neo4j 2026\.08\.1…\n"
            r"Writing two months of a small team's memories…\n"
            rf"{len(told)} memories and {events} events are there\. The store goes when the demo ends\.\n"
            r"\n  Reverie is ready\.",
            demo.said,
        ), demo.said
        assert [folder.name.startswith("reverie-demo-") for folder in (tmp_path / "temporary").iterdir()] == [True]
        async with client_of(address) as client:
            watched = asyncio.create_task(watch(client, subscription))
            assert (await asked(client, "{ memories { totalCount } }"))["memories"]["totalCount"] == len(told)

            # and: it is found by meaning, with no word in common, and by word
            async def found(query: str, rank: str) -> set[str]:
                edges = (await asked(client, SEARCH, query=query))["search"]["edges"]
                memories = [edge for edge in edges if edge["node"].get("content") and edge[rank] is not None]
                return {told[edge["node"]["content"]].key for edge in memories}

            by_meaning = await found("that deployment issue", "semanticRank")
            assert any(key.startswith("bad-rollout/") for key in by_meaning), by_meaning
            by_word = await found("ECONNREFUSED", "keywordRank")
            assert {"oncall-handover/econnrefused", "oncall-handover/runbook"} <= by_word, by_word

            # and: whoever watches sees a belief appear, be confirmed and be superseded, each soon after it was said
            told_live = await watched
            assert [(one["kind"], one["belief"]["value"], one["previous"]) for one in told_live] == [
                ("CREATED", "tabs", None),
                ("STRENGTHENED", "tabs", None),
                ("SUPERSEDED", "spaces", {"value": "tabs"}),
            ]
            assert re.findall(r"^  mei: .*(tabs|spaces) for indentation", demo.said, re.MULTILINE) == [
                "tabs",
                "tabs",
                "spaces",
            ]

            # and: the weeks before have been dreamed of
            dreamed = await asked(client, BELIEFS)
            assert dreamed["server"]["worker"] == {"running": True, "pendingEpisodes": 0, "failedEpisodes": 0}
            nodes = dreamed["beliefs"]["nodes"]
            assert {
                (one["subjectId"], one["key"], one["value"], one["version"], one["epistemicStatus"]) for one in nodes
            } >= {
                ("mei", "preference.editor", "dark mode", 1, "SUPERSEDED"),
                ("mei", "preference.editor", "light mode", 2, "ACTIVE"),
                ("tomasz", "uses.storage", "PostgreSQL", 2, "ACTIVE"),
                ("lucia", "preference.customer_questions", "e-mail", 2, "CONTRADICTED"),
            }
            (confirmed,) = (one for one in nodes if one["key"] == "preference.night_alerts")
            assert len(confirmed["evidence"]["nodes"]) == 2
        demo.send(signal.SIGTERM)
        assert await asyncio.to_thread(demo.ended) == 0
        assert "Traceback" not in demo.said
    # and: nothing of it is left
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "mine").exists()
