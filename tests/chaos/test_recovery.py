"""Recovery in seconds: real workers that are killed, stopped in the middle, told to go, and robbed of their queue.

Times are measured on the wall clock and printed; what is asserted is what Prefold promises.
"""

import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from prefold.jobs import QUEUES, DeadLetters, JobQueue, queue_connection
from prefold.recall import CollectionSpec, VectorIndex, connect_vectors
from prefold.storage import Sessions, connect_sessions
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.events import TurnEvents
from prefold.storage.keys import PartitionKeys
from prefold.storage.types import SessionOptions, SessionRef
from tests.support.logged_roles import LoggedRole, logged_program
from tests.support.odd_worker import GO, HELD, PROGRAM, OddEmbedder
from tests.support.redis import RunningRedis
from tests.support.seeds import tell
from tests.support.storage import append, turn
from tests.support.vectors import RunningVectors, running_vectors
from tests.support.waiting import wait_until_async
from tests.support.worker_jobs import COMMAND

TENANT = "acme"
PROMISED_SECONDS = 15
PROMISED_STOP_SECONDS = 25
WORDS = "There is a lot to say about the harbour of Lisbon, its ships, its cranes and its gulls. "


class Place:
    """Where the roles of one test run, and its servers."""

    def __init__(self, folder: Path, redis_url: str, queue_url: str, sessions: Sessions, queue: Redis) -> None:
        self._folder = folder
        self._addresses = redis_url, queue_url
        self._living = ExitStack()
        self._started = 0
        self.sessions = sessions
        self.queue = queue

    def worker(self, queue: str, **settings: str) -> LoggedRole:
        """The real worker with odd engines."""
        return self._start(PROGRAM, queue, settings)

    def dispatcher(self, **settings: str) -> LoggedRole:
        return self._start(COMMAND, "dispatcher", settings)

    def _start(self, program: tuple[str, ...], role: str, settings: dict[str, str]) -> LoggedRole:
        self._started += 1
        folder = self._folder / str(self._started)
        folder.mkdir()
        redis_url, queue_url = self._addresses
        started = logged_program(program, folder, role, redis_url, queue_url, **settings)
        return self._living.enter_context(started)

    def close(self) -> None:
        self._living.close()

    async def ready(self, worker: LoggedRole) -> None:
        async def started() -> bool:
            return worker.said("worker_started") is not None

        await wait_until_async("the worker is there", started, timeout=30)

    async def held(self, count: int = 1) -> list[int]:
        """Pids of the engines that hold, oldest first, once there are so many."""

        async def there() -> list[int]:
            found = [int(pid) for pid in self.queue.lrange(HELD, 0, -1)]
            return found if len(found) >= count else []

        try:
            return await wait_until_async("an engine holds", there, timeout=30)
        except AssertionError as error:
            for log in sorted(self._folder.rglob("*.log")):
                error.add_note(f"{log.parent.name}/{log.name}: " + log.read_text("utf-8", "replace")[-4_000:])
            raise

    def let_go(self, count: int = 1) -> None:
        self.queue.rpush(GO, *range(count))

    async def say(self, session: str, *texts: str) -> SessionRef:
        return (await append(self.sessions, *(turn("user", text) for text in texts), session=session)).ref

    async def fill(self, session: str, word: str = "") -> SessionRef:
        """A session past its soft threshold, far from its limit."""
        await self.sessions.open(TENANT, session, SessionOptions(hard_limit_tokens=4_000))
        roles = ("user", "assistant")
        turns = [turn(roles[number % 2], f"{number} {word}. " + WORDS * 7) for number in range(22)]
        return (await append(self.sessions, *turns, session=session)).ref

    async def until_standby(self, session: str, timeout: float) -> None:
        async def there() -> bool:
            view = await self.sessions.view(TENANT, session)
            return view.standby is not None or view.swaps > 0

        await wait_until_async(f"{session} has its standby", there, timeout=timeout)

    async def until_nothing_is_due(self, timeout: float) -> None:
        async def done() -> bool:
            return all(item.kind in ("expire", "remember") for item in await self.sessions.due_sets.due(2**52, 1_000))

        await wait_until_async("nothing is due", done, timeout=timeout)


@pytest.fixture
async def place(tmp_path: Path, redis_url: str, queue_url: str) -> AsyncIterator[Place]:
    async with connect_sessions(redis_url) as sessions:
        with queue_connection(queue_url) as queue:
            place = Place(tmp_path, redis_url, queue_url, sessions, queue)
            try:
                yield place
            finally:
                place.close()


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path / "vectors") as server:
        yield server


@pytest.fixture
async def index(vectors: RunningVectors) -> AsyncIterator[VectorIndex]:
    odd = OddEmbedder()
    async with connect_vectors(vectors.url, CollectionSpec(odd.id, odd.dimension), scale=odd.scale) as opened:
        await opened.ensure()
        yield opened


SOON = {"odd_execution": "2", "odd_lease": "1.5"}
"""Short times for what depends on their order and not on their length."""
NAMES = {b"rq:queues", b"rq:workers", *(f"rq:workers:{name}".encode() for name in QUEUES)}
"""What RQ keeps for ever: names of what there is now."""
EAGER = {"retry_seconds": "0.5", "reconcile_seconds": "0.1", "embed_batch_wait_ms": "20"}


@pytest.mark.long
async def test_the_summary_of_a_killed_worker_is_built_elsewhere_within_fifteen_seconds(place: Place) -> None:
    place.dispatcher()
    first = place.worker("compact")
    ref = await place.fill("s", "hold")
    await place.held(1)
    heir = place.worker("compact")
    await place.ready(heir)
    began = time.monotonic()
    os.kill(first.process.pid, signal.SIGKILL)
    assert await place.held(2) == [first.process.pid, heir.process.pid]
    took = time.monotonic() - began
    tell(f"a build of a killed worker runs elsewhere after {took:.1f} s")
    assert took < PROMISED_SECONDS
    place.let_go(2)  # the killed one's place in the line as well
    await place.until_standby(ref.session, 10)


async def test_a_builder_that_was_paused_past_its_lease_is_fenced_off(place: Place) -> None:
    place.dispatcher(**EAGER)
    paused, heir = (place.worker("compact", **SOON) for _ in range(2))
    await place.fill("s", "hold")
    (holding,) = await place.held(1)
    if holding != paused.process.pid:
        paused, heir = heir, paused
    await place.ready(heir)
    paused.process.send_signal(signal.SIGSTOP)
    assert (await place.held(2))[1] == heir.process.pid
    place.let_go(2)
    await place.until_standby("s", 10)
    view = await place.sessions.view(TENANT, "s")
    body = (await place.sessions.read_context(TENANT, "s")).body
    paused.process.send_signal(signal.SIGCONT)

    async def noticed() -> bool:
        return bool(paused.events("build_lost") or paused.events("build_stale"))

    await wait_until_async("the paused one notices", noticed)
    after = await place.sessions.view(TENANT, "s")
    assert (after.standby, after.version, after.covers_to) == (view.standby, view.version, view.covers_to)
    assert (await place.sessions.read_context(TENANT, "s")).body == body
    assert not paused.events("build_committed")


async def test_what_a_paused_embedder_writes_for_a_session_erased_meanwhile_is_undone(
    place: Place, vectors: RunningVectors, index: VectorIndex
) -> None:
    worker = place.worker("embed", qdrant_url=vectors.url)
    ref = await place.say("s", "hold this")
    JobQueue(place.queue).embed([EmbedSpan(*_names(ref), 1, 1)], occasion="1")
    await place.held(1)
    worker.process.send_signal(signal.SIGSTOP)
    await place.sessions.erase(TENANT, "s")
    await index.forget(TENANT, session="s", incarnation=ref.incarnation)
    worker.process.send_signal(signal.SIGCONT)
    place.let_go()

    async def done() -> bool:
        return bool(worker.events("turns_embedded"))

    await wait_until_async("the job ends", done)
    assert worker.events("turns_embedded")[0]["sessions_gone"] == 1
    assert await index.count(TENANT) == 0


async def test_a_session_that_kills_its_workers_is_set_aside_and_the_others_of_its_job_are_done(
    place: Place, vectors: RunningVectors, index: VectorIndex
) -> None:
    refs = [await place.say(name, f"{name} is here") for name in ("a", "poison", "b")]
    JobQueue(place.queue).embed([EmbedSpan(*_names(ref), 1, 1) for ref in refs], occasion="1")
    worker = place.worker("embed", qdrant_url=vectors.url, odd_lives="5", odd_execution="1")

    async def aside() -> list[Any]:
        return await DeadLetters(place.sessions.client).letters()

    (letter,) = await wait_until_async("it is set aside", aside, timeout=30)
    assert (letter.session, letter.reason, letter.starts) == ("poison", "worker_died", 3)
    assert len(worker.events("worker_started")) == 4

    async def others_are_in() -> bool:
        return await index.count(TENANT) == 2

    await wait_until_async("the others are embedded", others_are_in)
    await place.until_nothing_is_due(5)


async def test_losing_every_key_of_the_queue_costs_nothing_but_time(
    place: Place, vectors: RunningVectors, index: VectorIndex
) -> None:
    place.dispatcher(**EAGER)
    place.worker("embed", qdrant_url=vectors.url, **SOON)
    place.worker("compact", **SOON)
    place.worker("memory", qdrant_url=vectors.url, **SOON)
    await place.say("s0", "hold this")
    await place.fill("long", "hold")
    await place.held(2)
    for number in range(1, 20):
        await place.say(f"s{number}", "one", "two")

    async def waits() -> bool:
        return JobQueue(place.queue).depth("embed") > 0

    await wait_until_async("work waits while work runs", waits)
    place.queue.flushall()
    place.let_go(30)  # each turn of the long session holds its embedder
    began = time.monotonic()

    async def all_are_in() -> bool:
        return await index.count(TENANT) == 39 + 22

    await wait_until_async("every turn is embedded", all_are_in, timeout=30)
    await place.until_standby("long", 10)
    await place.until_nothing_is_due(10)
    tell(f"work that was lost with the queue is done {time.monotonic() - began:.1f} s later")
    await wait_until_async("no job is left over", lambda: _none(place.queue, "rq:job:*"))
    endless = {key for key in place.queue.keys("[^o]*") if place.queue.ttl(key) == -1}  # the odd ones are the test's
    assert endless <= NAMES

    async def all_are_listed() -> bool:
        return int(place.queue.scard("rq:workers")) == 3

    await wait_until_async("all workers are listed again", all_are_listed)


async def test_a_dispatcher_that_died_between_reading_and_acknowledging_takes_its_events_up_first(
    place: Place, queue_server: RunningRedis
) -> None:
    alone = {"dispatcher_name": "d1", "reconcile_seconds": "3600", "sweep_seconds": "3600", "claim_idle_ms": "3600000"}
    first = place.dispatcher(**alone)
    await wait_until_async("it reads", lambda: _exists(place, PartitionKeys.of(255).events))
    queue_server.freeze()
    try:
        await place.say("s", "one")

        async def given() -> bool:
            return bool(await TurnEvents(place.sessions.client).pending("d1"))

        await wait_until_async("it was given the event", given)
        first.process.kill()
        first.process.wait()
    finally:
        queue_server.thaw()
    place.dispatcher(**alone)
    jobs = JobQueue(place.queue)

    async def asked() -> bool:
        return jobs.jobs_of(TENANT, "s") == 1

    await wait_until_async("the work is asked for", asked)


@pytest.mark.parametrize("kind", ["embed", "compact"])
async def test_a_worker_that_is_told_to_stop_takes_nothing_more_and_hands_back_what_it_has(
    place: Place, kind: str
) -> None:
    first = place.worker(kind, worker_stop_seconds="0.2")
    ref = await place.fill("held", "hold")
    jobs = JobQueue(place.queue)

    def ask(asked: SessionRef) -> None:
        if kind == "embed":
            jobs.embed([EmbedSpan(*_names(asked), 1, 1)], occasion="1")
        else:
            jobs.compact([asked], occasion="1")

    ask(ref)
    await place.held(1)
    second = place.worker(kind)
    await place.ready(second)
    began = time.monotonic()
    second.process.send_signal(signal.SIGSTOP)
    first.process.send_signal(signal.SIGTERM)
    ask(await place.fill("late"))
    assert first.process.wait(PROMISED_STOP_SECONDS) == 0
    stopped = time.monotonic()
    assert jobs.jobs_of(TENANT, "late") == jobs.jobs_of(TENANT, "held") == 1
    assert place.queue.keys("pf1:starts:*") == []  # a stop is not the session's fault
    second.process.send_signal(signal.SIGCONT)
    assert (await place.held(2))[1] == second.process.pid
    tell(
        f"{kind}: stopped after {stopped - began:.1f} s, its job runs elsewhere {time.monotonic() - stopped:.1f} s later"
    )
    place.let_go(2)


async def test_a_worker_that_is_killed_while_it_stops_leaves_no_start_behind(place: Place) -> None:
    worker = place.worker("embed")
    ref = await place.say("s", "hold this")
    JobQueue(place.queue).embed([EmbedSpan(*_names(ref), 1, 1)], occasion="1")
    await place.held(1)
    assert len(place.queue.keys("pf1:starts:*")) == 1
    worker.process.send_signal(signal.SIGTERM)
    await wait_until_async("the start is taken back", lambda: _none(place.queue, "pf1:starts:*"), timeout=2)
    assert worker.process.poll() is None


def _names(ref: SessionRef) -> tuple[str, str, str]:
    return ref.tenant, ref.session, ref.incarnation


async def _none(queue: Redis, pattern: str) -> bool:
    return not queue.keys(pattern)


async def _exists(place: Place, key: str) -> bool:
    return bool(await place.sessions.client.exists(key))
