"""``python -m tests.support.odd_worker embed|compact``: the real worker, whose engines do what the words ask for.

A turn with the word ``poison`` kills the process that reads it, as a fault in native code does. One with ``hold`` makes
the engine wait until a test lets it go on. ``PREFOLD_ODD_EXECUTION`` and ``PREFOLD_ODD_LEASE`` (seconds) make waits
short. ``PREFOLD_ODD_LIVES``: the worker is a child, started again when it is killed, so many times in all.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from prefold.compaction.engine import Summarizer, Summary, SummaryInput
from prefold.embedding import CosineScale, Matrix, Vector
from prefold.worker.waiting import waiting

PROGRAM = (sys.executable, "-m", "tests.support.odd_worker")
HELD, GO = "odd:held", "odd:go"
"""Lists on the queue's Redis: pids of those that hold; each item of the second lets one go on."""


def _obey(text: str) -> None:
    """Blocks its thread, as native code does."""
    if "poison" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if "hold" in text:
        with Redis.from_url(os.environ["PREFOLD_QUEUE_URL"], socket_timeout=90) as queue:
            queue.rpush(HELD, os.getpid())
            queue.blpop([GO], timeout=60)


async def _obey_async(text: str) -> None:
    """The same for an engine that waits as those behind HTTP do: it can be cancelled, and says that it waits."""
    if "hold" in text:
        async with waiting(), AsyncRedis.from_url(os.environ["PREFOLD_QUEUE_URL"], socket_timeout=90) as queue:
            calls: list[Any] = [queue.rpush(HELD, os.getpid()), queue.blpop([GO], timeout=60)]
            for one in calls:
                await one
    else:
        _obey(text)


class OddEmbedder:
    """The same vector for every text."""

    id = "odd"
    dimension = 4
    max_batch = 16
    scale = CosineScale()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        for text in texts:
            _obey(text)
        return np.full((len(texts), 4), 0.5, dtype=np.float32)

    def embed_query(self, text: str) -> Vector:
        return np.full(4, 0.5, dtype=np.float32)

    def close(self) -> None: ...


class OddSummarizer:
    """The real engine, after it obeyed the newest turn that it covers."""

    def __init__(self, real: Summarizer) -> None:
        self._real = real
        self.name, self.prompt_version = real.name, real.prompt_version

    async def summarize(self, wanted: SummaryInput) -> Summary:
        said = b" ".join(turn.verbatim_json for turn in wanted.turns).decode()
        await _obey_async(said)
        return await self._real.summarize(wanted)


def main() -> int:
    """The worker's own ``main``, with engines and times replaced."""
    import prefold.embedding
    from prefold.compaction import build_job
    from prefold.compaction.build import LEASE, SessionBuilder
    from prefold.compaction.engines import Engines, create_engines
    from prefold.worker import hint_worker, main

    setattr(prefold.embedding, "embedder_from_settings", lambda _settings: OddEmbedder())  # noqa: B010
    setattr(build_job, "create_engines", lambda *given: Engines(OddSummarizer(create_engines(*given).primary)))  # noqa: B010
    given_lease = os.environ.get("PREFOLD_ODD_LEASE")
    lease = timedelta(seconds=float(given_lease)) if given_lease else LEASE
    setattr(build_job, "SessionBuilder", partial(SessionBuilder, lease=lease))  # noqa: B010
    if "PREFOLD_ODD_EXECUTION" in os.environ:
        seconds = int(os.environ["PREFOLD_ODD_EXECUTION"])
        setattr(hint_worker, "EXECUTION_SECONDS", seconds)  # noqa: B010
        setattr(hint_worker, "HEARTBEAT_SECONDS", seconds / 4)  # noqa: B010
    return has_lives(lambda: main.main(sys.argv[1:]))


def has_lives(run: Callable[[], int]) -> int:
    """As a supervisor does it, without the time that a start takes."""
    for _ in range(int(os.environ.get("PREFOLD_ODD_LIVES", "1")) - 1):
        child = os.fork()
        if not child:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: none outlives its parent
            break
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return os.WEXITSTATUS(status)
    return run()


if __name__ == "__main__":
    sys.exit(main())
