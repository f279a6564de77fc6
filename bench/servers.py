"""A session server of the benchmark's own, and the turns that it is given."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

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


class HttpProcess(NamedTuple):
    """A server of HTTP that runs."""

    url: str
    pid: int


@contextmanager
def gateway_process(redis_url: str, durability: Literal["durable", "fast"]) -> Iterator[HttpProcess]:
    """``prefold gateway`` by itself: nothing reads its events."""
    command = [sys.executable, "-m", "prefold.cli.main", "gateway", "--port", "0", "--log-format", "json"]
    with http_process(command, {"PREFOLD_REDIS_URL": redis_url, "PREFOLD_DURABILITY": durability}) as running:
        yield running


@contextmanager
def http_process(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[HttpProcess]:
    """A process that tells its URL as a member of a line of JSON on its standard error."""
    directory = Path(tempfile.mkdtemp(prefix="pf-bench-", dir="/tmp"))
    said = directory / "log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            leashed(command), stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **environment}
        )
    try:
        yield HttpProcess(_url_said(said, process), process.pid)
    finally:
        process.terminate()
        process.wait(10)
        if process.stdin is not None:
            process.stdin.close()
        shutil.rmtree(directory, ignore_errors=True)


def _url_said(said: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        for line in said.read_bytes().splitlines():
            if b'"url"' in line and line.endswith(b"}"):
                return str(json.loads(line)["url"])
        time.sleep(0.02)
    raise TimeoutError(f"the benchmark's server does not answer: {said.read_text()[-2000:]}")


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
