"""Erasing a session from the job queue: no job names it any more, and no other session loses its work."""

import zlib
from collections.abc import Iterator

import pytest
from redis import Redis
from rq.job import Job
from rq.serializers import JSONSerializer

from prefold.jobs import JobQueue, QueueName, decode_spans, hint_queue, queue_connection
from prefold.jobs.naming import jobs_naming, take_out
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.keys import starts_key
from prefold.storage.types import SessionRef

GONE = EmbedSpan("acme", "gone", "a1", 1, 4)
GONE_TOO = EmbedSpan("acme", "gone", "b2", 1, 2)
OTHER = EmbedSpan("acme", "other", "c3", 7, 7)
NAMESAKE = EmbedSpan("globex", "gone", "d4", 1, 1)


@pytest.fixture
def connection(queue_url: str) -> Iterator[Redis]:
    with queue_connection(queue_url) as client:
        yield client


@pytest.fixture
def jobs(connection: Redis) -> JobQueue:
    return JobQueue(connection)


def waiting(connection: Redis, queue: QueueName = "embed") -> list[Job]:
    ids = hint_queue(queue, connection).get_job_ids()
    return [Job.fetch(one, connection=connection, serializer=JSONSerializer) for one in ids]


def test_jobs_of_all_lives_of_the_session_are_counted_and_no_others(jobs: JobQueue) -> None:
    jobs.embed([GONE, OTHER], occasion="1")
    jobs.embed([GONE_TOO], occasion="2")
    jobs.compact([SessionRef("acme", "gone", "a1")], occasion="3")
    jobs.expire([SessionRef("acme", "gone", "a1")], occasion="4")
    jobs.embed([OTHER, NAMESAKE], occasion="5")
    assert jobs.jobs_of("acme", "gone") == 4
    assert jobs.jobs_of("globex", "gone") == 1
    assert jobs.jobs_of("acme", "nobody") == 0


def test_a_session_is_taken_out_and_the_others_keep_their_place(connection: Redis, jobs: JobQueue) -> None:
    jobs.embed([GONE, OTHER, GONE_TOO], occasion="1")
    jobs.embed([NAMESAKE], occasion="2")
    assert jobs.forget_jobs("acme", "gone") == 1
    assert jobs.jobs_of("acme", "gone") == 0
    assert [decode_spans(job.args[0]) for job in waiting(connection)] == [[OTHER], [NAMESAKE]]
    assert 0 < connection.ttl(waiting(connection)[0].key) <= 15 * 60


def test_forgetting_twice_is_harmless(jobs: JobQueue) -> None:
    jobs.embed([GONE], occasion="1")
    assert (jobs.forget_jobs("acme", "gone"), jobs.forget_jobs("acme", "gone")) == (1, 0)


def test_no_byte_of_its_names_is_left_behind(connection: Redis, jobs: JobQueue) -> None:
    jobs.embed([EmbedSpan("acme", "canary", "canary-life", 1, 1)], occasion="1")
    (job,) = waiting(connection)
    connection.hset(job.key, "exc_info", "canary")
    connection.xadd(f"rq:results:{job.id}", {"exc_string": "canary"})
    connection.hset(starts_key("embed", "acme", "canary", "canary-life"), "job:run", 1)
    jobs.forget_jobs("acme", "canary")
    everything = [str(key, "ascii") for key in connection.keys("*") if isinstance(key, bytes)]
    assert [key for key in everything if "canary" in key or b"canary" in dump(connection, key)] == []


def dump(connection: Redis, name: str) -> bytes:
    """What a key of any type holds, payloads unpacked."""
    if connection.type(name) != b"hash":
        return bytes(connection.dump(name) or b"")
    values = connection.hgetall(name)
    return b" ".join(
        zlib.decompress(value) if field == b"data" else value
        for field, value in values.items()
        if isinstance(field, bytes) and isinstance(value, bytes)
    )


def test_a_job_that_ended_meanwhile_is_not_brought_back(connection: Redis, jobs: JobQueue) -> None:
    jobs.embed([GONE], occasion="1")
    (found,) = jobs_naming(connection, "acme", "gone")
    waiting(connection)[0].delete()
    assert not take_out(connection, found, "acme", "gone")
    assert connection.keys("rq:job:*") == []


def test_jobs_of_others_and_what_is_no_job_are_passed_over(connection: Redis, jobs: JobQueue) -> None:
    connection.hset("rq:job:odd", "data", "not compressed")
    connection.set("rq:job:string", "x")
    connection.sadd("rq:job:odd:dependents", "x")
    hint_queue("embed", connection).enqueue("tests.any_job", "acme", "gone")
    assert jobs.jobs_of("acme", "gone") == 0


def test_many_jobs_are_looked_through(jobs: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefold.jobs.naming._PAGE", 5)
    for number in range(50):
        jobs.embed([OTHER], occasion=str(number))
    jobs.embed([GONE], occasion="last")
    assert jobs.jobs_of("acme", "gone") == 1
