"""A Redis of the tests' own: a real redis-server on a free loopback port, without persistence."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import redis


class RedisServer:
    """One address, at which a process can be started, killed and started again."""

    def __init__(self, program: str, folder: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers."""
        given = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": self._folder}
        arguments = [part for name, value in given.items() for part in (f"--{name}", str(value))]
        self._process = subprocess.Popen([self._program, *arguments], stdout=subprocess.DEVNULL)
        with redis.Redis(port=self.port) as client:
            for _ in range(200):
                with contextlib.suppress(redis.ConnectionError):
                    if client.ping():
                        return
                time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"{self._program} did not answer on port {self.port}")

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def stall(self) -> None:
        """Makes it answer nothing, its connections open."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)


@contextlib.contextmanager
def redis_server(folder: str) -> Iterator[RedisServer]:
    """A running one, ended at the end. Raises RuntimeError where the program isn't installed."""
    program = shutil.which("redis-server")
    if program is None:
        raise RuntimeError("the tests need redis-server on the PATH (Debian and Ubuntu: apt-get install redis-server)")
    server = RedisServer(program, folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
