"""What the dispatcher relies on, of the fakes as of the real servers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from redis.asyncio import Redis

from prefold.dispatcher.ports import DueSets, Jobs
from prefold.dispatcher.ports import TurnEvents as Events
from prefold.jobs import Ask, JobQueue, queue_connection
from prefold.storage.due import DueSets as StoredDueSets
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.events import TurnEvents
from prefold.storage.keys import PARTITIONS, SessionKeys
from prefold.storage.types import DueItem, SessionRef, TurnEvent
from tests.support.dispatching import FakeDueSets, FakeEvents, FakeJobs

A = SessionRef("acme", "a", "a1")
NAMES = ["a", "with space", "ünï", "a:b{c}%20"]


@dataclass
class EventBench:
    events: Events
    publish: Callable[[SessionRef, int], Awaitable[None]]


@pytest.fixture(params=["fake", "redis"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[EventBench]:
    if request.param == "fake":
        fake = FakeEvents()

        async def publish_fake(ref: SessionRef, seq: int) -> None:
            partition = SessionKeys.of(ref.tenant, ref.session).partition
            fake.new.append(TurnEvent(partition, f"{ref.session}-{seq}", ref, seq, seq, build_due=seq % 2 == 0))

        yield EventBench(fake, publish_fake)
        return
    async with Redis.from_url(request.getfixturevalue("redis_url")) as client:

        async def publish(ref: SessionRef, seq: int) -> None:
            keys = SessionKeys.of(ref.tenant, ref.session)
            text = f"{keys.label}:{ref.incarnation} {seq} {seq} {1 - seq % 2}"
            await client.xadd(keys.events, {"turns": text})

        yield EventBench(TurnEvents(client), publish)


@pytest.mark.parametrize("name", NAMES)
async def test_an_event_tells_whose_turns_it_is_about(bench: EventBench, name: str) -> None:
    await bench.events.ensure_groups()
    ref = SessionRef("acme", name, "a1")
    await bench.publish(ref, 4)
    (event,) = await bench.events.read("d1", 10, 1)
    assert (event.ref, event.first_seq, event.last_seq, event.build_due) == (ref, 4, 4, True)


async def test_groups_may_be_made_twice(bench: EventBench) -> None:
    await bench.events.ensure_groups()
    await bench.events.ensure_groups()


async def test_a_read_that_need_not_wait_returns_at_once(bench: EventBench) -> None:
    await bench.events.ensure_groups()
    assert await bench.events.read("d1", 10, 0) == []


async def test_an_event_is_handed_out_once_and_stays_pending_until_it_is_acknowledged(bench: EventBench) -> None:
    await bench.events.ensure_groups()
    await bench.publish(A, 1)
    await bench.publish(A, 2)
    events = await bench.events.read("d1", 10, 1)
    assert await bench.events.read("d1", 10, 0) == []
    assert await bench.events.pending("d1") == events
    await bench.events.ack(events[:1])
    assert await bench.events.pending("d1") == events[1:]
    await bench.events.ack(events)
    assert await bench.events.pending("d1") == []


async def test_more_of_a_partition_and_its_end_can_be_read(bench: EventBench) -> None:
    await bench.events.ensure_groups()
    for seq in range(1, 6):
        await bench.publish(A, seq)
    home = SessionKeys.of("acme", "a").partition
    (first,) = await bench.events.read("d1", 1, 1)
    more = await bench.events.read_more("d1", 2, [home])
    assert [one.first_seq for one in (first, *more)] == [1, 2, 3]
    assert await bench.events.read_more("d1", 2, [(home + 1) % PARTITIONS]) == []
    assert {one.first_seq for one in await bench.events.newest([home], 2)} == {4, 5}
    assert await bench.events.pending("d1") == [first, *more], "what was only looked at is nobody's"


async def test_acknowledging_nothing_is_legal(bench: EventBench) -> None:
    await bench.events.ack([])


@pytest.fixture(params=["fake", "redis"])
def jobs(request: pytest.FixtureRequest) -> Iterator[Jobs]:
    if request.param == "fake":
        yield FakeJobs()
        return
    with queue_connection(request.getfixturevalue("queue_url")) as connection:
        yield JobQueue(connection)


SPANS = [EmbedSpan("acme", "a", "a1", 1, 2)]


def test_a_job_that_is_asked_for_waits_in_its_queue(jobs: Jobs) -> None:
    before = jobs.depth("embed"), jobs.depth("compact")
    asks = [Ask.embed(SPANS, "events"), Ask.sessions("compact", [A], "7"), Ask.sessions("expire", [A], "7")]
    assert jobs.put(asks) == [True, True, True]
    assert (jobs.depth("embed"), jobs.depth("compact")) == (before[0] + 2, before[1] + 1)


def test_the_same_job_on_the_same_occasion_is_not_put_twice(jobs: Jobs) -> None:
    assert jobs.put([Ask.embed(SPANS, "events"), Ask.embed(SPANS, "events")]) == [True, False]
    assert jobs.put([Ask.embed(SPANS, "events"), Ask.embed(SPANS, "due-1")]) == [False, True]
    assert jobs.depth("embed") == 2


def test_nothing_may_be_asked_for(jobs: Jobs) -> None:
    assert jobs.put([]) == []


@dataclass
class DueBench:
    due_sets: DueSets
    put: Callable[[DueItem], Awaitable[None]]


@pytest.fixture(params=["fake", "redis"])
async def due(request: pytest.FixtureRequest) -> AsyncIterator[DueBench]:
    if request.param == "fake":
        fake = FakeDueSets()

        async def put_fake(item: DueItem) -> None:
            fake.items.append(item)

        yield DueBench(fake, put_fake)
        return
    async with Redis.from_url(request.getfixturevalue("redis_url")) as client:

        async def put(item: DueItem) -> None:
            keys = SessionKeys.of(item.ref.tenant, item.ref.session)
            await client.zadd(keys.due, {f"{item.kind}:{keys.label}:{item.ref.incarnation}": item.due_at_ms})

        yield DueBench(StoredDueSets(client), put)


def item(name: str, kind: Any, at_ms: int) -> DueItem:
    return DueItem(SessionKeys.of("acme", name).partition, kind, SessionRef("acme", name, "a1"), at_ms)


@pytest.mark.parametrize("name", NAMES)
async def test_a_due_entry_tells_what_is_to_be_done_for_whom(due: DueBench, name: str) -> None:
    wanted = item(name, "compact", 5)
    await due.put(wanted)
    assert await due.due_sets.due(5, 10, range(PARTITIONS)) == [wanted]


async def test_what_is_not_due_yet_or_in_another_partition_is_not_given(due: DueBench) -> None:
    wanted = item("a", "embed", 5)
    await due.put(wanted)
    assert await due.due_sets.due(4, 10, range(PARTITIONS)) == []
    assert await due.due_sets.due(5, 10, [(wanted.partition + 1) % PARTITIONS]) == []


async def test_the_oldest_come_first_and_no_more_than_asked_for(due: DueBench) -> None:
    embed, compact = item("a", "embed", 7), item("a", "compact", 6)
    await due.put(embed)
    await due.put(compact)
    assert await due.due_sets.due(9, 1, [embed.partition]) == [compact]
    assert await due.due_sets.due(9, 2, [embed.partition]) == [compact, embed]


async def test_beyond_the_oldest_the_newest_are_found(due: DueBench) -> None:
    kinds = ("embed", "compact", "remember", "expire")
    items = [item("a", kind, at_ms) for at_ms, kind in enumerate(kinds, start=1)]
    for one in items:
        await due.put(one)
    beyond = await due.due_sets.beyond(3, 1, [items[0].partition])
    assert items[2] in beyond
    assert items[3] not in beyond, "its time has not come"
