"""The job that ends sessions, as RQ calls it, on real servers."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from prefold.conversation import prepare_turn
from prefold.jobs import encode_sessions
from prefold.storage import connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import SessionRef
from prefold.tokens import load_counter
from prefold.worker.expire_job import expire_sessions
from prefold.worker.runtime import Runtime, close_runtime, install
from prefold.worker.settings import WorkerSettings
from tests.support.embedding import FakeEmbedder
from tests.support.vectors import RunningVectors, running_vectors


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path) as server:
        yield server


@pytest.fixture
def shared(redis_url: str, vectors: RunningVectors) -> Iterator[Runtime]:
    """A worker's runtime of which nothing has been used yet."""
    settings = WorkerSettings(redis_url=redis_url, qdrant_url=vectors.url, worker_stop_seconds=0)
    built = Runtime(settings, threading.Event())
    built.__dict__["embedder"] = FakeEmbedder()  # in place of the cached property's value
    install(built)
    yield built
    close_runtime()


async def erased(redis_url: str) -> SessionRef:
    """A session of which the ``expire`` entry alone is left."""
    async with connect_sessions(redis_url) as sessions:
        turn = prepare_turn({"id": "t1", "role": "user", "content": "one"}, 0, load_counter(), lambda: "unused")
        ref = (await sessions.append("acme", "s", [turn])).ref
        await sessions.erase("acme", "s")
        return ref


async def test_an_expiry_may_be_the_first_job_of_a_worker(shared: Runtime, redis_url: str, redis: Redis) -> None:
    ref = await erased(redis_url)
    keys = SessionKeys.of("acme", "s")
    member = f"expire:{keys.label}:{ref.incarnation}"
    assert await redis.zscore(keys.due, member) is not None
    expire_sessions(encode_sessions([ref]))
    assert await redis.zscore(keys.due, member) is None
