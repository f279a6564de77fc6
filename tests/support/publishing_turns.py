"""Turns published on an ingest stream, and readers of it in this process."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from prefold.dispatcher.ingest import Ingest
from prefold.dispatcher.ingesting import opened_ingest
from prefold.dispatcher.settings import DispatcherSettings
from prefold.storage import Sessions
from prefold.storage.keys import TenantKeys
from tests.support.waiting import wait_until_async

TENANT = "acme"
STREAM = TenantKeys.of(TENANT).ingest
SESSION_TEXT = "Where is parcel {number} of {session}?"


def settings(redis_url: str, **given: Any) -> DispatcherSettings:
    values: dict[str, Any] = {"ingest_tenants": TENANT, "durability": "fast", "dispatcher_name": "reader", **given}
    return DispatcherSettings(redis_url=redis_url, **values)


def turn_json(number: int, session: str = "s") -> str:
    role = "assistant" if number % 2 else "user"
    return json.dumps(
        {"id": f"t{number}", "role": role, "content": SESSION_TEXT.format(number=number, session=session)}
    )


def entry(session: str, turn: str | bytes) -> dict[Any, Any]:
    return {"session": session, "turn": turn, "v": "1"}


async def publish(redis: Redis, fields: Mapping[Any, Any], tenant: str = TENANT) -> str:
    """As a backend does it; the entry's id."""
    added: Any = await redis.xadd(TenantKeys.of(tenant).ingest, dict(fields))
    return str(added.decode())


async def publish_turns(redis: Redis, session: str, numbers: range) -> None:
    async with redis.pipeline(transaction=False) as pipe:
        for number in numbers:
            pipe.xadd(STREAM, entry(session, turn_json(number, session)))
        await pipe.execute()


@asynccontextmanager
async def reading(redis_url: str, **given: Any) -> AsyncIterator[Ingest]:
    """A reader that works until the end of the block."""
    stop = asyncio.Event()
    async with opened_ingest(settings(redis_url, **given)) as ingest:
        running = asyncio.create_task(ingest.run(stop))
        try:
            yield ingest
        finally:
            stop.set()
            await running


async def until_empty(redis: Redis, tenant: str = TENANT) -> None:
    key = TenantKeys.of(tenant).ingest

    async def is_empty() -> bool:
        return not await redis.exists(key)

    await wait_until_async("everything published is applied or set aside", is_empty)


async def stored_ids(sessions: Sessions, session: str, tenant: str = TENANT) -> list[str]:
    return [one.id for one in await sessions.read_turns(tenant, session, 0, 500)]
