"""``python -m tests.support.halting_memory memory``: the real memory worker, killed once at a point of each session.

A session whose name is one of ``POINTS`` kills the process there, the first time. See ``odd_worker`` for its lives and
times; its embedder needs no model.
"""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from redis import Redis

from tests.support.odd_worker import OddEmbedder, has_lives

PROGRAM = (sys.executable, "-m", "tests.support.halting_memory")
POINTS = ("before-learning", "once-learnt", "once-a-digest-is-kept", "once-vectors-are-stored", "once-ended")
KILLED = "halting:killed"
"""A list on the queue's Redis: the points at which a process was killed."""


def _halt_at(point: str, session: str) -> None:
    if session != point:
        return
    with Redis.from_url(os.environ["PREFOLD_QUEUE_URL"]) as queue:
        if point.encode() not in queue.lrange(KILLED, 0, -1):
            queue.rpush(KILLED, point)
            os.kill(os.getpid(), signal.SIGKILL)


def _halting(call: Callable[..., Awaitable[Any]], session_of: Callable[..., str], before: str, after: str) -> Any:
    async def halts(*given: Any, **named: Any) -> Any:
        session = session_of(*given, **named)
        _halt_at(before, session)
        result = await call(*given, **named)
        _halt_at(after, session)
        return result

    return halts


def main() -> int:
    """The worker's own ``main``; what a pass works with halts."""
    import prefold.embedding
    from prefold.memory import remember_job
    from prefold.memory.remembering import Remembering
    from prefold.worker import hint_worker
    from prefold.worker.main import main as worker

    def made(parts: Any) -> Remembering:
        def of_ticket(ticket: Any, *_given: Any, **_named: Any) -> str:
            return str(ticket.ref.session)

        def of_stated(_tenant: str, _user: str, stated: Any, **_named: Any) -> str:
            return str(stated[0].source.session)

        parts.facts.learn = _halting(parts.facts.learn, of_stated, POINTS[0], POINTS[1])
        storage = parts.storage
        storage.keep_digest = _halting(storage.keep_digest, of_ticket, "", POINTS[2])
        storage.end_memory = _halting(storage.end_memory, of_ticket, POINTS[3], POINTS[4])
        return Remembering(replace(parts), lease=timedelta(seconds=float(os.environ["PREFOLD_ODD_LEASE"])))

    setattr(prefold.embedding, "embedder_from_settings", lambda _settings: OddEmbedder())  # noqa: B010
    setattr(remember_job, "Remembering", made)  # noqa: B010
    seconds = int(os.environ["PREFOLD_ODD_EXECUTION"])
    setattr(hint_worker, "EXECUTION_SECONDS", seconds)  # noqa: B010
    setattr(hint_worker, "HEARTBEAT_SECONDS", seconds / 4)  # noqa: B010
    return has_lives(partial(worker, sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
