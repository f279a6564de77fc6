"""The loop that turns events into jobs, against fakes."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Self

import pytest
from structlog.testing import capture_logs

from prefold.dispatcher.asking import Asking
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.intake import Intake, IntakeOptions
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import DueItem, SessionRef, TurnEvent
from tests.support.dispatching import FakeEvents, FakeJobs, event, ref
from tests.support.waiting import wait_until_async

OPTIONS = IntakeOptions(consumer="d1", batch_wait_ms=5, block_ms=5, read_pause_ms=1, build_window_ms=60_000)


class Bench:
    """One intake with its surroundings, running until the block ends."""

    def __init__(self, events: FakeEvents, jobs: FakeJobs, options: IntakeOptions = OPTIONS) -> None:
        self.events = events
        self.jobs = jobs
        self.attempts = Attempts(5_000, 60_000)
        self.drops: list[int] = []
        """What is found at each look, from the end; nothing once it is empty."""
        self.calls_before_looks: list[int] = []
        asking = Asking(jobs, 2_000, self.now_ms)
        self.intake = Intake(events, asking, self.attempts, options, self.now_ms, count_drops=self.count_drops)
        self.stop = asyncio.Event()

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def count_drops(self) -> int:
        self.calls_before_looks.append(self.events.calls.count("read"))
        return self.drops.pop() if self.drops else 0

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.intake.run(self.stop))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, 3)

    async def until(self, description: str, condition: Callable[[], object]) -> None:
        async def look() -> object:
            return condition()

        await wait_until_async(description, look, timeout=5)


def turns_of(jobs: FakeJobs) -> set[tuple[str, int]]:
    spans: list[EmbedSpan] = [span for job in jobs.embeds for span in job]
    return {(span.session, seq) for span in spans for seq in range(span.first_seq, span.last_seq + 1)}


async def test_events_become_jobs_and_are_acknowledged() -> None:
    events = FakeEvents(new=[event("a", 1, 2), event("b", 1), event("a", 3)])
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("all is acknowledged", lambda: len(events.acked) == 3)
        assert turns_of(bench.jobs) == {("a", 1), ("a", 2), ("a", 3), ("b", 1)}
    assert events.own == []


async def test_the_groups_exist_before_the_first_read_and_the_own_pending_list_comes_first() -> None:
    events = FakeEvents(own=[event("old", 1)], new=[event("new", 1)])
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("both are acknowledged", lambda: len(events.acked) == 2)
    assert events.calls[:2] == ["ensure_groups", "pending"]
    assert [one.ref.session for one in events.acked] == ["old", "new"]


async def test_nothing_is_acknowledged_before_its_job_is_on_the_queue() -> None:
    events, jobs = FakeEvents(new=[event("a", 1)]), FakeJobs(fail_next=3)
    async with Bench(events, jobs) as bench:
        await bench.until("the queue was asked in vain", lambda: jobs.fail_next == 0)
        assert (events.acked, jobs.embeds) == ([], [])
        await bench.until("it went through at last", lambda: events.acked)
        assert turns_of(jobs) == {("a", 1)}


async def test_an_event_whose_reply_was_lost_is_found_in_the_own_pending_list() -> None:
    events = FakeEvents(new=[event("a", 1)], lose_replies=1)
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("it is acknowledged", lambda: events.acked)
    assert turns_of(bench.jobs) == {("a", 1)}


async def test_events_that_a_dead_consumer_left_are_claimed() -> None:
    events = FakeEvents(claimable=[event("a", 1)])
    options = IntakeOptions(consumer="d1", batch_wait_ms=5, block_ms=5, read_pause_ms=1, claim_idle_ms=60)
    async with Bench(events, FakeJobs(), options) as bench:
        await bench.until("it is acknowledged", lambda: events.acked)
    assert turns_of(bench.jobs) == {("a", 1)}


async def test_an_event_that_wants_a_summary_asks_for_it_at_once_and_only_once() -> None:
    events = FakeEvents(new=[event("a", 1, build=True), event("a", 2, build=True), event("b", 1)])
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("all is acknowledged", lambda: len(events.acked) == 3)
    assert bench.jobs.builds == [[ref("a")]]


async def test_a_wish_within_the_window_is_asked_at_its_end_though_its_event_is_long_acknowledged() -> None:
    options = IntakeOptions(consumer="d1", batch_wait_ms=1, block_ms=5, read_pause_ms=1, build_window_ms=150)
    events = FakeEvents(new=[event("a", 1, build=True)])
    async with Bench(events, FakeJobs(), options) as bench:
        await bench.until("the first is acknowledged", lambda: len(events.acked) == 1)
        events.new.append(event("a", 2, build=True))
        await bench.until("the second is acknowledged", lambda: len(events.acked) == 2)
        await bench.until("the second is asked for", lambda: len(bench.jobs.builds) == 2)
    assert bench.jobs.builds == [[ref("a")], [ref("a")]]


async def test_many_sessions_that_want_summaries_are_spread_over_jobs() -> None:
    events = FakeEvents(new=[event(f"s{i}", 1, build=True) for i in range(20)])
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("all is acknowledged", lambda: len(events.acked) == 20)
    assert [len(job) for job in bench.jobs.builds] == [8, 8, 4]
    asked: list[SessionRef] = [one for job in bench.jobs.builds for one in job]
    assert len(set(asked)) == 20


async def test_a_build_that_could_not_be_enqueued_is_asked_for_again() -> None:
    events, jobs = FakeEvents(new=[event("a", 1, build=True)]), FakeJobs(fail_next=1)
    async with Bench(events, jobs) as bench:
        await bench.until("it is acknowledged", lambda: events.acked)
    assert jobs.builds == [[ref("a")]]
    assert turns_of(jobs) == {("a", 1)}


async def test_while_the_queues_are_full_the_work_is_left_to_what_is_due() -> None:
    events, jobs = FakeEvents(new=[event("a", 1, build=True)]), FakeJobs(depth_now=5_000)
    async with Bench(events, jobs) as bench:
        await bench.until("it is acknowledged", lambda: events.acked)
    assert (jobs.embeds, jobs.builds) == ([], [])


async def test_what_is_enqueued_holds_back_its_due_entry() -> None:
    events = FakeEvents(new=[event("a", 1, build=True)])
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("it is acknowledged", lambda: events.acked)
        now_ms = bench.now_ms()
        assert not bench.attempts.may(DueItem(0, "embed", ref("a"), 0), now_ms)
        assert not bench.attempts.may(DueItem(0, "compact", ref("a"), 0), now_ms)


async def test_a_stop_enqueues_what_is_collected() -> None:
    options = IntakeOptions(consumer="d1", batch_wait_ms=60_000, block_ms=5, read_pause_ms=1)
    events = FakeEvents(new=[event("a", 1)])
    async with Bench(events, FakeJobs(), options) as bench:
        await bench.until("it is read", lambda: events.own)
        assert bench.jobs.embeds == []
    assert turns_of(bench.jobs) == {("a", 1)}
    assert events.own == []


async def test_a_stop_while_the_queue_is_away_returns_and_leaves_the_events_pending() -> None:
    options = IntakeOptions(consumer="d1", batch_wait_ms=60_000, block_ms=5, read_pause_ms=1)
    events, jobs = FakeEvents(new=[event("a", 1)]), FakeJobs()
    async with Bench(events, jobs, options) as bench:
        await bench.until("it is read", lambda: events.own)
        jobs.fail_next = 1_000
    assert [one.ref.session for one in events.own] == ["a"]


async def test_an_outage_is_logged_once_and_so_is_its_end() -> None:
    events = FakeEvents(new=[event("a", 1)], fail_next=4)
    with capture_logs() as logs:
        async with Bench(events, FakeJobs()) as bench:
            await bench.until("it is acknowledged", lambda: events.acked)
    said = [entry["event"] for entry in logs]
    assert said == ["dispatcher_unavailable", "dispatcher_available"]


async def test_a_bug_does_not_end_the_loop_and_is_logged_with_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    events = FakeEvents(new=[event("a", 1)])
    real, bugs = events.ack, [ValueError("a bug")]

    async def ack(given: list) -> None:  # type: ignore[type-arg]
        if bugs:
            raise bugs.pop()
        await real(given)

    monkeypatch.setattr(events, "ack", ack)
    with capture_logs() as logs:
        async with Bench(events, FakeJobs()) as bench:
            await bench.until("it is acknowledged", lambda: events.acked)
    assert isinstance(logs[0]["exc_info"], ValueError)


async def test_an_endless_pending_list_that_cannot_be_acknowledged_does_not_spin() -> None:
    events = FakeEvents(own=[event("a", 1)])

    async def ack(given: list) -> None:  # type: ignore[type-arg]
        events.calls.append("ack")

    events.ack = ack  # type: ignore[method-assign, assignment]
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("it goes on to new events", lambda: "read" in events.calls)
    assert events.calls.count("pending") == 2


async def test_drops_are_looked_for_before_the_first_read_and_told_once() -> None:
    bench = Bench(FakeEvents(new=[event("a", 1)]), FakeJobs())
    bench.drops = [7]
    with capture_logs() as logs:
        async with bench:
            await bench.until("the event is acknowledged", lambda: bench.events.acked)
    assert bench.calls_before_looks == [0]
    assert [entry["events"] for entry in logs if entry["event"] == "events_dropped"] == [7]
    assert bench.intake.events_dropped == 7


async def test_drops_are_looked_for_now_and_then_after_a_long_pause_and_after_an_error() -> None:
    now_and_then = replace(OPTIONS, count_drops_ms=20)
    after_pauses = replace(OPTIONS, long_pause_ms=0)
    for options in (now_and_then, after_pauses):
        async with Bench(FakeEvents(), FakeJobs(), options) as bench:
            await bench.until("it looks again", lambda: len(bench.calls_before_looks) > 2)
    events = FakeEvents()
    async with Bench(events, FakeJobs()) as bench:
        await bench.until("it reads", lambda: "read" in events.calls)
        events.fail_next = 1
        await bench.until("it looks again", lambda: len(bench.calls_before_looks) == 2)


def flood(first: int, last: int) -> list[TurnEvent]:
    return [TurnEvent(0, f"{number}-0", ref(f"f{number}", "flood"), 1, 1, False) for number in range(first, last)]


async def test_an_event_behind_a_flood_in_its_stream_is_worked_on_first_and_once() -> None:
    quiet = TurnEvent(0, "999-0", ref("q", "quiet"), 1, 1, True)
    events = FakeEvents(new=[*flood(0, 998), quiet])
    options = replace(OPTIONS, read_count=50, read_more=100)
    async with Bench(events, FakeJobs(), options) as bench:
        await bench.until("all is acknowledged", lambda: len(events.acked) == 999)
    places = [place for place, job in enumerate(bench.jobs.embeds) if any(span.tenant == "quiet" for span in job)]
    assert places == [0]
    assert bench.jobs.builds == [[ref("q", "quiet")]]
    assert len({(one.tenant, one.session) for job in bench.jobs.embeds for one in job}) == 999
    assert events.own == []


async def test_what_was_found_ahead_is_not_forgotten_when_the_queue_was_away() -> None:
    quiet = TurnEvent(0, "999-0", ref("q", "quiet"), 1, 1, False)
    events = FakeEvents(new=[*flood(0, 998), quiet])
    async with Bench(events, FakeJobs(fail_next=2), replace(OPTIONS, read_count=50, read_more=100)) as bench:
        await bench.until("all is acknowledged", lambda: len(events.acked) == 999)
    assert ("q", 1) in turns_of(bench.jobs)


async def test_a_stream_that_is_not_deep_is_read_from_its_beginning_only() -> None:
    events = FakeEvents(new=flood(0, 40))
    async with Bench(events, FakeJobs(), replace(OPTIONS, read_count=50)) as bench:
        await bench.until("all is acknowledged", lambda: len(events.acked) == 40)
    assert not {"newest", "read_more"} & set(bench.events.calls)


async def test_of_a_long_stream_more_is_read_at_once() -> None:
    events = FakeEvents(new=flood(0, 998))
    async with Bench(events, FakeJobs(), replace(OPTIONS, read_count=50)) as bench:
        await bench.until("all is acknowledged", lambda: len(events.acked) == 998)
    assert events.calls.count("read_more") == 1
