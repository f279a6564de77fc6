"""Makes ``due`` again out of the sessions' own state, slowly, whatever became of it."""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from prefold.dispatcher.outage import Outage, stopped_within
from prefold.dispatcher.ports import OwedWork
from prefold.errors import TransientError
from prefold.telemetry import metrics

log = structlog.get_logger(__name__)

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How often it goes through all sessions, and how fast."""

    every: timedelta = timedelta(hours=1)
    sessions_per_second: int = 500
    """At most; a session costs the sessions' Redis some 80 µs, and nothing is written where nothing is missing."""


@dataclass(slots=True)
class SweepReport:
    """What one pass did."""

    sessions: int = 0
    restored: int = 0
    """Due entries that were missing."""
    seconds: float = 0


class Sweep:
    """Goes through all sessions at start and then once in ``every``. Two dispatchers do it twice, to no harm."""

    def __init__(self, owed: OwedWork, options: SweepOptions) -> None:
        self._owed = owed
        self._options = options
        self._outage = Outage("sweep")
        self.due_restored = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Sweeps until ``stop`` is set. A pass that fails begins anew. Never raises."""
        while not stop.is_set():
            try:
                report = await self.once(stop)
                self._outage.over()
            except (TransientError, RedisError, OSError) as error:
                await self._outage.wait(error, stop)
                continue
            except Exception as error:  # noqa: BLE001 (the loop must outlive a bug: nothing else makes due again)
                await self._outage.wait(error, stop, is_bug=True)
                continue
            level = log.warning if report.restored else log.info
            level("due_swept", sessions=report.sessions, restored=report.restored, seconds=round(report.seconds, 3))
            await stopped_within(stop, self._options.every)

    async def once(self, stop: asyncio.Event) -> SweepReport:
        """One pass, or the part of it until ``stop`` is set."""
        report, began = SweepReport(), time.monotonic()
        async for page in self._owed.pages():
            for start in range(0, len(page), _AT_ONCE):
                part = page[start : start + _AT_ONCE]
                restored = sum(await asyncio.gather(*(self._owed.restore(*session) for session in part)))
                report.restored += restored
                self.due_restored += restored
                metrics.RECONCILER_REPAIRS.labels("due").inc(restored)
                report.sessions += len(part)
            ahead = report.sessions / self._options.sessions_per_second - (time.monotonic() - began)
            if await stopped_within(stop, timedelta(seconds=max(ahead, 0.001))):
                break
        report.seconds = time.monotonic() - began
        return report
