"""How far behind the work is, and how full sessions are, as the metrics, ``status`` and ``doctor`` read it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from prefold.dispatcher.lag import Lag
from prefold.errors import UnavailableError
from prefold.status.sessions import Walk
from prefold.storage import Sessions, connect_sessions
from prefold.storage.backlog import due_backlog, event_backlog, now_ms_of
from prefold.storage.events import TurnEvents
from prefold.storage.fullness import fullness_of
from prefold.storage.keys import PARTITIONS, PartitionKeys, TenantKeys, partition_of
from prefold.storage.types import SessionOptions
from prefold.telemetry.metrics import exposition
from tests.support.metrics import Scrape
from tests.support.prepared import prepare

DAY_MS = 86_400_000


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as connected:
        yield connected


async def append(sessions: Sessions, session: str, turns: int, words: int = 20) -> None:
    for number in range(turns):
        await sessions.append("acme", session, [prepare(id=f"t{number}", role="user", content="word " * words)])


async def test_an_empty_store_owes_nothing(sessions: Sessions) -> None:
    now_ms = await now_ms_of(sessions.client)
    events, due = await event_backlog(sessions.client), await due_backlog(sessions.client, now_ms)
    assert (events.unread, events.unacknowledged, events.oldest_ms, events.partitions) == (0, 0, None, 0)
    assert (dict(due.by_kind), due.oldest_ms, due.partitions) == ({}, None, 0)
    assert events.age_seconds(now_ms) == due.age_seconds(now_ms) == 0


async def test_events_count_until_they_are_acknowledged_and_the_oldest_tells_the_age(sessions: Sessions) -> None:
    stream = TurnEvents(sessions.client)
    await stream.ensure_groups()
    for session in ("one", "two"):
        await append(sessions, session, 3)
    before = await event_backlog(sessions.client)
    assert (before.unread, before.unacknowledged) == (6, 0)
    got = await stream.read("us", 100, 0)
    after = await event_backlog(sessions.client)
    assert (after.unread, after.unacknowledged, after.oldest_ms) == (0, 6, before.oldest_ms)
    assert after.age_seconds((after.oldest_ms or 0) + 1_500) == 1.5
    await stream.ack(got)
    assert (await event_backlog(sessions.client)).unacknowledged == 0


async def test_overdue_work_is_counted_by_kind_and_in_proportion_where_there_is_much(sessions: Sessions) -> None:
    keys = [PartitionKeys.of(partition).due for partition in (3, 200)]
    many = {f"embed:acme:s{number}:0123456789ab": 1_000.0 for number in range(150)}
    many |= {f"compact:acme:s{number}:0123456789ab": 1_000.0 for number in range(150)}
    await sessions.client.zadd(keys[0], many)
    await sessions.client.zadd(keys[1], {"remember:acme:s:0123456789ab": 2_000, "expire:acme:s:0123456789ab": DAY_MS})
    due = await due_backlog(sessions.client, 10_000)
    assert (due.oldest_ms, due.partitions, due.by_kind["remember"]) == (1_000, 2, 1)
    assert sum(due.by_kind.values()) == 301
    assert "expire" not in due.by_kind


async def test_sessions_tell_how_full_they_are(sessions: Sessions) -> None:
    await sessions.open("acme", "small", SessionOptions(hard_limit_tokens=1_000))
    await append(sessions, "small", 3, words=200)
    [found] = await fullness_of(sessions.client, [("acme", "small"), ("acme", "nobody")])
    view = await sessions.view("acme", "small")
    assert (found.tokens, found.hard_limit_tokens) == (view.tokens, 1_000)
    assert (found.limit_crossings, found.ready_crossings) == (view.limit_crossings, view.ready_crossings)
    assert 0.3 < found.share < 0.95


async def test_a_walk_meets_every_session_in_parts_and_begins_again(sessions: Sessions) -> None:
    for number in range(30):
        await append(sessions, f"s{number}", 1, words=number + 1)
    walk = Walk(sessions.client, 0.8)
    for _ in range(40):
        await walk.advance(5)
        if walk.seen.is_whole:
            break
    assert (walk.seen.is_whole, walk.seen.sessions) == (True, 30)
    assert walk.seen.fullest[0].session == "s29"
    await append(sessions, "new", 1, words=100)
    for _ in range(40):
        await walk.advance(5)
    assert walk.seen.fullest[0].session == "new"


async def test_of_a_cluster_it_is_the_backlog_of_all_its_servers(cluster_url: str) -> None:
    async with connect_sessions(cluster_url) as sessions:
        await TurnEvents(sessions.client).ensure_groups()
        for number in range(12):
            await append(sessions, f"s{number}", 1)
        events = await event_backlog(sessions.client)
        due = await due_backlog(sessions.client, await now_ms_of(sessions.client) + DAY_MS)
        full = await fullness_of(sessions.client, [("acme", f"s{number}") for number in range(12)])
    assert events.unread == 12
    assert due.by_kind["embed"] == 12
    assert len(full) == 12


class Queues:
    """A queue with three jobs and two workers."""

    def depth(self, queue: str) -> int:
        return 3

    def workers(self, queue: str) -> int:
        return 2


async def test_a_dispatcher_sets_its_gauges_from_one_look(sessions: Sessions) -> None:
    await TurnEvents(sessions.client).ensure_groups()
    await append(sessions, "one", 4)
    client: Redis = sessions.client
    await client.zadd(PartitionKeys.of(PARTITIONS - 1).due, {"compact:acme:s:0123456789ab": 1})
    await Lag(client, Queues(), timedelta(seconds=5)).read()
    told = Scrape(exposition().decode())
    assert told.value("prefold_events_pending") == 4
    assert 0 <= told.value("prefold_oldest_event_age_seconds") < 60
    assert told.value("prefold_due_overdue", kind="compact") >= 1
    assert told.value("prefold_queue_jobs", queue="embed") == 3
    assert told.value("prefold_queue_workers", queue="memory") == 2
    assert told.value("prefold_dead_letters") == 0
    assert told.value("prefold_lag_read_timestamp_seconds") > 1_000_000_000


async def test_an_ingest_stream_that_is_none_stops_no_gauge(sessions: Sessions) -> None:
    await TurnEvents(sessions.client).ensure_groups()
    client: Redis = sessions.client
    broken, whole = TenantKeys.of("broken"), TenantKeys.of("beta")
    for key in broken.letter_keys():
        await client.set(key, "of no use", ex=60)
    await client.xadd(whole.ingest, {"v": "1"})
    await Lag(client, Queues(), timedelta(seconds=5), ["broken", "beta"]).read()
    assert Scrape(exposition().decode()).value("prefold_ingest_pending") == 1
    await client.delete(whole.ingest)


class NoQueues(Queues):
    """One that is away."""

    def depth(self, queue: str) -> int:
        raise UnavailableError("the queue does not answer")


async def test_the_sessions_lag_is_told_while_the_queue_is_away(sessions: Sessions) -> None:
    await TurnEvents(sessions.client).ensure_groups()
    await append(sessions, "one", 5)
    with pytest.raises(UnavailableError):
        await Lag(sessions.client, NoQueues(), timedelta(seconds=5)).read()
    assert Scrape(exposition().decode()).value("prefold_events_pending") == 5


async def test_unread_events_that_the_server_cannot_count_are_looked_for(sessions: Sessions) -> None:
    await TurnEvents(sessions.client).ensure_groups()
    await append(sessions, "one", 3)
    key = PartitionKeys.of(partition_of("acme", "one")).events
    entries: Any = await sessions.client.xrange(key)
    await sessions.client.xdel(key, entries[1][0])
    assert (await sessions.client.xinfo_groups(key))[0]["lag"] is None
    events = await event_backlog(sessions.client)
    assert (events.oldest_ms, events.partitions) == (int(entries[0][0].split(b"-")[0]), 1)
