"""`reverie work` as a process: two of them, killed at every step of an episode, and told to stop in its middle."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from tests.commands.program import Program, openai_variables, running
from tests.conftest import LEAVE_ALONE, Api
from tests.openai_server import CHAT, OpenAIServer, slow
from tests.tcp_proxy import TcpProxy

from reverie.local import LocalNeo4j
from reverie.resources import Resources

ROUNDS = int(os.environ.get("REVERIE_TEST_KILLS", "1"))
"""How often a worker is killed at each step."""
LIMIT = 120.0
STEPS = ("before the model", "at the model", "before the commit", "after the commit")
COMMIT = b"\xb0\x12"
"""The Bolt message that commits (https://neo4j.com/docs/bolt/current/bolt/message/#messages-commit)."""
ASKS_WHAT_IS_KNOWN = b"RETURN collect([b.key, b.value])"
"""Of the statement that a worker sends last before it asks the model."""
LOGS = b"MERGE (c:Counter"
"""Of the statement that a worker sends last before it commits."""
FETCHES = b"WHERE d.owner = $token AND o.place = $place"
"""Of the statement by which a worker fetches a document's bytes."""
ENDS_DOCUMENT = b"d.untitled = null"
"""Of the statement that a worker sends last before it commits what it read of a document."""
EPISODES = "{ episodes(first: 200) { nodes { id consolidationStatus attempts failure } } }"
COUNTED = """
RETURN [
  COLLECT { MATCH (e:Evidence {tenant: $t}) RETURN [e.eventId, e.value] },
  COLLECT { MATCH (c:Change) WHERE c.tenant = $t AND c.number >= 0 RETURN c.number ORDER BY c.number }
]
"""


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    """The model that all workers ask; it takes its time, so that a worker can be met there."""
    with OpenAIServer() as server:
        server.fault_for = lambda call: slow(0.5) if call.path == CHAT else None
        yield server


@dataclass
class Worker:
    """A worker with a way to Neo4j of its own, on which it is seen what it is about to do."""

    proxy: TcpProxy
    start: Callable[[], Program]
    program: Program = field(init=False)
    logged: bool = False

    def __post_init__(self) -> None:
        self.program = self.start()

    def kill(self) -> None:
        self.program.send(signal.SIGKILL)

    def replace(self) -> None:
        """Another process takes the killed one's place."""
        assert self.program.ended() == -signal.SIGKILL
        self.program = self.start()


def kill_at(worker: Worker, step: str) -> asyncio.Event:
    """Kills the worker as it comes to this step with a document, once."""
    killed = asyncio.Event()
    written = False

    def look(sent: bytes) -> bool:
        nonlocal written
        written = written or ENDS_DOCUMENT in sent
        there = FETCHES in sent if step == "at the bytes" else written and COMMIT in sent
        if killed.is_set() or not there:
            return False
        # stopped as it is, it never learns that its commit succeeded
        worker.program.send(signal.SIGSTOP if step == "after the commit" else signal.SIGKILL)
        killed.set()
        return True

    worker.proxy.cut_before, worker.proxy.cut_after = (None, look) if step == "after the commit" else (look, None)
    return killed


@dataclass
class Trap:
    """Kills the worker that comes to a step with an episode of the tenant, once."""

    step: str
    tenant: bytes
    caught: Worker | None = None
    at_work: Worker | None = None
    sprung: asyncio.Event = field(default_factory=asyncio.Event)

    def watch(self, worker: Worker) -> Callable[[bytes], bool]:
        """What looks at all that a worker sends."""
        worker.logged = False

        def look(sent: bytes) -> bool:
            if self.caught is not None:
                return False
            if ASKS_WHAT_IS_KNOWN in sent and self.tenant in sent:
                self.at_work = worker
                return self.step == STEPS[0] and self.spring(worker, signal.SIGKILL)
            worker.logged = worker.logged or (LOGS in sent and self.tenant in sent)
            if not worker.logged or COMMIT not in sent:
                return False
            if self.step == STEPS[2]:
                return self.spring(worker, signal.SIGKILL)
            # stopped as it is, it never learns that its commit succeeded
            return self.step == STEPS[3] and self.spring(worker, signal.SIGSTOP)

        return look

    def spring(self, worker: Worker, number: int) -> bool:
        worker.program.send(number)
        self.caught = worker
        self.sprung.set()
        return True


@pytest_asyncio.fixture
async def hire(
    neo4j: LocalNeo4j, resources: Resources, model: OpenAIServer, tmp_path: Path
) -> AsyncIterator[Callable[..., Any]]:
    """Starts workers over the session's Neo4j, each behind a proxy of its own; nothing of earlier tests waits."""
    await resources.graph.execute(LEAVE_ALONE)
    address = urlsplit(neo4j.uri)
    with ExitStack() as programs:
        async with AsyncExitStack() as proxies:

            async def one(**more: str) -> Worker:
                proxy = await proxies.enter_async_context(TcpProxy())
                proxy.target = (str(address.hostname), int(address.port or 0))
                variables = {
                    **openai_variables(model),
                    "NEO4J_URI": f"bolt://127.0.0.1:{proxy.port}",
                    "NEO4J_USERNAME": neo4j.username,
                    "NEO4J_PASSWORD": neo4j.password,
                    "REVERIE_EXTRACTION_TIMEOUT": "60",
                    **more,
                }
                return Worker(proxy, lambda: programs.enter_context(running(tmp_path, "work", **variables)))

            yield one
            programs.close()


async def tell(api: Api, number: int) -> str:
    """A closed episode in which something new is said; its id."""
    event = {
        "eventType": "USER_MESSAGE",
        "content": f"I prefer style{number} for indentation",
        "threadId": f"thread {number}",
        "userId": "alex",
    }
    told = await api.mutate("recordEvents", "RecordEventsInput", "events { episode { id } }", {"events": [event]})
    closing = {"threadId": f"thread {number}"}
    await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", closing)
    return str(told["events"][0]["episode"]["id"])


async def episode(api: Api, episode_id: str) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = (await api(EPISODES))["episodes"]["nodes"]
    return next(node for node in nodes if node["id"] == episode_id)


async def until(api: Api, episode_id: str, *statuses: str) -> dict[str, Any]:
    """The episode, as soon as it has one of these statuses."""
    async with asyncio.timeout(LIMIT):
        while (found := await episode(api, episode_id))["consolidationStatus"] not in statuses:  # noqa: ASYNC110 - only the API tells
            await asyncio.sleep(0.02)
    return found


def asked(model: OpenAIServer) -> int:
    """How often the model was asked."""
    return sum(call.path == CHAT for call in model.calls)


async def test_killed_at_any_step_each_episode_is_consolidated_once(
    api: Api, resources: Resources, model: OpenAIServer, hire: Callable[..., Any]
) -> None:
    workers = [await hire(REVERIE_LEASE="2") for _ in range(2)]
    for worker in workers:
        await asyncio.to_thread(worker.program.until, "The worker is ready.")
    rounds = [step for _ in range(ROUNDS) for step in STEPS]
    for number, step in enumerate(rounds, 1):
        # given: an episode, and a trap for whoever takes it
        trap = Trap(step, api.tenant.encode())
        for worker in workers:
            look = trap.watch(worker)
            worker.proxy.cut_before, worker.proxy.cut_after = (None, look) if step == STEPS[3] else (look, None)
        before = asked(model)
        told = await tell(api, number)

        # when: it is killed there
        if step == STEPS[1]:
            async with asyncio.timeout(LIMIT):
                while asked(model) == before:  # noqa: ASYNC110 - the server lives in another thread
                    await asyncio.sleep(0.005)
            assert trap.at_work is not None
            trap.spring(trap.at_work, signal.SIGKILL)
        await asyncio.wait_for(trap.sprung.wait(), LIMIT)
        assert trap.caught is not None
        if step == STEPS[3]:
            await until(api, told, "CONSOLIDATED")
        else:
            assert (await episode(api, told))["consolidationStatus"] == "PROCESSING"
        trap.caught.kill()
        await asyncio.to_thread(trap.caught.replace)

        # then: another takes it up, where that is still to be done
        found = await until(api, told, "CONSOLIDATED", "FAILED")
        attempts = 1 if step == STEPS[3] else 2
        assert (found["consolidationStatus"], found["attempts"], found["failure"]) == ("CONSOLIDATED", attempts, None)
        evidence, numbers = await resources.graph.read(COUNTED, t=api.tenant)
        assert sorted(value for _, value in evidence) == sorted(f"style{told}" for told in range(1, number + 1))
        assert len({event for event, _ in evidence}) == number
        assert numbers == list(range(1, number + 1))


@pytest.mark.parametrize("step", ["at the bytes", "before the commit", "after the commit"])
async def test_killed_at_any_step_a_document_is_read_whole_and_once(
    api: Api, resources: Resources, hire: Callable[..., Any], step: str
) -> None:
    # given: a document of many chunks, and a worker that is killed with it in hand
    worker = await hire(REVERIE_LEASE="2")
    await asyncio.to_thread(worker.program.until, "The worker is ready.")
    killed = kill_at(worker, step)
    text = "\n\n".join(f"# Gate {number}\n\n{'The gate is green. ' * 90}" for number in range(40))
    made = await api.mutate(
        "createDocument", "CreateDocumentInput", "document { id }", {"title": "Gates", "text": text}
    )
    await asyncio.wait_for(killed.wait(), LIMIT)
    document = made["document"]["id"]
    chunks = (
        "query($id: ID!) { document(id: $id) { status chunks(first: 200) { totalCount nodes { position text } } } }"
    )
    if step == "after the commit":
        async with asyncio.timeout(LIMIT):
            while (await api(chunks, id=document))["document"]["status"] == "PENDING":  # noqa: ASYNC110 - only the API tells
                await asyncio.sleep(0.02)
    else:
        assert (await api(chunks, id=document))["document"] == {
            "status": "PENDING",
            "chunks": {"totalCount": 0, "nodes": []},
        }
    worker.kill()

    # when: another takes its place
    await asyncio.to_thread(worker.replace)
    async with asyncio.timeout(LIMIT):
        while (found := (await api(chunks, id=document))["document"])["status"] == "PENDING":  # noqa: ASYNC110 - only the API tells
            await asyncio.sleep(0.1)

    # then: all of it is there, once, and its bytes are gone
    assert found["status"] == "READY"
    nodes = found["chunks"]["nodes"]
    assert [node["position"] for node in nodes] == list(range(found["chunks"]["totalCount"]))
    headings = re.findall(r"^# Gate \d+$", "\n".join(node["text"] for node in nodes), re.MULTILINE)
    # a heading at the end of one may be said again at the beginning of the next
    assert list(dict.fromkeys(headings)) == [f"# Gate {number}" for number in range(40)]
    originals = "MATCH (o:Original) WHERE o.tenant = $t RETURN count(o)"
    assert await resources.graph.read(originals, t=api.tenant) == 0


async def test_told_to_stop_it_gives_back_what_it_has_in_hand_at_once(
    api: Api, resources: Resources, model: OpenAIServer, hire: Callable[..., Any]
) -> None:
    # given: a worker that would keep its episode for ten minutes, and waits for the model
    model.fault_for = lambda call: slow(60) if call.path == CHAT else None
    first = await hire(REVERIE_LEASE="600")
    said = await asyncio.to_thread(first.program.until, "Vectors come from")
    host = model.base_url.removeprefix("http://").removesuffix("/v1")
    assert said.startswith("The worker is ready. Stop with Ctrl-C.\n")
    assert f"  Episodes and memories are read by gpt-4.1-mini of {host}: their texts are sent there.\n" in said
    stops: list[Callable[[Program], None]] = [lambda program: program.send(signal.SIGTERM), Program.press_ctrl_c]
    for number, stop in enumerate(stops, 1):
        before = asked(model)
        told = await tell(api, number)
        async with asyncio.timeout(LIMIT):
            while asked(model) == before:  # noqa: ASYNC110 - the server lives in another thread
                await asyncio.sleep(0.01)

        # when
        stop(first.program)
        # then: it ends without another word, and the episode waits again
        assert await asyncio.to_thread(first.program.ended) == 0
        assert "Traceback" not in first.program.said
        assert (await episode(api, told))["consolidationStatus"] == "PENDING"
        assert first.program.said.endswith("are sent there.\n")

        # and: the next worker needs no lease to run out
        model.fault_for = lambda _: None
        first.program = first.start()
        found = await until(api, told, "CONSOLIDATED", "FAILED")
        assert (found["consolidationStatus"], found["attempts"], found["failure"]) == ("CONSOLIDATED", 2, None)
        model.fault_for = lambda call: slow(60) if call.path == CHAT else None
    evidence, numbers = await resources.graph.read(COUNTED, t=api.tenant)
    assert (len(evidence), numbers) == (2, [1, 2])
