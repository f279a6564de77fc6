"""The RQ worker in this process, on a real queue."""

import threading
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from redis import Redis
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from structlog.testing import capture_logs

from prefold.jobs import EMBED_QUEUE, hint_queue, queue_connection
from prefold.worker.hint_worker import HintWorker
from tests.support import worker_jobs
from tests.support.redis import RunningRedis, running_redis
from tests.support.waiting import wait_until
from tests.support.worker_jobs import enqueue, pids

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rq")


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def connection(queue_url: str) -> Iterator[Redis]:
    with queue_connection(queue_url) as client:
        yield client


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def worker(connection: Redis, stop: threading.Event) -> HintWorker:
    return HintWorker(hint_queue(EMBED_QUEUE, connection), stop)


def fetch(connection: Redis, job_id: str) -> Job:
    return Job.fetch(job_id, connection=connection, serializer=JSONSerializer)


def test_a_job_runs_and_leaves_nothing_behind(queue_url: str, connection: Redis, worker: HintWorker) -> None:
    job_id = enqueue(connection, worker_jobs.note, queue_url)
    assert worker.work(burst=True)
    assert len(pids(connection, "runs")) == 1
    assert not connection.exists(f"rq:job:{job_id}")
    assert not connection.keys("rq:queue:*intermediate*")
    assert not connection.keys("rq:execution*")


def test_a_job_that_fails_runs_as_often_as_it_may_and_is_then_kept_for_a_while(
    queue_url: str, connection: Redis, worker: HintWorker, logs: list[MutableMapping[str, Any]]
) -> None:
    job_id = enqueue(connection, worker_jobs.fail, queue_url, attempts=3)
    worker.work(burst=True)
    assert len(pids(connection, "runs")) == 3
    assert fetch(connection, job_id).get_status() == JobStatus.FAILED
    assert 0 < connection.ttl(f"rq:job:{job_id}") <= 60
    failures = [entry for entry in logs if entry["event"] == "job_failed"]
    assert [entry["attempts_left"] for entry in failures] == [2, 1, 0]
    assert all(entry["exc_info"] for entry in failures)


def test_a_job_that_is_refused_for_good_is_not_tried_again(
    queue_url: str, connection: Redis, worker: HintWorker, logs: list[MutableMapping[str, Any]]
) -> None:
    job_id = enqueue(connection, worker_jobs.refuse, queue_url)
    worker.work(burst=True)
    assert len(pids(connection, "runs")) == 1
    assert fetch(connection, job_id).get_status() == JobStatus.FAILED
    assert [entry["event"] for entry in logs] == ["job_refused"]


def test_a_transient_failure_makes_the_worker_pause_longer_each_time(
    queue_url: str, connection: Redis, worker: HintWorker, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(stop, "wait", pauses.append)
    enqueue(connection, worker_jobs.fail_transiently, queue_url, attempts=7)
    worker.work(burst=True)
    assert pauses == [0.25, 0.5, 1, 2, 4, 5, 5]


def test_a_success_ends_the_pauses(
    queue_url: str, connection: Redis, worker: HintWorker, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(stop, "wait", pauses.append)
    for job in (worker_jobs.fail_transiently, worker_jobs.note, worker_jobs.fail_transiently):
        enqueue(connection, job, queue_url, attempts=1)
    worker.work(burst=True)
    assert pauses == [0.25, 0.25]


def test_a_job_that_takes_too_long_is_ended_and_tried_again(
    queue_url: str, connection: Redis, worker: HintWorker
) -> None:
    enqueue(connection, worker_jobs.hold, queue_url, 30, attempts=2, timeout=1)
    worker.work(burst=True)
    assert len(pids(connection, "runs")) == 2
    assert pids(connection, "ends") == []


def test_a_job_longer_than_its_execution_is_not_given_to_another_while_its_worker_lives(
    queue_url: str, connection: Redis, worker: HintWorker, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefold.worker.hint_worker.EXECUTION_SECONDS", 2)
    monkeypatch.setattr("prefold.worker.hint_worker.HEARTBEAT_SECONDS", 0.3)
    rounds = []

    def maintain() -> None:
        with queue_connection(queue_url) as client:
            other = HintWorker(hint_queue(EMBED_QUEUE, client), stop)
            for _ in range(20):
                stop.wait(0.2)
                other.clean_registries()  # type: ignore[no-untyped-call]
                rounds.append(1)
            client.rpush("go", "now")

    thread = threading.Thread(target=maintain)
    thread.start()
    enqueue(connection, worker_jobs.hold, queue_url, 30)
    worker.work(burst=True)
    thread.join()
    assert len(rounds) == 20
    assert len(pids(connection, "runs")) == len(pids(connection, "ends")) == 1


def test_a_job_whose_worker_is_silent_is_given_to_another(
    queue_url: str, connection: Redis, worker: HintWorker, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefold.worker.hint_worker.EXECUTION_SECONDS", 1)
    enqueue(connection, worker_jobs.note, queue_url)
    dead = HintWorker(hint_queue(EMBED_QUEUE, connection), stop)
    taken = dead.dequeue_job_and_maintain_ttl(1)
    assert taken is not None
    job, _ = taken
    dead.prepare_execution(job)
    dead.prepare_job_execution(job, remove_from_intermediate_queue=True)

    def ran() -> bool:
        worker.work(burst=True)
        return bool(pids(connection, "runs"))

    wait_until("another worker has run it", ran, timeout=10)


def abandoned(dead: HintWorker, connection: Redis) -> None:
    """A run whose worker died: its job is started, and nobody says any more that it lives."""
    taken = dead.dequeue_job_and_maintain_ttl(1)
    assert taken is not None
    execution = dead.prepare_execution(taken[0])
    dead.prepare_job_execution(taken[0], remove_from_intermediate_queue=True)
    connection.delete(execution.key)
    connection.zadd("rq:wip:embed", {execution.composite_key: 1})


def test_a_job_that_was_taken_over_runs_once_and_leaves_nothing_behind(
    queue_url: str,
    connection: Redis,
    worker: HintWorker,
    stop: threading.Event,
    logs: list[MutableMapping[str, Any]],
) -> None:
    enqueue(connection, worker_jobs.note, queue_url)
    abandoned(HintWorker(hint_queue(EMBED_QUEUE, connection), stop), connection)
    worker.work(burst=True)
    worker.work(burst=True)
    assert len(pids(connection, "runs")) == 1
    assert connection.keys("rq:job:*") == connection.keys("rq:execution*") == []
    assert [entry["event"] for entry in logs] == []


@pytest.mark.parametrize("job", [worker_jobs.note, worker_jobs.fail])
def test_a_worker_that_wakes_up_after_another_ended_its_job_lets_it_rest(
    queue_url: str,
    connection: Redis,
    worker: HintWorker,
    logs: list[MutableMapping[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    job: Any,
) -> None:
    job_id = enqueue(connection, job, queue_url)
    perform = Job.perform

    def performed(self: Job) -> object:
        connection.delete(f"rq:job:{job_id}")
        return perform(self)

    monkeypatch.setattr(Job, "perform", performed)
    worker.work(burst=True)
    assert len(pids(connection, "runs")) == 1
    assert connection.keys("rq:job:*") == connection.keys("rq:failed:*") == []
    assert "job_ended_elsewhere" in [entry["event"] for entry in logs]


def test_a_stop_while_it_waits_ends_the_worker_within_its_wait(worker: HintWorker, stop: threading.Event) -> None:
    threading.Timer(0.2, stop.set).start()
    assert not worker.work()


def test_a_stop_leaves_the_jobs_behind_on_the_queue(
    queue_url: str, connection: Redis, worker: HintWorker, stop: threading.Event
) -> None:
    enqueue(connection, worker_jobs.note, queue_url)
    stop.set()
    worker.work()
    assert hint_queue(EMBED_QUEUE, connection).count == 1
    assert not connection.keys("rq:queue:*intermediate*")


def test_a_suspended_worker_stops_when_it_is_told_to(
    connection: Redis, worker: HintWorker, stop: threading.Event
) -> None:
    connection.set("rq:suspended", 1)
    threading.Timer(0.2, stop.set).start()
    assert not worker.work()


def test_a_worker_that_ended_is_no_longer_listed(connection: Redis, worker: HintWorker) -> None:
    worker.work(burst=True)
    assert connection.smembers("rq:workers") == set()
    assert 0 < connection.ttl(worker.key) <= 60


def test_no_key_of_a_worker_lives_for_ever(queue_url: str, connection: Redis, worker: HintWorker) -> None:
    enqueue(connection, worker_jobs.fail, queue_url, attempts=2)
    enqueue(connection, worker_jobs.note, queue_url)
    worker.work(burst=True)
    forever = {key for key in connection.keys("rq:*") if connection.ttl(key) == -1}
    assert forever <= {b"rq:queues", b"rq:failed:embed"}  # names, and a set that maintenance empties by age


def test_an_outage_of_the_queue_while_it_waits_is_outlived_even_if_all_data_is_lost(
    stop: threading.Event, logs: list[MutableMapping[str, Any]]
) -> None:
    over = threading.Event()
    with running_redis() as server:
        interruption = threading.Thread(target=_interrupt, args=(server, stop, over))
        with queue_connection(server.url) as connection:
            worker = HintWorker(hint_queue(EMBED_QUEUE, connection), stop)
            interruption.start()
            try:
                assert worker.work()
                assert len(pids(connection, "runs")) == 1
            finally:
                over.set()
                interruption.join()
    assert [entry["event"] for entry in logs] == ["queue_unavailable", "queue_available"]


def _interrupt(server: RunningRedis, stop: threading.Event, over: threading.Event) -> None:
    with queue_connection(server.url) as client:
        wait_until("the worker waits", lambda: _states(client) == [b"idle"])
        server.kill()
        server.start()
        wait_until("the worker is there again", lambda: client.smembers("rq:workers"))
        enqueue(client, worker_jobs.note, server.url)
        wait_until("the job has run", lambda: pids(client, "runs"))
        stop.set()
    over.wait(10)  # the server ends with the thread that started it


def _states(client: Redis) -> list[object]:
    return [client.hget(str(key, "ascii"), "state") for key in client.smembers("rq:workers") if isinstance(key, bytes)]
