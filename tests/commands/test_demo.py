"""`reverie demo` as a process: filled before anybody is served, searched both ways, and gone afterwards."""

import asyncio
import re
import signal
from datetime import UTC, datetime
from pathlib import Path

from tests.commands.program import asked, client_of, running, small_neo4j

from reverie.demo.data import demo_conversations

SEARCH = """
query($query: String!) {
  search(query: $query, first: 3) { edges { semanticRank keywordRank node { ... on Memory { content } } } }
}
"""


async def test_the_demo_is_filled_found_in_both_ways_and_gone_afterwards(tmp_path: Path, cache_dir: Path) -> None:
    told = {memory.content: memory for thread in demo_conversations(datetime.now(UTC)) for memory in thread.memories}
    (tmp_path / "temporary").mkdir()
    # given: settings for another store and its callers, which the demo takes no notice of
    others = {
        "REVERIE_DATA_DIR": str(tmp_path / "mine"),
        "REVERIE_API_KEYS": '{"k": "acme"}',
        "NEO4J_URI": "bolt://127.0.0.1:9",
        "NEO4J_DATABASE": "mine",
        "TMPDIR": str(tmp_path / "temporary"),
    }
    variables = {**small_neo4j(tmp_path, cache_dir), **others, "REVERIE_EMBEDDING_TIMEOUT": "60"}
    with running(tmp_path, "demo", "--port", "0", **variables) as demo:
        address = demo.ready()
        # then: it says what it did, and nothing else
        assert re.match(
            r"Starting Neo4j 2026\.08\.1…\n"
            r"Writing two months of a small team's memories…\n"
            rf"{len(told)} memories are there\. The store goes when the demo ends\.\n\n  Reverie is ready\.",
            demo.said,
        ), demo.said
        assert [folder.name.startswith("reverie-demo-") for folder in (tmp_path / "temporary").iterdir()] == [True]
        async with client_of(address) as client:
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
        demo.send(signal.SIGTERM)
        assert await asyncio.to_thread(demo.ended) == 0
        assert demo.said.endswith("Stop with Ctrl-C.\n")
    # and: nothing of it is left
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "mine").exists()
