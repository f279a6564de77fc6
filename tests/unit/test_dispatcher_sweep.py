"""The loop that makes ``due`` again, against a fake."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

from structlog.testing import capture_logs

from prefold.dispatcher.sweep import Sweep, SweepOptions
from prefold.errors import UnavailableError
from tests.support.waiting import wait_until_async

Session = tuple[str, str]


@dataclass
class FakeOwed:
    """Sessions, some of which lack a due entry."""

    sessions: list[Session]
    lacking: set[Session] = field(default_factory=set)
    fail_next: int = 0
    error: Exception = field(default_factory=lambda: UnavailableError("away"))
    looked_at: list[Session] = field(default_factory=list)

    async def pages(self) -> AsyncIterator[list[Session]]:
        yield []
        for start in range(0, len(self.sessions), 10):
            yield self.sessions[start : start + 10]

    async def restore(self, tenant: str, session: str) -> int:
        if self.fail_next:
            self.fail_next -= 1
            raise self.error
        self.looked_at.append((tenant, session))
        found = (tenant, session) in self.lacking
        self.lacking.discard((tenant, session))
        return int(found)


SESSIONS = [("acme", f"s{number}") for number in range(25)]


def sweep_of(owed: FakeOwed, *, every: timedelta = timedelta(hours=1)) -> Sweep:
    return Sweep(owed, SweepOptions(every=every, sessions_per_second=100_000))


async def test_a_pass_looks_at_every_session_and_tells_what_was_missing() -> None:
    owed = FakeOwed(SESSIONS, {SESSIONS[3], SESSIONS[24]})
    report = await sweep_of(owed).once(asyncio.Event())
    assert owed.looked_at == SESSIONS
    assert (report.sessions, report.restored) == (25, 2)


async def test_it_sweeps_at_the_start_and_again_after_its_time() -> None:
    owed, stop = FakeOwed(SESSIONS), asyncio.Event()
    sweeping = asyncio.create_task(sweep_of(owed, every=timedelta(milliseconds=1)).run(stop))

    async def twice() -> bool:
        return len(owed.looked_at) >= 50

    await wait_until_async("it has swept twice", twice)
    stop.set()
    await asyncio.wait_for(sweeping, 1)


async def test_a_pass_that_fails_begins_anew_whatever_the_reason() -> None:
    for error in (UnavailableError("away"), OSError("gone"), ValueError("a bug")):
        owed, stop = FakeOwed(SESSIONS, fail_next=1, error=error), asyncio.Event()
        with capture_logs() as logs:
            sweep = sweep_of(owed)
            sweeping = asyncio.create_task(sweep.run(stop))

            async def done(owed: FakeOwed = owed) -> bool:
                return len(owed.looked_at) >= 25

            await wait_until_async("it has swept", done)
            stop.set()
            await asyncio.wait_for(sweeping, 1)
        said = [entry["event"] for entry in logs]
        assert said[:2] == ["dispatcher_unavailable", "dispatcher_available"]


async def test_a_stop_ends_it_within_a_page() -> None:
    owed, stop = FakeOwed(SESSIONS), asyncio.Event()
    stop.set()
    report = await sweep_of(owed).once(stop)
    assert report.sessions == 0
    await asyncio.wait_for(sweep_of(owed).run(stop), 1)


async def test_what_is_missing_is_said_louder_than_a_pass_that_finds_nothing() -> None:
    levels = {}
    for lacking in (set[Session](), {SESSIONS[0]}):
        stop, owed = asyncio.Event(), FakeOwed(SESSIONS, lacking)
        with capture_logs() as logs:
            sweeping = asyncio.create_task(sweep_of(owed).run(stop))

            async def said(logs: list[object] = logs) -> bool:  # type: ignore[assignment]
                return bool(logs)

            await wait_until_async("it says so", said)
            stop.set()
            await sweeping
        levels[logs[0]["restored"]] = logs[0]["log_level"]
    assert levels == {0: "info", 1: "warning"}
