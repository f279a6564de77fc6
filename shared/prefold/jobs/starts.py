"""How often work on one session was started and did not end well, kept on the queue's Redis.

A start leaves its name beside the work and takes it away when it ends. A name whose job is no longer running is that
of a process that died in the middle. While the work only waits for another part its name says so: who waits hardly
ever kills, and many may wait when a process is killed from outside. Losing the counts costs poison another three
starts, and nothing else.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from redis import Redis
from rq.executions import Execution

from prefold.jobs.failures import queue_failures
from prefold.jobs.names import WorkKind
from prefold.storage.keys import starts_key
from prefold.storage.types import SessionRef

KEPT = timedelta(days=1)
"""Starts are forgotten this long after the last one."""
_FAILED, _FIRST, _REASON = "failed", "first", "reason"
FORGIVEN_WAITS = 2
"""Deaths while the work waited that do not count: something else kills a process that often, but not again and again."""

# KEYS: the starts of one piece of work. ARGV: name of a start, its value. An erasure may have taken it away.
_MARK = "return redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 and redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])"


@dataclass(frozen=True, slots=True)
class Trail:
    """What earlier starts of one piece of work left behind."""

    died: int
    """Starts whose process is gone; without ``FORGIVEN_WAITS`` of those that waited at that time."""
    failed: int
    """Starts that ended with a permanent error."""
    first_ms: int
    """Wall clock of the first of them, 0 without one."""
    reason: str
    """Of the last failure."""

    @property
    def starts(self) -> int:
        """Those that count against the work."""
        return self.died + self.failed


class Starts:
    """Counts the starts of one kind of work. Calls block; each raises ``UnavailableError``.

    ``run`` names a start: job and execution, as RQ has them, or a process and its life, see ``GoingOn``. ``silent``: a
    job that has not been heard of for so long, of the time after which RQ gives it to another worker, counts as dead.
    """

    def __init__(self, connection: Redis, kind: WorkKind, *, silent: timedelta, execution: timedelta) -> None:
        self._connection = connection
        self._kind = kind
        self._least_left_ms = int((execution - silent).total_seconds() * 1000)
        self._began_ms = 0

    def trails(self, refs: Sequence[SessionRef], run: str) -> list[Trail]:
        """What is behind each session. An earlier run of the same job as ``run`` is over: a job runs once at a time."""
        with queue_failures():
            with self._connection.pipeline(transaction=False) as pipe:
                for ref in refs:
                    pipe.hgetall(self._key(ref))
                found: list[dict[bytes, bytes]] = pipe.execute()
            running = self._running({name for fields in found for name in _runs(fields)}, run)
        return [_trail(fields, running) for fields in found]

    def _running(self, names: set[str], run: str) -> set[str]:
        job = run.partition(":")[0]
        others = [name for name in names if name.partition(":")[0] != job]
        if not others:
            return {run}
        with self._connection.pipeline(transaction=False) as pipe:
            for name in others:
                pipe.pttl(alive_key(self._connection, name))
            return {
                run,
                *(name for name, left in zip(others, pipe.execute(), strict=True) if left > self._least_left_ms),
            }

    def begin(self, refs: Sequence[SessionRef], run: str) -> None:
        """Notes that work on each session starts now."""
        self._began_ms = time.time_ns() // 1_000_000
        with queue_failures(), self._connection.pipeline(transaction=False) as pipe:
            for ref in refs:
                pipe.hset(self._key(ref), run, self._began_ms)
                pipe.expire(self._key(ref), KEPT)
            pipe.execute()

    def waits(self, ref: SessionRef, run: str, *, is_waiting: bool) -> None:
        """The work waits for another part from now on, or goes on. Nothing where its start was taken back."""
        now_ms = time.time_ns() // 1_000_000
        with queue_failures():
            self._connection.eval(_MARK, 1, self._key(ref), run, -now_ms if is_waiting else now_ms)

    def succeeded(self, refs: Sequence[SessionRef]) -> None:
        """The work ended well: whatever happened before is forgotten."""
        if refs:
            with queue_failures():
                self._connection.unlink(*map(self._key, refs))

    def take_back(self, refs: Sequence[SessionRef], run: str) -> None:
        """The start does not count: it ended for a reason that is not the session's."""
        with queue_failures(), self._connection.pipeline(transaction=False) as pipe:
            for ref in refs:
                pipe.hdel(self._key(ref), run)
            pipe.execute()

    def failed(self, ref: SessionRef, run: str, reason: str) -> None:
        """The start ended with an error that the same work would meet again."""
        key = self._key(ref)
        with queue_failures(), self._connection.pipeline(transaction=True) as pipe:
            pipe.hdel(key, run)
            pipe.hincrby(key, _FAILED, 1)
            pipe.hset(key, _REASON, reason)
            pipe.hsetnx(key, _FIRST, self._began_ms)
            pipe.expire(key, KEPT)
            pipe.execute()

    def _key(self, ref: SessionRef) -> str:
        return starts_key(self._kind, ref.tenant, ref.session, ref.incarnation)


def forget_starts(connection: Redis, kind: WorkKind, ref: SessionRef) -> None:
    """The work begins anew with nothing behind it. Raises ``UnavailableError``."""
    with queue_failures():
        connection.unlink(starts_key(kind, ref.tenant, ref.session, ref.incarnation))


def alive_key(connection: Redis, run: str) -> str:
    """The key that lives while the start ``run`` does, as RQ names that of an execution."""
    return str(Execution.from_composite_key(run, connection).key)


def _runs(fields: dict[bytes, bytes]) -> Iterable[str]:
    return (name.decode() for name in fields if b":" in name)


def _trail(fields: dict[bytes, bytes], running: set[str]) -> Trail:
    dead_ms = [int(fields[name.encode()]) for name in _runs(fields) if name not in running]
    waited_ms = sorted(-ms for ms in dead_ms if ms < 0)
    died_ms = [ms for ms in dead_ms if ms > 0] + waited_ms[FORGIVEN_WAITS:]
    failed_ms = [int(fields[_FIRST.encode()])] if _FIRST.encode() in fields else []
    return Trail(
        died=len(died_ms),
        failed=int(fields.get(_FAILED.encode(), 0)),
        first_ms=min(died_ms + failed_ms, default=0),
        reason=fields.get(_REASON.encode(), b"").decode(),
    )
