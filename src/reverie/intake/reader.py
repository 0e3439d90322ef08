"""Has documents read in a process of their own, one each, within limits of time and memory."""

import asyncio
import contextlib
import logging
import os
import sys
from tempfile import TemporaryFile
from typing import IO, BinaryIO

import orjson

from reverie.domain.documents import DocumentPolicy, MediaType, Passage, Reading
from reverie.errors import Unreadable

log = logging.getLogger("reverie.intake")

_PROCESS = "reverie.intake.process"
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")
"""All that the process gets of ours: what it reads may be hostile, and our variables hold passwords."""
_LAST_WORDS = 2_000


async def read_document(file: BinaryIO, media_type: MediaType, policy: DocumentPolicy, prefix: str) -> Reading:
    """What a document holds; its words are written as `prefix` has it (see `domain.text.index_text`).

    `file` is a real file, read from its beginning. Raises Unreadable for what lies in the document, and RuntimeError
    where the process itself doesn't work.
    """
    asked = {
        "media_type": media_type.name,
        "charset": media_type.charset,
        "size": policy.chunk_size,
        "overlap": policy.chunk_overlap,
        "prefix": prefix,
        "memory": policy.parse_memory,
        "seconds": policy.parse_seconds,
    }
    file.seek(0)
    with TemporaryFile() as out, TemporaryFile() as words:
        code = await _run(orjson.dumps(asked).decode(), file, out, words, policy.parse_seconds)
        if code != 0:
            words.seek(max(0, words.seek(0, os.SEEK_END) - _LAST_WORDS))
            last = words.read().decode(errors="replace").strip()
            log.warning("the process that reads a document ended with the code %d: %s", code, last[-500:])
            if code < 0:
                raise Unreadable("can't be read: it ended the process that tried, by its memory or by a fault")
            raise RuntimeError("the process that reads documents doesn't work")
        out.seek(0)
        return await asyncio.to_thread(_reading, out)


async def _run(asked: str, file: BinaryIO, out: IO[bytes], words: IO[bytes], seconds: float) -> int:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        # a file of the current folder must not pose as one of ours
        "-P",
        "-m",
        _PROCESS,
        asked,
        stdin=file,
        stdout=out,
        stderr=words,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        raise Unreadable(f"takes more than {seconds:g} s to read") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _reading(out: IO[bytes]) -> Reading:
    head = orjson.loads(out.readline())
    if head["failure"] is not None:
        raise Unreadable(head["failure"])
    return Reading([Passage(*orjson.loads(line)) for line in out], head["title"])
