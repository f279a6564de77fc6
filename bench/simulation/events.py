"""A clock that jumps from event to event."""

import heapq
from collections.abc import Callable
from itertools import count


class Clock:
    """Runs what was asked for at its time; of one time in the order in which it was asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Runs ``action`` so many seconds from now, at once for a negative number."""
        heapq.heappush(self._events, (self.now + max(0.0, seconds), next(self._numbers), action))

    def run(self) -> None:
        """Returns when nothing is left to happen."""
        while self._events:
            self.now, _, action = heapq.heappop(self._events)
            action()
