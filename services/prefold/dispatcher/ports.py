"""What the dispatcher needs from its surroundings."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from prefold.jobs import Ask, QueueName
from prefold.storage.types import DueItem, TurnEvent


class TurnEvents(Protocol):
    """The event streams of all partitions, read as one consumer of their group.

    Delivery is at least once: an event comes again, to us or to another consumer, until it is acknowledged.
    Every call may raise ``TransientError``; then what it would have returned stays assigned to us and
    ``pending`` gives it.
    """

    async def ensure_groups(self) -> None:
        """Creates what is missing. Idempotent."""

    async def read(self, consumer: str, count: int, block_ms: int) -> list[TurnEvent]:
        """Up to ``count`` new events a partition; waits for the first up to ``block_ms``, 0: not at all."""

    async def read_more(self, consumer: str, count: int, partitions: Sequence[int]) -> list[TurnEvent]:
        """The same of some partitions only, without waiting."""

    async def pending(self, consumer: str) -> list[TurnEvent]:
        """Events that ``consumer`` was given and has not acknowledged, oldest first; perhaps not all at once."""

    async def claim(self, consumer: str, min_idle_ms: int) -> list[TurnEvent]:
        """Takes over events that some consumer has left unacknowledged for ``min_idle_ms``."""

    async def newest(self, partitions: Sequence[int], count: int) -> list[TurnEvent]:
        """The last ``count`` events of each partition, given to anybody or not. They stay where they are."""

    async def ack(self, events: Sequence[TurnEvent]) -> None:
        """Ends the delivery of ``events``. Acknowledging twice is legal."""


class DueSets(Protocol):
    """What the sessions' own state says is undone. Reading changes nothing. May raise ``TransientError``."""

    async def due(self, now_ms: int, limit: int, partitions: Sequence[int]) -> list[DueItem]:
        """Entries due at or before ``now_ms``, up to ``limit`` of each of ``partitions``, the oldest first."""

    async def beyond(self, now_ms: int, limit: int, partitions: Sequence[int]) -> list[DueItem]:
        """Where ``due`` gave ``limit`` entries: some of those behind them, the newest in any case."""


class OwedWork(Protocol):
    """The sessions' own state, from which ``due`` can be made again. Every call may raise ``TransientError``."""

    def pages(self) -> AsyncIterator[list[tuple[str, str]]]:
        """Tenant and session of all that live or left a tombstone; some come twice, some pages are empty."""

    async def restore(self, tenant: str, session: str) -> int:
        """Adds the due entries that are missing; how many that were. Idempotent."""


class Jobs(Protocol):
    """The job queue. Calls block, so they run in a thread; each may raise ``UnavailableError``."""

    def put(self, asks: Sequence[Ask]) -> list[bool]:
        """Puts the jobs in this order; False for one that waits or runs already."""

    def depth(self, queue: QueueName) -> int:
        """Jobs that wait in ``queue``."""
