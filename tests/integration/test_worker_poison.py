"""Poison on its way through RQ: the worker in this process, on real servers."""

import threading
import time
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from redis import Redis
from structlog.testing import capture_logs

from prefold.errors import ConfigurationError, UnavailableError
from prefold.jobs import EMBED_QUEUE, DeadLetters, JobQueue, hint_queue, queue_connection
from prefold.storage.embed_types import EmbedSpan
from prefold.worker import embed_job
from prefold.worker.hint_worker import HintWorker
from prefold.worker.runtime import Runtime
from prefold.worker.settings import WorkerSettings
from tests.support.storage import TENANT, turn

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rq")

Rows = list[list[str | int]]


class KilledError(BaseException):
    """Ends a run as a kill does: nothing of ours hears of it."""


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def shared(redis_url: str, stop: threading.Event) -> Iterator[Runtime]:
    built = Runtime(WorkerSettings(redis_url=redis_url), stop)
    yield built
    built.close()


@pytest.fixture
def queue(queue_url: str) -> Iterator[Redis]:
    with queue_connection(queue_url) as client:
        yield client


@pytest.fixture
def worker(queue: Redis, stop: threading.Event, shared: Runtime) -> HintWorker:
    return HintWorker(hint_queue(EMBED_QUEUE, queue), stop, lambda: shared)


def span(shared: Runtime, session: str) -> EmbedSpan:
    ref = shared.run(shared.sessions.append(TENANT, session, [turn("user", "hello")])).ref
    return EmbedSpan(ref.tenant, ref.session, ref.incarnation, 1, 1)


def test_one_job_finds_its_poison_within_its_attempts_and_does_the_rest(
    shared: Runtime, queue: Redis, worker: HintWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str | int]] = []

    def embed_turns(rows: Rows) -> None:
        calls.append([row[1] for row in rows])
        if "poison" in calls[-1]:
            raise KilledError

    monkeypatch.setattr(embed_job, "embed_turns", embed_turns)
    JobQueue(queue).embed([span(shared, name) for name in ("a", "poison", "b")], occasion="events")
    worker.work(burst=True)
    assert calls == [["a", "poison", "b"], ["a"], ["poison"], ["a"], ["b"], ["poison"], ["a", "b"]]
    (letter,) = shared.run(DeadLetters(shared.sessions.client).letters())
    assert (letter.session, letter.starts) == ("poison", 3)
    assert queue.keys("rq:job:*") == queue.keys("pf1:*") == []


def test_a_permanent_error_does_not_burn_the_starts_at_once(
    shared: Runtime, queue: Redis, worker: HintWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Rows] = []

    def embed_turns(rows: Rows) -> None:
        calls.append(rows)
        raise ValueError

    monkeypatch.setattr(embed_job, "embed_turns", embed_turns)
    JobQueue(queue).embed([span(shared, "a")], occasion="events")
    worker.work(burst=True)
    assert len(calls) == 1  # `due` brings it back in its own time
    assert queue.keys("rq:job:*") == []


def test_a_retry_does_not_write_down_again_what_was_forgotten_meanwhile(
    shared: Runtime, queue: Redis, worker: HintWorker, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "wait", lambda _seconds: None)
    jobs, calls = JobQueue(queue), list[list[str | int]]()

    def embed_turns(rows: Rows) -> None:
        calls.append([row[1] for row in rows])
        if len(calls) == 1:
            assert jobs.forget_jobs(TENANT, "gone") == 1
            raise UnavailableError("away")

    monkeypatch.setattr(embed_job, "embed_turns", embed_turns)
    jobs.embed([span(shared, "gone"), span(shared, "b")], occasion="events")
    worker.work(burst=True)
    assert calls == [["gone", "b"], ["b"]]


def test_what_failed_for_good_is_listed_for_minutes_and_then_gone(
    shared: Runtime, queue: Redis, worker: HintWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def embed_turns(_rows: Rows) -> None:
        raise ConfigurationError("no such embedder")

    monkeypatch.setattr(embed_job, "embed_turns", embed_turns)
    JobQueue(queue).embed([span(shared, "a")], occasion="events")
    worker.work(burst=True)
    registry = hint_queue(EMBED_QUEUE, queue).failed_job_registry
    (job_id,) = registry.get_job_ids()
    assert 0 < queue.ttl(f"rq:job:{job_id}") <= 300
    assert 0 < queue.ttl(f"rq:results:{job_id}") <= 300
    registry.cleanup(timestamp=time.time() + 301)
    assert registry.get_job_ids(cleanup=False) == []
