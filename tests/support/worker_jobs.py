"""Jobs for tests of the worker, and the worker as a process.

A job leaves its traces in the queue's Redis: ``runs`` lists the pid of each run that began, ``ends`` of each that
ended, and ``go`` is a list that ``hold`` waits for.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from rq import Retry

from prefold.errors import InvalidInputError, UnavailableError
from prefold.jobs import EMBED_QUEUE, hint_queue

_ROOT = Path(__file__).parents[2]

COMMAND = (sys.executable, "-m", "prefold.cli.main")


def hold(url: str, seconds: float) -> None:
    """Runs until something is put on ``go``."""
    with Redis.from_url(url, socket_timeout=seconds + 5) as client:
        client.rpush("runs", os.getpid())
        client.blpop(["go"], timeout=seconds)
        client.rpush("ends", os.getpid())


def hold_until_stop(url: str) -> None:
    """Runs until the worker is told to stop, as a job that looks at the event between its batches."""
    from prefold.worker.runtime import runtime

    with Redis.from_url(url) as client:
        client.rpush("runs", os.getpid())
        runtime().stop.wait(30)
        client.rpush("ends", os.getpid())


def hang_on_the_loop(url: str) -> None:
    """Runs on the runtime's loop and never looks at the stop."""
    import asyncio

    from prefold.worker.runtime import runtime

    with Redis.from_url(url) as client:
        client.rpush("runs", os.getpid())
        runtime().run(asyncio.sleep(60))


def note(url: str) -> None:
    with Redis.from_url(url) as client:
        client.rpush("runs", os.getpid())


def note_time(url: str) -> None:
    """Leaves the time of its start on ``starts``."""
    with Redis.from_url(url) as client:
        client.rpush("starts", time.time_ns())


def fail_transiently(url: str) -> None:
    note(url)
    raise UnavailableError("a part does not answer")


def refuse(url: str) -> None:
    note(url)
    raise InvalidInputError("never")


def fail(url: str) -> None:
    note(url)
    raise ValueError("a bug")


def enqueue(connection: Redis, job: Any, *args: object, attempts: int = 4, timeout: int = 120) -> str:
    """Puts one of the jobs above on the embed queue; returns its id."""
    queued = hint_queue(EMBED_QUEUE, connection).enqueue_call(
        f"{__name__}.{job.__name__}",
        args=args,
        timeout=timeout,
        result_ttl=0,
        failure_ttl=60,
        retry=Retry(max=attempts - 1) if attempts > 1 else None,
    )
    return str(queued.id)


def pids(connection: Redis, key: str) -> list[int]:
    return [int(item) for item in connection.lrange(key, 0, -1)]


def environment(queue_url: str, redis_url: str, **settings: str) -> dict[str, str]:
    """Of a role's process: our source roots, and an embedder that needs no model."""
    defaults = {
        "queue_url": queue_url,
        "redis_url": redis_url,
        "embedder": "http",
        "embedder_url": "http://127.0.0.1:9",
        "embedder_model": "none",
        "embedder_dimension": "4",
    }
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PREFOLD_")},
        "PYTHONPATH": os.pathsep.join(str(_ROOT / part) for part in (".", "services", "workers", "shared")),
        **{f"PREFOLD_{name.upper()}": value for name, value in {**defaults, **settings}.items()},
    }


@contextmanager
def worker_process(
    queue_url: str, *, redis_url: str | None = None, queue: str = "embed", **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """``prefold worker`` as a process."""
    with role_process("worker", queue, **environment(queue_url, redis_url or queue_url, **settings)) as process:
        yield process


@contextmanager
def role_process(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """``prefold COMMAND`` as a process; killed at the end if it still lives. Its log is in ``process.stderr``."""
    process = subprocess.Popen([*COMMAND, *command], env=environment, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
        assert process.stderr is not None
        process.stderr.close()
