"""Many builds in one process, with real workers and a dispatcher: slow ones, stops, kills and poison among them."""

import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from prefold.jobs import COMPACT_QUEUE, DeadLetters, JobQueue, hint_queue, queue_connection
from prefold.storage import connect_sessions
from prefold.storage.types import SessionOptions, SessionRef
from tests.chaos.test_recovery import EAGER, PROMISED_STOP_SECONDS, SOON, TENANT, Place
from tests.support.logged_roles import LoggedRole
from tests.support.messages_api import MessagesApi, serving
from tests.support.messages_api.faults import Fault
from tests.support.odd_worker import HELD
from tests.support.seeds import tell
from tests.support.storage import append, turn
from tests.support.waiting import wait_until_async
from tests.support.worker_jobs import COMMAND

pytestmark = pytest.mark.timeout(180)  # many processes on a machine that may be busy

TEXT = "There is a lot to say about the harbour of Lisbon, its ships, its cranes and its gulls. " * 4
BUSY_SECONDS = 90
"""Longest wait for what is not measured: the machine may be busy."""
SOON_ENOUGH_SECONDS = 10
"""For a small build on a busy machine; far below what holds."""


@pytest.fixture
async def place(tmp_path: Path, redis_url: str, queue_url: str) -> AsyncIterator[Place]:
    async with connect_sessions(redis_url) as sessions:
        with queue_connection(queue_url) as queue:
            place = Place(tmp_path, redis_url, queue_url, sessions, queue)
            try:
                yield place
            finally:
                place.close()


async def fill(place: Place, *names: str, word: str = "") -> list[SessionRef]:
    """Sessions just past their soft threshold: small ones."""
    refs = []
    roles = ("user", "assistant")
    turns = [turn(roles[number % 2], f"{number} {word}. {TEXT}") for number in range(14)]
    for name in names:
        await place.sessions.open(TENANT, name, SessionOptions(hard_limit_tokens=1_600))
        refs.append((await append(place.sessions, *turns, session=name)).ref)
    return refs


async def until_held(place: Place, *workers: LoggedRole, count: int) -> None:
    async def held() -> bool:
        pids = [int(pid) for pid in place.queue.lrange(HELD, 0, -1)]
        return sum(worker.process.pid in pids and pids.count(worker.process.pid) for worker in workers) >= count

    await wait_until_async(f"{count} engines hold", held, timeout=BUSY_SECONDS)


async def until_all_stand_by(place: Place, names: list[str], timeout: float) -> float:
    """Seconds until each has its summary."""
    began, left = time.monotonic(), set(names)

    async def none_is_left() -> bool:
        for name in list(left):
            view = await place.sessions.view(TENANT, name)
            if view.standby is None and not view.swaps:
                return False
            left.discard(name)
        return True

    await wait_until_async("all have their summary", none_is_left, timeout=timeout)
    return time.monotonic() - began


async def until_committed(names: list[str], *workers: LoggedRole) -> None:
    """Each once. A worker says so after the storage does."""

    async def said() -> bool:
        return len(committed(*workers)) == len(names)

    await wait_until_async("the workers have said so", said)
    assert committed(*workers) == dict.fromkeys(names, 1)


async def nothing_to_build(place: Place) -> bool:
    return all(item.kind != "compact" for item in await place.sessions.due_sets.due(2**52, 1_000))


async def no_starts(place: Place) -> bool:
    return not place.queue.keys("pf1:starts:*")


def committed(*workers: LoggedRole) -> Counter[str]:
    return Counter(event["session"] for worker in workers for event in worker.events("build_committed"))


async def test_63_builds_that_hang_do_not_delay_the_one_that_becomes_due_while_they_do(place: Place) -> None:
    place.dispatcher(**EAGER)
    worker = place.worker("compact")
    await place.ready(worker)
    await seconds_to_standby(place, "first")
    alone = await seconds_to_standby(place, "alone")
    await fill(place, *(f"slow{number}" for number in range(63)), word="hold")
    await until_held(place, worker, count=63)
    beside = await seconds_to_standby(place, "quick")
    tell(f"a quick build: {alone:.2f} s alone, {beside:.2f} s beside 63 that hang ({beside / alone:.1f} times)")
    await until_committed(["first", "alone", "quick"], worker)
    place.let_go(63)
    slow = [f"slow{number}" for number in range(63)]
    await until_all_stand_by(place, slow, timeout=BUSY_SECONDS)
    await until_committed(["first", "alone", "quick", *slow], worker)


@pytest.mark.long
async def test_63_model_calls_that_hang_do_not_delay_another_session_and_end_with_the_worker(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = MessagesApi()
    api.script(Fault("hang"), when=lambda entry: b"zeppelin" in entry.body, forever=True)
    with serving(api) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        for number in range(63):  # before anybody calls: the model is served by this process
            await place.fill(f"slow{number}", "zeppelin")
        worker = place._start(COMMAND, "worker compact", {"summarizer": "anthropic", "worker_stop_seconds": "0.5"})
        await place.ready(worker)
        place.dispatcher(**EAGER)

        async def all_hang() -> bool:
            return len([entry for entry in api.journal.entries if b"zeppelin" in entry.body]) >= 63

        await wait_until_async("63 calls hang", all_hang, timeout=BUSY_SECONDS)
        began = time.monotonic()
        await place.fill("quick")
        await place.until_standby("quick", SOON_ENOUGH_SECONDS)
        tell(f"a build by the model beside 63 calls that hang: {time.monotonic() - began:.2f} s")
        assert '"engine":"anthropic"' in str((await place.sessions.view(TENANT, "quick")).standby)
        await until_committed(["quick"], worker)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(PROMISED_STOP_SECONDS) == 0
        assert place.queue.keys("pf1:starts:*") == []
        assert [(await place.sessions.view(TENANT, f"slow{number}")).build for number in range(63)] == [None] * 63


async def seconds_to_standby(place: Place, name: str) -> float:
    began = time.monotonic()
    await fill(place, name)
    await place.until_standby(name, SOON_ENOUGH_SECONDS)
    return time.monotonic() - began


@pytest.mark.long
async def test_two_workers_share_what_is_due_and_each_session_is_built_once(place: Place) -> None:
    workers = [place.worker("compact") for _ in range(2)]
    for worker in workers:
        await place.ready(worker)
    names = [f"s{number}" for number in range(200)]
    await fill(place, *names)
    place.dispatcher(**EAGER)
    seconds = await until_all_stand_by(place, names, timeout=BUSY_SECONDS)
    await wait_until_async("no summary is due", partial(nothing_to_build, place))
    await until_committed(names, *workers)
    shares = [len(committed(worker)) for worker in workers]
    tell(f"200 sessions built by two workers in {seconds:.1f} s: {shares[0]} and {shares[1]}")
    assert min(shares) >= 20
    await wait_until_async("no start is left", partial(no_starts, place))


async def test_a_worker_that_is_told_to_stop_gives_all_its_builds_back_and_another_finishes_them(place: Place) -> None:
    first = place.worker("compact", worker_stop_seconds="0.2")
    names = [f"s{number}" for number in range(30)]
    refs = await fill(place, *names, word="hold")
    for at in range(0, 30, 8):
        JobQueue(place.queue).compact(refs[at : at + 8], occasion="1")
    await until_held(place, first, count=30)
    began = time.monotonic()
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(PROMISED_STOP_SECONDS) == 0
    stopped = time.monotonic() - began
    assert place.queue.keys("pf1:starts:*") == []  # a stop is not the sessions' fault
    assert sum(place_jobs(place.queue)) == 30
    assert [(await place.sessions.view(TENANT, name)).build for name in names] == [None] * 30
    second = place.worker("compact")  # no dispatcher: it is asked by what the first left
    place.let_go(30)
    seconds = await until_all_stand_by(place, names, timeout=BUSY_SECONDS)
    tell(f"30 builds given back {stopped:.1f} s after SIGTERM, finished elsewhere {seconds:.1f} s after its start")
    await until_committed(names, first, second)


def place_jobs(queue: Redis) -> list[int]:
    """Sessions of each job that waits."""
    jobs: list[Any] = hint_queue(COMPACT_QUEUE, queue).get_jobs()
    return [len(job.args[0]) for job in jobs]


@pytest.mark.long
async def test_the_builds_of_a_killed_worker_go_on_elsewhere_as_soon_as_their_leases_end(place: Place) -> None:
    place.dispatcher(**EAGER)
    await taken_over(place, SOON, most_seconds=10)


@pytest.mark.long
async def test_thirty_builds_of_a_killed_worker_are_taken_over_within_fifteen_seconds(place: Place) -> None:
    place.dispatcher()
    await taken_over(place, {}, most_seconds=15)


async def taken_over(place: Place, times: dict[str, str], most_seconds: float) -> None:
    victim = place.worker("compact", **times)
    names = [f"s{number}" for number in range(30)]
    await fill(place, *names, word="hold")
    await until_held(place, victim, count=30)
    heir = place.worker("compact", **times)
    await place.ready(heir)
    began = time.monotonic()
    os.kill(victim.process.pid, signal.SIGKILL)
    await until_held(place, heir, count=1)
    first = time.monotonic() - began
    await until_held(place, heir, count=30)
    last = time.monotonic() - began
    tell(f"30 builds of a killed worker wait for their models elsewhere after {first:.1f} to {last:.1f} s")
    assert last < most_seconds
    place.let_go(60)  # the killed one's places in the line as well
    await until_all_stand_by(place, names, timeout=BUSY_SECONDS)
    await until_committed(names, victim, heir)


@pytest.mark.long
async def test_poison_among_many_is_set_aside_and_the_others_are_built(place: Place) -> None:
    place.dispatcher(**EAGER)
    worker = place.worker("compact", odd_lives="5", odd_execution="1", odd_lease="1")
    slow = [f"slow{number}" for number in range(6)]
    await fill(place, *slow, word="hold")
    await until_all_held_somewhere(place, 6)
    others = [f"s{number}" for number in range(6)]
    await fill(place, "poison", word="poison")
    await fill(place, *others)

    async def aside() -> list[Any]:
        return await DeadLetters(place.sessions.client).letters()

    (letter,) = await wait_until_async("it is set aside", aside, timeout=BUSY_SECONDS)
    assert (letter.session, letter.kind, letter.reason, letter.starts) == ("poison", "compact", "worker_died", 3)
    place.let_go(100)
    await until_all_stand_by(place, [*slow, *others], timeout=BUSY_SECONDS)
    assert len(await aside()) == 1
    assert len(worker.events("worker_started")) == 4


async def until_all_held_somewhere(place: Place, count: int) -> None:
    async def held() -> bool:
        return place.queue.llen(HELD) >= count

    await wait_until_async(f"{count} engines hold", held, timeout=BUSY_SECONDS)
