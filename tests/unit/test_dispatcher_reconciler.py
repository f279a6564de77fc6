"""The loop that asks again for what is due, against fakes."""

import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from prefold.dispatcher.asking import Asking
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.reconciler import Reconciler, ReconcilerOptions
from prefold.jobs import TO_HEAD, QueueName
from prefold.storage.keys import PARTITIONS
from prefold.storage.types import DueItem, SessionRef
from tests.support.dispatching import FakeDueSets, FakeJobs, ManualClock, event, ref
from tests.support.waiting import wait_until_async


class Bench:
    """One reconciler on a clock of its own."""

    def __init__(self, *items: DueItem, options: ReconcilerOptions | None = None) -> None:
        self.due = FakeDueSets(list(items))
        self.jobs = FakeJobs()
        self.clock = ManualClock()
        self.attempts = Attempts(5_000, 60_000)
        self.reconciler = Reconciler(
            self.due,
            Asking(self.jobs, 2_000, self.clock),
            self.attempts,
            options or ReconcilerOptions(),
            now_ms=self.clock,
            wall_ms=self.clock.wall,
        )
        self.stop = asyncio.Event()

    async def look(self) -> None:
        await self.reconciler.look(self.stop)

    def embedded(self) -> list[SessionRef]:
        return [SessionRef(span.tenant, span.session, span.incarnation) for job in self.jobs.embeds for span in job]


def due(name: str, kind: str = "embed", partition: int = 0, at_ms: int = 0) -> DueItem:
    return DueItem(partition, kind, ref(name), at_ms)  # type: ignore[arg-type]


async def test_what_is_overdue_is_asked_for_up_to_the_head_of_its_log() -> None:
    bench = Bench(due("a"), due("b", "compact"), due("c", "expire"), due("d", "remember"))
    await bench.look()
    (span,) = bench.jobs.embeds[0]
    assert (span.session, span.first_seq, span.last_seq) == ("a", 1, TO_HEAD)
    assert bench.jobs.builds == [[ref("b")]]
    assert bench.jobs.ends == [[ref("c")]]
    assert bench.jobs.remembered == [[ref("d")]]


async def test_what_is_not_due_yet_is_left_alone() -> None:
    bench = Bench(due("a", at_ms=1_000_001))
    await bench.look()
    assert bench.jobs.embeds == []
    bench.clock.now_ms += 1
    await bench.look()
    assert bench.embedded() == [ref("a")]


async def test_every_partition_is_looked_at() -> None:
    bench = Bench(*(due(f"s{p}", partition=p) for p in range(PARTITIONS)))
    await bench.look()
    assert set(bench.embedded()) == {ref(f"s{p}") for p in range(PARTITIONS)}
    assert all(len(job) <= 32 for job in bench.jobs.embeds)


async def test_a_slow_worker_is_not_flooded() -> None:
    bench = Bench(due("a"))
    for _ in range(60):
        await bench.look()
        bench.clock.now_ms += 1_000
    assert len(bench.jobs.embeds) == 4  # after 0, 5, 15 and 35 s


async def test_each_attempt_is_an_occasion_of_its_own() -> None:
    bench = Bench(due("a"))
    for _ in range(60):
        await bench.look()
        bench.clock.now_ms += 1_000
    assert len(set(bench.jobs.occasions)) == 4


async def test_two_dispatchers_that_look_at_the_same_time_name_the_same_occasion() -> None:
    one, two = Bench(due("a")), Bench(due("a"))
    await one.look()
    await two.look()
    assert one.jobs.occasions == two.jobs.occasions


async def test_what_an_event_has_just_brought_to_the_queue_is_not_asked_for_again() -> None:
    bench = Bench(due("a"))
    bench.attempts.asked("embed", event("a", 1), bench.clock())
    await bench.look()
    assert bench.jobs.embeds == []


async def test_entries_that_are_held_back_do_not_hide_those_behind_them() -> None:
    stuck = [due(f"stuck{i}", at_ms=i) for i in range(10)]
    bench = Bench(*stuck, due("late", at_ms=100), options=ReconcilerOptions(entries_per_partition=10))
    bench.due.finds_beyond = False
    await bench.look()
    assert ref("late") not in bench.embedded()
    bench.clock.now_ms += 1_000
    await bench.look()
    assert ref("late") in bench.embedded()


async def test_a_full_queue_gets_no_more() -> None:
    bench = Bench(due("a"), due("b", "compact"), due("c", "expire"), due("d", "remember"))
    bench.jobs.depth_now = 2_000
    await bench.look()
    jobs = bench.jobs
    assert (jobs.embeds, jobs.builds, jobs.ends, jobs.remembered) == ([], [], [], [])
    bench.jobs.depth_now = 0
    await bench.look()
    assert bench.embedded() == [ref("a")]


@pytest.mark.parametrize(("queue", "held"), [("embed", "ac"), ("compact", "b"), ("memory", "d")])
async def test_a_full_queue_holds_up_no_work_of_the_others(queue: QueueName, held: str) -> None:
    bench = Bench(due("a"), due("b", "compact"), due("c", "expire"), due("d", "remember"))
    bench.jobs.full = queue
    await bench.look()
    jobs = bench.jobs
    asked = {one.session for job in (*jobs.builds, *jobs.ends, *jobs.remembered) for one in job}
    assert asked | {one.session for one in bench.embedded()} == set("abcd") - set(held)


async def test_an_entry_that_could_not_be_enqueued_is_not_held_back() -> None:
    bench = Bench(due("a"), options=ReconcilerOptions(every=timedelta(milliseconds=5)))
    bench.jobs.fail_next = 1
    task = asyncio.create_task(bench.reconciler.run(bench.stop))

    async def asked() -> bool:
        return bench.embedded() == [ref("a")]

    await wait_until_async("it is asked for", asked)
    bench.stop.set()
    await task


async def test_an_entry_of_a_kind_that_it_does_not_know_is_left_to_others() -> None:
    bench = Bench(due("a", "expire"))
    await bench.look()
    assert (bench.jobs.embeds, bench.jobs.builds) == ([], [])


async def test_an_outage_is_logged_once_and_ends_without_a_restart() -> None:
    bench = Bench(due("a"), options=ReconcilerOptions(every=timedelta(milliseconds=5)))
    bench.due.fail_next = 4
    with capture_logs() as logs:
        task = asyncio.create_task(bench.reconciler.run(bench.stop))

        async def asked() -> bool:
            return bench.embedded() == [ref("a")]

        await wait_until_async("it is asked for", asked)
        bench.stop.set()
        await task
    assert [entry["event"] for entry in logs] == ["dispatcher_unavailable", "dispatcher_available"]


async def test_it_stops_at_once_when_asked_to_while_it_waits() -> None:
    bench = Bench(options=ReconcilerOptions(every=timedelta(hours=1)))
    task = asyncio.create_task(bench.reconciler.run(bench.stop))
    bench.stop.set()
    await asyncio.wait_for(task, 1)


async def test_a_long_log_that_is_embedded_piece_by_piece_is_asked_for_at_a_steady_pace() -> None:
    bench = Bench(due("a"))
    for _ in range(60):
        before = len(bench.jobs.embeds)
        await bench.look()
        if len(bench.jobs.embeds) > before:  # the job embeds a part and moves the entry
            bench.due.items = [due("a", at_ms=bench.clock.now_ms + 3_000)]
        bench.clock.now_ms += 1_000
    assert len(bench.jobs.embeds) == 12


async def test_many_old_entries_of_one_tenant_do_not_hide_a_new_one_of_another() -> None:
    flood = [DueItem(0, "embed", ref(f"f{i}", "flood"), i) for i in range(500)]
    bench = Bench(*flood, due("quiet", at_ms=900), options=ReconcilerOptions(entries_per_partition=10))
    await bench.look()
    assert ref("quiet") in bench.embedded()


async def test_tenants_take_turns_in_what_one_look_asks_for() -> None:
    flood = [DueItem(p, "compact", ref(f"f{p}-{i}", "flood"), i) for i in range(10) for p in range(PARTITIONS)]
    quiet = [DueItem(p, "compact", ref(f"q{p}", f"quiet{p}"), 900) for p in range(0, 40, 4)]
    bench = Bench(*flood, *quiet)
    await bench.look()
    first = [one.tenant for job in bench.jobs.builds[:2] for one in job]
    assert {one.ref.tenant for one in quiet} <= set(first)
