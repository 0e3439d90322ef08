"""The watcher, with small programs in Neo4j's place."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reverie.local import watcher
from reverie.local.locks import read_owner, try_lock

_SLEEPER = "import time; time.sleep(300)"
_STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(300)"
)

Watch = Callable[..., "subprocess.Popen[bytes]"]


def _until(happened: Callable[[], bool], limit: float = 20) -> bool:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if happened():
            return True
        time.sleep(0.01)
    return False


def _nobody_lives(lock_file: Path) -> bool:
    """Whether neither watcher nor child lives, since both hold the lock for as long as they do."""
    lock = try_lock(lock_file)
    if lock is None:
        return False
    os.close(lock)
    return True


@pytest.fixture
def lock_file(tmp_path: Path) -> Path:
    """Where the lock is that watcher and child hold."""
    return tmp_path / "run.lock"


@pytest.fixture
def watch(lock_file: Path, tmp_path: Path) -> Iterator[Watch]:
    """Starts a watcher over a Python program, in a session of its own as Neo4j's is; all of it ends with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, stop_timeout: float = 20, parent: int | None = None) -> "subprocess.Popen[bytes]":
        lock = try_lock(lock_file)
        assert lock is not None
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    watcher.__file__,
                    str(lock),
                    str(stop_timeout),
                    str(parent or os.getpid()),
                    sys.executable,
                    "-c",
                    program,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
        os.close(lock)
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _child(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def _let_go(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.close()


def test_the_child_ends_when_standard_input_does(watch: Watch, lock_file: Path) -> None:
    process = watch(_SLEEPER)
    child = _child(process)
    assert read_owner(lock_file) == child
    assert not _nobody_lives(lock_file)

    _let_go(process)

    assert process.wait(20) == 128 + signal.SIGTERM
    assert _nobody_lives(lock_file)


def test_a_child_that_does_not_want_to_end_is_killed(watch: Watch, lock_file: Path, tmp_path: Path) -> None:
    process = watch(_STUBBORN, stop_timeout=0.3)
    assert _until(lambda: "on" in (tmp_path / "log").read_text())

    _let_go(process)

    assert process.wait(20) == 128 + signal.SIGKILL
    assert _nobody_lives(lock_file)


def test_the_child_s_own_end_is_the_watcher_s(watch: Watch) -> None:
    process = watch("raise SystemExit(7)")

    assert process.wait(20) == 7


def test_a_program_that_is_not_there_says_nothing_and_fails(watch: Watch, lock_file: Path) -> None:
    lock = try_lock(lock_file)
    assert lock is not None

    ended = subprocess.run(
        [sys.executable, "-I", "-S", watcher.__file__, str(lock), "1", str(os.getpid()), "/nowhere/java"],
        capture_output=True,
        pass_fds=(lock,),
        check=False,
    )

    os.close(lock)
    assert ended.returncode == 1
    assert ended.stdout == b""


def test_the_child_ends_with_a_parent_whose_pipe_somebody_else_keeps_open(lock_file: Path) -> None:
    # given: a parent that forked, so that the pipe to the watcher has another holder, who outlives the parent
    program = f"""
import os, subprocess, sys, time
from reverie.local.locks import try_lock
from pathlib import Path
lock = try_lock(Path({str(lock_file)!r}))
process = subprocess.Popen(
    [sys.executable, "-I", "-S", {watcher.__file__!r}, str(lock), "20", str(os.getpid()), sys.executable, "-c",
     {_SLEEPER!r}],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(lock,), start_new_session=True,
)
os.close(lock)
holder = os.fork()
if holder == 0:
    time.sleep(300)
print(int(process.stdout.readline()), holder, flush=True)
time.sleep(300)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        _, holder = map(int, parent.stdout.readline().split())
        try:
            parent.kill()

            assert _until(lambda: _nobody_lives(lock_file))
        finally:
            os.kill(holder, signal.SIGKILL)


def test_the_child_ends_with_a_parent_that_was_gone_before_the_watcher_looked(watch: Watch, lock_file: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()

    process = watch(_SLEEPER, parent=gone.pid)

    assert _until(lambda: _nobody_lives(lock_file))
    assert process.wait() == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a process to its parent's life")
def test_the_child_ends_with_a_watcher_that_is_killed(watch: Watch, lock_file: Path) -> None:
    process = watch(_STUBBORN)
    assert _child(process) > 0

    process.kill()

    assert _until(lambda: _nobody_lives(lock_file))


def test_signals_of_the_terminal_do_not_reach_them(watch: Watch) -> None:
    process = watch(_SLEEPER)
    child = _child(process)

    assert os.getpgid(child) == os.getpgid(process.pid) == process.pid
    assert os.getsid(child) != os.getsid(0)
