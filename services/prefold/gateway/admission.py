"""Whose request is worked on next: a bounded number at once, the others wait in the queue of their tenant.

Tenants take turns. Who took less time lately goes first (start-time fair queuing: a tenant's mark moves on by the time
that its requests took; the smallest mark is served; who comes back after a rest starts at the present mark, so that
nobody saves up). None holds more than its share of the places, which always leaves one share to a newcomer: whatever a
tenant does for long (erasing a user of a thousand sessions) holds up nobody else, and the event loop is not busy with
one tenant's work when another's arrives.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from time import perf_counter
from typing import Final

from prefold.errors import OverloadedError

LEAST_SHARE: Final = 4
"""Places that a tenant may hold, however many tenants ask."""
ACTIVE_SECONDS: Final = 5.0
"""A tenant counts as asking for one to two such spans after its last request."""
_MOST_IDLE: Final = 10_000
"""Tenants remembered that ask for nothing."""
_LEARNT: Final = 0.02
"""What one request tells of the next ones."""
_RETRY_AFTER: Final = timedelta(seconds=1)

Clock = Callable[[], float]


class TenantQueue:
    """A tenant's requests: those that wait for a place, and how many have one."""

    __slots__ = ("held", "mark", "present", "span", "waiting")

    def __init__(self, mark: float) -> None:
        self.present = 0
        """Requests under way, from their head to their answer."""
        self.held = 0
        """Places that they have."""
        self.mark = mark
        """Time that they took, in s, counted from where all stood when the tenant came."""
        self.span = -1
        """Number of the span in which it asked last."""
        self.waiting: deque[asyncio.Future[None]] = deque()


class Admission:
    """Places for requests. All of it runs in one event loop: nothing here is interrupted."""

    def __init__(
        self, *, places: int, most_of_tenant: int, most_when_crowded: int = 0, clock: Clock = perf_counter
    ) -> None:
        self._free = places
        self._places = places
        self._most_of_tenant = most_of_tenant
        self._most_when_crowded = most_when_crowded
        self._queues: dict[str, TenantQueue] = {}
        self._waiting: list[TenantQueue] = []
        """Who has a request that waits, each once."""
        self._mark = 0.0
        """Of whoever was served last."""
        self._typical = 0.001
        """What a request takes, in s."""
        self._span = 0
        self._span_ends = clock() + ACTIVE_SECONDS
        self._asking = 0
        """Tenants that asked in this span."""
        self._asked = 0
        """In the one before."""
        self._share = max(LEAST_SHARE, places // 2)

    @property
    def waiting(self) -> int:
        """Requests without a place."""
        return sum(len(queue.waiting) for queue in self._waiting)

    def arrive(self, tenant: str, *, crowded: bool = False) -> TenantQueue:
        """The queue of a request that ``depart`` ends. Raises ``OverloadedError`` when too many of its tenant's are there.

        ``crowded``: the house is full, and only tenants that have hardly a request in it are let in.
        """
        queue = self._queues.get(tenant) or self._open(tenant)
        if queue.present >= (self._most_when_crowded if crowded else self._most_of_tenant):
            whose = "" if crowded else " of this tenant"
            raise OverloadedError(f"too many requests{whose} at once", retry_after=_RETRY_AFTER)
        queue.present += 1
        return queue

    def depart(self, queue: TenantQueue) -> None:
        """The request has its answer. Its place, if it had one, was left before."""
        queue.present -= 1

    def try_enter(self, queue: TenantQueue, now: float) -> bool:
        """True: it has a place, to be left by ``leave``. ``now`` is the clock's time."""
        if now >= self._span_ends:
            self._next_span(now)
        if queue.span != self._span:
            queue.span = self._span
            self._asking += 1
            self._reckon()
        if self._free and not queue.waiting and queue.held < self._share:
            self._take(queue)
            return True
        return False

    async def enter(self, queue: TenantQueue) -> None:
        """Waits for a place. Cancelled, it has none."""
        place = asyncio.get_running_loop().create_future()
        if not queue.waiting:
            self._waiting.append(queue)
        queue.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            self._give_up(queue, place)
            raise

    def leave(self, queue: TenantQueue, seconds: float) -> None:
        """Gives the place back after so much time; whoever is next has it at once."""
        queue.mark += seconds
        self._typical += (seconds - self._typical) * _LEARNT
        queue.held -= 1
        self._free += 1
        if self._waiting:
            self._serve()

    def _serve(self) -> None:
        while self._free and (queue := self._next()) is not None:
            place = queue.waiting.popleft()
            if not queue.waiting:
                self._waiting.remove(queue)
            if not place.done():
                self._take(queue)
                place.set_result(None)

    def _next(self) -> TenantQueue | None:
        """The one that took least, of those below their share; where nobody is, the places stay free."""
        ready = [queue for queue in self._waiting if queue.held < self._share]
        return min(ready, key=self._standing, default=None)

    def _standing(self, queue: TenantQueue) -> float:
        """What it took, and what its requests under way are likely to take."""
        return queue.mark + queue.held * self._typical

    def _take(self, queue: TenantQueue) -> None:
        if queue.held == 0 and queue.mark < self._mark:
            queue.mark = self._mark
        if queue.mark > self._mark:
            self._mark = queue.mark
        queue.held += 1
        self._free -= 1

    def _give_up(self, queue: TenantQueue, place: asyncio.Future[None]) -> None:
        if place.done() and not place.cancelled():  # it was given the place in the very moment
            self.leave(queue, 0.0)
        elif place in queue.waiting:  # else it was passed over meanwhile
            queue.waiting.remove(place)
            if not queue.waiting:
                self._waiting.remove(queue)

    def _open(self, tenant: str) -> TenantQueue:
        if len(self._queues) >= _MOST_IDLE:
            self._queues = {name: one for name, one in self._queues.items() if one.present}
        queue = self._queues[tenant] = TenantQueue(self._mark)
        return queue

    def _next_span(self, now: float) -> None:
        self._asked = self._asking if now - self._span_ends < ACTIVE_SECONDS else 0
        self._asking = 0
        self._span += 1
        self._span_ends = now + ACTIVE_SECONDS
        for queue in self._waiting:
            queue.span = self._span
            self._asking += 1
        self._reckon()

    def _reckon(self) -> None:
        tenants = max(self._asking, self._asked)
        share = max(LEAST_SHARE, self._places // (tenants + 1))
        grew, self._share = share > self._share, share
        if grew and self._waiting:
            self._serve()
