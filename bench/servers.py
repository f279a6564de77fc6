"""A session server of the benchmark's own, and the turns that it is given."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from redis import Redis

from prefold.conversation import prepare_turn
from prefold.conversation.turns import PreparedTurn
from prefold.stack.leash import leashed
from prefold.stack.redis_server import RedisServer, bundled_redis_server, session_options, with_options
from prefold.tokens import load_counter

TEXT = (
    "I looked at the order again and the parcel left the warehouse in Leipzig on Tuesday, so it should be with you "
    "by Friday; if it is not, tell me and I will open a claim with the carrier the same day. "
) * 9
"""About 1.7 KB, as long as a talkative assistant's turn."""


@contextmanager
def session_server(durability: Literal["durable", "fast"]) -> Iterator[Redis]:
    """A client of a fresh server that runs as the embedded one does, but never rewrites its AOF in between."""
    directory = Path(tempfile.mkdtemp(prefix="pf-bench-", dir="/tmp"))
    options = with_options(session_options(durability), auto_aof_rewrite_percentage="0")
    server = RedisServer(bundled_redis_server(), directory / "redis.sock", directory, options)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(leashed(server.command()), stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 10
        while not server.answers():
            if time.monotonic() > deadline:
                raise TimeoutError("the benchmark's Redis server does not answer")
            time.sleep(0.01)
        with Redis(unix_socket_path=str(server.socket)) as client:
            yield client
    finally:
        process.terminate()
        process.wait(10)
        if process.stdin is not None:
            process.stdin.close()
        shutil.rmtree(directory, ignore_errors=True)


def server_cpu_seconds(client: Redis) -> float:
    """CPU time of the server's main thread so far."""
    used = client.info("cpu")
    return float(used["used_cpu_user_main_thread"]) + float(used["used_cpu_sys_main_thread"])


def make_turn(number: int, text: str = TEXT) -> PreparedTurn:
    """A plain turn with an id of its own."""
    raw = {"id": f"turn-{number}", "role": "assistant" if number % 2 else "user", "content": text}
    return prepare_turn(raw, 0, load_counter(), lambda: "")
