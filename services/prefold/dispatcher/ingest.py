"""Reads the ingest streams of tenants: who waits, in turn, a batch each."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import structlog
from redis.exceptions import RedisError

from prefold.conversation.accepting import TurnLimits
from prefold.dispatcher.ingest_batch import Batches, unexpected
from prefold.dispatcher.outage import Outage, stopped_within
from prefold.dispatcher.published import ENTRY_OVERHEAD_BYTES
from prefold.errors import ConfigurationError, TransientError
from prefold.storage.ingest import IngestEntry, IngestStreams, LeaseHeld
from prefold.storage.ingest_letters import IngestLetters
from prefold.tokens import TokenCounter

__all__ = ["Ingest", "IngestOptions"]

log = structlog.get_logger(__name__)

_MOST_SECONDS = 5.0
"""Between two passes, whatever the entries wait for."""
_HELD_SECONDS = 0.25
"""Most time that a session which is being changed keeps the others of its tenant waiting."""
_PASSED_SECONDS = 50e-6
"""Pause for each entry that was passed over: some three times what it costs the server and us to look at it again."""
_FAULTS = 3
"""Passes in which an entry may break something while others are stored, and"""
_FAULTS_ALONE = 25
"""while none are: about a minute."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Whose streams, and how much at once."""

    tenants: Sequence[str]
    owner: str
    """Of the leases; no other process has this name."""
    turns: TurnLimits
    look_every: timedelta = timedelta(milliseconds=40)
    look_cost: timedelta = timedelta(microseconds=50)
    """Of one tenant's stream: looks are rarer where there are many."""
    batch_entries: int = 256
    batch_bytes: int = 1_048_576
    at_once: int = 4
    """Tenants that are served at the same time; the others have their turn after one batch."""
    lease: timedelta = timedelta(seconds=10)
    old_letters_every: timedelta = timedelta(minutes=10)


@dataclass(slots=True)
class _Turn:
    """What is known of one tenant's stream."""

    outage: Outage
    not_before: float = 0.0
    is_stream: bool = True
    """False: the key was of another type at the last look."""
    letters_looked_at: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    """By entry: passes in which something broke on it that nobody expected."""


class Ingest:
    """One reader of the streams. At most one of several dispatchers has a tenant's stream at a time, by a lease.

    Who loses it in the middle of a batch does no harm: what is stored twice is stored once, in the same order.
    """

    def __init__(
        self,
        streams: IngestStreams,
        letters: IngestLetters,
        batches: Batches,
        counter: Callable[[], TokenCounter],
        options: IngestOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``counter``: blocks while it loads; asked in a thread, once there is something to count."""
        self._streams = streams
        self._letters = letters
        self._batches = batches
        self._load_counter = counter
        self._options = options
        self._clock = clock
        self._turns = {tenant: _Turn(Outage("ingest", tenant=tenant)) for tenant in options.tenants}
        self._places = asyncio.Semaphore(options.at_once)
        self._looks = Outage("ingest")
        self.entries_applied = 0
        self.entries_refused = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Reads until ``stop`` is set, ends its batches and gives the leases back. Never raises."""
        pause = max(self._options.look_every, self._options.look_cost * len(self._turns))
        serving: dict[str, asyncio.Task[None]] = {}
        while not await stopped_within(stop, pause):
            serving = {tenant: task for tenant, task in serving.items() if not task.done()}
            for tenant in await self._waiting(set(serving), stop):
                serving[tenant] = asyncio.create_task(self._serve(tenant, stop))
        await asyncio.gather(*serving.values())
        for tenant in self._turns:
            with suppress(TransientError, RedisError, OSError):  # it ends by itself
                await self._streams.give_back(tenant, self._options.owner)

    async def _waiting(self, busy: set[str], stop: asyncio.Event) -> list[str]:
        now = self._clock()
        idle = [tenant for tenant, turn in self._turns.items() if tenant not in busy and turn.not_before <= now]
        try:
            lengths = await self._streams.lengths(idle)
            self._looks.over()
        except (TransientError, RedisError, OSError) as error:
            await self._looks.wait(error, stop)
            return []
        for tenant, length in zip(idle, lengths, strict=True):
            self._note_type(tenant, is_stream=length is not None)
        known = [(tenant, length) for tenant, length in zip(idle, lengths, strict=True) if length is not None]
        return [tenant for tenant, length in known if length or self._is_stale(tenant)]

    def _note_type(self, tenant: str, *, is_stream: bool) -> None:
        """Who may write a tenant's keys can make its stream something else: that is told once, and holds up nobody else."""
        turn = self._turns[tenant]
        if turn.is_stream and not is_stream:
            log.warning("ingest_unreadable", tenant=tenant)
        turn.is_stream = is_stream

    def _is_stale(self, tenant: str) -> bool:
        since = self._clock() - self._turns[tenant].letters_looked_at
        return since >= self._options.old_letters_every.total_seconds()

    async def _serve(self, tenant: str, stop: asyncio.Event) -> None:
        """One pass through the stream of a tenant. Never raises."""
        turn = self._turns[tenant]
        try:
            if self._is_stale(tenant):
                turn.letters_looked_at = self._clock()
                await self._letters.end_old(tenant)
            wait = await self._pass(tenant, stop)
            turn.outage.over()
        except (TransientError, ConfigurationError, RedisError, OSError) as error:
            wait = turn.outage.note(error)
        except Exception as error:  # noqa: BLE001 (one tenant's trouble must not end the others' turns)
            wait = turn.outage.note(error, is_bug=True)
        turn.not_before = self._clock() + wait

    async def _pass(self, tenant: str, stop: asyncio.Event) -> float:
        """From the first entry to the last, a batch at a time; seconds until the next pass may begin."""
        options, after, has_applied, left = self._options, "", False, 0
        held: dict[str, float] = {}
        faults: list[tuple[IngestEntry, Exception]] = []
        counter = await asyncio.to_thread(self._load_counter)  # before the lease: loading takes a second
        while not stop.is_set():
            async with self._places:
                ends = self._clock() + options.lease.total_seconds()
                taken = await self._take(tenant, after)
                if isinstance(taken, LeaseHeld):
                    return taken.for_ms / 1000
                if not taken:
                    break
                outcome = await self._batches.apply(
                    tenant, taken, counter, held=frozenset(held), may_go_on=partial(self._is_before, ends)
                )
            self.entries_applied += len(outcome.applied)
            self.entries_refused += len(outcome.refused)
            if outcome.failure is not None:
                raise outcome.failure
            if outcome.is_cut_short or outcome.pause_seconds:
                return min(outcome.pause_seconds, _MOST_SECONDS)
            has_applied = has_applied or bool(outcome.applied)
            left += len(taken) - len(outcome.applied) - len(outcome.refused)
            held |= outcome.held
            faults += outcome.faults
            after = taken[-1].id
        await self._judge(tenant, faults, has_applied=has_applied)
        if not held:
            return 0.0
        most = _HELD_SECONDS if has_applied else _MOST_SECONDS
        return max(min(*held.values(), most), min(left * _PASSED_SECONDS, _MOST_SECONDS))

    async def _take(self, tenant: str, after: str) -> list[IngestEntry] | LeaseHeld:
        options = self._options
        return await self._streams.take(
            tenant,
            options.owner,
            after=after,
            count=options.batch_entries,
            most_bytes=options.batch_bytes,
            most_entry_bytes=options.turns.turn_max_bytes + ENTRY_OVERHEAD_BYTES,
            lease=options.lease,
        )

    async def _judge(self, tenant: str, faults: Sequence[tuple[IngestEntry, Exception]], *, has_applied: bool) -> None:
        """Sets entries aside that break something again and again. While nothing can be stored it may not be their fault."""
        turn = self._turns[tenant]
        turn.faults = {entry.id: turn.faults.get(entry.id, 0) + 1 for entry, _ in faults}
        most = _FAULTS if has_applied else _FAULTS_ALONE
        over = [(entry, unexpected(error)) for entry, error in faults if turn.faults[entry.id] >= most]
        await self._batches.refuse(tenant, over)
        if faults and not has_applied and not over:
            raise faults[0][1]

    def _is_before(self, time: float) -> bool:
        return self._clock() < time
