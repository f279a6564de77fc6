"""A job that a worker took from the queue and will never begin, because it was dying when it was given the job."""

import threading
from collections.abc import Callable, Iterator

import pytest
from redis import Redis
from rq.job import Job
from rq.serializers import JSONSerializer

from prefold.jobs import EMBED_QUEUE, hint_queue, queue_connection
from prefold.worker.hint_worker import HintWorker
from tests.support import worker_jobs
from tests.support.waiting import wait_until
from tests.support.worker_jobs import enqueue, pids

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rq")

WAITING, TAKEN = "rq:queue:embed", "rq:queue:embed:intermediate"


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("prefold.jobs.taken.time.monotonic", clock)
    return clock


@pytest.fixture
def connection(queue_url: str) -> Iterator[Redis]:
    with queue_connection(queue_url) as client:
        yield client


@pytest.fixture
def hired(connection: Redis) -> Callable[[], HintWorker]:
    return lambda: HintWorker(hint_queue(EMBED_QUEUE, connection), threading.Event())


@pytest.fixture
def look(hired: Callable[[], HintWorker]) -> Callable[[], None]:
    """Another worker's maintenance."""
    worker = hired()
    clean: Callable[[], None] = worker.clean_registries
    return clean


def taken(connection: Redis, queue_url: str) -> str:
    """A job in the hands of nobody."""
    job_id = enqueue(connection, worker_jobs.note, queue_url)
    assert connection.lmove(WAITING, TAKEN)
    return job_id


def ids(connection: Redis, key: str) -> list[str]:
    return [str(item, "ascii") for item in connection.lrange(key, 0, -1) if isinstance(item, bytes)]


def test_what_a_dying_worker_was_given_runs_elsewhere_within_seconds(
    queue_url: str, connection: Redis, hired: Callable[[], HintWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefold.jobs.taken.TAKEN_SECONDS", 1)
    dying = queue_connection(queue_url)
    wait = threading.Thread(target=lambda: dying.blmove(WAITING, TAKEN, 30))
    wait.start()
    wait_until("it waits", lambda: connection.info("clients")["blocked_clients"] == 1)
    enqueue(connection, worker_jobs.note, queue_url)
    wait.join()
    dying.close()
    living = hired()

    def ran() -> bool:
        living.work(burst=True)
        return bool(pids(connection, "runs"))

    wait_until("another has run it", ran, timeout=15)
    assert connection.keys("rq:job:*") == ids(connection, TAKEN) == []


def test_it_is_put_back_in_front_and_with_all_its_attempts(
    queue_url: str, connection: Redis, look: Callable[[], None], clock: Clock
) -> None:
    lost = taken(connection, queue_url)
    waiting = enqueue(connection, worker_jobs.note, queue_url)
    look()
    clock.seconds = 5.9
    look()
    assert (ids(connection, WAITING), ids(connection, TAKEN)) == ([waiting], [lost])
    clock.seconds = 6.1
    look()
    assert (ids(connection, WAITING), ids(connection, TAKEN)) == ([lost, waiting], [])
    assert Job.fetch(lost, connection, serializer=JSONSerializer).retries_left == 3


def test_several_workers_that_see_it_put_it_back_once(
    queue_url: str, connection: Redis, hired: Callable[[], HintWorker], clock: Clock
) -> None:
    lost = taken(connection, queue_url)
    workers = [hired() for _ in range(3)]
    for clock.seconds in (0, 7):
        for worker in workers:
            worker.clean_registries()  # type: ignore[no-untyped-call]
    assert (ids(connection, WAITING), ids(connection, TAKEN)) == ([lost], [])


def test_a_job_that_is_taken_now_and_then_is_not_lost(
    queue_url: str, connection: Redis, look: Callable[[], None], clock: Clock
) -> None:
    job = taken(connection, queue_url)
    look()
    connection.lmove(TAKEN, WAITING)
    clock.seconds = 4
    look()
    connection.lmove(WAITING, TAKEN)
    clock.seconds = 8
    look()
    assert (ids(connection, WAITING), ids(connection, TAKEN)) == ([], [job])


@pytest.mark.parametrize("became", ["it was begun", "it has ended", "it waits again"])
def test_what_is_not_lost_is_only_crossed_out(
    queue_url: str, connection: Redis, look: Callable[[], None], clock: Clock, became: str
) -> None:
    job = taken(connection, queue_url)
    look()
    if became == "it was begun":
        connection.hset(f"rq:job:{job}", "status", "started")
    elif became == "it has ended":
        connection.delete(f"rq:job:{job}")
    else:
        connection.rpush(WAITING, job)
    clock.seconds = 7
    look()
    assert ids(connection, TAKEN) == []
    assert ids(connection, WAITING) == ([job] if became == "it waits again" else [])


def test_looking_leaves_no_key_behind(queue_url: str, connection: Redis, look: Callable[[], None]) -> None:
    taken(connection, queue_url)
    before = set(connection.keys())
    look()
    assert set(connection.keys()) == before
