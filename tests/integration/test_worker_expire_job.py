"""The job that ends sessions, as RQ calls it, on real servers."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis.asyncio import Redis

from prefold.conversation import prepare_turn
from prefold.errors import ConflictError
from prefold.jobs import JobQueue, encode_sessions, queue_connection
from prefold.recall import TurnPoint, document_words
from prefold.stack.redis_server import with_options
from prefold.storage import Sessions, connect_sessions
from prefold.storage.ingest import IngestStreams
from prefold.storage.keys import SessionKeys, TenantKeys, UserKeys
from prefold.storage.store_files import FileKind, KeptFiles, Started, StoreFiles
from prefold.storage.types import SessionOptions, SessionRef
from prefold.tokens import load_counter
from prefold.worker.ending import Ending, FreshFiles
from prefold.worker.expire_job import expire_sessions
from prefold.worker.runtime import Runtime, close_runtime, install
from prefold.worker.settings import WorkerSettings
from prefold.worker.verdicts import Ended
from tests.support.embedding import FakeEmbedder
from tests.support.publishing_turns import entry, publish, turn_json
from tests.support.redis import IN_MEMORY, running_redis
from tests.support.vectors import RunningVectors, running_vectors
from tests.support.waiting import wait_until_async


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path) as server:
        yield server


@pytest.fixture
def shared(redis_url: str, queue_url: str, vectors: RunningVectors) -> Iterator[Runtime]:
    """A worker's runtime of which nothing has been used yet."""
    settings = WorkerSettings(redis_url=redis_url, queue_url=queue_url, qdrant_url=vectors.url, worker_stop_seconds=0)
    built = Runtime(settings, threading.Event())
    built.__dict__["embedder"] = FakeEmbedder()  # in place of the cached property's value
    install(built)
    yield built
    close_runtime()


async def erased(redis_url: str) -> SessionRef:
    """A session of which the ``expire`` entry alone is left."""
    async with connect_sessions(redis_url) as sessions:
        turn = prepare_turn({"id": "t1", "role": "user", "content": "one"}, 0, load_counter(), lambda: "unused")
        await sessions.open("acme", "s", SessionOptions())
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


async def test_what_came_in_after_the_erasure_goes_when_the_worker_looks(
    shared: Runtime, redis_url: str, queue_url: str, redis: Redis
) -> None:
    ref = await erased(redis_url)
    keys = SessionKeys.of("acme", "s")
    shared.run(shared.turn_store.upsert([point_of(ref)]))
    await redis.xadd(keys.events, {"turns": f"{keys.label}:{ref.incarnation} 1 1 0"})
    await redis.zadd(keys.due, {f"embed:{keys.label}:{ref.incarnation}": 1})
    with closing(JobQueue(queue_connection(queue_url))) as jobs:
        jobs.compact([ref], occasion="late")
        assert expire_sessions(encode_sessions([ref])) == Ended()
        assert jobs.jobs_of("acme", "s") == 0
    assert shared.run(shared.index.count("acme", session="s")) == 0
    assert await redis.xlen(keys.events) == 0
    assert await redis.zcard(keys.due) == 0
    assert f"end:{ref.incarnation}".encode() not in await redis.hgetall(keys.tomb)


@dataclass
class LeakyIndex:
    """Deletes all vectors of a life but so many."""

    left: int

    async def forget(self, tenant: str, *, session: str, incarnation: str) -> int:
        return self.left


async def test_a_life_stays_due_as_long_as_something_is_left_of_it(
    redis_url: str, queue_url: str, redis: Redis
) -> None:
    ref, keys, index = await erased(redis_url), SessionKeys.of("acme", "s"), LeakyIndex(left=1)
    async with connect_sessions(redis_url) as sessions:
        with closing(JobQueue(queue_connection(queue_url))) as jobs:
            ending = Ending(sessions, index, jobs, FreshFiles(StoreFiles(redis)))
            assert not await ending.end(ref)
            assert await redis.zcard(keys.due) == 1
            index.left = 0
            assert await ending.end(ref)
            assert await redis.zcard(keys.due) == 0


async def test_a_new_life_of_the_same_name_is_spared(redis_url: str, queue_url: str, redis: Redis) -> None:
    ref, keys = await erased(redis_url), SessionKeys.of("acme", "s")
    async with connect_sessions(redis_url) as sessions:
        await sessions.open("acme", "s", SessionOptions())
        turn = prepare_turn({"id": "t1", "role": "user", "content": "two"}, 0, load_counter(), lambda: "unused")
        living = (await sessions.append("acme", "s", [turn])).ref
        with closing(JobQueue(queue_connection(queue_url))) as jobs:
            jobs.compact([living], occasion="new")
            assert await Ending(sessions, LeakyIndex(left=0), jobs, FreshFiles(StoreFiles(redis))).end(ref)
        assert (await sessions.view("acme", "s")).ref == living
        entries: Any = await redis.xrange(keys.events)
        assert [fields[b"turns"] for _, fields in entries] == [f"{keys.label}:{living.incarnation} 1 1 0".encode()]
        members: list[Any] = await redis.zrange(keys.due, 0, -1)
        due = sorted(member.decode() for member in members)
        assert due == [f"{kind}:{keys.label}:{living.incarnation}" for kind in ("embed", "expire", "remember")]


@pytest.mark.parametrize("is_new", [False, True])
async def test_what_waits_in_the_ingest_stream_goes_with_an_erased_life_and_stays_for_a_new_one(
    redis_url: str, queue_url: str, redis: Redis, is_new: bool
) -> None:
    ref, streams = await erased(redis_url), IngestStreams(redis)
    await publish(redis, entry("s", turn_json(1)))
    async with connect_sessions(redis_url) as sessions:
        if is_new:
            await sessions.open("acme", "s", SessionOptions())
        with closing(JobQueue(queue_connection(queue_url))) as jobs:
            assert await Ending(sessions, LeakyIndex(left=0), jobs, FreshFiles(StoreFiles(redis))).end(ref)
        assert await streams.count("acme", "s") == int(is_new)
        await streams.forget("acme", "s")


async def named(sessions: Sessions) -> list[str]:
    return await sessions.users.sessions("acme", "ada")


@dataclass
class NotedForgetting:
    """Notes whose facts had to go with which life."""

    lives: list[tuple[SessionRef, str]] = field(default_factory=list)

    async def forget(self, ref: SessionRef, user: str) -> None:
        self.lives.append((ref, user))


async def test_a_users_list_names_a_session_until_its_end_is_followed_up(
    redis_url: str, queue_url: str, redis: Redis
) -> None:
    async with connect_sessions(redis_url) as sessions:
        with closing(JobQueue(queue_connection(queue_url))) as jobs:
            forgotten = NotedForgetting()
            ending = Ending(sessions, LeakyIndex(left=0), jobs, FreshFiles(StoreFiles(redis)), forgotten)
            erased_one = (await sessions.open("acme", "erased", SessionOptions(user="ada"))).ref
            aged = (await sessions.open("acme", "aged", SessionOptions(user="ada"))).ref
            fork = (await sessions.fork("acme", "erased", "fork")).ref
            await sessions.erase("acme", "erased")
            keys = SessionKeys.of("acme", "aged")
            await redis.zadd(keys.due, {f"expire:{keys.label}:{aged.incarnation}": 1})
            assert set(await named(sessions)) == {"erased", "aged", "fork"}
            assert await ending.end(erased_one)
            assert await ending.end(aged)
            assert forgotten.lives == [(erased_one, "ada")], "facts outlive a session that only grew old"
            assert await named(sessions) == ["fork"]
            assert f"aged:{aged.incarnation}".encode() not in await redis.hgetall(keys.tomb)
            await sessions.erase("acme", "fork")
            await sessions.open("acme", "fork", SessionOptions(user="ada"))
            assert await ending.end(fork)
            assert await named(sessions) == ["fork"]


async def test_a_session_of_somebody_else_stands_in_no_list_of_who_asked_for_it(redis_url: str) -> None:
    async with connect_sessions(redis_url) as sessions:
        await sessions.open("acme", "s", SessionOptions(user="bob"))
        with pytest.raises(ConflictError):
            await sessions.open("acme", "s", SessionOptions(user="ada"))
        assert await named(sessions) == []
        assert await sessions.users.sessions("acme", "bob") == ["s"]


async def test_the_log_is_written_anew_once_for_all_erasures_of_a_while(queue_url: str) -> None:
    now = 0.0
    with running_redis(with_options(IN_MEMORY, appendonly="yes")) as server:
        async with connect_sessions(server.url) as sessions:
            files = FreshFiles(StoreFiles(sessions.client), clock=lambda: now)
            with closing(JobQueue(queue_connection(queue_url))) as jobs:
                ending = Ending(sessions, LeakyIndex(left=0), jobs, files)

                async def rewrites() -> int:
                    await wait_until_async("no rewrite is under way", lambda: is_idle(sessions))
                    return int((await sessions.client.info("persistence"))["aof_rewrites"])

                before = await rewrites()
                for _ in range(3):
                    assert await ending.end(await erased(server.url))
                assert await rewrites() == before + 1
                now = 31.0
                assert await ending.end(await erased(server.url))
                assert await rewrites() == before + 2


async def test_a_life_stays_due_while_an_older_rewrite_runs(queue_url: str) -> None:
    slow = with_options(IN_MEMORY, appendonly="yes", rdb_key_save_delay="20000")
    with running_redis(slow) as server:
        async with connect_sessions(server.url) as sessions:
            ref = await erased(server.url)
            await wait_until_async("no first rewrite is under way", lambda: is_idle(sessions))
            await sessions.client.mset({f"k{number}": "v" for number in range(40)})
            assert await StoreFiles(sessions.client).write_anew("log", "") == "started"
            with closing(JobQueue(queue_connection(queue_url))) as jobs:
                ending = Ending(sessions, LeakyIndex(left=0), jobs, FreshFiles(StoreFiles(sessions.client)))
                assert not await ending.end(ref)
                assert await sessions.client.zcard(SessionKeys.of("acme", "s").due) == 1
                await wait_until_async("the older rewrite has ended", lambda: is_idle(sessions))
                assert await ending.end(ref)


class FilesOfEachKey(StoreFiles):
    """As if each key lay on a server of its own."""

    written: Sequence[str] = ()

    def place(self, key: str) -> str:
        return key

    async def kept(self, key: str) -> KeptFiles:
        return KeptFiles(log=True, snapshot=False, replicas=0)

    async def write_anew(self, kind: FileKind, key: str) -> Started:
        self.written = [*self.written, key]
        return "started"


async def test_the_logs_of_the_servers_that_had_the_users_facts_and_the_ingest_stream_are_written_anew_too(
    redis_url: str, queue_url: str, redis: Redis
) -> None:
    files = FilesOfEachKey(redis)
    async with connect_sessions(redis_url) as sessions:
        ref = (await sessions.open("acme", "s", SessionOptions(user="ada"))).ref
        await sessions.erase("acme", "s")
        await redis.set(TenantKeys.of("acme").ingest_used, "", px=60_000)
        with closing(JobQueue(queue_connection(queue_url))) as jobs:
            assert await Ending(sessions, LeakyIndex(left=0), jobs, FreshFiles(files)).end(ref)
    held = [SessionKeys.of("acme", "s").meta, TenantKeys.of("acme").ingest, UserKeys.of("acme", "ada").meta]
    assert files.written == held


async def is_idle(sessions: Sessions) -> bool:
    return not (await sessions.client.info("persistence"))["aof_rewrite_in_progress"]


def point_of(ref: SessionRef) -> TurnPoint:
    vector = np.full(FakeEmbedder.dimension, 0.5, dtype=np.float32)
    return TurnPoint(
        ref=ref, user="", seq=1, revision=0, role="user", ts_ms=None, vector=vector, words=document_words("one")
    )
