"""Processes of two layouts never work on one store, and the note of it stands in nobody's way."""

from pathlib import Path

import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError

from prefold.errors import ConfigurationError
from prefold.gateway.composition import gateway
from prefold.storage import Sessions
from prefold.storage.fields import INCARNATION_CHARACTERS, STATE_STRUCT
from prefold.storage.keys import LAYOUT_KEY, SessionKeys
from prefold.storage.layout import LAYOUT, check_layout, meet_layout
from tests.support.gateway import gateway_settings, served_gateway
from tests.support.logged_roles import logged_role
from tests.support.prepared import prepare
from tests.support.redis import running_redis

OTHER = LAYOUT + 1


async def test_an_empty_store_is_marked_with_our_layout_once(redis: Redis) -> None:
    await check_layout(redis)  # nothing is there yet, so nothing is wrong
    await meet_layout(redis)
    await meet_layout(redis)
    assert await redis.get(LAYOUT_KEY) == str(LAYOUT).encode()


async def test_a_store_of_another_layout_is_refused_by_name_and_left_as_it_is(redis: Redis) -> None:
    await redis.set(LAYOUT_KEY, OTHER)
    for look in (meet_layout, check_layout):
        with pytest.raises(ConfigurationError, match=f"holds layout {OTHER} .* works with layout {LAYOUT}"):
            await look(redis)
    assert await redis.get(LAYOUT_KEY) == str(OTHER).encode()


async def test_a_store_written_before_layouts_were_noted_is_known_by_a_state_that_is_too_short(redis: Redis) -> None:
    sessions = Sessions(redis)
    await sessions.append("acme", "old", [prepare(id="t1", role="user", content="hello")])
    await meet_layout(redis)  # of our own form, only not noted
    await redis.delete(LAYOUT_KEY)
    meta = SessionKeys.of("acme", "old").meta
    state = await redis.hget(meta, "state")
    assert state is not None and len(state) == STATE_STRUCT.size + INCARNATION_CHARACTERS
    await redis.hset(meta, "state", state[8:])
    with pytest.raises(ConfigurationError, match="holds layout before 1"):
        await meet_layout(redis)
    assert await redis.get(LAYOUT_KEY) is None


async def test_a_full_store_is_met_without_the_note() -> None:
    with running_redis() as server:
        async with Redis.from_url(server.url) as redis:
            await redis.config_set("maxmemory", "1")
            with pytest.raises(OutOfMemoryError):
                await redis.set("more", "x")
            await meet_layout(redis)
            assert await redis.get(LAYOUT_KEY) is None


async def test_a_gateway_under_which_the_layout_changes_is_ready_no_more(redis: Redis, redis_url: str) -> None:
    async with served_gateway(redis_url) as served:
        assert (await served.client.get("/readyz")).json()["checks"]["layout"] == "ok"
        await redis.set(LAYOUT_KEY, OTHER)
        answer = await served.client.get("/readyz")
        assert answer.status_code == 503
        assert f"holds layout {OTHER}" in answer.json()["checks"]["layout"]


def test_a_process_that_meets_another_layout_leaves_with_2_and_says_why(
    redis_url: str, queue_url: str, tmp_path: Path
) -> None:
    with BlockingRedis.from_url(redis_url) as client:
        client.set(LAYOUT_KEY, OTHER)
    with logged_role(tmp_path, "dispatcher", redis_url, queue_url) as running:
        assert running.process.wait(40) == 2
        assert f"the session store holds layout {OTHER} and this version of Prefold works with" in running.text()


async def test_a_gateway_does_not_start_on_another_layout(redis: Redis, redis_url: str) -> None:
    await redis.set(LAYOUT_KEY, OTHER)
    with pytest.raises(ConfigurationError, match="works with layout"):
        async with gateway(gateway_settings(redis_url=redis_url, durability="fast")):
            raise AssertionError("it started")
