"""The job of the memory queue, as RQ calls it, on real servers."""

import threading
from collections.abc import Iterator

import pytest
from redis import Redis

from prefold.errors import InvalidInputError
from prefold.jobs import REMEMBER_JOB, JobQueue, encode_sessions, queue_connection
from prefold.memory.remember_job import memory_of, pool_of, remember_sessions
from prefold.worker.expire_job import expire_sessions
from prefold.worker.runtime import Runtime, close_runtime, install
from prefold.worker.settings import WorkerSettings
from prefold.worker.verdicts import Ended
from tests.support.embedding import FakeEmbedder
from tests.support.isolation import Bench
from tests.support.remembering import USER, talk
from tests.support.storage import TENANT
from tests.support.vectors import RunningVectors, running_vectors

SAID = (
    "I live in Germany and I work as a nurse in a small hospital.",
    "The trip that we plan for the autumn should take about ten days, with some walking in it and a few museums.",
)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as server:
        yield server


@pytest.fixture
def shared(
    redis_url: str, queue_url: str, vectors: RunningVectors, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runtime]:
    settings = WorkerSettings(redis_url=redis_url, queue_url=queue_url, qdrant_url=vectors.url, worker_stop_seconds=0)
    built = Runtime(settings, threading.Event())
    install(built)
    monkeypatch.setattr("prefold.embedding.embedder_from_settings", lambda _settings: FakeEmbedder())
    yield built
    close_runtime()
    memory_of.cache_clear()
    pool_of.cache_clear()


def test_a_session_is_remembered_to_be_found_by_others_and_forgotten_with_its_erasure(shared: Runtime) -> None:
    sessions = shared.sessions
    ref = shared.run(talk(sessions, "s1", *SAID))
    quiet = shared.run(talk(sessions, "s2", "Hi!"))
    shared.run(sessions.ask_close(TENANT, "s2"))
    assert list(remember_sessions(encode_sessions([ref, quiet])).ongoing) == [quiet]
    shared.settle()
    assert shared.run(sessions.view(TENANT, "s2")).closed_at_ms
    assert "embedder" not in vars(shared), "it is loaded at the first text that needs a vector"
    shared.run(sessions.ask_close(TENANT, "s1"))
    assert list(remember_sessions(encode_sessions([ref])).ongoing) == [ref]
    shared.settle()
    index = shared.memory_index
    found = shared.run(index.search(TENANT, query="Germany nurse", vector=None, user=USER, exclude_session="s9"))
    assert {one.kind for one in found} == {"fact", "summary"}
    erased = shared.run(sessions.erase(TENANT, "s1"))
    assert erased.turns == 4
    ended = expire_sessions(encode_sessions([ref]))
    assert ended.undecided <= {ref}
    assert shared.run(index.count(TENANT, user=USER)) == 0
    assert shared.run(sessions.users.snapshot(TENANT, USER)).rows == {}


def test_a_payload_that_is_none_is_refused_for_good(shared: Runtime) -> None:
    with pytest.raises(InvalidInputError):
        remember_sessions([["acme", "s1"]])


def test_the_job_names_its_sessions_and_is_found_by_an_erasure(queue_url: str, shared: Runtime) -> None:
    ref = shared.run(talk(shared.sessions, "s1", *SAID))
    jobs = JobQueue(queue_connection(queue_url))
    assert jobs.remember([ref], occasion="1") and not jobs.remember([ref], occasion="1")
    assert (jobs.depth("memory"), jobs.jobs_of(TENANT, "s1")) == (1, 1)
    assert jobs.forget_jobs(TENANT, "s1") == 1
    assert jobs.jobs_of(TENANT, "s1") == 0
    assert jobs.again("remember", [ref], occasion="2")
    assert jobs.depth("memory") == 2
    jobs.close()


def test_work_that_kills_its_workers_is_set_aside_and_comes_back_when_its_turns_change(
    shared: Runtime, queue_url: str
) -> None:
    with Redis.from_url(queue_url) as queue:
        bench = Bench(shared, queue)
        ref = bench.session("s1")
        bench.kill_with("s1")
        for _ in range(3):
            bench.killed_run(ref, kind="remember")
        assert bench.run(ref, kind="remember") == []
        (letter,) = bench.set_aside()
        assert (letter.kind, letter.from_seq, letter.to_seq) == ("remember", 1, 1)
        assert (bench.due("remember"), bench.due("embed")) == ([], ["s1"])
        bench.does = lambda _sessions: Ended()
        assert bench.run(ref, kind="remember") == []
        shared.run(shared.sessions.rewind(TENANT, "s1", 0))
        assert bench.run(ref, kind="remember") == [["s1"]]
        assert bench.set_aside() == []
    assert REMEMBER_JOB.endswith(remember_sessions.__name__)
