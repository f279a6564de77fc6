"""Runs a job so that a session whose work kills or fails it is found, kept apart and set aside.

A job works on many sessions at once. Those with nothing behind them run together. A session with a start that did
not end well runs alone, so that the next crash tells whose fault it is. After three such starts its work is set aside
as a dead letter, and the job goes on without it. Parts that are away, a stop of the worker and wrong settings never
count.

A job may leave work behind that goes on without it, see ``GoingOn``: its starts are looked after there.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rq.timeouts import JobTimeoutException

from prefold.errors import ConfigurationError, TransientError
from prefold.jobs.dead_letters import MOST_STARTS
from prefold.jobs.names import JOB_KINDS, WorkKind
from prefold.jobs.starts import Starts
from prefold.storage.types import SessionRef
from prefold.worker.going_on import GoingOn
from prefold.worker.runtime import HandedBackError, Runtime
from prefold.worker.verdicts import Ended, Verdicts

Rows = list[list[str | int]]
_MOST_AWAY = 2
"""Transient failures after which the rest of a job waits: the part is away for them too."""
_ALONE_SECONDS = 5.0
"""After so long no further session begins alone: ``due`` brings the rest to workers that are free."""


class Isolation:
    """The way of every job of one worker. One job at a time; ``let_go`` may be called by another thread."""

    def __init__(
        self, shared: Callable[[], Runtime], starts_of: Callable[[WorkKind], Starts], going_on: GoingOn | None = None
    ) -> None:
        """``going_on``: for jobs whose work goes on when they have ended."""
        self._shared = shared
        self._starts_of = starts_of
        self._going_on = going_on
        self._run: _JobRun | None = None

    def run(self, job: str, arguments: Sequence[Any], call: Callable[..., object], run: str) -> None:
        """Calls the job, in parts if need be. Raises what RQ is to see: ``TransientError`` above all.

        ``run`` names this run of the job. A payload of no rows, or of another job, is the job's own affair.
        """
        kind, sessions = JOB_KINDS.get(job), _by_session(arguments)
        if kind is None or sessions is None:
            call(*arguments)
            return
        name = run
        if self._going_on is not None:
            sessions = {ref: rows for ref, rows in sessions.items() if ref not in self._going_on}
            name = self._going_on.name
        if not sessions:
            return
        shared = self._shared()
        verdicts = Verdicts(shared, self._starts_of(kind), kind, name)
        self._run = _JobRun(shared, verdicts, call, sessions, self._going_on)
        try:
            self._run.all()
        finally:
            self._run = None

    def let_go(self) -> None:
        """The worker has to stop: what is under way does not count, whatever becomes of it."""
        if self._run is not None:
            self._run.let_go()


class _JobRun:
    def __init__(
        self,
        shared: Runtime,
        verdicts: Verdicts,
        call: Callable[..., object],
        sessions: dict[SessionRef, Rows],
        going_on: GoingOn | None,
    ) -> None:
        self._shared = shared
        self._verdicts = verdicts
        self._call = call
        self._sessions = sessions
        self._going_on = going_on
        self._in_hand: list[SessionRef] = []
        self._lock = threading.Lock()

    def all(self) -> None:
        """Everything that the job names and that is not set aside."""
        together, alone = self._parts()
        parts = deque([together] if together else [])
        parts.extend([ref] for ref in alone)
        away: list[TransientError] = []
        until = time.monotonic() + _ALONE_SECONDS
        while parts and len(away) < _MOST_AWAY and not self._shared.stop.is_set():
            part = parts.popleft()
            try:
                parts.extend([ref] for ref in self._try(part, alone=part is not together))
            except TransientError as error:
                away.append(error)
            if time.monotonic() > until:
                break
        if self._shared.stop.is_set():
            raise HandedBackError("the worker stops")
        if away:
            raise away[0]

    def let_go(self) -> None:
        with self._lock:
            refs, self._in_hand = self._in_hand, []
        self._verdicts.take_back(refs)

    def _parts(self) -> tuple[list[SessionRef], list[SessionRef]]:
        """What runs together first, then each that runs alone: those with the least behind them first."""
        verdicts = self._verdicts
        released, living = verdicts.release_dead(list(self._sessions))
        trails = dict(zip(living, verdicts.starts.trails(living, verdicts.name), strict=True))
        for ref in [ref for ref in living if trails[ref].starts >= MOST_STARTS]:
            verdicts.set_aside(ref, trails.pop(ref))
        together = [ref for ref in trails if not trails[ref].starts and ref not in released]
        alone = sorted((ref for ref in trails if ref not in together), key=lambda ref: trails[ref].starts)
        return together, alone

    def _try(self, refs: list[SessionRef], *, alone: bool) -> list[SessionRef]:
        """Runs the sessions' work at once; returns those that have to be tried alone, to see whose fault it was."""
        rows = [row for ref in refs for row in self._sessions[ref]]
        self._begin(refs)
        try:
            ended = self._call(rows) if self._going_on is None else self._call(rows, alone=alone)
        except (TransientError, ConfigurationError):
            self._verdicts.take_back(refs)
            raise
        except JobTimeoutException:
            for ref in refs:
                self._verdicts.failed(ref, "timeout")
            raise
        except Exception as error:  # noqa: BLE001 (whatever a session's data does to a job must not reach the others)
            self._verdicts.fault(refs, error)
            return refs if len(refs) > 1 else []
        finally:
            self._in_hand = []
        self._end(refs, ended if isinstance(ended, Ended) else Ended())
        return []

    def _begin(self, refs: list[SessionRef]) -> None:
        self._verdicts.starts.begin(refs, self._verdicts.name)
        with self._lock:
            self._in_hand = refs

    def _end(self, refs: Sequence[SessionRef], ended: Ended) -> None:
        if ended.ongoing:
            assert self._going_on is not None, "the worker has nobody who follows work that goes on"
            self._going_on.follow(ended.ongoing, self._verdicts)
        self._verdicts.end(refs, ended)
        if ended.away is not None:
            raise ended.away


def _by_session(arguments: Sequence[Any]) -> dict[SessionRef, Rows] | None:
    """The rows of each session in order; None when the arguments are not one list of rows that begin with names."""
    if len(arguments) != 1 or not isinstance(arguments[0], list):
        return None
    sessions: dict[SessionRef, Rows] = {}
    for row in arguments[0]:
        if not isinstance(row, list) or len(row) < 3 or not all(isinstance(name, str) and name for name in row[:3]):
            return None
        sessions.setdefault(SessionRef(*row[:3]), []).append(row)
    return sessions
