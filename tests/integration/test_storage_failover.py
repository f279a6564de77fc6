"""Servers that are killed, started again, frozen and replaced by their replicas, while turns are published."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest

from prefold.errors import UnavailableError
from prefold.stack.redis_server import session_options
from prefold.storage import Sessions, connect_sessions
from prefold.storage.client import connect
from prefold.storage.due import DueSets
from prefold.storage.events import TurnEvents
from prefold.storage.keys import partition_of
from tests.support.cluster import RunningCluster, home, mended, one_of_each
from tests.support.publishing import Publisher, publish_all, publishing
from tests.support.redis import running_redis
from tests.support.storage import TENANT, turn
from tests.support.waiting import wait_until_async

LONGEST_CALL_SECONDS = 8.0
"""A lean connection waits five seconds for a reply, the routes two for a failover."""


@pytest.fixture
async def sessions(cluster_url: str) -> AsyncIterator[Sessions]:
    """Writes that wait for one replica."""
    async with connect_sessions(cluster_url) as opened:
        assert opened.replicated is not None
        opened.replicated.needed = 1
        yield opened


async def until_more(publishers: Sequence[Publisher], turns: int = 3) -> None:
    before = [len(one.acknowledged) for one in publishers]

    async def all_have() -> bool:
        return all(len(one.acknowledged) >= count + turns for one, count in zip(publishers, before, strict=True))

    await wait_until_async("every producer goes on", all_have, timeout=25)


async def check_all(publishers: Sequence[Publisher]) -> None:
    for one in publishers:
        await one.check()
        assert one.longest_seconds < LONGEST_CALL_SECONDS


async def test_a_server_that_is_killed_and_started_again_keeps_every_turn_once() -> None:
    with running_redis(session_options("durable")) as server:
        async with connect_sessions(server.url) as sessions:
            publishers = [Publisher(sessions, f"s{number}") for number in range(6)]
            async with publishing(publishers):
                for _ in range(3):
                    await until_more(publishers)
                    server.kill()
                    server.start()  # in this thread: a server ends with the one that started it
                await until_more(publishers)
            await check_all(publishers)


async def test_a_primary_that_is_killed_and_started_again_at_once_keeps_every_turn_once(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    publishers = [Publisher(sessions, name) for name in one_of_each(cluster)]
    primary = home(cluster, publishers[0].session)
    async with mended(cluster), publishing(publishers):
        await until_more(publishers)
        primary.kill()
        primary.start()
        await until_more(publishers)
    await check_all(publishers)


async def test_a_killed_primary_is_replaced_by_its_replica_with_every_turn_that_was_acknowledged(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    publishers = [Publisher(sessions, name) for name in one_of_each(cluster)]
    primary = home(cluster, publishers[0].session)
    (replica,) = cluster.replicas_of(primary)
    async with mended(cluster):
        async with publishing(publishers):
            await until_more(publishers)
            primary.kill()
            await asyncio.to_thread(cluster.wait_until_serving, replica)
            await until_more(publishers[1:])
            # Nobody confirms what the new primary writes until it has a replica itself.
            primary.start()
            await until_more(publishers)
        assert home(cluster, publishers[0].session) is replica
        assert not [refusal for one in publishers[1:] for refusal in one.refusals]
        await check_all(publishers)


async def test_a_frozen_primary_that_comes_back_after_its_replacement_has_acknowledged_nothing(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    publishers = [Publisher(sessions, name) for name in one_of_each(cluster)]
    primary = home(cluster, publishers[0].session)
    (replica,) = cluster.replicas_of(primary)
    async with mended(cluster):
        async with publishing(publishers):
            await until_more(publishers)
            primary.freeze()
            await asyncio.to_thread(cluster.wait_until_serving, replica)
            primary.thaw()  # it finds commands waiting, and does not know yet that it has been replaced
            await until_more(publishers)
        await check_all(publishers)


@pytest.mark.long
async def test_without_waiting_for_replicas_a_failover_takes_back_the_newest_turns_and_leaves_no_hole(
    cluster: RunningCluster, cluster_url: str
) -> None:
    """The class of loss of asynchronous replication, as the documents state it: a suffix of each session's log."""
    async with connect_sessions(cluster_url) as sessions, mended(cluster):
        assert sessions.replicated is not None
        publisher = Publisher(sessions, "s1")
        await publisher.publish(5)
        primary = home(cluster, "s1")
        (replica,) = cluster.replicas_of(primary)
        sessions.replicated.needed = 1
        await sessions.append(TENANT, "s1", [turn("user", "confirmed", id="s1-6")])
        replica.freeze()
        primary.ask("CLIENT", "KILL", "TYPE", "replica")  # what is in the sockets would still arrive
        with pytest.raises(UnavailableError) as refusal:
            await sessions.append(TENANT, "s1", [turn("user", "not confirmed", id="s1-7")])
        assert refusal.value.code == "not_replicated"
        sessions.replicated.needed = 0
        lost = await sessions.append(TENANT, "s1", [turn("user", "acknowledged by one server", id="s1-8")])
        assert lost.turns[0].seq == 8
        primary.kill()
        replica.thaw()
        await asyncio.to_thread(cluster.wait_until_serving, replica)
        assert await publisher.stored() == [(f"s1-{number}", number) for number in range(1, 7)]
        again = [await sessions.append(TENANT, "s1", [turn("user", "again", id=f"s1-{n}")]) for n in (7, 8)]
        assert [one.turns[0].seq for one in again] == [7, 8]


async def test_a_dispatcher_goes_on_with_what_it_can_reach_and_finds_the_rest_after_a_failover(
    cluster: RunningCluster, sessions: Sessions
) -> None:
    names = one_of_each(cluster)
    primary = home(cluster, names[0])
    (replica,) = cluster.replicas_of(primary)
    async with connect(cluster.url, timeout=timedelta(seconds=1.5), retries=0) as client, mended(cluster):
        events, due = TurnEvents(client), DueSets(client)
        await events.ensure_groups()
        await publish_all([Publisher(sessions, name) for name in names], 1)
        primary.kill()
        await events.ensure_groups()
        read = await events.read("d", 64, 0)
        assert sorted(event.ref.session for event in read) == sorted(names[1:])
        await events.ack(read)
        items = await due.due(2**52, 10)
        assert {item.ref.session for item in items} == set(names[1:])
        with pytest.raises(UnavailableError):
            await due.due(2**52, 10, [partition_of(TENANT, names[0])])
        await asyncio.to_thread(cluster.wait_until_serving, replica)

        async def late() -> list[str]:
            return [event.ref.session for event in await events.read("d", 64, 100)]

        assert await wait_until_async("the event comes", late) == [names[0]]
        assert {item.ref.session for item in await due.due(2**52, 10)} == set(names)
