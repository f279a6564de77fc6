"""Runs a job so that a session whose work kills or fails it is found, kept apart and set aside.

A job works on many sessions at once. Those with nothing behind them run together. A session with a start that did
not end well runs alone, so that the next crash tells whose fault it is. After three such starts its work is set aside
as a dead letter, and the job goes on without it. Parts that are away, a stop of the worker and wrong settings never
count.
"""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from rq.timeouts import JobTimeoutException

from prefold.errors import ConfigurationError, GoneError, NotFoundError, PrefoldError, TransientError
from prefold.jobs.dead_letters import MOST_STARTS, WORKER_DIED, DeadLetter, DeadLetters, running_version, state_of
from prefold.jobs.names import JOB_KINDS, WorkKind
from prefold.jobs.starts import Starts, Trail
from prefold.storage.types import SessionRef, SessionView
from prefold.worker.runtime import HandedBackError, Runtime

log = structlog.get_logger(__name__)

Rows = list[list[str | int]]
_MOST_AWAY = 2
"""Transient failures after which the rest of a job waits: the part is away for them too."""
_ALONE_SECONDS = 5.0
"""After so long no further session begins alone: ``due`` brings the rest to workers that are free."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a job may return to say that not all of its sessions ended well."""

    failed: dict[SessionRef, str] = field(default_factory=dict)
    """With the reason why the same work would fail again."""
    undecided: frozenset[SessionRef] = frozenset()
    """Nothing was tried, or nothing came of it, and that says nothing about the session."""


class Isolation:
    """The way of every job of one worker. One job at a time; ``let_go`` may be called by another thread."""

    def __init__(self, shared: Callable[[], Runtime], starts_of: Callable[[WorkKind], Starts]) -> None:
        self._shared = shared
        self._starts_of = starts_of
        self._run: _JobRun | None = None

    def run(self, job: str, arguments: Sequence[Any], call: Callable[..., object], run: str) -> None:
        """Calls the job, in parts if need be. Raises what RQ is to see: ``TransientError`` above all.

        ``run`` names this run of the job. A payload of no rows, or of another job, is the job's own affair.
        """
        kind, sessions = JOB_KINDS.get(job), _by_session(arguments)
        if kind is None or sessions is None:
            call(*arguments)
            return
        self._run = _JobRun(self._shared(), self._starts_of(kind), kind, call, run, sessions)
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
        starts: Starts,
        kind: WorkKind,
        call: Callable[[Rows], object],
        run: str,
        sessions: dict[SessionRef, Rows],
    ) -> None:
        self._shared = shared
        self._letters = DeadLetters(shared.sessions.client)
        self._starts = starts
        self._kind: WorkKind = kind
        self._call = call
        self._name = run
        self._sessions = sessions
        self._in_hand: list[SessionRef] = []
        self._lock = threading.Lock()

    def all(self) -> None:
        """Everything that the job names and that is not set aside."""
        parts = deque(self._parts())
        away: list[TransientError] = []
        until = time.monotonic() + _ALONE_SECONDS
        while parts and len(away) < _MOST_AWAY and not self._shared.stop.is_set():
            try:
                parts.extend([ref] for ref in self._try(parts.popleft()))
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
        if refs:
            self._starts.take_back(refs, self._name)

    def _parts(self) -> list[list[SessionRef]]:
        """What runs together first, then each that runs alone: those with the least behind them first."""
        released, living = self._without_dead()
        trails = dict(zip(living, self._starts.trails(living, self._name), strict=True))
        for ref in [ref for ref in living if trails[ref].starts >= MOST_STARTS]:
            self._set_aside(ref, trails.pop(ref))
        together = [ref for ref in trails if not trails[ref].starts and ref not in released]
        alone = sorted((ref for ref in trails if ref not in together), key=lambda ref: trails[ref].starts)
        return [*([together] if together else []), *([ref] for ref in alone)]

    def _without_dead(self) -> tuple[set[SessionRef], list[SessionRef]]:
        """Sessions that get another try although they were set aside, and all that may run."""
        refs = list(self._sessions)
        released, living = set(), []
        for ref, letter in zip(refs, self._shared.run(self._letters.find(self._kind, refs)), strict=True):
            if letter is None:
                living.append(ref)
            elif letter.has_moved_on(self._view(ref), running_version(), self._shared.now_ms()):
                self._shared.run(self._letters.release(letter))
                self._starts.succeeded([ref])
                log.info("dead_letter_released", **_names(ref), kind=self._kind)
                released.add(ref)
                living.append(ref)
            else:
                self._shared.run(self._letters.take_out_again(letter))
        return released, living

    def _try(self, refs: list[SessionRef]) -> list[SessionRef]:
        """Runs the sessions' work at once; returns those that have to be tried alone, to see whose fault it was."""
        rows = [row for ref in refs for row in self._sessions[ref]]
        self._begin(refs)
        try:
            ended = self._call(rows)
        except (TransientError, ConfigurationError):
            self._starts.take_back(refs, self._name)
            raise
        except JobTimeoutException:
            for ref in refs:
                self._note_failure(ref, "timeout")
            raise
        except Exception as error:  # noqa: BLE001 (whatever a session's data does to a job must not reach the others)
            return self._failed(refs, error)
        finally:
            self._in_hand = []
        self._end(refs, ended if isinstance(ended, Ended) else Ended())
        return []

    def _begin(self, refs: list[SessionRef]) -> None:
        self._starts.begin(refs, self._name)
        with self._lock:
            self._in_hand = refs

    def _end(self, refs: Sequence[SessionRef], ended: Ended) -> None:
        for ref, reason in ended.failed.items():
            self._note_failure(ref, reason)
        rest = [ref for ref in refs if ref not in ended.failed]
        # A stop may have cut any of them short.
        undecided = rest if self._shared.stop.is_set() else [ref for ref in rest if ref in ended.undecided]
        if undecided:
            self._starts.take_back(undecided, self._name)
        self._starts.succeeded([ref for ref in rest if ref not in undecided])

    def _failed(self, refs: list[SessionRef], error: Exception) -> list[SessionRef]:
        # Not the error itself: its message may quote the conversation.
        trace = "".join(traceback.format_tb(error.__traceback__))
        log.error("work_failed", kind=self._kind, sessions=len(refs), error=reason_of(error), trace=trace)
        for ref in refs:
            self._note_failure(ref, reason_of(error))
        return refs if len(refs) > 1 else []

    def _note_failure(self, ref: SessionRef, reason: str) -> None:
        self._starts.failed(ref, self._name, reason)
        (trail,) = self._starts.trails([ref], self._name)
        if trail.starts >= MOST_STARTS:
            self._set_aside(ref, trail)

    def _set_aside(self, ref: SessionRef, trail: Trail) -> None:
        view = self._view(ref)
        letter = DeadLetter(
            at_ms=self._shared.now_ms(),
            kind=self._kind,
            tenant=ref.tenant,
            session=ref.session,
            incarnation=ref.incarnation,
            reason=WORKER_DIED if trail.died else trail.reason,
            starts=trail.starts,
            first_ms=trail.first_ms,
            from_seq=_done_to(self._kind, view) + 1 if view else 0,
            to_seq=view.head_seq if view else 0,
            version=running_version(),
            state=state_of(view) if view else "",
        )
        if self._shared.run(self._letters.set_aside(letter)):
            log.error("work_set_aside", **_names(ref), kind=self._kind, reason=letter.reason, starts=letter.starts)
        self._starts.succeeded([ref])

    def _view(self, ref: SessionRef) -> SessionView | None:
        try:
            view = self._shared.run(self._shared.sessions.view(ref.tenant, ref.session))
        except (NotFoundError, GoneError):
            return None
        return view if view.ref == ref else None


def reason_of(error: BaseException) -> str:
    """An error without its message, which may quote a conversation: its code, or its type and the place of it."""
    if isinstance(error, PrefoldError):
        return error.code
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" in {trace.tb_frame.f_code.co_qualname}, line {trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__qualname__}{place}"


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


def _done_to(kind: WorkKind, view: SessionView) -> int:
    return view.embedded_to if kind == "embed" else view.covers_to if kind == "compact" else 0


def _names(ref: SessionRef) -> dict[str, str]:
    return {"tenant": ref.tenant, "session": ref.session}
