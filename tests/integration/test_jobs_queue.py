"""The job queue on a real server."""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from redis import Redis
from rq import Retry
from rq.job import Job
from rq.serializers import JSONSerializer

from prefold.errors import UnavailableError
from prefold.jobs import (
    COMPACT_JOB,
    COMPACT_QUEUE,
    EMBED_JOB,
    EMBED_QUEUE,
    Ask,
    JobQueue,
    JobQueueOptions,
    QueueName,
    decode_sessions,
    decode_spans,
    hint_queue,
    queue_connection,
)
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionRef
from tests.support.redis import running_redis

SPANS = [EmbedSpan("acme", "s1", "a1", 1, 4), EmbedSpan("acme", "s2", "b2", 7, 7)]
REFS = [SessionRef("acme", "s1", "a1")]


@pytest.fixture
def connection(queue_url: str) -> Iterator[Redis]:
    with queue_connection(queue_url) as client:
        yield client


@pytest.fixture
def jobs(connection: Redis) -> JobQueue:
    return JobQueue(connection)


def fetch(connection: Redis, queue: QueueName) -> list[Job]:
    ids = hint_queue(queue, connection).get_job_ids()
    return [Job.fetch(item, connection=connection, serializer=JSONSerializer) for item in ids]


def test_an_embed_job_carries_its_name_and_spans(connection: Redis, jobs: JobQueue) -> None:
    assert jobs.embed(SPANS, occasion="events")
    (job,) = fetch(connection, "embed")
    assert job.func_name == EMBED_JOB
    assert decode_spans(job.args[0]) == SPANS


def test_a_compact_job_carries_its_name_and_sessions(connection: Redis, jobs: JobQueue) -> None:
    assert jobs.compact(REFS, occasion="4")
    (job,) = fetch(connection, "compact")
    assert job.func_name == COMPACT_JOB
    assert decode_sessions(job.args[0]) == REFS


def test_a_job_is_retried_kept_for_no_result_and_ended_in_time(connection: Redis) -> None:
    options = JobQueueOptions(job_timeout=timedelta(seconds=90), attempts=3, failed_for=timedelta(seconds=30))
    JobQueue(connection, options).embed(SPANS, occasion="events")
    (job,) = fetch(connection, "embed")
    assert (job.retries_left, job.timeout, job.result_ttl, job.failure_ttl) == (2, 90, 0, 30)
    assert job.retry_intervals == [0]


def test_a_payload_is_json_and_never_pickle(connection: Redis, jobs: JobQueue) -> None:
    jobs.embed(SPANS, occasion="events")
    (job,) = fetch(connection, "embed")
    stored = connection.hget(job.key, "data")
    assert isinstance(stored, bytes)
    assert zlib.decompress(stored).startswith(b'["prefold.worker.embed_job.embed_turns",')


def test_the_same_job_waits_only_once(jobs: JobQueue) -> None:
    assert jobs.embed(SPANS, occasion="events")
    assert not jobs.embed(SPANS, occasion="events")
    assert jobs.depth("embed") == 1


def test_another_occasion_asks_again(jobs: JobQueue) -> None:
    assert jobs.embed(SPANS, occasion="due-1")
    assert jobs.embed(SPANS, occasion="due-2")
    assert jobs.depth("embed") == 2


def test_the_two_queues_are_counted_apart(jobs: JobQueue) -> None:
    jobs.compact(REFS, occasion="4")
    assert (jobs.depth("embed"), jobs.depth("compact")) == (0, 1)


def test_a_job_that_nobody_starts_ends_by_itself(connection: Redis, jobs: JobQueue) -> None:
    jobs.embed(SPANS, occasion="events")
    (job,) = fetch(connection, "embed")
    assert 0 < connection.ttl(job.key) <= 15 * 60


def test_the_maintenance_lock_of_a_killed_worker_ends_within_seconds(connection: Redis) -> None:
    queue = hint_queue("embed", connection)
    assert queue.acquire_maintenance_lock()
    assert not queue.acquire_maintenance_lock()
    assert 0 < connection.ttl(queue.registry_cleaning_key) <= 10


def test_a_queue_that_is_away_says_so_within_seconds_and_serves_again_afterwards() -> None:
    with running_redis() as server, queue_connection(server.url, reply_timeout=timedelta(seconds=1)) as connection:
        jobs = JobQueue(connection)
        server.kill()
        with pytest.raises(UnavailableError):
            jobs.embed(SPANS, occasion="events")
        with pytest.raises(UnavailableError):
            jobs.depth("embed")
        server.start()
        assert jobs.embed(SPANS, occasion="events")


def test_a_queue_that_hangs_says_so_within_seconds() -> None:
    with running_redis() as server:
        options = timedelta(milliseconds=200)
        with queue_connection(server.url, reply_timeout=options) as connection:
            jobs = JobQueue(connection)
            jobs.depth("embed")
            server.freeze()
            try:
                with pytest.raises(UnavailableError):
                    jobs.embed(SPANS, occasion="events")
            finally:
                server.thaw()


def test_many_jobs_are_put_at_once_in_their_order_and_some_before_all_that_waits(
    connection: Redis, jobs: JobQueue
) -> None:
    asks = [Ask.sessions("compact", [SessionRef("acme", f"s{number}", "i")], "1") for number in range(5)]
    assert jobs.put(asks) == [True] * 5
    first = replace(Ask.sessions("compact", [SessionRef("quiet", "s", "i")], "1"), at_front=True)
    assert jobs.put([first, asks[0]]) == [True, False]
    waiting = hint_queue(COMPACT_QUEUE, connection).get_job_ids()
    assert waiting == [one.id for one in (first, *asks)]


def test_a_queue_server_that_has_forgotten_its_scripts_is_told_them_again(connection: Redis, jobs: JobQueue) -> None:
    jobs.put([Ask.embed(SPANS, "1")])
    connection.script_flush()
    assert jobs.put([Ask.embed(SPANS, "1"), Ask.embed(SPANS, "2")]) == [False, True]


def test_a_job_is_stored_as_rq_itself_stores_it(connection: Redis, jobs: JobQueue) -> None:
    """Fields of another version of RQ would show here."""
    ask = Ask.embed(SPANS, "1")
    jobs.put([ask])
    queue = hint_queue(EMBED_QUEUE, connection)
    ours = connection.hgetall(queue.fetch_job(ask.id).key)  # type: ignore[union-attr]  # it is there
    connection.flushdb()
    queue.enqueue_call(
        ask.job,
        args=(ask.rows,),
        job_id=ask.id,
        unique=True,
        description=ask.job,
        timeout=600,
        ttl=900,
        result_ttl=0,
        failure_ttl=300,
        retry=Retry(max=3),
    )
    theirs = connection.hgetall(f"rq:job:{ask.id}")
    times = {b"created_at", b"enqueued_at"}
    assert {name: value for name, value in ours.items() if name not in times} == {
        name: value for name, value in theirs.items() if name not in times
    }
    assert ours.keys() == theirs.keys()
