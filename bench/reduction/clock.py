"""Time that passes only when it is told to."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any


class VirtualClock:
    """Seconds since a start. Whoever waits for a moment goes on when the clock is moved there, in order.

    A piece of work waits for one moment at a time.
    """

    def __init__(self, on_move: Callable[[float], None]) -> None:
        """``on_move`` is told each new time before anybody goes on."""
        self.now = 0.0
        self._on_move = on_move
        self._waiting: list[tuple[float, int, asyncio.Event]] = []
        self._numbers = count()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._asleep: set[asyncio.Event] = set()
        self._changed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Ends when the clock has come so far."""
        over = asyncio.Event()
        heapq.heappush(self._waiting, (self.now + seconds, next(self._numbers), over))
        self._asleep.add(over)
        self._changed.set()
        try:
            await over.wait()
        finally:
            self._asleep.discard(over)

    async def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs ``work`` until it has ended or waits for the clock. What it raises is raised by whoever moves the clock."""
        self._tasks.add(asyncio.create_task(work))
        await self._settle()

    async def advance(self, until: float) -> None:
        """Moves the clock to ``until``, by way of every moment that somebody waits for."""
        while self._waiting and self._waiting[0][0] <= until:
            moment, _, over = heapq.heappop(self._waiting)
            self._move(moment)
            over.set()
            self._asleep.discard(over)
            await self._settle()
        self._move(until)

    async def finish(self) -> None:
        """Moves the clock until nobody waits any more."""
        while self._waiting:
            await self.advance(self._waiting[0][0])

    def _move(self, moment: float) -> None:
        self.now = max(self.now, moment)
        self._on_move(self.now)

    async def _settle(self) -> None:
        while len(self._tasks) > len(self._asleep):
            self._changed.clear()
            change = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait({*self._tasks, change}, return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
            ended = {task for task in self._tasks if task.done()}
            self._tasks -= ended
            for task in ended:
                task.result()
