"""One worker's isolation on real servers, with a job that a test writes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis

from prefold.jobs import COMPACT_JOB, EMBED_JOB, REMEMBER_JOB, DeadLetter, DeadLetters, encode_sessions
from prefold.jobs.names import EXPIRE_JOB, WorkKind
from prefold.jobs.starts import Starts
from prefold.storage.types import DueItem, SessionOptions, SessionRef
from prefold.worker.isolation import Isolation
from prefold.worker.runtime import Runtime
from tests.support.storage import TENANT, turn

Rows = list[list[str | int]]


class KilledError(BaseException):
    """Ends a run as a kill does: nobody hears of it."""


class Bench:
    """One worker's isolation, its sessions, and a job that a test writes."""

    def __init__(self, shared: Runtime, queue: Redis) -> None:
        self.shared = shared
        self.queue = queue
        self.letters = DeadLetters(shared.sessions.client)
        self.calls: list[list[str]] = []
        self.does: Callable[[list[str]], object] = lambda _sessions: None
        self.isolation = Isolation(lambda: shared, self._starts_of)
        self._jobs = 0

    def session(self, name: str, **options: Any) -> SessionRef:
        sessions = self.shared.sessions
        if options:
            self.shared.run(sessions.open(TENANT, name, SessionOptions(**options)))
        return self.shared.run(sessions.append(TENANT, name, [turn("user", "hello")])).ref

    def run(self, *refs: SessionRef, kind: str = "embed", job: str | None = None) -> list[list[str]]:
        """One run of a job over the sessions; what it was called for, call by call."""
        self._jobs += 1
        name = {"embed": EMBED_JOB, "compact": COMPACT_JOB, "remember": REMEMBER_JOB, "expire": EXPIRE_JOB}[kind]
        rows = encode_sessions(refs)
        self.calls = []
        self.isolation.run(name, [rows], self._called, run=f"{job or f'job{self._jobs}'}:run{self._jobs}")
        return self.calls

    def kill_with(self, *poison: str) -> None:
        def does(sessions: list[str]) -> None:
            if set(poison) & set(sessions):
                raise KilledError

        self.does = does

    def killed_run(self, *refs: SessionRef, **how: Any) -> list[list[str]]:
        with pytest.raises(KilledError):
            self.run(*refs, **how)
        return self.calls

    def set_aside(self) -> list[DeadLetter]:
        return self.shared.run(self.letters.letters())

    def due(self, kind: str) -> list[str]:
        items: list[DueItem] = self.shared.run(self.shared.sessions.due_sets.due(2**52, 100))
        return sorted(item.ref.session for item in items if item.kind == kind)

    def let_go_while(self, *refs: SessionRef) -> None:
        """The worker is told to stop in the middle of a run that never ends."""

        def does(_sessions: list[str]) -> None:
            self.isolation.let_go()
            raise KilledError

        self.does = does
        self.killed_run(*refs)

    def _called(self, rows: Rows) -> object:
        sessions = [str(row[1]) for row in rows]
        self.calls.append(sessions)
        return self.does(sessions)

    def _starts_of(self, kind: WorkKind) -> Starts:
        return Starts(self.queue, kind, silent=timedelta(seconds=3.6), execution=timedelta(seconds=6))
