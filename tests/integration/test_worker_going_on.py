"""Work that outlives its job, on real servers: whose fault a death was, who looks after its ends, what a stop does."""

import asyncio
import threading
import time
from collections.abc import Iterator, MutableMapping
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis
from rq.job import Job
from rq.serializers import JSONSerializer
from structlog.testing import capture_logs

from prefold.compaction.build import Failed
from prefold.compaction.pool import BuildPool
from prefold.compaction.reading import door
from prefold.jobs import (
    COMPACT_JOB,
    COMPACT_QUEUE,
    MEMORY_QUEUE,
    REMEMBER_JOB,
    DeadLetters,
    JobQueue,
    QueueName,
    decode_sessions,
    encode_sessions,
    hint_queue,
    queue_connection,
)
from prefold.jobs.names import WorkKind
from prefold.jobs.starts import Starts, alive_key
from prefold.storage.types import SessionRef
from prefold.worker.going_on import MOST_AT_WORK, GoingOn, Room
from prefold.worker.hint_worker import HintWorker
from prefold.worker.isolation import Isolation
from prefold.worker.runtime import Runtime
from prefold.worker.settings import WorkerSettings
from prefold.worker.verdicts import Ended
from prefold.worker.waiting import waiting
from tests.support.builds import FakeBuilds, hangs
from tests.support.redis import running_redis
from tests.support.storage import TENANT, turn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rq")

SILENCE = timedelta(seconds=6)
ROOMY = Room(at_once=64, resident_mb=1 << 20)


async def waits(session: str) -> str:
    async with waiting():
        return await hangs(session)


class Process:
    """What one worker process has: a pool, what goes on, and the way of its jobs."""

    def __init__(self, shared: Runtime, queue_url: str, room: Room = ROOMY) -> None:
        self.shared = shared
        self.builds = FakeBuilds(waits)
        self.connection = queue_connection(queue_url)
        self.pool = BuildPool(self.builds, shared.stop)
        self.going_on = GoingOn(self.connection, shared.stop, beat=timedelta(seconds=0.2), silence=SILENCE, room=room)
        self.isolation = Isolation(lambda: shared, self._starts, self.going_on)
        self.calls: list[tuple[list[str], bool]] = []
        self._runs = 0

    def hand_over(self, *refs: SessionRef, job: str = COMPACT_JOB) -> None:
        self._runs += 1
        self.isolation.run(job, [encode_sessions(refs)], self.job, run=f"job{self._runs}:run")

    def job(self, rows: list[list[Any]], *, alone: bool = False) -> Ended:
        refs = decode_sessions(rows)
        self.calls.append(([one.session for one in refs], alone))
        return self.shared.run(self.pool.hand_over(refs, alone=alone))

    def trail(self, ref: SessionRef) -> dict[bytes, bytes]:
        found: Any = self.connection.hgetall(f"pf1:starts:compact:{ref.tenant}:{ref.session}:{ref.incarnation}")
        return dict(found)

    def die(self) -> None:
        """As a kill does: nobody hears of it, and the process says no more that it lives."""
        self.going_on._over.set()
        self.going_on._beating.join()
        self.connection.delete(alive_key(self.connection, self.going_on.name))
        self.going_on._notes.shutdown(cancel_futures=True)

    def close(self) -> None:
        self.shared.run(self.pool.cancel())
        self.going_on.__exit__(None, None, None)
        self.connection.close()

    def _starts(self, kind: WorkKind) -> Starts:
        return Starts(self.connection, kind, silent=0.6 * SILENCE, execution=SILENCE)


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def shared(redis_url: str, stop: threading.Event) -> Iterator[Runtime]:
    built = Runtime(WorkerSettings(redis_url=redis_url, worker_stop_seconds=0), stop)
    yield built
    built.close()


@pytest.fixture
def processes(shared: Runtime, queue_url: str) -> Iterator[list[Process]]:
    made = [Process(shared, queue_url) for _ in range(4)]
    for process in made:
        process.going_on.__enter__()
    shared.stop.clear()
    yield made
    shared.stop.clear()
    for process in made:
        process.close()


@pytest.fixture
def process(processes: list[Process]) -> Process:
    return processes[0]


def session(shared: Runtime, name: str) -> SessionRef:
    return shared.run(shared.sessions.append(TENANT, name, [turn("user", "hello")])).ref


def commands_of(client: Redis) -> int:
    """Commands that the server has had so far."""
    return int(client.info("stats")["total_commands_processed"])


def states(process: Process, ref: SessionRef) -> list[int]:
    """1: at work, -1: waiting; of each start."""
    return [1 if int(value) > 0 else -1 for name, value in process.trail(ref).items() if b":" in name]


def test_a_start_bears_the_name_of_the_process_until_its_own_work_ends(shared: Runtime, process: Process) -> None:
    quick, slow = session(shared, "quick"), session(shared, "slow")
    process.builds.of["quick"] = hangs
    process.hand_over(quick, slow)
    wait_until("it is seen that one waits", lambda: states(process, slow) == [-1])
    assert states(process, quick) == [1]
    assert set(process.trail(quick)) == {process.going_on.name.encode()}
    assert 0 < process.connection.pttl(alive_key(process.connection, process.going_on.name)) <= 6_000
    assert len(process.going_on) == 2
    shared.run(process.pool.cancel())
    wait_until("the ends are noted", lambda: len(process.going_on) == 0)
    assert process.connection.keys("pf1:starts:*") == []


def test_a_hint_for_what_is_under_way_here_asks_nobody(shared: Runtime, process: Process, redis_url: str) -> None:
    ref = session(shared, "a")
    process.hand_over(ref)
    wait_until("it waits", lambda: states(process, ref) == [-1])
    with Redis.from_url(redis_url) as client:
        before = commands_of(client)
        process.hand_over(ref, ref)
        assert commands_of(client) - before <= 1  # our own question
    assert len(process.calls) == 1
    assert states(process, ref) == [-1]


def test_of_a_process_that_died_those_that_were_at_work_run_alone_and_those_that_waited_together(
    shared: Runtime, processes: list[Process]
) -> None:
    dead, heir, *_ = processes
    refs = {name: session(shared, name) for name in ("w1", "w2", "at_work", "also_at_work")}
    dead.builds.of = {"at_work": hangs, "also_at_work": hangs}
    dead.hand_over(*refs.values())
    wait_until("they wait", lambda: states(dead, refs["w1"]) == states(dead, refs["w2"]) == [-1])
    dead.die()
    heir.hand_over(*refs.values())
    assert heir.calls == [(["w1", "w2"], False), (["at_work"], True), (["also_at_work"], True)]


def test_deaths_while_it_waits_count_from_the_third_on(shared: Runtime, processes: list[Process]) -> None:
    ref = session(shared, "a")
    for process in processes[:3]:
        process.hand_over(ref)
        wait_until("it waits", lambda now=process: states(now, ref)[-1:] == [-1])  # type: ignore[misc]
        process.die()
    assert [process.calls for process in processes[:3]] == [[(["a"], False)]] * 3
    processes[3].hand_over(ref)
    assert processes[3].calls == [(["a"], True)]


def test_what_kills_three_processes_at_work_is_set_aside(
    shared: Runtime, processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "ALONE_SECONDS", 0.05)
    poison, other = session(shared, "poison"), session(shared, "a")
    for process in processes[:3]:
        process.builds.of["poison"] = hangs  # until its process dies
        process.hand_over(poison, other)
        process.die()
    processes[3].hand_over(poison, other)
    assert [call for call in processes[3].calls if "poison" in call[0]] == []
    (letter,) = shared.run(DeadLetters(shared.sessions.client).letters())
    assert (letter.session, letter.reason, letter.starts) == ("poison", "worker_died", 3)


def test_what_fails_three_times_is_set_aside_while_others_of_its_job_go_on(shared: Runtime, process: Process) -> None:
    async def fails(_session: str) -> str:
        return Failed("summary_empty")

    bad, slow = session(shared, "bad"), session(shared, "slow")
    process.builds.of["bad"] = fails
    for number in range(1, 4):
        process.hand_over(bad, slow)
        wait_until("its end is noted", lambda: bad not in process.going_on)
        if number < 3:
            assert process.trail(bad)[b"failed"] == str(number).encode()
    (letter,) = shared.run(DeadLetters(shared.sessions.client).letters())
    assert (letter.session, letter.reason, letter.starts) == ("bad", "summary_empty", 3)
    assert slow in process.going_on
    assert process.builds.begun["slow"] == 1


def test_what_is_set_aside_is_not_claimed_and_does_not_come_again(shared: Runtime, process: Process) -> None:
    async def fails(_session: str) -> str:
        return Failed("summary_empty")

    bad = session(shared, "bad")
    process.builds.of["bad"] = fails
    for _ in range(3):
        process.hand_over(bad)
        wait_until("its end is noted", lambda: bad not in process.going_on)
    process.hand_over(bad)
    assert process.builds.begun["bad"] == 3


def test_a_start_that_an_erasure_took_away_is_not_written_again(
    shared: Runtime, process: Process, queue_url: str
) -> None:
    go: list[asyncio.Event] = []

    async def works_then_waits(name: str) -> str:
        go.append(asyncio.Event())
        await go[0].wait()
        return await waits(name)

    async def let_go() -> None:
        go[0].set()

    ref = session(shared, "a")
    process.builds.of["a"] = works_then_waits
    process.hand_over(ref)
    with queue_connection(queue_url) as other:
        JobQueue(other).forget_jobs(TENANT, "a")
    shared.run(let_go())
    marks = process.going_on._notes
    wait_until("it waits", lambda: process.pool._door._at_work == set())
    marks.submit(lambda: None).result(5)
    assert process.connection.keys("pf1:starts:*") == []


@pytest.mark.parametrize(("job", "queue"), [(COMPACT_JOB, COMPACT_QUEUE), (REMEMBER_JOB, MEMORY_QUEUE)])
def test_a_stop_takes_the_starts_back_and_asks_elsewhere_for_what_was_handed_back(
    shared: Runtime, process: Process, queue_url: str, job: str, queue: QueueName
) -> None:
    refs = [session(shared, f"s{number}") for number in range(20)]
    for at in range(0, 20, 8):
        process.hand_over(*refs[at : at + 8], job=job)
    shared.outlives_jobs(process.pool.settle, process.pool.cancel)
    shared.stop.set()
    wait_until("the starts are taken back", lambda: process.connection.keys("pf1:starts:*") == [], timeout=2)
    assert len(process.pool) == 20
    shared.settle()
    assert sorted(process.builds.given_back) == sorted(ref.session for ref in refs)
    process.going_on.__exit__(None, None, None)
    with queue_connection(queue_url) as other:
        jobs = [
            Job.fetch(job_id, connection=other, serializer=JSONSerializer)
            for job_id in hint_queue(queue, other).get_job_ids()
        ]
        asked = [decode_sessions(one.args[0]) for one in jobs]
        assert sorted(ref.session for part in asked for ref in part) == sorted(ref.session for ref in refs)
        assert [len(part) for part in asked] == [8, 8, 4]
        assert not other.exists(alive_key(other, process.going_on.name))


def test_a_worker_that_is_full_leaves_jobs_to_others_and_takes_one_when_a_build_has_ended(
    shared: Runtime, queue_url: str, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(shared, queue_url, Room(2, 1 << 20))
    monkeypatch.setattr("prefold.compaction.build_job.build_summaries", process.job)
    refs = [session(shared, name) for name in "abc"]
    jobs = JobQueue(process.connection)
    for ref in refs:
        jobs.compact([ref], occasion="1")
    seen: list[tuple[int, bool]] = []

    def follow() -> None:
        try:
            wait_until("two are under way", lambda: len(process.pool) == 2)
            seen.append((jobs.depth(COMPACT_QUEUE), process.going_on.has_room))
            shared.run(process.pool.cancel())
            wait_until("the third is under way", lambda: process.builds.begun["c"] == 1)
            seen.append((jobs.depth(COMPACT_QUEUE), process.going_on.has_room))
        finally:
            stop.set()

    with queue_connection(queue_url) as connection, process.going_on:
        following = threading.Thread(target=follow)
        following.start()
        HintWorker(hint_queue(COMPACT_QUEUE, connection), stop, lambda: shared, process.going_on).work()
        following.join()
        shared.run(process.pool.cancel())
    process.connection.close()
    assert seen == [(1, False), (0, True)]


def test_a_process_whose_builds_are_all_at_work_leaves_jobs_to_others_until_some_wait(
    shared: Runtime, process: Process
) -> None:
    refs = [session(shared, f"s{number}") for number in range(MOST_AT_WORK)]
    process.builds.does = hangs
    process.hand_over(*refs[1:])
    assert process.going_on.has_room
    process.hand_over(refs[0])
    assert not process.going_on.has_room
    shared.run(process.pool.cancel())
    wait_until("the ends are noted", lambda: len(process.going_on) == 0)
    process.builds.does = waits
    process.hand_over(*refs)
    wait_until("they wait", lambda: process.going_on.has_room)


def test_a_process_that_holds_much_takes_no_more_until_all_has_ended(shared: Runtime, queue_url: str) -> None:
    process = Process(shared, queue_url, Room(64, 1))
    with process.going_on:
        assert process.going_on.has_room
        process.hand_over(session(shared, "a"))
        assert not process.going_on.has_room
        shared.run(process.pool.cancel())
        wait_until("the end is noted", lambda: process.going_on.has_room)
    process.connection.close()


def test_builds_end_though_the_queue_is_away_and_the_process_ends_soon(shared: Runtime) -> None:
    with running_redis() as queue:
        process = Process(shared, queue.url)
        with process.going_on:
            process.hand_over(*(session(shared, f"s{number}") for number in range(20)))
            queue.kill()
            shared.run(process.pool.cancel())
            began = time.monotonic()
        assert time.monotonic() - began < 5
        assert len(process.going_on) == 0
        process.connection.close()
        queue.start()
