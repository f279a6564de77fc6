"""What a dispatcher makes good on real servers: events that the cap dropped, and due entries that are lost."""

from collections.abc import AsyncIterator, Iterator, MutableMapping
from typing import Any

import pytest
from redis import Redis as SyncRedis
from redis.asyncio import Redis
from structlog.testing import capture_logs

from prefold.jobs import queue_connection
from prefold.storage import Sessions, connect_sessions, limits
from prefold.storage.dropped import dropped_events
from prefold.storage.keys import PartitionKeys, SessionKeys, partition_of
from prefold.storage.scripts import script
from tests.integration.test_dispatcher_storage import dispatcher, make_due, say, spans
from tests.support.waiting import wait_until_async

HOME = partition_of("acme", "s")
NAMES = [name for name in (f"s{number}" for number in range(6_000)) if partition_of("acme", name) == HOME][:12]
"""Sessions of one partition: they share its stream and its due set."""


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def connection(queue_url: str) -> Iterator[SyncRedis]:
    with queue_connection(queue_url) as client:
        yield client


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as captured:
        yield captured


@pytest.fixture
async def three_events(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A stream keeps three events, and each append trims it."""
    monkeypatch.setattr(limits, "EVENTS_KEPT", 3)
    monkeypatch.setattr(limits, "TRIM_EVERY", 1)
    script.cache_clear()
    (before,) = (await redis.config_get("stream-node-max-entries")).values()
    await redis.config_set("stream-node-max-entries", 1)
    yield
    await redis.config_set("stream-node-max-entries", str(before))
    monkeypatch.undo()
    script.cache_clear()


async def test_events_that_the_cap_dropped_cost_time_and_no_work_and_are_told(
    redis_url: str,
    queue_url: str,
    sessions: Sessions,
    connection: SyncRedis,
    redis: Redis,
    logs: list[MutableMapping[str, Any]],
    three_events: None,
) -> None:
    for name in NAMES:
        await say(sessions, name, "one")
    assert await redis.xlen(PartitionKeys.of(HOME).events) == 3
    async with dispatcher(redis_url, queue_url, sweep_seconds=3_600):

        async def told() -> bool:
            return await dropped_events(redis) == len(NAMES) - 3

        await wait_until_async("the drops are counted", told)
        await make_due(redis, SessionKeys.of("acme", NAMES[0]))

        async def all_asked() -> bool:
            return {span.session for span in spans(connection)} == set(NAMES)

        await wait_until_async("every session is asked for", all_asked)
    assert [entry["events"] for entry in logs if entry["event"] == "events_dropped"] == [len(NAMES) - 3]
    totals = [entry for entry in logs if entry["event"] == "dispatcher_totals"]
    assert totals[-1]["events_dropped"] == len(NAMES) - 3


async def test_due_entries_and_events_may_both_be_lost(
    redis_url: str, queue_url: str, sessions: Sessions, connection: SyncRedis, redis: Redis
) -> None:
    for name in NAMES:
        await say(sessions, name, "one")
    await redis.delete(PartitionKeys.of(HOME).due, PartitionKeys.of(HOME).events)
    async with dispatcher(redis_url, queue_url):

        async def restored() -> bool:
            return bool(await redis.zcard(PartitionKeys.of(HOME).due) == 3 * len(NAMES))

        await wait_until_async("the sweep at the start has put them back", restored)
        await make_due(redis, SessionKeys.of("acme", NAMES[0]))

        async def all_asked() -> bool:
            return {span.session for span in spans(connection)} == set(NAMES)

        await wait_until_async("every session is asked for", all_asked)


async def test_what_is_lost_while_it_runs_comes_back_with_the_next_sweep(
    redis_url: str, queue_url: str, sessions: Sessions, redis: Redis
) -> None:
    async with dispatcher(redis_url, queue_url, sweep_seconds=1):
        await say(sessions, NAMES[0], "one")
        await redis.delete(PartitionKeys.of(HOME).due)

        async def restored() -> bool:
            return bool(await redis.zcard(PartitionKeys.of(HOME).due))

        await wait_until_async("it is back", restored)
