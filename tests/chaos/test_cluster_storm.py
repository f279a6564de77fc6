"""A cluster whose servers die, freeze, are replaced and hand slots over, one thing after another, under turns.

``PREFOLD_SEED`` repeats a run's choices, ``PREFOLD_ROUNDS`` makes it longer.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from prefold.errors import UnavailableError
from prefold.stack.redis_server import session_options
from prefold.storage import connect_sessions
from prefold.storage.client import connect
from prefold.storage.events import TurnEvents
from prefold.storage.keys import SessionKeys, slot_of_key
from tests.support.cluster import Node, RunningCluster, home, refused, running_cluster
from tests.support.publishing import Publisher, publishing
from tests.support.seeds import seed_of_run, tell
from tests.support.storage import TENANT
from tests.support.waiting import wait_until_async

ROUNDS = int(os.environ.get("PREFOLD_ROUNDS", "16"))
PUBLISHERS = 12
LONGEST_CALL_SECONDS = 8.0

pytestmark = [pytest.mark.long, pytest.mark.timeout(60 + 30 * ROUNDS)]


class Storm:
    """What can happen. Each leaves a healthy cluster behind: one fault at a time is what a single replica outlives."""

    def __init__(self, cluster: RunningCluster, publishers: Sequence[Publisher], choose: random.Random) -> None:
        self._cluster = cluster
        self._publishers = publishers
        self._choose = choose
        self.happenings: tuple[Callable[[], Awaitable[None]], ...] = (
            self.killed_and_replaced,
            self.killed_and_started_at_once,
            self.frozen_and_replaced,
            self.frozen_for_a_moment,
            self.replica_killed,
            self.slot_moved_key_by_key,
            self.slot_moved_at_once,
            self.scripts_flushed,
        )

    def _victim(self) -> Node:
        return home(self._cluster, self._choose.choice(self._publishers).session)

    async def killed_and_replaced(self) -> None:
        victim = self._victim()
        (replica,) = self._cluster.replicas_of(victim)
        victim.kill()
        await asyncio.to_thread(self._cluster.wait_until_serving, replica)
        victim.start()

    async def killed_and_started_at_once(self) -> None:
        victim = self._victim()
        victim.kill()
        victim.start()

    async def frozen_and_replaced(self) -> None:
        victim = self._victim()
        (replica,) = self._cluster.replicas_of(victim)
        victim.freeze()
        await asyncio.to_thread(self._cluster.wait_until_serving, replica)
        victim.thaw()

    async def frozen_for_a_moment(self) -> None:
        victim = self._victim()
        victim.freeze()
        await asyncio.sleep(self._choose.uniform(0.1, 1.0))
        victim.thaw()

    async def replica_killed(self) -> None:
        (replica,) = self._cluster.replicas_of(self._victim())
        replica.kill()
        await asyncio.sleep(self._choose.uniform(0.1, 1.0))
        replica.start()

    async def slot_moved_key_by_key(self) -> None:
        slot = self._slot()
        source, target = self._cluster.open_slot(slot)
        moved = 1
        while moved:
            moved = self._cluster.move_keys(slot, source, target, most=self._choose.randint(1, 12))
            await asyncio.sleep(self._choose.uniform(0.0, 0.1))
        self._cluster.close_slot(slot, target)

    async def slot_moved_at_once(self) -> None:
        slot = self._slot()
        source = self._cluster.owner(slot)
        target = self._choose.choice([node for node in self._cluster.primaries() if node is not source])
        refused(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)

    async def scripts_flushed(self) -> None:
        self._victim().ask("SCRIPT", "FLUSH")

    def _slot(self) -> int:
        return slot_of_key(SessionKeys.of(TENANT, self._choose.choice(self._publishers).session).meta)


async def until_all_go_on(publishers: Sequence[Publisher]) -> None:
    before = [len(one.acknowledged) for one in publishers]

    async def all_do() -> bool:
        return all(len(one.acknowledged) > count for one, count in zip(publishers, before, strict=True))

    await wait_until_async("every producer goes on", all_do, timeout=30)


@asynccontextmanager
async def consuming(url: str, seen: dict[str, set[int]]) -> AsyncIterator[None]:
    """A consumer of the events, as the dispatcher is one: it begins again after an error and takes over what lies."""
    stop = asyncio.Event()

    async def consume() -> None:
        async with connect(url, timeout=timedelta(seconds=1.5), retries=0) as client:
            events = TurnEvents(client)
            while not stop.is_set():
                try:
                    await events.ensure_groups()
                    for given in (
                        await events.pending("d"),
                        await events.read("d", 64, 200),
                        await events.claim("d", 1_000),
                    ):
                        for event in given:
                            covered = range(event.first_seq, event.last_seq + 1)
                            seen.setdefault(event.ref.session, set()).update(covered)
                        await events.ack(given)
                except UnavailableError:
                    await asyncio.sleep(0.1)

    consumer = asyncio.create_task(consume())
    try:
        yield
    finally:
        stop.set()
        await consumer


@pytest.mark.parametrize("options", ["", "?client_name=general"])
async def test_no_acknowledged_turn_is_lost_doubled_or_out_of_order_whatever_happens_to_the_cluster(
    options: str,
) -> None:
    """With options in the URL the general client does what the lean one does without."""
    choose = random.Random(seed_of_run("the storm"))
    seen: dict[str, set[int]] = {}
    with running_cluster(3, 3, options=session_options("durable")) as cluster:
        async with connect_sessions(cluster.url + options) as sessions, consuming(cluster.url, seen):
            assert sessions.replicated is not None
            sessions.replicated.needed = 1
            publishers = [Publisher(sessions, f"s{number}") for number in range(PUBLISHERS)]
            storm, happened = Storm(cluster, publishers, choose), Counter[str]()
            async with publishing(publishers):
                for _ in range(ROUNDS):
                    await until_all_go_on(publishers)
                    happening = choose.choice(storm.happenings)
                    happened[happening.__name__] += 1
                    await happening()
                    await asyncio.to_thread(cluster.wait_until_healthy)
                await until_all_go_on(publishers)
            for one in publishers:
                await one.check()

            async def all_events() -> bool:
                return all(
                    seen.get(one.session, set()) >= set(range(1, len(one.acknowledged) + 1)) for one in publishers
                )

            await wait_until_async("every turn was told of", all_events, timeout=20)
    turns, refusals = (
        sum(len(part) for part in parts)
        for parts in zip(*((one.acknowledged, one.refusals) for one in publishers), strict=True)
    )
    longest = max(one.longest_seconds for one in publishers)
    tell(f"turns={turns} refusals={refusals} longest_call={longest:.2f}s rounds={ROUNDS} {dict(happened)}")
    assert longest < LONGEST_CALL_SECONDS
