"""One build, from the ticket to the commit.

Nothing here decides whether a summary is needed or still fits: ``begin_build`` and ``commit_build`` do, in one
script each. A build that fails gives its ticket back with the reason and a pause that grows from failure to
failure.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import orjson
import structlog

from prefold.compaction.engine import Summarizer, SummaryInput
from prefold.compaction.engines import Engines, Made
from prefold.compaction.gate.checks import NoGainError, check_gain
from prefold.compaction.head import Opening, close_head, open_head, repair_head
from prefold.compaction.lease import LeaseLostError, under_lease
from prefold.compaction.ledger.collect import Ledger, collect_ledger
from prefold.compaction.pauses import NO_GAIN, PERMANENT, TRANSIENT, Pauses, failures_with, kept_reason
from prefold.compaction.reading.turns import TurnCache, language_of
from prefold.errors import GoneError, NotFoundError, PrefoldError, TransientError, place_of
from prefold.storage.types import (
    BuildTicket,
    BuiltSummary,
    CommitResult,
    HeadFragment,
    SessionRef,
    SessionView,
    StoredTurn,
)
from prefold.telemetry.metrics import BUILD_SECONDS, BUILD_TOKENS, BUILDS, SWAPS
from prefold.telemetry.tracing import note, span
from prefold.tokens import TokenCounter

log = structlog.get_logger(__name__)

PAGE_TURNS = 500
LEASE = timedelta(seconds=10)
"""Renewed three times within it. So long a session waits whose builder died, at most."""
_AT_ONCE_MS = 100
_GIVE_BACK_SECONDS = 1.5
_MOST_WITHOUT_GAIN = 3
"""After so many builds in a row that gained nothing the session rests until its log has grown."""


class Failed(str):
    """Outcome of a build that would fail again with the same turns."""

    __slots__ = ()


class Undecided(str):
    """Outcome that says nothing about the session: nothing was tried, or a part was away, or another was faster."""

    __slots__ = ()


_LATER = frozenset({"busy", "backoff"})
_OFFLINE = "extractive"
_COMMITTED = frozenset({"standby", "swapped"})
_ENDED = frozenset({"stale", "lost", "gone", "no_gain"})
"""Ends of a build that are no failure; they have a name of their own in the metrics, as what was committed has."""
_OUTCOMES: dict[Pauses, type[str]] = {PERMANENT: Failed, TRANSIENT: Undecided}


class BuildStorage(Protocol):
    """What a build needs of ``prefold.storage.Sessions``; see there."""

    async def view(self, tenant: str, session: str) -> SessionView: ...
    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]: ...
    async def begin_build(self, tenant: str, session: str, incarnation: str, lease_ms: int) -> BuildTicket | str: ...
    async def renew_build(self, ticket: BuildTicket) -> bool: ...
    async def commit_build(self, ticket: BuildTicket, summary: BuiltSummary) -> CommitResult: ...
    async def abandon_build(self, ticket: BuildTicket, reason: str, retry_after_ms: int) -> None: ...
    async def is_degraded(self, ref: SessionRef) -> bool: ...
    async def rest_build(self, ticket: BuildTicket, reason: str) -> None: ...
    async def note_build_time(self, tenant: str, engine: str, seconds: float) -> None: ...


class BuildQuota(Protocol):
    """How many builds a tenant may begin."""

    async def take(self, tenant: str) -> None:
        """Counts one. A ``TransientError`` puts the build off: its code is the reason that is kept."""
        ...


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is known before the engine is asked."""

    ledger: Ledger
    language: str
    opening: Opening


class SessionBuilder:
    """Builds summaries with one engine, for any number of sessions at once. ``fallback`` stands in for it."""

    def __init__(
        self,
        storage: BuildStorage,
        summarizer: Summarizer,
        cache: TurnCache,
        counter: TokenCounter,
        lease: timedelta = LEASE,
        *,
        fallback: Summarizer | None = None,
        quota: BuildQuota | None = None,
    ) -> None:
        self._storage = storage
        self._quota = quota
        self._engines = Engines(summarizer, fallback)
        self._cache = cache
        self._counter = counter
        self._lease_ms = int(lease.total_seconds() * 1000)

    @property
    def engine_name(self) -> str:
        """Of the engine that writes the summaries."""
        return self._engines.primary.name

    async def build(self, ref: SessionRef) -> str:
        """What became of it: ``standby``, ``swapped``, ``stale``, ``lost``, ``gone``, a failure's code, or why none began.

        ``Failed`` and ``Undecided`` are strings that say more.

        Never raises but on cancellation, and when the storage does not answer (``TransientError``): then nothing
        is lost, for the lease runs out and the session is due again.
        """
        ticket = await self.begin(ref)
        return ticket if isinstance(ticket, str) else await self.build_with(ticket)

    async def begin(self, ref: SessionRef) -> BuildTicket | str:
        """The claim: a ticket with a lease, or the outcome when there is nothing to build. Raises ``TransientError``."""
        ticket = await self._storage.begin_build(ref.tenant, ref.session, ref.incarnation, self._lease_ms)
        if isinstance(ticket, str):
            log.debug("build_not_begun", tenant=ref.tenant, session=ref.session, reason=ticket)
            return Undecided(ticket) if ticket in _LATER else ticket
        return ticket

    async def build_with(self, ticket: BuildTicket) -> str:
        """The outcome of the build that a claim leads to; see ``build``."""
        ref = ticket.ref
        named: dict[str, str | int] = {
            "tenant": ref.tenant,
            "session": ref.session,
            "covers_to": ticket.covers_to,
            "epoch": ticket.epoch,
        }
        newest = (ref.tenant, ref.session, ref.incarnation, ticket.head_seq)
        with structlog.contextvars.bound_contextvars(**named), span("build", named, turns=[newest]):
            outcome = await self._build_with(ticket)
            note({"outcome": outcome})
            if outcome not in _COMMITTED:
                BUILDS.labels(self.engine_name, outcome if outcome in _ENDED else "failed").inc()
            return outcome

    async def _build_with(self, ticket: BuildTicket) -> str:
        try:
            if self._quota is not None:
                await self._quota.take(ticket.ref.tenant)
            started = time.monotonic()
            hurry = asyncio.Event()
            summary = await under_lease(self._storage, ticket, self._make(ticket, hurry), hurry)
            return await self._commit(ticket, summary, started)
        except LeaseLostError:
            log.info("build_lost")
            return Undecided("lost")
        except asyncio.CancelledError:
            await self._give_back(ticket)
            raise
        except NoGainError as error:
            return await self._fail(ticket, error.code, error.detail, NO_GAIN)
        except TransientError as error:
            return await self._fail(ticket, error.code, error.detail, TRANSIENT, error.retry_after)
        except PrefoldError as error:
            return await self._fail(ticket, error.code, error.detail, PERMANENT)
        except Exception as error:  # noqa: BLE001 (a fault of an engine must not end the other builds of the job)
            # Its message may quote the conversation: the type and the place say enough.
            return await self._fail(ticket, "engine_fault", place_of(error), PERMANENT)

    async def _make(self, ticket: BuildTicket, hurry: asyncio.Event) -> BuiltSummary:
        started = time.monotonic()
        turns = await self._read(ticket)
        prepared = await asyncio.to_thread(self._prepare, ticket, turns)
        wanted = SummaryInput(
            ref=ticket.ref,
            turns=turns,
            cap_tokens=prepared.opening.summary_cap,
            language=prepared.language,
            ledger=prepared.ledger,
            carried=prepared.opening.carried,
            ticket=ticket,
            hurry=hurry,
        )
        made = await self._engines.make(wanted, partial(self._last_error, ticket))
        prepared = await asyncio.to_thread(self._repaired, ticket, prepared, made.summary.text)
        head = await asyncio.to_thread(close_head, ticket, prepared.opening, made.summary.text, self._counter)
        check_gain(ticket, turns, head)
        record = await asyncio.to_thread(self._record, wanted, prepared, made, head)
        record["seconds"] = round(time.monotonic() - started, 3)
        record["built_at_ms"] = time.time_ns() // 1_000_000
        log.info("build_made", **record)
        if made.engine.name == _OFFLINE:  # of the others each call is counted
            BUILD_TOKENS.labels(_OFFLINE, "input").inc(record["source_tokens"])
            BUILD_TOKENS.labels(_OFFLINE, "output").inc(record["summary_tokens"])
        return BuiltSummary(head, orjson.dumps(record).decode(), record["coverage"])

    async def _read(self, ticket: BuildTicket) -> tuple[StoredTurn, ...]:
        """Turns 1 to covers_to that say something: a rewind leaves seqs without a turn, a removal leaves no words."""
        turns: list[StoredTurn] = []
        after = 0
        while after < ticket.covers_to:
            most = min(PAGE_TURNS, ticket.covers_to - after)
            page = await self._storage.read_turns(ticket.ref.tenant, ticket.ref.session, after, most)
            turns += [turn for turn in page if turn.seq <= ticket.covers_to and not turn.removed]
            if len(page) < most or page[-1].seq >= ticket.covers_to:
                break
            after = page[-1].seq
        return tuple(turns)

    def _prepare(self, ticket: BuildTicket, turns: Sequence[StoredTurn]) -> _Prepared:
        readings = self._cache.read(ticket.ref, turns)
        ledger = collect_ledger(readings)
        language = language_of(readings)
        return _Prepared(ledger, language, open_head(ticket, turns, ledger, language, self._counter))

    def _repaired(self, ticket: BuildTicket, prepared: _Prepared, text: str) -> _Prepared:
        """With the ledger that goes with this summary."""
        ledger, language = prepared.ledger, prepared.language
        opening = repair_head(ticket, prepared.opening, ledger, language, text, self._counter)
        return replace(prepared, opening=opening)

    def _record(
        self, wanted: SummaryInput, prepared: _Prepared, made: Made, head: Sequence[HeadFragment]
    ) -> dict[str, Any]:
        """What is kept with the summary; no text of the conversation."""
        summary = made.summary
        said = "\n".join((*prepared.opening.carried, summary.text))
        stands_in = {"instead_of": self.engine_name, "because": made.because} if made.because else {}
        return {
            "engine": made.engine.name,
            **stands_in,
            "prompt_version": made.engine.prompt_version,
            "covers_to": wanted.ticket.covers_to,
            "language": prepared.language,
            "turns": len(wanted.turns),
            "source_tokens": sum(turn.tokens for turn in wanted.turns),
            "summary_tokens": summary.tokens,
            **wanted.tally.record(),
            "head_tokens": {fragment.part: fragment.tokens for fragment in head},
            "coverage_before": round(prepared.ledger.coverage(summary.text), 4),
            "coverage": round(prepared.ledger.coverage(said), 4),
            "ledger_entries": len(prepared.opening.ledger_text.entries),
            "ledger_left_out": prepared.opening.ledger_text.left_out,
        }

    async def _commit(self, ticket: BuildTicket, summary: BuiltSummary, started: float) -> str:
        result = await self._storage.commit_build(ticket, summary)
        if result.outcome == "no_gain":
            return await self._fail(ticket, "no_gain", "the context would not become smaller", NO_GAIN)
        if result.outcome == "stale":
            await self._storage.abandon_build(ticket, "stale", _AT_ONCE_MS)
            log.info("build_stale")
            return Undecided(result.outcome)
        log.info("build_committed", outcome=result.outcome, version=result.version, tokens=result.tokens)
        own_ms = (time.monotonic() - started) * 1000
        _count(orjson.loads(summary.record)["engine"], result.outcome, own_ms / 1000)
        await self._note_time(ticket.ref.tenant, max(own_ms, result.waited_ms) / 1000)
        return result.outcome

    async def _note_time(self, tenant: str, seconds: float) -> None:
        """How long the session waited, whichever engine wrote in the end. The summary stands without it too."""
        with suppress(TransientError):
            await self._storage.note_build_time(tenant, self.engine_name, seconds)

    async def _fail(
        self, ticket: BuildTicket, reason: str, detail: str, pauses: Pauses, retry_after: timedelta | None = None
    ) -> str:
        """Gives the ticket back with a pause; ``gone`` when the session was erased meanwhile."""
        least_ms = int(retry_after.total_seconds() * 1000) if retry_after is not None else 0
        try:
            failures, pause_ms = await self._rest(ticket, reason, pauses, least_ms)
        except (NotFoundError, GoneError):
            log.info("build_gone")
            return "gone"
        reported_at = _MOST_WITHOUT_GAIN if pauses is NO_GAIN else 1
        level = log.warning if failures == reported_at else log.info  # once, when it is known not to pass by itself
        level("build_failed", reason=reason, detail=detail, failures=failures, pause_ms=pause_ms)
        return _OUTCOMES.get(pauses, str)(reason)

    async def _rest(self, ticket: BuildTicket, reason: str, pauses: Pauses, least_ms: int) -> tuple[int, int]:
        """How many failures in a row this is, and the milliseconds that the session rests now; 0: until it grows."""
        failures = failures_with(reason, await self._last_error(ticket))
        if pauses is NO_GAIN and failures >= _MOST_WITHOUT_GAIN:
            await self._storage.rest_build(ticket, kept_reason(reason, failures))
            return failures, 0
        pause_ms = max(pauses.after_ms(failures), least_ms)
        await self._storage.abandon_build(ticket, kept_reason(reason, failures), pause_ms)
        return failures, pause_ms

    async def _last_error(self, ticket: BuildTicket) -> str:
        view = await self._storage.view(ticket.ref.tenant, ticket.ref.session)
        return view.last_build_error

    async def _give_back(self, ticket: BuildTicket) -> None:
        """On the way out: another worker may begin at once. Not for long, and not at all costs."""
        with suppress(PrefoldError, TimeoutError):
            async with asyncio.timeout(_GIVE_BACK_SECONDS):
                await self._storage.abandon_build(ticket, "interrupted", 0)


def _count(engine: str, outcome: str, seconds: float) -> None:
    BUILDS.labels(engine, outcome).inc()
    BUILD_SECONDS.labels(engine).observe(seconds)
    if outcome == "swapped":
        SWAPS.labels("late").inc()
