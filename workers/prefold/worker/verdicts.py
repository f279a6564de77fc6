"""What became of work on single sessions, and what follows from it: forgotten, counted, set aside."""

import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import structlog

from prefold.errors import GoneError, NotFoundError, PrefoldError, TransientError, place_of
from prefold.jobs.dead_letters import MOST_STARTS, WORKER_DIED, DeadLetter, DeadLetters, running_version, state_of
from prefold.jobs.names import WorkKind
from prefold.jobs.starts import Starts, Trail
from prefold.storage.types import SessionRef, SessionView
from prefold.worker.runtime import Runtime

log = structlog.get_logger(__name__)


class Ongoing:
    """Work on one session that outlives the call that began it: told of by one thread, followed by another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._follower: Callable[[bool | Ended], None] | None = None
        self._told: list[bool | Ended] = []

    def tell(self, what: "bool | Ended") -> None:
        """True: it waits for another part from now on; False: it goes on; ``Ended``: the last word."""
        with self._lock:
            if self._follower is None:
                self._told.append(what)
                return
        self._follower(what)

    def follow(self, follower: "Callable[[bool | Ended], None]") -> None:
        """``follower`` hears all that was told, in order, and all that will be."""
        with self._lock:
            for what in self._told:
                follower(what)
            self._told.clear()
            self._follower = follower


@dataclass(frozen=True, slots=True)
class Ended:
    """What a job may return to say that not all of its sessions ended well."""

    failed: Mapping[SessionRef, str] = field(default_factory=lambda: MappingProxyType({}))
    """With the reason why the same work would fail again."""
    undecided: frozenset[SessionRef] = frozenset()
    """Nothing was tried, or nothing came of it, and that says nothing about the session."""
    handed_back: bool = False
    """The worker stops: what is undecided should begin elsewhere at once."""
    ongoing: Mapping[SessionRef, Ongoing] = field(default_factory=lambda: MappingProxyType({}))
    """Under way, and not ended at all."""
    away: TransientError | None = None
    """A part did not answer for some of them: the job is to be tried again."""


class Verdicts:
    """Keeps the books of one run: ``name`` names its starts. Calls block; each may raise ``TransientError``."""

    def __init__(self, shared: Runtime, starts: Starts, kind: WorkKind, name: str) -> None:
        self._shared = shared
        self.letters = DeadLetters(shared.sessions.client)
        self.starts = starts
        self.kind: WorkKind = kind
        self.name = name

    def end(self, refs: Sequence[SessionRef], ended: Ended) -> None:
        """Each of ``refs`` has ended, as ``ended`` says, or is going on."""
        refs = [ref for ref in refs if ref not in ended.ongoing]
        for ref in refs:
            if ref in ended.failed:
                self.failed(ref, ended.failed[ref])
        rest = [ref for ref in refs if ref not in ended.failed]
        # A stop may have cut any of them short.
        undecided = rest if self._shared.stop.is_set() else [ref for ref in rest if ref in ended.undecided]
        self.take_back(undecided)
        self.starts.succeeded([ref for ref in rest if ref not in undecided])

    def take_back(self, refs: Sequence[SessionRef]) -> None:
        """Their starts do not count."""
        if refs:
            self.starts.take_back(refs, self.name)

    def failed(self, ref: SessionRef, reason: str) -> None:
        """Counts a failure, and sets the work aside when it was one too many."""
        self.starts.failed(ref, self.name, reason)
        (trail,) = self.starts.trails([ref], self.name)
        if trail.starts >= MOST_STARTS:
            self.set_aside(ref, trail)

    def fault(self, refs: Sequence[SessionRef], error: Exception) -> None:
        """Something raised an error that is nobody's in particular: it counts for each."""
        # Not the error itself: its message may quote the conversation.
        trace = "".join(traceback.format_tb(error.__traceback__))
        log.error("work_failed", kind=self.kind, sessions=len(refs), error=reason_of(error), trace=trace)
        for ref in refs:
            self.failed(ref, reason_of(error))

    def set_aside(self, ref: SessionRef, trail: Trail) -> None:
        """Makes a dead letter of the work, unless that life of the session is over."""
        view = self.view(ref)
        letter = DeadLetter(
            at_ms=self._shared.now_ms(),
            kind=self.kind,
            tenant=ref.tenant,
            session=ref.session,
            incarnation=ref.incarnation,
            reason=WORKER_DIED if trail.died else trail.reason,
            starts=trail.starts,
            first_ms=trail.first_ms,
            from_seq=_done_to(self.kind, view) + 1 if view else 0,
            to_seq=view.head_seq if view else 0,
            version=running_version(),
            state=state_of(view) if view else "",
        )
        if self._shared.run(self.letters.set_aside(letter)):
            log.error("work_set_aside", **names_of(ref), kind=self.kind, reason=letter.reason, starts=letter.starts)
        self.starts.succeeded([ref])

    def release_dead(self, refs: Sequence[SessionRef]) -> tuple[set[SessionRef], list[SessionRef]]:
        """Those that get another try although they were set aside, and all that may run."""
        released, living = set(), []
        for ref, letter in zip(refs, self._shared.run(self.letters.find(self.kind, refs)), strict=True):
            if letter is None:
                living.append(ref)
            elif letter.has_moved_on(self.view(ref), running_version(), self._shared.now_ms()):
                self._shared.run(self.letters.release(letter))
                self.starts.succeeded([ref])
                log.info("dead_letter_released", **names_of(ref), kind=self.kind)
                released.add(ref)
                living.append(ref)
            else:
                self._shared.run(self.letters.take_out_again(letter))
        return released, living

    def view(self, ref: SessionRef) -> SessionView | None:
        """None: that life of the session is over."""
        try:
            view = self._shared.run(self._shared.sessions.view(ref.tenant, ref.session))
        except (NotFoundError, GoneError):
            return None
        return view if view.ref == ref else None


def reason_of(error: BaseException) -> str:
    """An error without its message, which may quote a conversation: its code, or its type and the place of it."""
    return error.code if isinstance(error, PrefoldError) else place_of(error)


def names_of(ref: SessionRef) -> dict[str, str]:
    """For a log event."""
    return {"tenant": ref.tenant, "session": ref.session}


def _done_to(kind: WorkKind, view: SessionView) -> int:
    done_to = {"embed": view.embedded_to, "compact": view.covers_to, "remember": view.remembered_to}
    return done_to.get(kind, 0)
