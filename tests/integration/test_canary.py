"""``/readyz`` of a gateway runs the real scripts, and nothing of that stays."""

import asyncio

import pytest
from redis.asyncio import Redis

from prefold.errors import UnavailableError
from prefold.storage.canary import try_scripts
from prefold.storage.cluster import Server, servers_of
from prefold.storage.scripts import script
from tests.support.gateway import served_gateway
from tests.support.redis import running_redis


async def everything(redis: Redis) -> list[bytes]:
    return sorted([key async for key in redis.scan_iter("*")])


async def test_it_appends_and_reads_by_the_real_scripts_and_leaves_nothing(redis: Redis) -> None:
    before = await everything(redis)
    await redis.script_load(script("append").source)
    await redis.config_resetstat()
    await try_scripts(redis, Server("", redis))
    stats = await redis.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 2
    assert stats["cmdstat_xadd"]["calls"] >= 4  # two turns and their events, in streams of its own
    assert await everything(redis) == before


async def test_it_loads_scripts_that_the_server_has_forgotten(redis: Redis) -> None:
    await redis.script_flush()
    await try_scripts(redis, Server("", redis))
    assert await redis.script_exists(script("append").sha) == [True]
    assert await everything(redis) == []


async def test_many_at_once_do_not_meet(redis: Redis) -> None:
    await asyncio.gather(*(try_scripts(redis, Server("", redis)) for _ in range(30)))
    assert await everything(redis) == []


async def test_a_server_that_takes_no_writes_is_named_and_the_gateway_is_not_ready(redis_url: str) -> None:
    async with served_gateway(redis_url) as served, Redis.from_url(redis_url) as redis:
        assert (await served.client.get("/readyz")).status_code == 200
        await redis.replicaof("127.0.0.1", 1)
        try:
            with pytest.raises(UnavailableError):
                await try_scripts(redis, Server("", redis))
            answer = await served.client.get("/readyz")
            assert (answer.status_code, answer.json()["status"]) == (503, "unready")
        finally:
            await redis.replicaof("NO", "ONE")
        assert (await served.client.get("/readyz")).status_code == 200


async def test_a_store_where_scripts_may_not_run_is_not_ready_whatever_else_it_answers() -> None:
    with running_redis() as server:
        async with served_gateway(server.url) as served, Redis.from_url(server.url) as redis:
            await redis.acl_setuser("default", enabled=True, commands=["-evalsha"])
            answer = await served.client.get("/readyz")
            assert answer.status_code == 503
            assert "refuses what is needed" in answer.json()["checks"]["sessions"]
            assert "evalsha" in answer.json()["checks"]["sessions"]


async def test_each_primary_of_a_cluster_runs_them(cluster_url: str) -> None:
    async with served_gateway(cluster_url) as served:
        client = served.sessions.client
        servers = await servers_of(client)
        assert len(servers) == 3
        assert (await served.client.get("/readyz")).status_code == 200  # the scripts are loaded everywhere now
        for server in servers:
            await server.client.config_resetstat()
        answer = await served.client.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["sessions"]) == (200, "ok")
        for server in servers:
            stats = await server.client.info("commandstats")
            assert stats["cmdstat_evalsha"]["calls"] == 2, server.name
            assert await server.client.keys("*canary*") == []
