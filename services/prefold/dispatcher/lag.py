"""How far behind the work is, read of the stores every few seconds and told by the probe's ``/metrics``.

Every dispatcher reads the same, so one of them suffices; a scrape reads nothing.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from prefold.dispatcher.outage import Outage, stopped_within
from prefold.errors import TransientError
from prefold.jobs import QUEUES, DeadLetters, QueueName
from prefold.jobs.names import WORK_KINDS
from prefold.storage.backlog import due_backlog, event_backlog, now_ms_of
from prefold.storage.ingest import IngestStreams
from prefold.storage.ingest_letters import IngestLetters
from prefold.telemetry.metrics import (
    DEAD_LETTERS,
    DUE_OVERDUE,
    EVENTS_PENDING,
    INGEST_PENDING,
    LAG_READ,
    OLDEST_EVENT_AGE,
    QUEUE_JOBS,
    QUEUE_WORKERS,
)

__all__ = ["Lag", "Queues"]

_LETTERS_EVERY: Final = 6
"""Reads: letters change rarely, and their read grows with them."""


class Queues(Protocol):
    """The job queue. Calls block, so they run in a thread; each may raise ``UnavailableError``."""

    def depth(self, queue: QueueName) -> int:
        """Jobs that wait in ``queue``."""

    def workers(self, queue: QueueName) -> int:
        """Workers that serve ``queue``."""


class Lag:
    """Sets the gauges."""

    def __init__(self, client: Redis, queues: Queues, every: timedelta, ingest_tenants: Sequence[str] = ()) -> None:
        """``ingest_tenants``: whose ingest streams are read here."""
        self._client = client
        self._queues = queues
        self._every = every
        self._ingest_tenants = tuple(ingest_tenants)
        self._outage = Outage("lag")
        self._reads = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Reads once in ``every`` until ``stop`` is set. Never raises; what cannot be read keeps its last value."""
        while not stop.is_set():
            try:
                await self.read()
                self._outage.over()
            except (TransientError, RedisError, OSError) as error:
                await self._outage.wait(error, stop)
            except Exception as error:  # noqa: BLE001 (figures must not end the work)
                await self._outage.wait(error, stop, is_bug=True)
            await stopped_within(stop, self._every)

    async def read(self) -> None:
        """One look at all of it."""
        queues = asyncio.create_task(asyncio.to_thread(self._read_queues))
        try:
            await self._read_sessions()  # also while the queue is away: that is when work piles up
        finally:
            await queues
        if self._reads % _LETTERS_EVERY == 0:
            await self._read_letters()
        self._reads += 1
        LAG_READ.set(time.time())

    async def _read_sessions(self) -> None:
        now_ms = await now_ms_of(self._client)
        events = await event_backlog(self._client)
        due = await due_backlog(self._client, now_ms)
        OLDEST_EVENT_AGE.set(events.age_seconds(now_ms))
        EVENTS_PENDING.set(events.unread + events.unacknowledged)
        for kind in WORK_KINDS:
            DUE_OVERDUE.labels(kind).set(due.by_kind.get(kind, 0))
        waiting = await IngestStreams(self._client).waiting(self._ingest_tenants) if self._ingest_tenants else ()
        INGEST_PENDING.set(sum(one.entries for one in waiting))

    async def _read_letters(self) -> None:
        letters = Counter(letter.kind for letter in await DeadLetters(self._client).letters())
        for kind in WORK_KINDS:
            DEAD_LETTERS.labels(kind).set(letters[kind])
        tenants = self._ingest_tenants
        DEAD_LETTERS.labels("ingest").set(await IngestLetters(self._client).number(tenants) if tenants else 0)

    def _read_queues(self) -> None:
        for queue in QUEUES:
            QUEUE_JOBS.labels(queue).set(self._queues.depth(queue))
            QUEUE_WORKERS.labels(queue).set(self._queues.workers(queue))
