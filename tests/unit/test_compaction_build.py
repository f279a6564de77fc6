"""One build against a storage in memory: what is asked, what is committed, and how each failure ends."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from prefold.compaction.build import PAGE_TURNS, SessionBuilder
from prefold.compaction.engine import Summarizer, Summary, SummaryInput
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.lease import LeaseLostError, under_lease
from prefold.compaction.pauses import NO_GAIN, PERMANENT, TRANSIENT, Pauses, failures_with, kept_reason
from prefold.errors import GoneError, NotFoundError, OverloadedError, RefusedError, UnavailableError
from prefold.storage.types import BuildTicket, BuiltSummary, CommitResult, SessionRef, StoredTurn
from prefold.tokens import load_counter
from tests.support.compaction import REF, new_cache, small_talk, stored, ticket, users
from tests.support.waiting import wait_until_async


@dataclass
class View:
    last_build_error: str = ""


@dataclass
class FakeStorage:
    """Keeps the promises of ``prefold.storage.Sessions`` about one session's builds."""

    turns: list[StoredTurn]
    ticket: BuildTicket | str
    outcome: str = "standby"
    error: str = ""
    renewals: int = 1_000_000
    """So many renewals are granted."""
    failing_renewals: int = 0
    reads: list[tuple[int, int]] = field(default_factory=list)
    committed: list[BuiltSummary] = field(default_factory=list)
    abandoned: list[tuple[str, int]] = field(default_factory=list)
    renewed: int = 0
    degraded: bool = False
    """As a renewal finds it."""
    gone: Exception | None = None
    """What every call says from now on: the session was erased."""
    waited_ms: int = 0
    rested: list[str] = field(default_factory=list)
    noted: list[tuple[str, str, float]] = field(default_factory=list)
    is_deaf: bool = False
    """Build times cannot be noted."""

    def _enter(self) -> None:
        if self.gone is not None:
            raise self.gone

    async def view(self, tenant: str, session: str) -> Any:
        self._enter()
        return View(self.error)

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        assert 1 <= limit <= PAGE_TURNS
        self.reads.append((after_seq, limit))
        return [turn for turn in self.turns if turn.seq > after_seq][:limit]

    async def begin_build(self, tenant: str, session: str, incarnation: str, lease_ms: int) -> BuildTicket | str:
        return self.ticket if isinstance(self.ticket, str) else replace(self.ticket, lease_ms=lease_ms)

    async def is_degraded(self, ref: SessionRef) -> bool:
        return self.degraded

    async def renew_build(self, leave: BuildTicket) -> bool:
        if self.failing_renewals:
            self.failing_renewals -= 1
            raise UnavailableError("away")
        self.renewed += 1
        return self.renewed <= self.renewals

    async def commit_build(self, leave: BuildTicket, summary: BuiltSummary) -> CommitResult:
        self.committed.append(summary)
        return CommitResult(self.outcome, 3, 900, self.waited_ms)  # type: ignore[arg-type]

    async def abandon_build(self, leave: BuildTicket, reason: str, retry_after_ms: int) -> None:
        self._enter()
        self.abandoned.append((reason, retry_after_ms))
        self.error = reason

    async def rest_build(self, leave: BuildTicket, reason: str) -> None:
        self._enter()
        self.rested.append(reason)
        self.error = reason

    async def note_build_time(self, tenant: str, engine: str, seconds: float) -> None:
        if self.is_deaf:
            raise UnavailableError("away")
        self.noted.append((tenant, engine, seconds))


@dataclass
class FakeEngine:
    """Answers, or raises, what it is told; waits for ``gate`` first where there is one."""

    answer: Summary | Exception | None = None
    gate: asyncio.Event | None = None
    asked: list[SummaryInput] = field(default_factory=list)
    cancelled: bool = False
    name = "fake"
    prompt_version = "7"

    async def summarize(self, wanted: SummaryInput) -> Summary:
        self.asked.append(wanted)
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None
        return self.answer


def conversation(length: int = 60) -> list[StoredTurn]:
    return [stored(1, "user", "My budget is $3000 for a trip to Rome."), *small_talk(2, length - 1)]


def builder(storage: FakeStorage, engine: Summarizer | None = None, lease_ms: int = 30_000) -> SessionBuilder:
    cache = new_cache()
    chosen = engine or ExtractiveSummarizer(cache, load_counter())
    return SessionBuilder(storage, chosen, cache, load_counter(), timedelta(milliseconds=lease_ms))


async def test_a_build_reads_every_turn_in_pages_and_commits_a_head() -> None:
    storage = FakeStorage(conversation(1201), ticket(1190, 8000))
    assert await builder(storage).build(REF) == "standby"
    assert storage.reads == [(0, 500), (500, 500), (1000, 190)]
    (committed,) = storage.committed
    assert [fragment.part for fragment in committed.fragments] == ["first_message", "summary"]
    record = orjson.loads(committed.record)
    assert record["engine"] == "extractive"
    assert record["turns"] == 1190
    assert record["head_tokens"] == {fragment.part: fragment.tokens for fragment in committed.fragments}
    assert committed.coverage == record["coverage"] == 1.0
    assert storage.abandoned == []


async def test_turns_after_the_cut_never_reach_the_engine() -> None:
    engine = FakeEngine(RefusedError("no"))
    await builder(FakeStorage(conversation(60), ticket(40, 8000)), engine).build(REF)
    assert [turn.seq for turn in engine.asked[0].turns] == list(range(1, 41))
    assert engine.asked[0].cap_tokens > 100
    assert engine.asked[0].language == "en"


async def test_seqs_that_a_rewind_left_empty_are_no_gap() -> None:
    turns = [turn for turn in conversation(80) if not 20 < turn.seq < 50]
    storage = FakeStorage(turns, ticket(49, 2000))
    assert await builder(storage).build(REF) == "standby"
    assert orjson.loads(storage.committed[0].record)["turns"] == 20


@pytest.mark.parametrize("reason", ["gone", "not_due", "busy", "backoff", "no_cut"])
async def test_without_a_ticket_nothing_is_read(reason: str) -> None:
    storage = FakeStorage(conversation(), reason)
    assert await builder(storage).build(REF) == reason
    assert storage.reads == []


async def test_a_stale_build_is_over_and_no_failure() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000), outcome="stale")
    assert await builder(storage).build(REF) == "stale"
    assert storage.abandoned == [("stale", 100)]


async def test_after_three_builds_without_gain_the_session_rests_until_it_grows_and_is_reported_once() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000), outcome="no_gain")
    with capture_logs() as logs:
        for _ in range(5):
            assert await builder(storage).build(REF) == "no_gain"
    assert [reason for reason, _ in storage.abandoned] == ["no_gain", "no_gain, 2 in a row"]
    assert storage.abandoned[1][1] > 3 * storage.abandoned[0][1]
    assert storage.rested == [f"no_gain, {n} in a row" for n in (3, 4, 5)]
    levels = [entry["log_level"] for entry in logs if entry["event"] == "build_failed"]
    assert levels == ["info", "info", "warning", "info", "info"]


@pytest.mark.parametrize("outcome", ["standby", "swapped"])
async def test_how_long_the_session_waited_is_noted_after_a_commit(outcome: str) -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000), outcome=outcome, waited_ms=42_000)
    await builder(storage).build(REF)
    assert storage.noted == [(REF.tenant, "extractive", 42.0)]


async def test_a_wait_that_is_not_known_is_as_long_as_the_build() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000))
    await builder(storage).build(REF)
    ((_, _, seconds),) = storage.noted
    record = orjson.loads(storage.committed[0].record)
    assert record["seconds"] - 0.001 <= seconds


@pytest.mark.parametrize("outcome", ["stale", "no_gain"])
async def test_what_is_not_committed_is_no_build_time(outcome: str) -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000), outcome=outcome, waited_ms=42_000)
    await builder(storage).build(REF)
    assert storage.noted == []


async def test_a_build_time_that_cannot_be_noted_costs_no_summary() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000), is_deaf=True)
    assert await builder(storage).build(REF) == "standby"


async def test_a_conversation_that_cannot_shrink_is_refused_before_the_commit() -> None:
    storage = FakeStorage([stored(1, "user", "Hi."), stored(2, "assistant", "Hello.")], ticket(2, 1000))
    assert await builder(storage).build(REF) == "no_gain"
    assert storage.committed == []
    assert storage.abandoned[0][1] >= NO_GAIN.first.total_seconds() * 1000


@pytest.mark.parametrize(
    ("error", "reason", "pauses"),
    [
        (UnavailableError("the model does not answer"), "unavailable", TRANSIENT),
        (OverloadedError("too many"), "overloaded", TRANSIENT),
        (RefusedError("it will not", code="model_refused"), "model_refused", PERMANENT),
        (ValueError("My budget is $3000"), "engine_fault", PERMANENT),
        (TimeoutError(), "engine_fault", PERMANENT),
    ],
)
async def test_a_failing_engine_gives_the_ticket_back(error: Exception, reason: str, pauses: Pauses) -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000))
    with capture_logs() as logs:
        assert await builder(storage, FakeEngine(error)).build(REF) == reason
    ((kept, pause_ms),) = storage.abandoned
    assert kept == reason
    first_ms = pauses.first.total_seconds() * 1000
    assert first_ms <= pause_ms <= 1.2 * first_ms + 1
    assert storage.committed == []
    assert "$3000" not in str(logs)
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["build_failed"]


async def test_a_failure_is_reported_once_and_then_only_noted() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000))
    with capture_logs() as logs:
        for _ in range(3):
            await builder(storage, FakeEngine(RefusedError("no"))).build(REF)
    assert [entry["log_level"] for entry in logs if entry["event"] == "build_failed"] == ["warning", "info", "info"]


async def test_a_servers_wish_when_to_come_back_is_granted() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000))
    error = OverloadedError("later", retry_after=timedelta(minutes=9))
    await builder(storage, FakeEngine(error)).build(REF)
    assert storage.abandoned == [("overloaded", 540_000)]


async def test_what_the_gate_refuses_is_not_committed() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000))
    assert await builder(storage, FakeEngine(Summary((), "", 0, (1, 50)))).build(REF) == "summary_empty"
    assert storage.committed == []


async def test_a_long_build_keeps_its_lease() -> None:
    gate = asyncio.Event()
    engine = FakeEngine(RefusedError("no"), gate)
    storage = FakeStorage(conversation(), ticket(50, 2000), failing_renewals=1)
    building = asyncio.create_task(builder(storage, engine, lease_ms=900).build(REF))

    async def renewed_often() -> bool:
        return storage.renewed >= 5

    await wait_until_async("the lease was renewed five times", renewed_often)
    gate.set()
    assert await building == "refused"


async def test_a_build_whose_lease_is_lost_is_stopped_and_gives_nothing_back() -> None:
    engine = FakeEngine(None, asyncio.Event())
    storage = FakeStorage(conversation(), ticket(50, 2000))
    building = asyncio.create_task(builder(storage, engine, lease_ms=900).build(REF))

    async def asked() -> bool:
        return bool(engine.asked)

    await wait_until_async("the engine was asked", asked)
    storage.renewals = storage.renewed
    assert await building == "lost"
    assert engine.cancelled
    assert storage.abandoned == []
    assert storage.committed == []


async def test_a_lease_that_cannot_be_renewed_ends_when_it_must_have_run_out() -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000), failing_renewals=1_000_000)
    engine = FakeEngine(None, asyncio.Event())
    assert await builder(storage, engine, lease_ms=900).build(REF) == "lost"


async def test_a_cancelled_build_lets_another_worker_begin_at_once() -> None:
    engine = FakeEngine(None, asyncio.Event())
    storage = FakeStorage(conversation(), ticket(50, 2000))
    building = asyncio.create_task(builder(storage, engine).build(REF))

    async def asked() -> bool:
        return bool(engine.asked)

    await wait_until_async("the engine was asked", asked)
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert storage.abandoned == [("interrupted", 0)]


async def test_work_that_ends_with_its_lease_still_counts() -> None:
    async def work() -> int:
        return 7

    assert await under_lease(FakeStorage([], "x", renewals=0), ticket(1, 1000, lease_ms=1), work()) == 7


async def test_an_error_of_the_work_is_passed_on_and_renewing_stops() -> None:
    async def work() -> int:
        raise KeyError("x")

    storage = FakeStorage([], "x")
    with pytest.raises(KeyError):
        await under_lease(storage, ticket(1, 1000, lease_ms=30_000), work())
    with pytest.raises(LeaseLostError):
        await under_lease(FakeStorage([], "x", renewals=0), ticket(1, 1000, lease_ms=1), asyncio.Event().wait())
    assert storage.renewed == 0


def test_logged_events_hold_no_text_of_the_conversation() -> None:
    storage = FakeStorage([*users("My secret garden is in Utrecht."), *small_talk(3, 60)], ticket(60, 2000))
    with capture_logs() as logs:
        asyncio.run(builder(storage).build(REF))
    assert [entry["event"] for entry in logs] == ["build_made", "build_committed"]
    assert "Utrecht" not in str(logs)
    assert "garden" not in str(logs)


def test_failures_in_a_row_are_counted_by_the_reason_that_is_kept() -> None:
    kept = ""
    for expected in range(1, 5):
        assert failures_with("no_gain", kept) == expected
        kept = kept_reason("no_gain", failures_with("no_gain", kept))
    assert failures_with("unavailable", kept) == 1
    assert failures_with("model_timeout", kept_reason("model_unavailable", 2)) == 3
    assert failures_with("model_timeout", "model_overloaded") == 2
    assert failures_with("unavailable", "model_overloaded") == 1
    assert failures_with("no_gain", "no_cut") == 1


def test_pauses_grow_up_to_their_most() -> None:
    pauses = Pauses(timedelta(seconds=1), timedelta(seconds=30))
    for failures, seconds in [(1, 1), (2, 4), (3, 16), (4, 30), (50, 30)]:
        assert 1000 * seconds <= pauses.after_ms(failures) <= 1200 * seconds + 1


@pytest.mark.parametrize("gone", [NotFoundError("no such session"), GoneError("erased")])
async def test_a_session_that_was_erased_while_its_build_failed_is_gone_and_no_failure(gone: Exception) -> None:
    storage = FakeStorage(conversation(), ticket(50, 2000))
    gate = asyncio.Event()
    engine = FakeEngine(UnavailableError("away"), gate)
    building = asyncio.create_task(builder(storage, engine).build(REF))

    async def asked() -> bool:
        return bool(engine.asked)

    await wait_until_async("the engine was asked", asked)
    storage.gone = gone
    gate.set()
    assert await building == "gone"
    assert storage.abandoned == []


def test_no_pause_keeps_a_session_over_its_limit_for_long() -> None:
    assert NO_GAIN.after_ms(1_000) <= 1.2 * 60_000
    assert PERMANENT.after_ms(1_000) <= 1.2 * 15 * 60_000


async def test_sessions_that_share_an_incarnation_do_not_get_each_others_turns() -> None:
    storage, engine = FakeStorage([], ""), FakeEngine(RefusedError("no"))
    work = builder(storage, engine)
    for tenant, budget in (("acme", "$3000"), ("umbrella", "$7000")):
        storage.turns = [stored(1, "user", f"My budget is {budget} for a trip to Rome."), *small_talk(2, 59)]
        storage.ticket = ticket(50, 2000, ref=SessionRef(tenant, REF.session, REF.incarnation))
        await work.build(storage.ticket.ref)
        assert budget in str(engine.asked[-1].ledger)
