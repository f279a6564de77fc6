"""The servers that tests use."""

import asyncio

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.support.redis import RunningRedis, running_redis
from tests.support.waiting import wait_until_async


async def test_a_test_starts_with_an_empty_server(redis: Redis) -> None:
    assert await redis.dbsize() == 0
    await redis.set("left", "behind")


async def test_another_test_does_not_see_what_one_left_behind(redis: Redis) -> None:
    assert await redis.dbsize() == 0
    await redis.set("left", "behind")


async def test_whoever_waits_when_a_server_is_emptied_takes_nothing_of_what_comes_next(
    redis: Redis, redis_server: RunningRedis
) -> None:
    async with Redis.from_url(redis_server.url, retry=Retry(NoBackoff(), 0)) as earlier:

        async def waits() -> bool:
            return bool((await redis.info("clients"))["blocked_clients"])

        taking = asyncio.ensure_future(earlier.blmove("queue", "taken", 30))
        await wait_until_async("it waits", waits)
        redis_server.flush()
        await redis.rpush("queue", "job")
        with pytest.raises(RedisConnectionError):
            await taking
        assert await redis.lrange("queue", 0, -1) == [b"job"]


def test_sessions_and_queue_are_two_servers(redis_server: RunningRedis, queue_server: RunningRedis) -> None:
    assert redis_server.url != queue_server.url


def test_a_server_of_a_test_leaves_no_process_and_no_folder() -> None:
    with running_redis() as server:
        process = server.process
        directory = server.server.directory
    assert process is not None
    assert process.returncode is not None
    assert not directory.exists()
