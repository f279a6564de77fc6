"""Waiting while a part that we need is away, without filling the log."""

import asyncio
import random
import time
from datetime import timedelta

import structlog

from prefold.errors import place_of

_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 3.0

log = structlog.get_logger(__name__)


async def stopped_within(stop: asyncio.Event, wait: timedelta) -> bool:
    """Returns True as soon as ``stop`` is set, False after ``wait``."""
    try:
        async with asyncio.timeout(wait.total_seconds()):
            await stop.wait()
    except TimeoutError:
        return False
    return True


class Outage:
    """One loop's trouble: said once when it begins and once when it is over, with growing waits in between."""

    def __init__(self, loop: str, *, tenant: str | None = None) -> None:
        """``tenant``: whose work alone it is."""
        self._about = {"loop": loop} if tenant is None else {"loop": loop, "tenant": tenant}
        self._since: float | None = None
        self._failures = 0

    async def wait(self, error: Exception, stop: asyncio.Event, *, is_bug: bool = False) -> None:
        """Logs the first failure, then waits as long as ``note`` says; less when ``stop`` is set."""
        await stopped_within(stop, timedelta(seconds=self.note(error, is_bug=is_bug)))

    def note(self, error: Exception, *, is_bug: bool = False) -> float:
        """Logs the first failure; seconds to wait: 0.1 doubling up to 3, jittered."""
        if self._since is None:
            self._since = time.monotonic()
            told = place_of(error) if is_bug else str(error)  # what a bug says may quote somebody
            log.warning("dispatcher_unavailable", **self._about, error=told, exc_info=error if is_bug else None)
        longest = min(_FIRST_WAIT_SECONDS * 2 ** min(self._failures, 10), _LONGEST_WAIT_SECONDS)
        self._failures += 1
        wait_seconds: float = longest * random.uniform(0.5, 1)  # noqa: S311 (jitter)
        return wait_seconds

    def over(self) -> None:
        """The loop's work succeeds (again)."""
        if self._since is None:
            return
        log.info("dispatcher_available", **self._about, outage_seconds=round(time.monotonic() - self._since, 3))
        self._since = None
        self._failures = 0
