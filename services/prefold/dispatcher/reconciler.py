"""Asks again for what the sessions' own state says is undone, whatever became of events and jobs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.outage import Outage, stopped_within
from prefold.dispatcher.ports import DueSets, Jobs
from prefold.errors import TransientError
from prefold.jobs import COMPACT_QUEUE, EMBED_QUEUE, MEMORY_QUEUE, TO_HEAD, QueueName
from prefold.jobs.names import SESSIONS_PER_JOB, WorkKind
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.keys import PARTITIONS
from prefold.storage.types import DueItem

log = structlog.get_logger(__name__)

_LOOKS = 4
"""Each takes every fourth partition: some of every server of a cluster, so that one which is away spoils none."""

_BY_SESSIONS: dict[WorkKind, QueueName] = {"compact": COMPACT_QUEUE, "remember": MEMORY_QUEUE, "expire": EMBED_QUEUE}
"""Kinds whose jobs name whole sessions, and where they go."""


@dataclass(frozen=True, slots=True)
class ReconcilerOptions:
    """How often it looks and how much it asks for."""

    every: timedelta = timedelta(seconds=1)
    entries_per_partition: int = 200
    sessions_per_embed_job: int = 32
    max_queue_depth: int = 2_000


class Reconciler:
    """Scans the ``due`` sets. Losing every event and every job costs only time because of it."""

    def __init__(
        self,
        due_sets: DueSets,
        jobs: Jobs,
        attempts: Attempts,
        options: ReconcilerOptions,
        *,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], Awaitable[int]],
    ) -> None:
        self._due_sets = due_sets
        self._jobs = jobs
        self._attempts = attempts
        self._options = options
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._outage = Outage("reconciler")
        self.jobs_enqueued = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Looks once in ``every`` until ``stop`` is set. Never raises."""
        while not await stopped_within(stop, self._options.every):
            try:
                await self.look(stop)
                self._outage.over()
            except (TransientError, RedisError, OSError) as error:
                await self._outage.wait(error, stop)
            except Exception as error:  # noqa: BLE001 (the loop must outlive a bug: nothing else brings work back)
                await self._outage.wait(error, stop, is_bug=True)

    async def look(self, stop: asyncio.Event) -> None:
        """Enqueues every overdue entry that was not asked for lately, once."""
        self._attempts.forget_old(self._now_ms())
        wall_ms = await self._wall_ms()
        occasion = f"due-{wall_ms // self._attempts.base_ms}"  # the same for two dispatchers that look now
        for start in range(_LOOKS):
            if stop.is_set():
                return
            items = await self._overdue(wall_ms, range(start, PARTITIONS, _LOOKS))
            await self._enqueue_embeds([item for item in items if item.kind == "embed"], occasion)
            for kind in _BY_SESSIONS:
                await self._enqueue(kind, [item for item in items if item.kind == kind], occasion)

    async def _overdue(self, wall_ms: int, partitions: Sequence[int]) -> list[DueItem]:
        # Entries that are held back come first in their set; the limit must reach beyond them.
        limit = self._options.entries_per_partition + max(map(self._attempts.waiting, partitions))
        items = await self._due_sets.due(wall_ms, limit, partitions)
        now_ms = self._now_ms()
        return [item for item in items if self._attempts.may(item, now_ms)]

    async def _enqueue_embeds(self, items: list[DueItem], occasion: str) -> None:
        for part in _parts(items, self._options.sessions_per_embed_job):
            if await self._is_full(EMBED_QUEUE):
                return
            spans = [EmbedSpan(i.ref.tenant, i.ref.session, i.ref.incarnation, 1, TO_HEAD) for i in part]
            self.jobs_enqueued += await asyncio.to_thread(self._jobs.embed, spans, occasion=occasion)
            self._repeated(part)

    async def _enqueue(self, kind: WorkKind, items: list[DueItem], occasion: str) -> None:
        asks = {"compact": self._jobs.compact, "remember": self._jobs.remember, "expire": self._jobs.expire}
        for part in _parts(items, SESSIONS_PER_JOB):
            if await self._is_full(_BY_SESSIONS[kind]):
                return
            refs = [item.ref for item in part]
            self.jobs_enqueued += await asyncio.to_thread(asks[kind], refs, occasion=occasion)
            self._repeated(part)

    async def _is_full(self, queue: QueueName) -> bool:
        return await asyncio.to_thread(self._jobs.depth, queue) >= self._options.max_queue_depth

    def _repeated(self, items: list[DueItem]) -> None:
        now_ms = self._now_ms()
        for item in items:
            self._attempts.repeated(item, now_ms)


def _parts(items: list[DueItem], size: int) -> list[list[DueItem]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
