"""All work on sessions of one process, side by side on its loop: it outlives the jobs that began it.

A job hands its sessions over and ends when each has its ticket, so that the worker takes the next job at once and a
slow model holds up nobody, however long ago the job came.
"""

import asyncio
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

import structlog

from prefold.compaction.build import Failed, Undecided
from prefold.compaction.reading.door import Desk, Door
from prefold.errors import TransientError
from prefold.storage.memory_types import MemoryTicket
from prefold.storage.types import BuildTicket, SessionRef
from prefold.worker.verdicts import Ended, Ongoing, reason_of
from prefold.worker.waiting import desk_of_work

log = structlog.get_logger(__name__)

LONGEST_BUILD = timedelta(minutes=30)
"""Longer than the calls of a segment and of the merges above it may take together. A build that takes longer is ended, and that counts against its session."""


_Ticket = BuildTicket | MemoryTicket
_Claim = _Ticket | str | Exception


class Builds(Protocol):
    """``SessionBuilder``, or another that works on sessions by tickets of its own; both may raise ``TransientError``."""

    async def begin(self, ref: SessionRef) -> BuildTicket | MemoryTicket | str: ...
    async def build_with(self, ticket: Any) -> str: ...


class BuildPool:
    """Builds under way. Everything but ``len`` belongs on the loop."""

    def __init__(self, builds: Builds, stop: threading.Event, *, longest: timedelta = LONGEST_BUILD) -> None:
        self._builds = builds
        self._stop = stop
        self._longest = longest
        self._door = Door()
        self._tasks: dict[SessionRef, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def hand_over(self, refs: Sequence[SessionRef], *, alone: bool = False) -> Ended:
        """Claims each session; what has got a ticket is ``ongoing`` afterwards. Never raises but on cancellation.

        ``alone``: nobody else works beside them, and this returns once they wait, have ended, or took long.
        After the stop nothing begins: what is due stays due.
        """
        works = {ref: _Work(ref, self._door, is_suspect=alone) for ref in dict.fromkeys(refs) if ref not in self._tasks}
        if self._stop.is_set():
            return Ended(undecided=frozenset(refs))
        for work in works.values():
            self._begin(work)
        try:
            claims = await asyncio.gather(*(work.claimed for work in works.values()))
            if alone:
                await asyncio.gather(*(work.desk.may_have_company.wait() for work in works.values()))
        except asyncio.CancelledError:
            await self._cancel([self._tasks[ref] for ref in works if ref in self._tasks])
            raise
        claimed: dict[SessionRef, _Claim] = dict(zip(works, claims, strict=True))
        before: dict[SessionRef, _Claim] = {ref: Undecided("under_way") for ref in refs if ref not in works}
        return _ended_of({**claimed, **before}, {ref: work.ongoing for ref, work in works.items()})

    def _begin(self, work: "_Work") -> None:
        task = asyncio.create_task(self._do(work))
        self._tasks[work.ref] = task

        def ended(_task: asyncio.Task[None]) -> None:
            del self._tasks[work.ref]
            work.claim(Undecided("interrupted"))

        task.add_done_callback(ended)

    async def settle(self) -> None:
        """Waits for the ends of all builds. Cancelled: cancels them, and waits until each has given its ticket back."""
        try:
            while self._tasks:
                await asyncio.wait(list(self._tasks.values()))
        finally:
            await self.cancel()

    async def cancel(self) -> None:
        """Ends all builds; each gives its ticket back."""
        await self._cancel(list(self._tasks.values()))

    async def _cancel(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _do(self, work: "_Work") -> None:
        desk_of_work.set(work.desk)
        async with work.desk:
            try:
                ticket = await self._builds.begin(work.ref)
            except Exception as error:  # noqa: BLE001 (a loop boundary: the job judges it)
                work.claim(error)
                return
            work.claim(ticket)
            if not isinstance(ticket, str):
                work.ongoing.tell(await self._outcome(ticket))

    async def _outcome(self, ticket: _Ticket) -> Ended:
        ref = ticket.ref
        try:
            async with asyncio.timeout(self._longest.total_seconds()):
                outcome: _Claim = await self._builds.build_with(ticket)
        except asyncio.CancelledError:
            return Ended(undecided=frozenset({ref}), handed_back=True)
        except TimeoutError:
            outcome = Failed("timeout")
        except Exception as error:  # noqa: BLE001 (a loop boundary: no build may take others with it)
            outcome = error
        return _ended_of({ref: outcome}, {})


class _Work:
    """One session's."""

    def __init__(self, ref: SessionRef, door: Door, *, is_suspect: bool) -> None:
        self.ref = ref
        self.ongoing = Ongoing()
        self.desk = Desk(door, is_suspect=is_suspect, tell=self.ongoing.tell)
        self.claimed: asyncio.Future[_Claim] = asyncio.get_running_loop().create_future()

    def claim(self, outcome: _Claim) -> None:
        """The first word counts."""
        if not self.claimed.done():
            self.claimed.set_result(outcome)


def _ended_of(outcomes: dict[SessionRef, _Claim], ongoing: dict[SessionRef, Ongoing]) -> Ended:
    """What is said of sessions by tickets, outcomes and errors."""
    away = [error for error in outcomes.values() if isinstance(error, TransientError)]
    faults = {ref: error for ref, error in outcomes.items() if isinstance(error, Exception) and error not in away}
    if away:
        log.warning("builds_unavailable", sessions=len(away), error=str(away[0]))
    for error in faults.values():
        # Not the error itself: its message may quote the conversation.
        log.error("build_fault", error=reason_of(error))
    return Ended(
        failed={
            **{ref: str(outcome) for ref, outcome in outcomes.items() if isinstance(outcome, Failed)},
            **{ref: reason_of(error) for ref, error in faults.items()},
        },
        undecided=frozenset(
            ref for ref, outcome in outcomes.items() if isinstance(outcome, Undecided | TransientError)
        ),
        ongoing={ref: ongoing[ref] for ref, outcome in outcomes.items() if isinstance(outcome, _Ticket)},
        away=away[0] if away else None,
    )
