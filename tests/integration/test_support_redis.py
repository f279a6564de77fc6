"""The servers that tests use."""

from redis.asyncio import Redis

from tests.support.redis import RunningRedis, running_redis


async def test_a_test_starts_with_an_empty_server(redis: Redis) -> None:
    assert await redis.dbsize() == 0
    await redis.set("left", "behind")


async def test_another_test_does_not_see_what_one_left_behind(redis: Redis) -> None:
    assert await redis.dbsize() == 0
    await redis.set("left", "behind")


def test_sessions_and_queue_are_two_servers(redis_server: RunningRedis, queue_server: RunningRedis) -> None:
    assert redis_server.url != queue_server.url


def test_a_server_of_a_test_leaves_no_process_and_no_folder() -> None:
    with running_redis() as server:
        process = server.process
        directory = server.server.directory
    assert process is not None
    assert process.returncode is not None
    assert not directory.exists()
