"""Starts processes in order, starts again those that die, and stops all of them in time."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from prefold.errors import UnavailableError
from prefold.stack.leash import leashed

LOG_LIMIT_BYTES = 8 * 1024 * 1024
"""A log that is longer moves to ``NAME.log.1``, whose former content is lost."""

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
_STABLE_AFTER_SECONDS = 10.0
"""A program that cannot work ends sooner; one that ran so long died of something else."""
_LOOK_EVERY_SECONDS = 0.2
_READY_LOOK_EVERY_SECONDS = 0.02


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the stack."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)  # it has keys in it
    is_ready: Callable[[], bool] = _always
    """Asked again and again after the start; must answer within a second or so."""
    ready_within: timedelta = timedelta(seconds=60)
    stop_within: timedelta = timedelta(seconds=2.7)
    death_signal: signal.Signals = signal.SIGKILL
    """What the kernel sends when the supervisor is gone."""
    inherits: tuple[int, ...] = ()
    """File descriptors that the process keeps open."""
    nice: int = 0
    """By how much it yields the CPU, from the start on."""
    starts: Literal["early", "with its stage", "last"] = "with its stage"
    """Early: as soon as the stage before it starts, which it can do without for a while. Last: when the others of its
    stage are ready, so that it takes no CPU from them."""


@dataclass(slots=True)
class _Child:
    part: Part
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    log_start: int = 0
    """Where in the log the lines of the newest start begin, in bytes."""
    restart_at: float = 0.0
    pause_seconds: float = field(default_factory=lambda: _FIRST_PAUSE_SECONDS)


class Supervisor:
    """Runs the parts of ``stages``: a stage starts when the one before it is ready, and stops after the next one.

    See ``Part.starts`` for those that start sooner or later than the others of their stage.

    All work is done in one thread of its own, which lives from ``start`` to ``stop``: a child's leash follows
    the thread that started it.
    """

    def __init__(self, stages: Sequence[Sequence[Part]], logs: Path, report: Callable[[str], None]) -> None:
        self._stages = [
            [_Child(part, logs / f"{part.name.replace(' ', '-')}.log") for part in stage] for stage in stages
        ]
        self._report = report
        self._stop = threading.Event()
        self._settled = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="prefold-supervisor", daemon=True)

    def start(self, interrupted: threading.Event | None = None) -> bool:
        """Return when everything is ready; False when ``interrupted`` was set first.

        Raises UnavailableError with the last lines of its log when a part ends or stays unready; everything is
        stopped then.
        """
        self._thread.start()
        while not self._settled.wait(_LOOK_EVERY_SECONDS):
            if interrupted is not None and interrupted.is_set():
                self.stop()
                return False
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return not self._stop.is_set()

    def stop(self) -> None:
        """End every process, last stage first: SIGTERM, then SIGKILL. Twice, or before the start, is legal."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def pids(self) -> dict[str, int]:
        """Process ids of the parts that run now, by name."""
        children = [child for stage in self._stages for child in stage]
        return {child.part.name: process.pid for child in children if (process := child.process) is not None}

    def _run(self) -> None:
        try:
            for stage, following in zip(self._stages, [*self._stages[1:], []], strict=True):
                self._launch([child for child in stage if child.process is None and child.part.starts != "last"])
                self._launch([child for child in following if child.part.starts == "early"])
                self._await_ready([child for child in stage if child.part.starts != "last"])
                self._launch(last := [child for child in stage if child.part.starts == "last"])
                self._await_ready(last)
            self._settled.set()
            while not self._stop.wait(_LOOK_EVERY_SECONDS):
                self._look_after()
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits in start()
            self._failure = error
        finally:
            for stage in reversed(self._stages):
                _end(stage)
            self._settled.set()

    def _launch(self, children: Sequence[_Child]) -> None:
        for child in children:
            if not self._stop.is_set():
                _launch(child)

    def _await_ready(self, children: Sequence[_Child]) -> None:
        for child in children:
            self._await_one(child)

    def _await_one(self, child: _Child) -> None:
        deadline = child.started_at + child.part.ready_within.total_seconds()
        while not self._stop.is_set():
            if child.process is None or child.process.poll() is not None:
                raise UnavailableError(f"{child.part.name} ended at its start ({_how(child)}):\n{_last_lines(child)}")
            if child.part.is_ready():
                return
            if time.monotonic() > deadline:
                raise UnavailableError(f"{child.part.name} did not become ready:\n{_last_lines(child)}")
            self._stop.wait(_READY_LOOK_EVERY_SECONDS)

    def _look_after(self) -> None:
        now = time.monotonic()
        for child in (child for stage in self._stages for child in stage):
            if child.process is None:
                if now >= child.restart_at:
                    self._restart(child)
            elif child.process.poll() is not None:
                self._note_end(child, now)
            else:
                _bound(child.log)

    def _note_end(self, child: _Child, now: float) -> None:
        if now - child.started_at > _STABLE_AFTER_SECONDS:
            child.pause_seconds = _FIRST_PAUSE_SECONDS
        pause = child.pause_seconds
        self._report(f"{child.part.name} ended ({_how(child)}); starting it again in {pause:g} s; see {child.log}")
        child.restart_at = now + pause
        child.pause_seconds = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        _forget(child)

    def _restart(self, child: _Child) -> None:
        try:
            _launch(child)
        except OSError as error:
            child.restart_at = time.monotonic() + _LONGEST_PAUSE_SECONDS
            self._report(f"{child.part.name} cannot be started: {error}")


def _launch(child: _Child) -> None:
    part = child.part
    _bound(child.log)
    with child.log.open("ab") as log:
        child.log_start = log.tell()
        child.process = subprocess.Popen(
            leashed(part.command, death_signal=part.death_signal),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=dict(part.environment),
            pass_fds=part.inherits,
            start_new_session=True,  # a Ctrl-C reaches us alone, and we stop the others in order
        )
    child.started_at = time.monotonic()
    if part.nice:
        with suppress(OSError):  # it may have ended already
            os.setpriority(os.PRIO_PROCESS, child.process.pid, os.getpriority(os.PRIO_PROCESS, 0) + part.nice)


def _end(children: Sequence[_Child]) -> None:
    running = [(child, child.process) for child in children if child.process is not None]
    for _child, process in running:
        with suppress(ProcessLookupError):
            process.terminate()
    asked_at = time.monotonic()
    for child, process in running:
        left = asked_at + child.part.stop_within.total_seconds() - time.monotonic()
        try:
            process.wait(max(left, 0.0))
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        _forget(child)


def _forget(child: _Child) -> None:
    if child.process is not None and child.process.stdin is not None:
        child.process.stdin.close()
    child.process = None


def _how(child: _Child) -> str:
    code = child.process.returncode if child.process is not None else None
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def _bound(log: Path) -> None:
    """Begin anew where the log is too long. The process appends, so it may keep its file open."""
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        shutil.copyfile(log, log.with_name(log.name + ".1"))
        os.truncate(log, 0)


def _last_lines(child: _Child, count: int = 12) -> str:
    """Of its newest start: those of a run before would mislead."""
    with child.log.open("rb") as file:
        file.seek(max(child.log_start, child.log.stat().st_size - 8192))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-count:]) or f"  (it has written nothing to {child.log})"
