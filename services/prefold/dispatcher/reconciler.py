"""Asks again for what the sessions' own state says is undone, whatever became of events and jobs."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from prefold.dispatcher.asking import Asking, Cut, Piece
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.fairness import in_turn
from prefold.dispatcher.outage import Outage, stopped_within
from prefold.dispatcher.ports import DueSets
from prefold.errors import TransientError
from prefold.jobs import TO_HEAD, Ask
from prefold.jobs.names import SESSIONS_PER_JOB, WORK_KINDS, WorkKind
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.keys import PARTITIONS
from prefold.storage.types import DueItem
from prefold.telemetry import metrics

log = structlog.get_logger(__name__)

_LOOKS = 4
"""Each takes every fourth partition: some of every server of a cluster, so that one which is away spoils none."""


@dataclass(frozen=True, slots=True)
class ReconcilerOptions:
    """How often it looks and how much it asks for."""

    every: timedelta = timedelta(seconds=1)
    entries_per_partition: int = 200
    sessions_per_embed_job: int = 32
    sessions_per_look: int = 2_000
    """Of one kind in a quarter of the partitions; the others have their turn with the next look."""


class Reconciler:
    """Scans the ``due`` sets. Losing every event and every job costs only time because of it."""

    def __init__(
        self,
        due_sets: DueSets,
        asking: Asking,
        attempts: Attempts,
        options: ReconcilerOptions,
        *,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], Awaitable[int]],
    ) -> None:
        self._due_sets = due_sets
        self._asking = asking
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
            for kind in WORK_KINDS:
                await self._enqueue(kind, [item for item in items if item.kind == kind], occasion)

    async def _overdue(self, wall_ms: int, partitions: Sequence[int]) -> list[DueItem]:
        # Entries that are held back come first in their set; the limit must reach beyond them.
        limit = self._options.entries_per_partition + max(map(self._attempts.waiting, partitions))
        items = await self._due_sets.due(wall_ms, limit, partitions)
        found = Counter(item.partition for item in items)
        deep = [partition for partition in partitions if found[partition] >= limit]
        if deep:
            items += await self._due_sets.beyond(wall_ms, self._options.entries_per_partition, deep)
        now_ms = self._now_ms()
        return [item for item in dict.fromkeys(items) if self._attempts.may(item, now_ms)]

    async def _enqueue(self, kind: WorkKind, items: list[DueItem], occasion: str) -> None:
        by_ref = {item.ref: item for item in items}
        pieces = in_turn([Piece(ref) for ref in by_ref])[: self._options.sessions_per_look]
        asked = await self._asking.ask(kind, pieces, self._cut(kind, occasion))
        self.jobs_enqueued += asked.jobs
        metrics.RECONCILER_REPAIRS.labels(kind).inc(len(asked.pieces))
        self._repeated([by_ref[piece.ref] for piece in asked.pieces])

    def _cut(self, kind: WorkKind, occasion: str) -> Cut:
        if kind == "embed":
            return Cut(self._options.sessions_per_embed_job, lambda job: _embed(job, occasion))
        return Cut(SESSIONS_PER_JOB, lambda job: Ask.sessions(kind, [piece.ref for piece in job], occasion))

    def _repeated(self, items: list[DueItem]) -> None:
        now_ms = self._now_ms()
        for item in items:
            self._attempts.repeated(item, now_ms)


def _embed(job: Sequence[Piece], occasion: str) -> Ask:
    refs = (piece.ref for piece in job)
    return Ask.embed([EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, TO_HEAD) for ref in refs], occasion)
