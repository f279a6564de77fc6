"""Reads turn events and asks for what they call for."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from prefold.dispatcher.ahead import Ahead, long_streams
from prefold.dispatcher.asking import Asking, Cut, Piece
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.batching import BuildWishes, EmbedBatch
from prefold.dispatcher.outage import Outage, stopped_within
from prefold.dispatcher.ports import TurnEvents
from prefold.errors import TransientError
from prefold.jobs import Ask
from prefold.jobs.names import SESSIONS_PER_JOB
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import TurnEvent
from prefold.telemetry import metrics

log = structlog.get_logger(__name__)


_FEW = 32
"""Partitions, of all."""


@dataclass(frozen=True, slots=True)
class IntakeOptions:
    """How events are read and collected."""

    consumer: str
    batch_turns: int = 64
    batch_wait_ms: int = 100
    build_window_ms: int = 250
    max_build_window_ms: int = 1_000
    read_count: int = 64
    """Events of each partition in one read."""
    read_more: int = 2_048
    """Events in a further read, where a few partitions have more than that."""
    read_pause_ms: int = 20
    """Least time between two reads."""
    block_ms: int = 500
    claim_idle_ms: int = 15_000
    count_drops_ms: int = 60_000
    """Time between two looks for events that the cap dropped unread; they are taken after a pause of ours too."""
    long_pause_ms: int = 5_000


def _embed(job: Sequence[Piece]) -> Ask:
    return Ask.embed([EmbedSpan(*_names(piece), piece.first_seq, piece.last_seq) for piece in job], "events")


def _names(piece: Piece) -> tuple[str, str, str]:
    return piece.ref.tenant, piece.ref.session, piece.ref.incarnation


def _build(job: Sequence[Piece]) -> Ask:
    """The newest turns that asked tell two wishes of one session apart."""
    return Ask.sessions("compact", [piece.ref for piece in job], ",".join(str(piece.last_seq) for piece in job))


_BUILDS = Cut(SESSIONS_PER_JOB, _build)


async def _none_dropped() -> int:
    return 0


class Intake:
    """One consumer of the event streams: collects, enqueues, then acknowledges.

    An event is acknowledged once its work is on the queue, so a crash repeats work and loses none. What a queue has
    no room for is left to the reconciler, and the events are acknowledged all the same.
    """

    def __init__(
        self,
        events: TurnEvents,
        asking: Asking,
        attempts: Attempts,
        options: IntakeOptions,
        now_ms: Callable[[], int],
        *,
        count_drops: Callable[[], Awaitable[int]] = _none_dropped,
    ) -> None:
        """``count_drops``: events that were dropped since it was last asked, as far as nobody has read on yet."""
        self._events = events
        self._ahead = Ahead(events, options.read_count)
        self._count_drops = count_drops
        self._asking = asking
        self._embeds = Cut(options.batch_turns, _embed)
        self._attempts = attempts
        self._options = options
        self._now_ms = now_ms
        self._batch = EmbedBatch(options.batch_turns, options.batch_wait_ms)
        self._wishes = BuildWishes(options.build_window_ms, options.max_build_window_ms)
        self._unacked: list[TurnEvent] = []
        self._outage = Outage("intake")
        self.events_seen = 0
        self.events_dropped = 0
        self.jobs_enqueued = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Works until ``stop`` is set, then enqueues what is collected and returns. Never raises."""
        while not stop.is_set():
            try:
                await self._events.ensure_groups()
                await self._note_drops()
                await self._own_pending(stop)
                await self._follow(stop)
            except (TransientError, RedisError, OSError) as error:
                self._start_over()
                await self._outage.wait(error, stop)
            except Exception as error:  # noqa: BLE001 (the loop must outlive a bug: the reconciler depends on it)
                self._start_over()
                await self._outage.wait(error, stop, is_bug=True)

    async def _own_pending(self, stop: asyncio.Event) -> None:
        """Takes what was ours before a crash or an error: nobody else gets it soon."""
        seen: set[tuple[int, str]] = set()
        while not stop.is_set():
            events = await self._events.pending(self._options.consumer)
            if {(event.partition, event.entry_id) for event in events} <= seen:
                return
            seen.update((event.partition, event.entry_id) for event in events)
            self._collect(events)
            await self._flush()

    async def _follow(self, stop: asyncio.Event) -> None:
        claimed_ms = counted_ms = read_ms = self._now_ms()
        while not stop.is_set():
            now_ms = self._now_ms()
            if now_ms - counted_ms >= self._options.count_drops_ms or now_ms - read_ms >= self._options.long_pause_ms:
                counted_ms = now_ms
                await self._note_drops()
            events = await self._read()
            read_ms = self._now_ms()
            self._outage.over()
            self._gather(await self._ahead.look(events, read_ms))
            await self._enqueue_builds()
            if self._batch_is_due():
                await self._flush()
            if self._now_ms() - claimed_ms >= self._options.claim_idle_ms // 3:
                claimed_ms = self._now_ms()
                self._collect(await self._events.claim(self._options.consumer, self._options.claim_idle_ms))
            if len(events) < self._options.batch_turns:
                await stopped_within(stop, self._pause())
        await self._flush()

    async def _read(self) -> list[TurnEvent]:
        """One read of all streams; of a few that are long more at once, for a read that names all costs much."""
        options = self._options
        events = await self._events.read(options.consumer, options.read_count, self._block_ms())
        self._collect(events)
        longest = long_streams(events, options.read_count)
        if 0 < len(longest) <= _FEW:
            more = await self._events.read_more(options.consumer, options.read_more // len(longest), longest)
            self._collect(more)
            events += more
        return events

    async def _note_drops(self) -> None:
        dropped = await self._count_drops()
        if dropped:
            self.events_dropped += dropped
            metrics.EVENTS_DROPPED.inc(dropped)
            log.warning("events_dropped", events=dropped)  # no work is lost: it stands in `due`

    def _collect(self, events: list[TurnEvent]) -> None:
        self._gather([event for event in events if not self._ahead.is_done(event)])
        self._unacked.extend(events)
        self.events_seen += len(events)
        metrics.EVENTS.inc(len(events))

    def _gather(self, events: list[TurnEvent]) -> None:
        now_ms = self._now_ms()
        for event in events:
            self._batch.add(event, now_ms)
            if event.build_due:
                self._wishes.add(event, now_ms)
            else:
                self._wishes.forget(event.ref)

    def _block_ms(self) -> int:
        """0 while a batch fills: Redis ends a wait up to 100 ms late, so we come back by ourselves."""
        now_ms = self._now_ms()
        if self._batch.wait_ms(now_ms) is not None:
            return 0
        wish_ms = self._wishes.wait_ms(now_ms)
        return self._options.block_ms if wish_ms is None else min(self._options.block_ms, wish_ms)

    def _pause(self) -> timedelta:
        """Until the next read: one read names all partitions and costs as much as many events."""
        wait_ms = self._batch.wait_ms(self._now_ms())
        most = self._options.read_pause_ms
        return timedelta(milliseconds=most if wait_ms is None else min(most, wait_ms))

    def _batch_is_due(self) -> bool:
        if self._batch.wait_ms(self._now_ms()) is None:
            return bool(self._unacked)  # events without turns
        return self._batch.wait_ms(self._now_ms()) == 0

    async def _enqueue_builds(self) -> None:
        ready = self._wishes.take(self._now_ms())
        try:
            asked = await self._asking.ask("compact", [Piece(ref, last_seq=seq) for ref, seq in ready.items()], _BUILDS)
        except Exception:
            self._wishes.restore(ready)
            raise
        self.jobs_enqueued += asked.jobs

    async def _flush(self) -> None:
        """Enqueues the batch and the builds that are ready, then acknowledges everything read so far."""
        await self._enqueue_builds()
        asked = await self._asking.ask("embed", self._batch.pieces(), self._embeds)
        self.jobs_enqueued += asked.jobs
        unacked, self._unacked = self._unacked, []
        self._note(unacked)
        self._batch.clear()
        await self._events.ack(unacked)

    def _note(self, events: list[TurnEvent]) -> None:
        now_ms = self._now_ms()
        for event in {event.ref: event for event in events}.values():
            self._attempts.asked("embed", event, now_ms)
        for event in {event.ref: event for event in events if event.build_due}.values():
            self._attempts.asked("compact", event, now_ms)

    def _start_over(self) -> None:
        """Forgets what is collected: it is still assigned to us, and ``pending`` gives it again."""
        self._batch.clear()
        self._unacked.clear()
        self._ahead.forget()
