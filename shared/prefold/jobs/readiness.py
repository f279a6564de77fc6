"""What ``/readyz`` of a dispatcher or a worker tells: whether the parts that its work needs answer now.

A check returns when all is well, or with a remark that starts with ``ok: ``; it raises one of our errors otherwise.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.exceptions import RedisError

from prefold.errors import PrefoldError, UnavailableError
from prefold.jobs.failures import queue_failures
from prefold.storage.client import redis_failures
from prefold.storage.cluster import Server, servers_of
from prefold.storage.layout import check_layout

if TYPE_CHECKING:
    from prefold.recall.server import VectorServer

__all__ = ["Check", "queue_answers", "sessions_answer", "states_of", "vectors_answer"]

_WITHIN_SECONDS: Final = 1.5
Check = Callable[[], Awaitable[str | None]]


async def states_of(checks: Mapping[str, Check]) -> dict[str, str]:
    """By name ``ok``, a remark, or what is wrong. All are asked at once, and none for longer than 1.5 s. Never raises."""
    states = await asyncio.gather(*map(_state_of, checks.values()))
    return dict(zip(checks, states, strict=True))


async def _state_of(check: Check) -> str:
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            return await check() or "ok"
    except TimeoutError:
        return "does not answer in time"
    except PrefoldError as error:
        return error.detail
    except RedisError as error:  # it answers, and does not let us ask
        return str(error)


async def sessions_answer(client: Redis) -> str | None:
    """The session store answers and has our layout; of a cluster one server at least, and how many do not is told."""
    with redis_failures():
        servers = await servers_of(client)
        away = [one for one in await asyncio.gather(*map(_failure_of, servers)) if one is not None]
        if len(away) == len(servers):
            raise away[0]
    try:
        await check_layout(client)
    except UnavailableError:  # of a cluster: that one server is away
        if not away:
            raise
    return f"ok: {len(away)} of {len(servers)} servers do not answer" if away else None


async def _failure_of(server: Server) -> Exception | None:
    try:
        with redis_failures():
            await server.client.ping()
    except UnavailableError as error:
        return error
    return None


async def queue_answers(connection: BlockingRedis) -> None:
    """The queue's Redis answers."""
    with queue_failures():
        await asyncio.to_thread(connection.ping)


async def vectors_answer(server: "VectorServer") -> None:
    """The vector store answers, to our key."""
    await server.collections()
