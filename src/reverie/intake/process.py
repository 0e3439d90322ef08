"""The process in which one document is read: its bytes are standard input, its passages come out on standard output.

Both are files. What comes out are lines of JSON: first `{"failure", "title"}`, then `[text, words, forms]` for each
passage. It limits its own memory, time and output before it reads anything, and can do no more than that with them.
"""

import resource
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

import orjson

from reverie.domain.chunking import chunks
from reverie.domain.names import name_forms
from reverie.domain.text import index_text
from reverie.errors import Unreadable
from reverie.intake.parsers import parse

_OUTPUT_MOST = 500_000_000
"""Bytes that may come out."""
_MEGABYTE = 1_000_000


def main() -> None:
    """Reads the document that the one argument describes, as JSON."""
    asked = orjson.loads(sys.argv[1])
    _limit(asked["memory"], asked["seconds"])
    out = sys.stdout.buffer
    try:
        parsed = parse(sys.stdin.buffer.read(), asked["media_type"], asked["charset"])
        out.write(orjson.dumps({"failure": None, "title": parsed.title}, option=orjson.OPT_APPEND_NEWLINE))
        for text in chunks(parsed.text, asked["size"], asked["overlap"]):
            passage = [text, index_text(text, asked["prefix"]), list(name_forms(text))]
            out.write(orjson.dumps(passage, option=orjson.OPT_APPEND_NEWLINE))
    except Unreadable as error:
        _fail(out, str(error))
    except MemoryError:
        _fail(out, f"takes more than {asked['memory']} MB of memory to read")


def _fail(out: BinaryIO, reason: str) -> None:
    """Takes back what was written, and says why instead."""
    out.seek(0)
    out.truncate()
    out.write(orjson.dumps({"failure": reason, "title": None}))


def _limit(memory: int, seconds: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # outlives its parent by no more than its time
    signal.alarm(int(seconds) + 5)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_MOST, _OUTPUT_MOST))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS knows the limit, and doesn't take it
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory * _MEGABYTE, memory * _MEGABYTE))


if __name__ == "__main__":
    main()
