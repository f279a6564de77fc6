"""Time as the fake has it: the machine's, or one that only moves when told."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since some moment, and waiting for them to pass."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class MachineClock:
    """Monotonic."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """Stands still. Who sleeps on it moves it and goes on at once, so that latencies cost nothing and still count."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    async def sleep(self, seconds: float) -> None:
        self._now += seconds
        await asyncio.sleep(0)
