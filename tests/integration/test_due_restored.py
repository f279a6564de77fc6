"""``due`` made again out of the sessions' own state, as the sweep of a dispatcher does it."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from prefold.dispatcher.main import SessionsOwing
from prefold.dispatcher.sweep import Sweep, SweepOptions, SweepReport
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import PartitionKeys, SessionKeys, partition_of
from prefold.storage.limits import CLOSE_AFTER, EMBED_GRACE, milliseconds
from prefold.storage.memory_types import MemoryTicket
from prefold.storage.types import DueItem, SessionOptions, SessionRef
from tests.support.storage import LEASE_MS, TENANT, append, begin, turn

COLLECTION = "turns_small_4"
WORDS = "There is a lot to say about the harbour of Lisbon, its ships, its cranes and its gulls. "


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


async def sweep(redis: Redis, *, per_second: int = 100_000) -> SweepReport:
    options = SweepOptions(sessions_per_second=per_second)
    return await Sweep(SessionsOwing(redis), options).once(asyncio.Event())


async def due(sessions: Sessions) -> dict[tuple[str, str], int]:
    """(kind, session) → when."""
    items: list[DueItem] = await sessions.due_sets.due(2**52, 10_000)
    return {(item.kind, item.ref.session): item.due_at_ms for item in items}


async def writes(redis: Redis) -> int:
    """Changes that the server has made since it started."""
    return int((await redis.info("persistence"))["rdb_changes_since_last_save"])


async def lose_due(redis: Redis, session: str) -> None:
    """The whole set of the session's partition."""
    await redis.delete(PartitionKeys.of(partition_of(TENANT, session)).due)


async def past_soft_threshold(sessions: Sessions, session: str) -> SessionRef:
    await sessions.open(TENANT, session, SessionOptions(hard_limit_tokens=2_000))
    ref = None
    for number in range(12):
        role = "user" if number % 2 == 0 else "assistant"
        ref = (await append(sessions, turn(role, f"{number}. " + WORDS * 7), session=session)).ref
    assert ref is not None
    return ref


async def close(sessions: Sessions, ref: SessionRef) -> None:
    """As a memory worker does it."""
    await sessions.ask_close(ref.tenant, ref.session)
    ticket = await sessions.begin_memory(ref, lease_ms=LEASE_MS)
    assert isinstance(ticket, MemoryTicket), ticket
    assert await sessions.end_memory(ticket, upto=ticket.upto, closed=True) == "ended"


async def test_the_wish_to_close_a_session_comes_back_until_it_is_closed(sessions: Sessions, redis: Redis) -> None:
    ref = (await append(sessions, turn("user", "one"), session="s")).ref
    await sessions.ask_close(TENANT, "s")
    await lose_due(redis, "s")
    await sweep(redis)
    assert (await due(sessions))["remember", "s"] <= time.time_ns() // 1_000_000 + milliseconds(EMBED_GRACE)
    await close(sessions, ref)
    assert ("remember", "s") not in await due(sessions)


async def test_where_nothing_is_missing_nothing_is_written(sessions: Sessions, redis: Redis) -> None:
    await past_soft_threshold(sessions, "long")
    await append(sessions, turn("user", "hello"), session="short")
    before, written = await due(sessions), await writes(redis)
    report = await sweep(redis)
    assert (report.sessions, report.restored) == (2, 0)
    assert await due(sessions) == before
    assert await writes(redis) == written


async def test_every_kind_of_lost_entry_comes_back_as_it_was(sessions: Sessions, redis: Redis) -> None:
    await past_soft_threshold(sessions, "long")
    before = await due(sessions)
    assert {kind for kind, _ in before} == {"embed", "compact", "remember", "expire"}
    await lose_due(redis, "long")
    assert (await sweep(redis)).restored == 4
    after = await due(sessions)
    assert after.keys() == before.keys()
    assert abs(after["expire", "long"] - before["expire", "long"]) < milliseconds(timedelta(minutes=1))
    assert after["remember", "long"] == (await sessions.view(TENANT, "long")).updated_at_ms + milliseconds(CLOSE_AFTER)
    now_ms = time.time_ns() // 1_000_000
    assert after["embed", "long"] <= now_ms + milliseconds(EMBED_GRACE)
    assert after["compact", "long"] <= now_ms


async def test_an_append_after_the_restoration_finds_its_entry_and_loses_none(sessions: Sessions, redis: Redis) -> None:
    await append(sessions, turn("user", "one"), session="s")
    await lose_due(redis, "s")
    await append(sessions, turn("user", "two"), session="s")
    assert ("embed", "s") not in await due(sessions)  # the state says that there is an entry, so no append adds it
    await sweep(redis)
    assert ("embed", "s") in await due(sessions)


async def test_what_is_done_does_not_come_back(sessions: Sessions, redis: Redis) -> None:
    ref = (await append(sessions, turn("user", "one"), session="s")).ref
    await sessions.mark_embedded(ref, 1, COLLECTION)
    await close(sessions, ref)
    await lose_due(redis, "s")
    assert (await sweep(redis)).restored == 1
    assert {kind for kind, _ in await due(sessions)} == {"expire"}


async def test_changes_that_the_embedders_still_owe_come_back(sessions: Sessions, redis: Redis) -> None:
    first = turn("user", "one", id="t1")
    ref = (await append(sessions, first, turn("user", "two"), session="s")).ref
    await sessions.mark_embedded(ref, 2, COLLECTION)
    await sessions.edit_turn(TENANT, "s", "t1", turn("user", "another", id="t1"))
    await lose_due(redis, "s")
    await sweep(redis)
    assert ("embed", "s") in await due(sessions)


async def test_a_build_under_way_is_due_again_when_its_lease_ends(sessions: Sessions, redis: Redis) -> None:
    ref = await past_soft_threshold(sessions, "long")
    ticket = await begin(sessions, ref)
    leased_until = (await due(sessions))["compact", "long"]
    await lose_due(redis, "long")
    await sweep(redis)
    assert (await due(sessions))["compact", "long"] == leased_until
    await sessions.abandon_build(ticket, "unavailable", 60_000)
    resting_until = (await due(sessions))["compact", "long"]
    await lose_due(redis, "long")
    await sweep(redis)
    assert (await due(sessions))["compact", "long"] == resting_until


async def test_the_vectors_of_an_erased_session_are_still_looked_for(sessions: Sessions, redis: Redis) -> None:
    ref = (await append(sessions, turn("user", "one"), session="s")).ref
    await sessions.erase(TENANT, "s")
    await lose_due(redis, "s")
    assert (await sweep(redis)).restored == 1
    assert {kind for kind, _ in await due(sessions)} == {"expire"}
    await sessions.end_expiry(ref)
    assert (await sweep(redis)).restored == 0


async def test_each_ended_life_of_a_session_is_remembered(sessions: Sessions, redis: Redis) -> None:
    refs = []
    for _ in range(2):
        await sessions.open(TENANT, "s", SessionOptions())
        refs.append((await append(sessions, turn("user", "one"), session="s")).ref)
        await sessions.erase(TENANT, "s")
    await lose_due(redis, "s")
    assert (await sweep(redis)).restored == 2
    lives = [item.ref for item in await sessions.due_sets.due(2**52, 100)]
    assert sorted(lives, key=lambda ref: ref.incarnation) == sorted(refs, key=lambda ref: ref.incarnation)


@pytest.mark.parametrize("name", ["with space", "ünï", "a:b{c}%20*", "meta", "x:s:meta"])
async def test_a_session_of_any_name_is_found(sessions: Sessions, redis: Redis, name: str) -> None:
    await append(sessions, turn("user", "one"), session=name)
    await lose_due(redis, name)
    assert (await sweep(redis)).restored == 3
    assert ("embed", name) in await due(sessions)


async def test_a_pass_goes_no_faster_than_it_may_and_stops_at_once(sessions: Sessions, redis: Redis) -> None:
    for number in range(20):
        await append(sessions, turn("user", "one"), session=f"s{number}")
    report = await sweep(redis, per_second=100)
    assert report.sessions == 20
    assert report.seconds >= 0.15
    stop = asyncio.Event()
    sweeping = asyncio.create_task(Sweep(SessionsOwing(redis), SweepOptions(sessions_per_second=1)).run(stop))
    stop.set()
    await asyncio.wait_for(sweeping, 2)


async def test_due_sets_of_all_partitions_may_go_at_once(sessions: Sessions, redis: Redis) -> None:
    names = [f"s{number}" for number in range(40)]
    for name in names:
        await append(sessions, turn("user", "one"), session=name)
    keys = {SessionKeys.of(TENANT, name).due for name in names}
    await redis.delete(*keys)
    assert (await sweep(redis)).restored == 3 * len(names)
    assert {session for kind, session in await due(sessions) if kind == "embed"} == set(names)
