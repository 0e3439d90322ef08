"""`reverie dream` as a process: a bar on a terminal, plain lines elsewhere, and all that waited is read."""

import asyncio
import os
import pty
from pathlib import Path
from typing import Any

import pytest
from tests.commands.program import LIMIT, REVERIE, environment, finished, running
from tests.conftest import LEAVE_ALONE, Api
from tests.openai_server import CHAT, OpenAIServer, failing, slow

from reverie.local import LocalNeo4j
from reverie.resources import Resources

BY_RULES = "Episodes and memories are read by rules, for plain English statements; nothing leaves this machine.\n"
STATES = "{ episodes(first: 200) { nodes { consolidationStatus } } }"


@pytest.fixture
def variables(neo4j: LocalNeo4j) -> dict[str, str]:
    """For the session's Neo4j, without vectors."""
    return {
        "NEO4J_URI": neo4j.uri,
        "NEO4J_USERNAME": neo4j.username,
        "NEO4J_PASSWORD": neo4j.password,
        "REVERIE_EMBEDDER": "none",
    }


async def tell(api: Api, resources: Resources, threads: int) -> None:
    """As many closed episodes, and nothing else that waits."""
    await resources.graph.execute(LEAVE_ALONE)
    for number in range(threads):
        event = {
            "eventType": "USER_MESSAGE",
            "content": f"I prefer style{number} for indentation",
            "threadId": f"thread {number}",
            "userId": "alex",
        }
        await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": [event]})
        closing = {"threadId": f"thread {number}"}
        await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", closing)


async def states(api: Api) -> set[str]:
    return {node["consolidationStatus"] for node in (await api(STATES))["episodes"]["nodes"]}


async def test_it_reads_what_is_pending_and_says_how_much_that_was(
    api: Api, resources: Resources, variables: dict[str, str], tmp_path: Path
) -> None:
    await tell(api, resources, 3)

    first = await asyncio.to_thread(finished, tmp_path, "dream", **variables)
    second = await asyncio.to_thread(finished, tmp_path, "dream", **variables)

    assert (first.returncode, first.stdout) == (0, "")
    assert first.stderr == f"{BY_RULES}Episodes\n3 episodes were read.\n"
    assert (second.returncode, second.stderr) == (0, f"{BY_RULES}No episode is pending.\n")
    assert await states(api) == {"CONSOLIDATED"}
    found = await api("{ beliefs { nodes { value version } } }")
    assert len(found["beliefs"]["nodes"]) == 1


async def test_on_a_terminal_it_shows_a_bar(
    api: Api, resources: Resources, variables: dict[str, str], tmp_path: Path
) -> None:
    await tell(api, resources, 2)
    ours, theirs = pty.openpty()
    given = environment(tmp_path, **variables)
    process = await asyncio.create_subprocess_exec(
        *REVERIE, "dream", env=given, cwd=tmp_path, stdin=theirs, stderr=theirs
    )
    os.close(theirs)

    shown = await asyncio.to_thread(_read_all, ours)

    assert await asyncio.wait_for(process.wait(), LIMIT) == 0
    assert "Episodes  [####################################]  2/2" in shown
    assert "\r" in shown.replace("\r\n", "\n")
    assert shown.endswith("2 episodes were read.\r\n")


def _read_all(terminal: int) -> str:
    """All that is written to a terminal until its last writer is gone, which Linux tells as an error."""
    shown = b""
    try:
        while some := os.read(terminal, 65_536):
            shown += some
    except OSError:
        pass
    finally:
        os.close(terminal)
    return shown.decode()


@pytest.fixture
def by_model(variables: dict[str, str], openai_server: OpenAIServer) -> Any:
    """Variables with which episodes are read by the model, whose health is restored afterwards."""
    healthy = openai_server.fault_for
    yield {
        **variables,
        "REVERIE_EXTRACTOR": "openai",
        "OPENAI_API_KEY": openai_server.api_key,
        "OPENAI_BASE_URL": openai_server.base_url,
        "REVERIE_DREAM_ATTEMPTS": "1",
    }
    openai_server.fault_for = healthy


async def test_it_says_what_failed(
    api: Api, resources: Resources, openai_server: OpenAIServer, by_model: dict[str, str], tmp_path: Path
) -> None:
    await tell(api, resources, 2)
    refused = failing(400, "no", "invalid_prompt")
    openai_server.fault_for = lambda call: refused if call.path == CHAT and "style1" in call.said else None

    ended = await asyncio.to_thread(finished, tmp_path, "dream", **by_model)

    assert ended.returncode == 0
    assert ended.stderr.endswith("2 episodes were read, 1 of them failed.\n")
    assert await states(api) == {"CONSOLIDATED", "FAILED"}


async def test_ctrl_c_ends_it_and_what_it_had_in_hand_waits_again(
    api: Api, resources: Resources, openai_server: OpenAIServer, by_model: dict[str, str], tmp_path: Path
) -> None:
    await tell(api, resources, 1)
    openai_server.fault_for = lambda call: slow(60) if call.path == CHAT else None
    before = sum(call.path == CHAT for call in openai_server.calls)
    with running(tmp_path, "dream", **by_model) as program:
        async with asyncio.timeout(LIMIT):
            while sum(call.path == CHAT for call in openai_server.calls) == before:
                assert program.process.poll() is None, program.said
                await asyncio.sleep(0.02)

        program.press_ctrl_c()

        assert await asyncio.to_thread(program.ended) == 0
        assert "Traceback" not in program.said
    assert await states(api) == {"PENDING"}
    await resources.graph.execute(LEAVE_ALONE)
