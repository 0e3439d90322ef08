"""Runs Neo4j as its child and ends it when the process at the other end of standard input is gone.

A script of its own, started with nothing but the standard library: `watcher.py LOCK_FD STOP_TIMEOUT PARENT COMMAND…`,
where PARENT is the process id of whoever starts it. It prints the child's process id, and ends with the child's exit
code. The child inherits the locked LOCK_FD, so that the lock is held for as long as any of the two lives.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable

# Standard input's end says at once that the parent is gone. The parent's id is compared as well, since a process that
# the parent forked may have kept the other end of the pipe open.
_PARENT_CHECK_INTERVAL = 1.0
_PR_SET_PDEATHSIG = 1


def _end_with_watcher() -> Callable[[], None] | None:
    """What the child does before it becomes Neo4j: on Linux, asks the kernel to kill it when the watcher dies."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    watcher = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != watcher:
            os._exit(1)

    return ask


def _wait_for_reason_to_stop(child: "subprocess.Popen[bytes]", wakeup: int, parent: int) -> None:
    """Returns when the parent is gone, the child has ended, or this process was told to end."""
    while os.getppid() == parent:
        readable, _, _ = select.select([0, wakeup], [], [], _PARENT_CHECK_INTERVAL)
        if 0 in readable and not os.read(0, 4096):
            return
        if wakeup in readable and signal.SIGTERM in os.read(wakeup, 4096):
            return
        if child.poll() is not None:
            return


def main() -> int:
    lock, stop_timeout, parent, command = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    wakeup, signals = os.pipe()
    os.set_blocking(signals, False)
    signal.set_wakeup_fd(signals)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    child = subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=(lock,),
        preexec_fn=_end_with_watcher(),  # noqa: PLW1509 - this process has one thread
    )
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{child.pid}\n".encode(), 0)
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{child.pid}\n".encode())
    os.close(1)
    _wait_for_reason_to_stop(child, wakeup, parent)
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(stop_timeout)
        except subprocess.TimeoutExpired:
            child.kill()
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
