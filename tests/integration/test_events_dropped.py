"""Event streams that outgrow their cap: what is dropped is counted once, and costs no work."""

import pytest
from redis.asyncio import Redis

from prefold.storage import Sessions
from prefold.storage.dropped import count_dropped, dropped_events
from prefold.storage.events import TurnEvents
from prefold.storage.keys import PartitionKeys
from prefold.storage.traces import SessionTraces
from tests.support.storage import TENANT, append, turn

EVENTS = PartitionKeys.of(7).events


@pytest.fixture
async def events(redis: Redis) -> TurnEvents:
    events = TurnEvents(redis)
    await events.ensure_groups()
    return events


async def publish(redis: Redis, count: int, *, kept: int | None = None) -> None:
    """As so many appends, and then what the cap does to the stream."""
    for seq in range(count):
        await redis.xadd(EVENTS, {"turns": f"acme:s:life {seq + 1} {seq + 1} 0"})
    if kept is not None:
        await redis.xtrim(EVENTS, maxlen=kept, approximate=False)


async def read(events: TurnEvents, count: int) -> int:
    given = await events.read("d1", count, 0)
    await events.ack(given)
    return len(given)


async def test_nothing_is_dropped_where_everything_is_read_in_time(redis: Redis, events: TurnEvents) -> None:
    await publish(redis, 20)
    assert await read(events, 20) == 20
    await publish(redis, 0, kept=5)
    assert await count_dropped(redis) == 0
    await publish(redis, 10, kept=5)
    assert await count_dropped(redis) == 5
    assert await dropped_events(redis) == 5


async def test_what_a_dispatcher_that_never_ran_was_not_given_is_counted(redis: Redis, events: TurnEvents) -> None:
    await publish(redis, 30, kept=10)
    assert await count_dropped(redis) == 20


async def test_a_drop_is_counted_once_whoever_asks(redis: Redis, events: TurnEvents) -> None:
    await publish(redis, 12)
    await read(events, 5)
    await publish(redis, 10, kept=6)
    assert await count_dropped(redis) == 22 - 5 - 6
    assert await count_dropped(redis) == 0
    assert await read(events, 100) == 6
    assert await count_dropped(redis) == 0
    await publish(redis, 9, kept=4)
    assert await count_dropped(redis) == 5
    assert await dropped_events(redis) == 16


async def test_what_an_erasure_took_out_unread_was_not_dropped(redis: Redis, events: TurnEvents) -> None:
    sessions = Sessions(redis)
    await append(sessions, turn("user", "hello"), session="kept")
    for number in range(5):
        await append(sessions, turn("user", "hello"), session=f"s{number}")
        await sessions.erase(TENANT, f"s{number}")
        await SessionTraces(redis).remove(TENANT, f"s{number}")
    assert await count_dropped(redis) == 0
    assert [one.ref.session for one in await events.read("d1", 100, 0)] == ["kept"]
    assert await count_dropped(redis) == 0


async def test_more_drops_of_one_outage_are_added_up(redis: Redis, events: TurnEvents) -> None:
    await publish(redis, 10, kept=4)
    assert await count_dropped(redis) == 6
    await publish(redis, 10, kept=4)
    assert await count_dropped(redis) == 10


async def test_counting_hands_out_no_event_twice_and_takes_none_away(redis: Redis, events: TurnEvents) -> None:
    await publish(redis, 10)
    assert await read(events, 3) == 3
    await publish(redis, 0, kept=4)
    await count_dropped(redis)
    left = await events.read("d1", 100, 0)
    assert [event.last_seq for event in left] == [7, 8, 9, 10]
    assert await events.pending("d1") == left


async def test_the_count_ends_by_itself(redis: Redis, events: TurnEvents) -> None:
    await publish(redis, 5, kept=2)
    await count_dropped(redis)
    assert await redis.pttl(PartitionKeys.of(7).dropped) > 0


async def test_a_stream_without_its_group_or_that_is_not_there_drops_nothing(redis: Redis) -> None:
    await publish(redis, 5, kept=2)
    assert await count_dropped(redis) == 0
    assert await dropped_events(redis) == 0
