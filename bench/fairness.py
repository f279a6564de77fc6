"""A tenant floods the dispatcher: how soon the work of twenty quiet ones is on the queue, and behind how many jobs."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Literal

from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from bench.dispatch import make_groups, now_ms, path_of
from bench.measure import Row
from bench.servers import session_server
from prefold.dispatcher.asking import Asking
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.intake import Intake, IntakeOptions
from prefold.dispatcher.reconciler import Reconciler, ReconcilerOptions
from prefold.jobs import Ask, JobQueue, queue_connection
from prefold.storage.due import DueSets
from prefold.storage.events import TurnEvents
from prefold.storage.keys import SessionKeys

Way = Literal["events", "due"]
QUIET = [f"quiet{number}" for number in range(20)]
MOST_WAITING = 2_000
DEADLINE_SECONDS = 120
ROUNDS = 3


class WatchedQueue(JobQueue):
    """Nobody takes jobs from it. Knows when a tenant's first job was put, and how many would be run before it."""

    def watch(self, tenants: Sequence[str]) -> None:
        self.since = time.perf_counter()
        self.arrived: dict[str, float] = {}
        self.before: dict[str, int] = {}
        self.awaited = set(tenants)

    def put(self, asks: Sequence[Ask]) -> list[bool]:
        done = super().put(asks)
        for number, ask in enumerate(asks):
            for tenant in {str(row[0]) for row in ask.rows} & self.awaited - self.arrived.keys():
                self.arrived[tenant] = time.perf_counter() - self.since
                self.before[tenant] = 0 if ask.at_front else self.depth(ask.queue) - len(asks) + number
        return done


def fairness_rows(turns: int) -> list[Row]:
    """By events, and by `due` alone as after a loss of the events; each against no flood, in the same run."""
    return [_row(turns, "events"), _row(turns, "due")]


def _row(turns: int, by: Way) -> Row:
    rounds = [(asyncio.run(_measure(turns, by)), asyncio.run(_measure(0, by))) for _ in range(ROUNDS)]
    beside, alone = zip(*rounds, strict=True)
    return Row(
        f"20 quiet tenants' jobs queued, {turns} of another, by {by}",
        "without the flood",
        "s",
        statistics.median(seconds for seconds, _ in beside),
        statistics.median(seconds for seconds, _ in alone),
        notes={"jobs_before_them": max(before for _, before in beside)},
    )


async def _measure(turns: int, by: Way) -> tuple[float, int]:
    """Seconds until the last quiet tenant's job was put, and most jobs that stood before one."""
    with session_server("fast") as store, session_server("fast") as queue:
        make_groups(store)
        _flood(store, turns, is_due=by == "due")
        with closing(WatchedQueue(queue_connection(f"unix://{path_of(queue)}"))) as jobs:
            jobs.watch(QUIET)
            return await _until_queued(store, jobs, is_by_due=by == "due")


def _flood(store: BlockingRedis, turns: int, *, is_due: bool) -> None:
    pipe = store.pipeline(transaction=False)
    long_ago = time.time_ns() // 1_000_000 - 600_000
    for number in range(turns):
        keys = SessionKeys.of("flood", f"s{number}")
        life = f"{keys.label}:{number:012x}"
        if is_due:
            pipe.zadd(keys.due, {f"embed:{life}": long_ago + number})
        else:
            pipe.xadd(keys.events, {"turns": f"{life} 1 1 0"})
        if number % 2_000 == 1_999:
            pipe.execute()
    pipe.execute()


async def _until_queued(store: BlockingRedis, jobs: WatchedQueue, *, is_by_due: bool) -> tuple[float, int]:
    async with Redis(unix_socket_path=path_of(store)) as client:
        asking, attempts = Asking(jobs, MOST_WAITING, now_ms), Attempts(5_000, 60_000)
        intake = Intake(TurnEvents(client), asking, attempts, IntakeOptions(consumer="bench"), now_ms)
        reconciler = Reconciler(
            DueSets(client), asking, attempts, ReconcilerOptions(), now_ms=now_ms, wall_ms=partial(_wall_ms, client)
        )
        for tenant in QUIET:
            keys = SessionKeys.of(tenant, "s")
            if not is_by_due:
                store.xadd(keys.events, {"turns": f"{keys.label}:{'a' * 12} 1 1 0"})
            due_ms = time.time_ns() // 1_000_000 + (0 if is_by_due else 3_000)
            store.zadd(keys.due, {f"embed:{keys.label}:{'a' * 12}": due_ms})
        stop = asyncio.Event()
        jobs.since = time.perf_counter()
        running = asyncio.gather(intake.run(stop), reconciler.run(stop))
        while len(jobs.arrived) < len(QUIET):
            if time.perf_counter() - jobs.since > DEADLINE_SECONDS:
                raise TimeoutError("the quiet tenants' jobs did not come")
            await asyncio.sleep(0.002)
        stop.set()
        await running
    return max(jobs.arrived.values()), max(jobs.before.values())


async def _wall_ms(client: Redis) -> int:
    seconds, micros = await client.time()
    return int(seconds) * 1000 + int(micros) // 1000
