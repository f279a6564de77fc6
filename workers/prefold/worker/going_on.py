"""What a process works on beyond the jobs that began it.

The starts of such work bear the name of this process, which says all the time that it lives. They are noted as the
work of each session waits, goes on and ends, by a thread of their own: no work waits for the queue's Redis.
"""

import math
import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import structlog
from redis import Redis
from redis.exceptions import RedisError

from prefold.errors import TransientError
from prefold.jobs import JobQueue
from prefold.jobs.names import SESSIONS_PER_JOB, WorkKind
from prefold.jobs.starts import alive_key
from prefold.storage.types import SessionRef
from prefold.worker.verdicts import Ended, Ongoing, Verdicts

log = structlog.get_logger(__name__)

STOP_LOOK_SECONDS = 0.25
"""How soon a stop is seen."""
MOST_AT_WORK = 8
"""Pieces of work that do not wait, from which on no job is taken: another process may have a core to spare. It bounds as
well what is read at once, so that what is resident says soon enough how much it is."""
_STATM = Path("/proc/self/statm")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass(frozen=True, slots=True)
class Room:
    """When a process takes no further job. A job may bring several sessions, so that each is passed by a few."""

    at_once: int
    """Pieces of work under way."""
    resident_mb: float
    """Memory of the process, while anything is under way."""


class GoingOn:
    """One for a process that serves jobs of this kind, entered around all of them; its threads end with it."""

    def __init__(
        self, connection: Redis, stop: threading.Event, *, beat: timedelta, silence: timedelta, room: Room
    ) -> None:
        """Says every ``beat`` that the process lives; after ``silence`` others count it as dead."""
        self.name = f"{uuid4().hex}:life"
        self.connection = connection
        self._stop = stop
        self._beat_seconds, self._silence = beat.total_seconds(), silence
        self._room = room
        self._going_on: dict[SessionRef, Verdicts] = {}
        self._waiting: set[SessionRef] = set()
        self._handed_back: dict[WorkKind, list[SessionRef]] = {}
        self._lock = threading.Lock()
        self._has_let_go = self._is_away = False
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._live, name="life", daemon=True)
        self._notes = ThreadPoolExecutor(1, thread_name_prefix="notes")

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _t: TracebackType | None
    ) -> None:
        """Notes what is still to be noted, and asks for what was handed back."""
        self._over.set()
        self._notes.shutdown()
        self._beating.join()
        try:
            self._ask_again()
            self.connection.unlink(alive_key(self.connection, self.name))
        except (RedisError, TransientError) as error:
            sessions = sum(map(len, self._handed_back.values()))
            log.warning("going_on_not_handed_back", sessions=sessions, error=str(error))

    def __contains__(self, ref: SessionRef) -> bool:
        """Whether the session's work goes on here."""
        return ref in self._going_on

    def __len__(self) -> int:
        return len(self._going_on)

    @property
    def has_room(self) -> bool:
        """Whether to take another job."""
        under_way, room = len(self._going_on), self._room
        if under_way >= room.at_once or under_way - len(self._waiting) >= MOST_AT_WORK:
            return False
        return not under_way or _resident_mb() < room.resident_mb

    def follow(self, ongoing: Mapping[SessionRef, Ongoing], verdicts: Verdicts) -> None:
        """Looks after the starts of ``ongoing``, which were noted, from now to their ends."""
        with self._lock:
            self._going_on.update(dict.fromkeys(ongoing, verdicts))
        for ref, one in ongoing.items():
            one.follow(lambda what, ref=ref: self._submit(ref, what))  # type: ignore[misc]
        if self._has_let_go:
            verdicts.take_back(list(ongoing))

    def _submit(self, ref: SessionRef, what: bool | Ended) -> None:
        (self._waiting.add if what is True else self._waiting.discard)(ref)
        try:
            self._notes.submit(self._note, ref, what)
        except RuntimeError:  # we have ended: the lease and `due` bring the rest
            log.debug("end_not_noted", session=ref.session)

    def _note(self, ref: SessionRef, what: bool | Ended) -> None:
        verdicts = self._going_on[ref]
        try:
            # On the way out a queue that does not answer is asked once, not for each session.
            if not (self._is_away and self._over.is_set()):
                self._write(ref, what, verdicts)
                self._is_away = False
        except TransientError as error:
            self._is_away = True
            log.warning("start_not_noted", error=str(error))
        except Exception:
            log.exception("start_not_noted")  # the next ones are to be noted all the same
        finally:
            if isinstance(what, Ended):
                self._forget(ref, what)

    def _write(self, ref: SessionRef, what: bool | Ended, verdicts: Verdicts) -> None:
        if isinstance(what, Ended):
            verdicts.end([ref], what)
        else:
            verdicts.starts.waits(ref, verdicts.name, is_waiting=what)

    def _forget(self, ref: SessionRef, ended: Ended) -> None:
        """Only now may the same work begin anew: what was noted of its end would hit the new start."""
        with self._lock:
            verdicts = self._going_on.pop(ref)
            if ended.handed_back:
                self._handed_back.setdefault(verdicts.kind, []).append(ref)

    def _live(self) -> None:
        beat_at, look_seconds = -math.inf, min(STOP_LOOK_SECONDS, self._beat_seconds)
        while not self._over.is_set():
            try:
                if time.monotonic() - beat_at >= self._beat_seconds:
                    beat_at = time.monotonic()
                    self._say_alive()
                if self._stop.is_set() and not self._has_let_go:
                    self._let_go()
            except (RedisError, TransientError) as error:
                log.warning("heartbeat_failed", error=str(error))
            self._over.wait(look_seconds)

    def _say_alive(self) -> None:
        self.connection.set(alive_key(self.connection, self.name), 1, px=self._silence)

    def _let_go(self) -> None:
        """The process has to stop: what is under way does not count, whatever becomes of it."""
        with self._lock:
            following = list(self._going_on.items())
        for ref, verdicts in following:
            verdicts.take_back([ref])
        self._has_let_go = True

    def _ask_again(self) -> None:
        """At once, though `due` would bring it back within seconds."""
        jobs = JobQueue(self.connection)
        for kind, refs in self._handed_back.items():
            while refs:
                jobs.again(kind, refs[:SESSIONS_PER_JOB], occasion=self.name)
                del refs[:SESSIONS_PER_JOB]


def _resident_mb() -> float:
    """0 where the system does not say."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * _PAGE_MB
    except OSError:
        return 0
