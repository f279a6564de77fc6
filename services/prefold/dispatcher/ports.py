"""What the dispatcher needs from its surroundings."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from prefold.jobs import QueueName
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import DueItem, SessionRef, TurnEvent


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

    async def pending(self, consumer: str) -> list[TurnEvent]:
        """Events that ``consumer`` was given and has not acknowledged, oldest first; perhaps not all at once."""

    async def claim(self, consumer: str, min_idle_ms: int) -> list[TurnEvent]:
        """Takes over events that some consumer has left unacknowledged for ``min_idle_ms``."""

    async def ack(self, events: Sequence[TurnEvent]) -> None:
        """Ends the delivery of ``events``. Acknowledging twice is legal."""


class DueSets(Protocol):
    """What the sessions' own state says is undone. Reading changes nothing. May raise ``TransientError``."""

    async def due(self, now_ms: int, limit: int, partitions: Sequence[int]) -> list[DueItem]:
        """Entries due at or before ``now_ms``, up to ``limit`` of each of ``partitions``, the oldest first."""


class OwedWork(Protocol):
    """The sessions' own state, from which ``due`` can be made again. Every call may raise ``TransientError``."""

    def pages(self) -> AsyncIterator[list[tuple[str, str]]]:
        """Tenant and session of all that live or left a tombstone; some come twice, some pages are empty."""

    async def restore(self, tenant: str, session: str) -> int:
        """Adds the due entries that are missing; how many that were. Idempotent."""


class Jobs(Protocol):
    """The job queue. Calls block, so they run in a thread; each may raise ``UnavailableError``."""

    def embed(self, spans: Sequence[EmbedSpan], *, occasion: str) -> bool:
        """Asks for embedding; False when the same job waits or runs already."""

    def compact(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for summaries; False when the same job waits or runs already."""

    def remember(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for what sessions are remembered by; False when the same job waits or runs already."""

    def expire(self, sessions: Sequence[SessionRef], *, occasion: str) -> bool:
        """Asks for the end of sessions; False when the same job waits or runs already."""

    def depth(self, queue: QueueName) -> int:
        """Jobs that wait in ``queue``."""
