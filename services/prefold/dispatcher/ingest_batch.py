"""One batch of published turns: stored session by session, then taken out of the stream."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog

from prefold.conversation.accepting import TurnLimits
from prefold.dispatcher.published import Published, keeps_text, read_entry, session_of_entry
from prefold.errors import OverloadedError, RefusedError, TransientError, place_of
from prefold.jobs.dead_letters import running_version
from prefold.quotas import QuotaError, Quotas
from prefold.storage.counting import note_append
from prefold.storage.ingest import IngestEntry
from prefold.storage.ingest_letters import Refusal
from prefold.storage.sessions import Sessions
from prefold.storage.stored import is_stored
from prefold.telemetry import metrics
from prefold.tokens import TokenCounter

__all__ = ["Batches", "Outcome", "unexpected"]

log = structlog.get_logger(__name__)

_SESSIONS_AT_ONCE = 32
_TURNS_AT_ONCE = 100
"""Of one session in one call, as over HTTP."""
_CALLS_AT_ONCE = 1_024
"""Tool calls and results in one call: the store is busy with each."""


_FAULTY_SECONDS = 1.0
"""Until an entry on which something broke is tried again."""


class Promises(Protocol):
    """What the store promises. See ``prefold.storage.watching.Store``."""

    async def admit(self) -> None: ...
    async def promised(self) -> object: ...


class Stream(Protocol):
    """Where applied entries are taken out. See ``IngestStreams``."""

    async def drop(self, tenant: str, entry_ids: Sequence[str]) -> None: ...


class Letters(Protocol):
    """Where bad entries go. See ``IngestLetters``."""

    async def set_aside(
        self, tenant: str, entry_id: str, session: str, refusal: Refusal, *, keep_text: bool
    ) -> int | None: ...


@dataclass(slots=True)
class Outcome:
    """What became of a batch."""

    applied: list[str] = field(default_factory=list)
    """Entries whose turns are stored."""
    refused: list[tuple[IngestEntry, RefusedError]] = field(default_factory=list)
    held: dict[str, float] = field(default_factory=dict)
    """Sessions that are being changed, and for how many seconds they are left alone."""
    pause_seconds: float = 0.0
    """The tenant has used up a quota for so long; what was not applied waits."""
    is_cut_short: bool = False
    """It was told not to go on: entries that come later must not be applied before the rest of these."""
    failure: TransientError | None = None
    """The store did not take all: what is not in the others waits in the stream."""
    faults: list[tuple[IngestEntry, Exception]] = field(default_factory=list)
    """Entries on which something broke that nobody expected; their sessions are held."""


class Batches:
    """Applies batches of entries. Raises ``TransientError`` after taking out what could be applied."""

    def __init__(
        self,
        sessions: Sessions,
        promises: Promises,
        stream: Stream,
        letters: Letters,
        limits: TurnLimits,
        quotas: Quotas | None = None,
    ) -> None:
        """``quotas``: what tenants may append; None: without bounds."""
        self._sessions = sessions
        self._quotas = quotas
        self._promises = promises
        self._stream = stream
        self._letters = letters
        self._limits = limits

    async def apply(
        self,
        tenant: str,
        entries: Sequence[IngestEntry],
        counter: TokenCounter,
        *,
        held: frozenset[str] = frozenset(),
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> Outcome:
        """Stores the turns in the order of each session. Entries of ``held`` sessions stay.

        ``may_go_on``: asked before each session; once it says no, the rest is left as it is.
        """
        outcome = Outcome()
        await self._promises.admit()
        held_names = frozenset(name.encode() for name in held)
        waiting = [entry for entry in entries if entry.session not in held_names]
        turns = await asyncio.to_thread(self._read, waiting, counter, outcome.refused)
        by_session: dict[str, list[Published]] = defaultdict(list)
        for one in turns:
            by_session[one.session].append(one)
        places = asyncio.Semaphore(_SESSIONS_AT_ONCE)

        async def store(session: str, published: list[Published]) -> None:
            async with places:
                outcome.is_cut_short = outcome.is_cut_short or not may_go_on()
                if not (outcome.is_cut_short or outcome.pause_seconds or outcome.failure):
                    await self._store_session(tenant, session, published, outcome)

        async with asyncio.TaskGroup() as tasks:
            for session, published in by_session.items():
                tasks.create_task(store(session, published))
        if outcome.applied:
            # What the store does not keep as promised stays in the stream.
            await self._promises.promised()
            await self._stream.drop(tenant, outcome.applied)
        await self.refuse(tenant, outcome.refused)
        return outcome

    def _read(
        self, entries: Sequence[IngestEntry], counter: TokenCounter, refused: list[tuple[IngestEntry, RefusedError]]
    ) -> list[Published]:
        turns = []
        for entry in entries:
            try:
                turns.append(read_entry(entry, counter, self._limits))
            except RefusedError as error:
                refused.append((entry, error))
            except Exception as error:  # noqa: BLE001 (whatever it is, the same entry would break the next time)
                refused.append((entry, unexpected(error)))
        return turns

    async def _store_session(self, tenant: str, session: str, turns: list[Published], outcome: Outcome) -> None:
        for part in _calls(turns):
            if session in outcome.held:
                return
            try:
                async with self._spent(tenant, session, part):
                    await self._store_part(tenant, session, part, outcome)
            except OverloadedError as error:
                after = error.retry_after
                seconds = after.total_seconds() if after is not None else 1.0
                outcome.held[session] = seconds
                if isinstance(error, QuotaError) and error.members["quota"] != "sessions":
                    outcome.pause_seconds = seconds
                return
            except TransientError as error:
                outcome.failure = outcome.failure or error
                return

    @asynccontextmanager
    async def _spent(self, tenant: str, session: str, part: Sequence[Published]) -> AsyncIterator[None]:
        """Raises ``QuotaError``. A part that will come again costs nothing: it may come a thousand times."""
        lease = self._quotas.of(tenant) if self._quotas is not None else None
        if lease is None:
            yield
            return
        turns, tokens = len(part), sum(one.turn.tokens for one in part)
        await lease.take_for(session, turns, tokens, partial(is_stored, self._sessions, tenant, session))
        try:
            yield
        except TransientError:
            lease.put_back(turns, tokens)
            raise

    async def _store_part(self, tenant: str, session: str, part: list[Published], outcome: Outcome) -> None:
        """Stores the turns; where one of several cannot be stored, halves them until it stands alone."""
        try:
            result = await self._sessions.append(tenant, session, [one.turn for one in part])
        except TransientError:
            raise
        except Exception as error:  # noqa: BLE001 (a bug of ours must cost one entry, not the stream)
            if len(part) > 1:
                middle = len(part) // 2
                await self._store_part(tenant, session, part[:middle], outcome)
                if session not in outcome.held:
                    await self._store_part(tenant, session, part[middle:], outcome)
            elif isinstance(error, RefusedError):
                outcome.refused.append((part[0].entry, error))
                await self._recount(tenant, session)
            else:
                outcome.faults.append((part[0].entry, error))
                outcome.held[session] = _FAULTY_SECONDS
            return
        note_append(result)
        outcome.applied += [one.entry.id for one in part]
        repeated = sum(turn.duplicate for turn in result.turns)
        metrics.INGESTED_TURNS.labels("duplicate").inc(repeated)
        metrics.INGESTED_TURNS.labels("stored").inc(len(part) - repeated)

    async def _recount(self, tenant: str, session: str) -> None:
        """A session that the refused turn would have begun is not one of the tenant's."""
        lease = self._quotas.of(tenant) if self._quotas is not None else None
        if lease is not None:
            await lease.recount(session, partial(is_stored, self._sessions, tenant, session))

    async def refuse(self, tenant: str, refused: Sequence[tuple[IngestEntry, RefusedError]]) -> None:
        """Moves entries to the dead letters."""
        reasons: Counter[str] = Counter()
        given_up = 0
        for entry, error in refused:
            refusal = Refusal(error.code, (error.field or "")[:200], entry.size_bytes, running_version())
            done = await self._letters.set_aside(
                tenant, entry.id, session_of_entry(entry), refusal, keep_text=keeps_text(entry, error)
            )
            if done is not None:
                reasons[error.code] += 1
                given_up += done
        if reasons:
            metrics.INGESTED_TURNS.labels("bad").inc(reasons.total())
            log.warning("ingest_refused", tenant=tenant, entries=reasons.total(), reasons=dict(reasons))
        if given_up:
            log.warning("ingest_letters_given_up", tenant=tenant, letters=given_up)


def unexpected(error: Exception) -> RefusedError:
    """The refusal of an entry on which our own code breaks. It may be replayed once that is mended."""
    return RefusedError("nobody expected this entry", code="unexpected", field=place_of(error))


def _calls(turns: Sequence[Published]) -> list[list[Published]]:
    """The turns cut into calls of the store."""
    parts: list[list[Published]] = []
    calls = 0
    for one in turns:
        own = len(one.turn.call_ids) + len(one.turn.results)
        if not parts or len(parts[-1]) >= _TURNS_AT_ONCE or calls + own > _CALLS_AT_ONCE:
            parts.append([])
            calls = 0
        parts[-1].append(one)
        calls += own
    return parts
