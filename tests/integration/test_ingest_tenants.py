"""Keys of one tenant that hold up nobody else, and what is told of streams and their dead letters."""

from collections.abc import AsyncIterator, MutableMapping, Sequence
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from prefold.status.look import opened_looker
from prefold.status.settings import StatusSettings
from prefold.status.troubles import troubles_of
from prefold.storage import Sessions, connect_sessions
from prefold.storage.ingest import IngestStreams
from prefold.storage.ingest_letters import IngestLetters
from prefold.storage.keys import TenantKeys
from tests.support.publishing_turns import TENANT, entry, publish, reading, stored_ids, turn_json, until_empty
from tests.support.waiting import wait_until_async


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def letters(redis: Redis) -> IngestLetters:
    return IngestLetters(redis)


async def has_said(logs: Sequence[MutableMapping[str, Any]], event: str) -> bool:
    return any(one["event"] == event for one in logs)


async def test_a_stream_that_is_none_concerns_its_tenant_alone(
    redis: Redis, redis_url: str, sessions: Sessions
) -> None:
    """A ``direct-TENANT`` user may write its tenant's keys as it likes."""
    broken = TenantKeys.of("broken")
    await redis.set(broken.ingest, "no stream")
    with capture_logs() as logs:
        async with reading(redis_url, ingest_tenants=f"broken,{TENANT}"):
            await publish(redis, entry("s", turn_json(0)))
            await until_empty(redis)
            told = [one for one in logs if one["log_level"] != "info"]
            assert [(one["event"], one["tenant"]) for one in told] == [("ingest_unreadable", "broken")]
            await redis.delete(broken.ingest)
            await publish(redis, entry("s", turn_json(0)), "broken")
            await until_empty(redis, "broken")
    assert await stored_ids(sessions, "s") == ["t0"]
    assert await stored_ids(sessions, "s", "broken") == ["t0"]


async def test_other_keys_of_a_wrong_type_hold_up_their_tenant_alone(
    redis: Redis, redis_url: str, sessions: Sessions
) -> None:
    broken = TenantKeys.of("broken")
    await redis.rpush(broken.ingest_lease, "no lease")
    await publish(redis, entry("s", turn_json(0)), "broken")
    with capture_logs() as logs:
        async with reading(redis_url, ingest_tenants=f"broken,{TENANT}"):
            await publish(redis, entry("s", turn_json(0)))
            await until_empty(redis)
            await wait_until_async("it says whose trouble it is", partial(has_said, logs, "dispatcher_unavailable"))
            await redis.delete(broken.ingest_lease)
            await until_empty(redis, "broken")
    assert {one.get("tenant") for one in logs if one["event"] == "dispatcher_unavailable"} == {"broken"}


async def test_what_waits_and_what_was_set_aside_is_counted_beside_keys_of_a_wrong_type(
    redis: Redis, redis_url: str, letters: IngestLetters
) -> None:
    async with reading(redis_url):
        await publish(redis, entry("s", "hello"))
        await until_empty(redis)
    await publish(redis, entry("s", turn_json(0)), "beta")
    broken = TenantKeys.of("broken")
    for key in broken.letter_keys():
        await redis.set(key, "of no use", ex=60)
    streams = IngestStreams(redis)
    waiting = await streams.waiting(["broken", "beta", "nobody"])
    assert [(one.tenant, one.entries, one.is_stream) for one in waiting] == [
        ("broken", 0, False),
        ("beta", 1, True),
        ("nobody", 0, True),
    ]
    assert await streams.tenants() == [TENANT, "beta", "broken"]
    assert await letters.number(["broken", TENANT]) == 1
    assert [one.tenant for one in await letters.letters()] == [TENANT]
    assert await streams.forget("broken", "s") == await streams.count("broken", "s") == 0
    await redis.delete(TenantKeys.of("beta").ingest)


async def test_status_tells_of_streams_that_nobody_reads_and_of_keys_that_are_none(
    redis: Redis, redis_url: str
) -> None:
    await publish(redis, entry("s", turn_json(0)), "unlisted")
    await redis.set(TenantKeys.of("broken").ingest, "no stream", ex=60)
    settings = StatusSettings(redis_url=redis_url, queue_url=redis_url, gateway_url="http://127.0.0.1:9")
    async with opened_looker(settings) as looker:
        found = await looker.look(0)
    assert found.store is not None
    assert [(one.tenant, one.entries, one.is_stream) for one in found.store.ingest] == [
        ("broken", 0, False),
        ("unlisted", 1, True),
    ]
    assert 0 <= found.store.ingest_age_seconds < 60
    assert [one for one in troubles_of(found) if "ingest stream of broken" in one]
    await redis.delete(TenantKeys.of("unlisted").ingest)


async def test_the_place_of_a_fault_is_a_field_of_the_entry(
    redis: Redis, redis_url: str, letters: IngestLetters
) -> None:
    for turn in ("hello", "[]", '{"id":"x","role":"user"'):
        await publish(redis, entry("s", turn))
    async with reading(redis_url):
        await until_empty(redis)
    assert [one.refusal.field for one in await letters.letters(TENANT)] == ["turn"] * 3
