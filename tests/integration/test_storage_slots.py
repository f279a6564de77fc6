"""Slots of a cluster that move from one server to another, while turns are published."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count, islice
from typing import Any

import pytest

from prefold.errors import UnavailableError
from prefold.storage import Sessions, connect_sessions
from prefold.storage.cluster import ClusterClient
from prefold.storage.command_slots import guarded
from prefold.storage.keys import SessionKeys, UserKeys, partition_of, slot_of_key
from prefold.storage.nodes import on_node_of
from prefold.storage.users import Unindexed
from tests.support.cluster import RunningCluster, home, one_of_each, refused
from tests.support.publishing import Publisher, publish_all, publishing
from tests.support.storage import TENANT, append, turn
from tests.support.waiting import wait_until_async


@pytest.fixture
async def sessions(cluster_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(cluster_url) as opened:
        yield opened


def neighbours(session: str, most: int = 3) -> list[str]:
    """Sessions of the same partition."""
    wanted = partition_of(TENANT, session)
    names = (f"n{number}" for number in count())
    return [session, *islice((name for name in names if partition_of(TENANT, name) == wanted), most - 1)]


def impatient(sessions: Sessions) -> Sessions:
    """They give up after a fifth of a second."""
    assert isinstance(sessions.client, ClusterClient)
    sessions.client.routes.patience_seconds = 0.2
    return sessions


def test_a_script_that_renames_is_broken_off_half_way_while_its_slot_moves_unless_it_is_guarded(
    cluster: RunningCluster, cluster_url: str
) -> None:
    keys = SessionKeys.of(TENANT, "s1")
    slot, source = slot_of_key(keys.meta), home(cluster, "s1")
    for key in (keys.meta, keys.next, keys.context):
        source.ask("SET", key, "before", "PX", 60_000)
    cluster.open_slot(slot)
    try:
        half = (
            "#!lua\nredis.call('SET', KEYS[1], 'written', 'PX', 60000) redis.call('RENAME', KEYS[2], KEYS[3]) "
            "redis.call('EXISTS', KEYS[2]) redis.call('SET', KEYS[1], 'complete')"
        )
        command = ("EVAL", half, 3, keys.meta, keys.next, keys.context)
        assert refused(source, *guarded(command)).startswith("TryAgainError")
        assert source.ask("GET", keys.meta) == "before"
        assert refused(source, *command).startswith("ResponseError")
        assert source.ask("GET", keys.meta) == "written", "the guard has become needless: a server mended this"
    finally:
        cluster.leave_slot(slot)


async def test_appends_are_refused_while_their_slot_moves_key_by_key_and_none_is_lost_or_doubled(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    names = neighbours("s1")
    publishers = [Publisher(impatient(sessions), name) for name in names]
    elsewhere = next(name for name in one_of_each(cluster) if home(cluster, name) is not home(cluster, "s1"))
    bystander = Publisher(sessions, elsewhere)
    await publish_all(publishers, 3)
    slot = slot_of_key(SessionKeys.of(TENANT, "s1").meta)
    seen: Counter[str] = Counter()
    async with publishing([*publishers, bystander]), reading(sessions, names, seen):
        source, target = cluster.open_slot(slot)
        try:
            for _ in range(4):
                await until_refused(publishers)
                cluster.move_keys(slot, source, target, most=7)
            while cluster.move_keys(slot, source, target):
                pass
        finally:
            cluster.close_slot(slot, target)
        await until_going_on(publishers)
    assert cluster.owner(slot) is target
    for one in publishers:
        assert {refusal.code for refusal in one.refusals} == {"unavailable"}
        await one.check()
    assert not bystander.refusals
    await bystander.check()
    assert seen["context"] and seen["view"] and seen["turns"]


async def test_what_is_known_of_a_user_can_be_read_while_its_slot_moves(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    users = impatient(sessions).users
    await users.write(TENANT, "u", expected_version=0, epoch=0, put={"a": b"1"}, drop=(), profile=b"", unindexed=["a"])
    slot = slot_of_key(UserKeys.of(TENANT, "u").meta)
    source, target = cluster.open_slot(slot)
    try:
        while True:
            stored = await users.snapshot(TENANT, "u")
            assert (stored.version, stored.rows) == (1, {"a": b"1"})
            assert await users.take_unindexed(TENANT, "u") == Unindexed(1, ("a",))
            if not cluster.move_keys(slot, source, target, most=1):
                break
    finally:
        cluster.close_slot(slot, target)


async def test_each_command_of_a_pipeline_finds_its_key_while_the_slot_moves(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    keys = SessionKeys.of(TENANT, "s1")
    await sessions.client.set(keys.meta, "here", px=60_000)
    slot = slot_of_key(keys.meta)
    cluster.open_slot(slot)
    try:
        async with sessions.client.pipeline(transaction=False) as pipe:
            pipe.get(keys.meta)
            pipe.get(keys.context)
            assert await pipe.execute() == [b"here", None]
    finally:
        cluster.leave_slot(slot)


async def until_refused(publishers: list[Publisher]) -> None:
    before = [len(one.refusals) for one in publishers]

    async def all_were() -> bool:
        return all(len(one.refusals) > count for one, count in zip(publishers, before, strict=True))

    await wait_until_async("every producer was refused", all_were, timeout=20)


async def until_going_on(publishers: list[Publisher]) -> None:
    before = [len(one.acknowledged) for one in publishers]

    async def all_do() -> bool:
        return all(len(one.acknowledged) > count + 3 for one, count in zip(publishers, before, strict=True))

    await wait_until_async("appends go on", all_do, timeout=20)


@asynccontextmanager
async def reading(sessions: Sessions, names: list[str], seen: Counter[str]) -> AsyncIterator[None]:
    """Readers that may be refused for now, and that never miss what is there."""

    stop = asyncio.Event()

    async def read(name: str) -> None:
        while not stop.is_set():
            for what, look in (
                ("context", sessions.read_context(TENANT, name)),
                ("view", sessions.view(TENANT, name)),
                ("turns", sessions.read_turns(TENANT, name, 0, 3)),
            ):
                try:
                    found = await look
                    assert not isinstance(found, list) or [one.seq for one in found] == [1, 2, 3]
                    seen[what] += 1
                except UnavailableError:
                    seen["refused"] += 1
            await asyncio.sleep(0.01)

    readers = [asyncio.create_task(read(name)) for name in names]
    try:
        yield
    finally:
        stop.set()  # no cancelling: a library may swallow that
        await asyncio.gather(*readers)


async def test_reads_go_on_for_many_at_once_while_the_keys_are_there_and_the_slot_is_not(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    keys = SessionKeys.of(TENANT, "s6")
    await append(sessions, turn("user", "Hi", id="t1"), session="s6")
    source, target = cluster.open_slot(slot := slot_of_key(keys.meta))
    try:
        cluster.move_keys(slot, source, target)
        for _ in range(3):
            logs = await asyncio.gather(*(sessions.read_turns(TENANT, "s6", 0, 5) for _ in range(64)))
            assert {tuple(one.id for one in log) for log in logs} == {("t1",)}
            contexts = await asyncio.gather(*(sessions.read_context(TENANT, "s6") for _ in range(64)))
            assert {context.head_seq for context in contexts} == {1}
    finally:
        cluster.close_slot(slot, target)


async def test_a_slot_that_has_moved_is_followed_without_a_refusal(cluster: RunningCluster, sessions: Sessions) -> None:
    name = "s7"
    publisher, slot = Publisher(sessions, name), slot_of_key(SessionKeys.of(TENANT, name).meta)
    await sessions.events.ensure_groups()
    await publisher.publish(2)
    for _ in range(2):
        source, target = cluster.open_slot(slot)
        cluster.move_keys(slot, source, target)
        cluster.close_slot(slot, target)
        # Each kind of call meets the old map once: a transaction, a script, a pipeline over all slots.
        assert (await sessions.view(TENANT, name)).head_seq == len(publisher.acknowledged)
        await publisher.publish(2)
    assert [event.last_seq for event in await sessions.events.read("d", 64, 0)] == [1, 2, 3, 4, 5, 6]
    assert {item.ref.session for item in await sessions.due_sets.due(2**52, 10)} == {name}
    assert not publisher.refusals
    await publisher.check()


async def test_every_kind_of_call_follows_a_slot_that_moved_behind_its_back(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    keys = SessionKeys.of(TENANT, "s8")
    slot = slot_of_key(keys.meta)
    await sessions.events.ensure_groups()
    await append(sessions, turn("user", "Hi", id="t1"), session="s8")

    async def events() -> int:
        return len(await sessions.events.pending("d")) or len(await sessions.events.read("d", 10, 0))

    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: sessions.view(TENANT, "s8"),
        lambda: sessions.read_context(TENANT, "s8"),
        lambda: sessions.read_turns(TENANT, "s8", 0, 10),
        lambda: append(sessions, turn("user", "Hi", id="t1"), session="s8"),
        lambda: append(Sessions(sessions.client), turn("user", "Hi", id="t1"), session="s8"),
        lambda: sessions.due_sets.due(2**52, 10),
        events,
        lambda: sessions.client.memory_usage(keys.meta),
        lambda: sessions.client.info("server", **on_node_of(sessions.client, keys.meta)),
    ]
    for one in calls:
        source, target = cluster.open_slot(slot)
        cluster.move_keys(slot, source, target)
        cluster.close_slot(slot, target)
        assert await one()


async def test_a_slot_that_a_server_moves_at_once_costs_no_turn(cluster: RunningCluster, sessions: Sessions) -> None:
    name = "s9"
    slot = slot_of_key(SessionKeys.of(TENANT, name).meta)
    source = cluster.owner(slot)
    target = next(node for node in cluster.primaries() if node is not source)
    publisher = Publisher(sessions, name)
    await publisher.publish(3)
    if "unknown" in refused(source, "CLUSTER", "MIGRATESLOTS", "HELP").lower():
        pytest.skip("this server moves slots key by key only")
    async with publishing([publisher]):
        source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)
        await wait_until_async("it has moved", lambda: asyncio.to_thread(lambda: cluster.owner(slot) is target))
        await until_going_on([publisher])
    assert not publisher.refusals
    await publisher.check()
