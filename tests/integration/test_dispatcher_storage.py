"""The dispatcher on real servers: what a session's append leads to."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from redis import Redis as SyncRedis
from redis.asyncio import Redis
from rq.job import Job
from rq.serializers import JSONSerializer

from prefold.conversation import prepare_turn
from prefold.dispatcher.main import serve
from prefold.dispatcher.settings import DispatcherSettings
from prefold.jobs import (
    COMPACT_JOB,
    EMBED_JOB,
    TO_HEAD,
    QueueName,
    decode_sessions,
    decode_spans,
    hint_queue,
    queue_connection,
)
from prefold.storage import Sessions, connect_sessions
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.events import GROUP, TurnEvents
from prefold.storage.keys import PartitionKeys, SessionKeys
from prefold.storage.types import AppendResult, SessionOptions, SessionRef
from prefold.tokens import load_counter
from tests.support.redis import RunningRedis, running_redis
from tests.support.waiting import wait_until_async

COUNTER = load_counter()
FAST: dict[str, Any] = {"dispatcher_name": "d1", "embed_batch_wait_ms": 20, "reconcile_seconds": 0.1}


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def connection(queue_url: str) -> Iterator[SyncRedis]:
    with queue_connection(queue_url) as client:
        yield client


@asynccontextmanager
async def dispatcher(redis_url: str, queue_url: str, **settings: Any) -> AsyncIterator[None]:
    stop = asyncio.Event()
    chosen = DispatcherSettings(redis_url=redis_url, queue_url=queue_url, **{**FAST, **settings})
    task = asyncio.create_task(serve(chosen, stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 3)


async def say(sessions: Sessions, session: str, *texts: str) -> AppendResult:
    ids = (f"t{number}" for number in count(sum(map(len, texts)) * 1_000_003 % 997))
    turns = [
        prepare_turn({"id": f"{session}-{text[:20]}", "role": "user", "content": text}, 0, COUNTER, lambda: next(ids))
        for text in texts
    ]
    return await sessions.append("acme", session, turns)


async def make_due(redis: Redis, keys: SessionKeys) -> None:
    """As if everything of the partition were long overdue."""
    for member in await redis.zrange(keys.due, 0, -1):
        assert isinstance(member, bytes)
        await redis.zadd(keys.due, {member: 0})


def payloads(connection: SyncRedis, queue: QueueName, name: str) -> list[Any]:
    ids = hint_queue(queue, connection).get_job_ids()
    jobs = [Job.fetch(one, connection=connection, serializer=JSONSerializer) for one in ids]
    return [job.args[0] for job in jobs if job.func_name == name]


def spans(connection: SyncRedis) -> list[EmbedSpan]:
    return [span for payload in payloads(connection, "embed", EMBED_JOB) for span in decode_spans(payload)]


def builds(connection: SyncRedis) -> list[SessionRef]:
    return [ref for payload in payloads(connection, "compact", COMPACT_JOB) for ref in decode_sessions(payload)]


async def test_appended_turns_of_all_sessions_become_embed_jobs(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis
) -> None:
    async with dispatcher(redis_url, queue_url):
        for number in range(30):
            await say(sessions, f"s{number}", "one", "two")

        async def arrived() -> bool:
            return len({span.session for span in spans(connection)}) == 30

        await wait_until_async("every session has its job", arrived)
    assert {(span.first_seq, span.last_seq) for span in spans(connection)} == {(1, 2)}
    assert len(payloads(connection, "embed", EMBED_JOB)) < 30


async def test_every_event_is_acknowledged(redis_url: str, queue_url: str, sessions: Sessions, redis: Redis) -> None:
    async with dispatcher(redis_url, queue_url):
        placed = [await say(sessions, f"s{number}", "one") for number in range(10)]
        keys = {SessionKeys.of("acme", one.ref.session).events for one in placed}

        async def acknowledged() -> bool:
            groups = [(await redis.xinfo_groups(key))[0] for key in keys]
            return all(group["pending"] == 0 and group["entries-read"] for group in groups)

        await wait_until_async("nothing is pending", acknowledged)


async def test_a_session_past_its_soft_threshold_gets_a_compaction_job(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis
) -> None:
    await sessions.open("acme", "long", SessionOptions(hard_limit_tokens=1_000))
    async with dispatcher(redis_url, queue_url):
        placed = [await say(sessions, "long", f"{number} " + "word " * 80) for number in range(9)]

        async def asked() -> list[SessionRef]:
            return builds(connection)

        assert await wait_until_async("it is asked for", asked) == [placed[0].ref]


async def test_work_whose_events_are_lost_is_found_by_what_is_due(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis, redis: Redis
) -> None:
    placed = await say(sessions, "s", "one", "two")
    keys = SessionKeys.of("acme", "s")
    await redis.delete(keys.events)
    await make_due(redis, keys)
    async with dispatcher(redis_url, queue_url):

        async def asked() -> list[EmbedSpan]:
            return spans(connection)

        (span,) = await wait_until_async("it is asked for", asked)
    assert span == EmbedSpan("acme", "s", placed.ref.incarnation, 1, TO_HEAD)


async def test_jobs_that_the_queue_lost_are_asked_for_again(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis, redis: Redis
) -> None:
    async with dispatcher(redis_url, queue_url, retry_seconds=0.5):
        await say(sessions, "s", "one")

        async def asked() -> list[EmbedSpan]:
            return spans(connection)

        await wait_until_async("it is asked for", asked)
        connection.flushall()
        keys = SessionKeys.of("acme", "s")
        await make_due(redis, keys)
        (span,) = await wait_until_async("it is asked for again", asked)
    assert span.last_seq == TO_HEAD


async def test_events_of_a_dispatcher_that_died_are_taken_over(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis, redis: Redis
) -> None:
    events = TurnEvents(redis)
    await events.ensure_groups()
    await say(sessions, "s", "one")
    assert len(await events.read("dead", 10, 100)) == 1
    async with dispatcher(redis_url, queue_url, claim_idle_ms=1_000, reconcile_seconds=60):

        async def asked() -> list[EmbedSpan]:
            return spans(connection)

        (span,) = await wait_until_async("it is asked for", asked)
    assert (span.first_seq, span.last_seq) == (1, 1)


async def test_a_dispatcher_that_is_started_again_takes_its_own_pending_events_first(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis, redis: Redis
) -> None:
    events = TurnEvents(redis)
    await events.ensure_groups()
    await say(sessions, "s", "one")
    await events.read("d1", 10, 100)
    async with dispatcher(redis_url, queue_url):

        async def asked() -> list[EmbedSpan]:
            return spans(connection)

        (span,) = await wait_until_async("it is asked for", asked)
    assert (span.first_seq, span.last_seq) == (1, 1)
    assert await events.pending("d1") == []


async def test_a_stream_that_was_deleted_with_its_group_is_read_again(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis, redis: Redis
) -> None:
    async with dispatcher(redis_url, queue_url):
        await say(sessions, "s", "one")

        async def asked(seq: int) -> bool:
            return seq in [span.last_seq for span in spans(connection)]

        await wait_until_async("the first is asked for", lambda: asked(1))
        await redis.delete(SessionKeys.of("acme", "s").events)
        await say(sessions, "s", "two")
        await wait_until_async("the second is asked for", lambda: asked(2))


async def test_both_servers_may_go_and_come_back_empty(redis_url: str) -> None:
    with running_redis() as store, running_redis() as queue:
        async with dispatcher(store.url, queue.url), connect_sessions(store.url) as sessions:
            await say(sessions, "s", "one")
            await _until_spans(queue, 1)
            for server in (store, queue):
                server.kill()
            for server in (store, queue):
                server.start()
            await say(sessions, "other", "one")
            await _until_spans(queue, 1)


async def _until_spans(queue: RunningRedis, wanted: int) -> None:
    with queue_connection(queue.url) as connection:

        async def arrived() -> bool:
            return len(spans(connection)) == wanted

        await wait_until_async("the job is there", arrived)


async def test_a_group_exists_on_every_partition(redis_url: str, queue_url: str, redis: Redis) -> None:
    async with dispatcher(redis_url, queue_url):

        async def there() -> bool:
            return bool(await redis.exists(PartitionKeys.of(255).events))

        await wait_until_async("the last partition has its stream", there)
    assert (await redis.xinfo_groups(PartitionKeys.of(0).events))[0]["name"] == GROUP.encode()
