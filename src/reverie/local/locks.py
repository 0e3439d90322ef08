"""Locks on files, which the operating system lets go when the last process that holds one ends, kill -9 included."""

import fcntl
import os
from pathlib import Path


def try_lock(path: Path) -> int | None:
    """Locks the file, made where it is missing, and gives its open descriptor; None when somebody else holds the lock.

    The lock lasts until every copy of the descriptor is closed, those that child processes inherited included.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_owner(descriptor: int, pid: int) -> None:
    """Notes in the locked file which process is to be named as its owner."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{pid}\n".encode(), 0)


def read_owner(path: Path) -> int | None:
    """The process that was noted as the owner, or None when nothing legible is there."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
