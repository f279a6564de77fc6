"""Events to jobs on the queue: how many a second one dispatcher takes."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from bench.measure import Row
from bench.servers import session_server
from prefold.dispatcher.asking import Asking
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.intake import Intake, IntakeOptions
from prefold.dispatcher.main import collect_rarely
from prefold.jobs import JobQueue, queue_connection
from prefold.storage.events import GROUP, TurnEvents
from prefold.storage.keys import PARTITIONS, PartitionKeys, SessionKeys, partition_of

ROUNDS = 3
PROMISED_US = 100.0
"""An event, jobs and all: 10,000 a second."""
_FLOOR_GROUP = "floor"
_READ_COUNT = 64


@dataclass(frozen=True, slots=True)
class Load:
    """Which events there are."""

    name: str
    sessions: Callable[[int], int]
    """How many sessions share so many events."""
    wants_builds: bool = False
    partitions: int = PARTITIONS

    def session_of(self, number: int, events: int) -> str:
        return f"s{number % max(1, self.sessions(events))}"


LOADS = (
    Load("few sessions", lambda _: 40),
    Load("many sessions", lambda events: events),
    Load("many sessions, a summary each", lambda events: events, wants_builds=True),
    Load("many sessions of one partition", lambda events: events, partitions=1),
)


def dispatch_rows(events: int) -> list[Row]:
    """Events consumed, enqueued and acknowledged, against reading and acknowledging them and nothing else."""
    collect_rarely()
    return [_measured(load, events) for load in LOADS]


def _measured(load: Load, events: int) -> Row:
    rounds = []
    for _ in range(ROUNDS):
        with session_server("fast") as store, session_server("fast") as queue:
            _publish(store, load, events)
            floor = asyncio.run(_drain_only(path_of(store), events))
            rounds.append((*asyncio.run(_dispatch(path_of(store), path_of(queue), events)), floor))
    ours, used, floor = (statistics.median(side) * 1e6 / events for side in zip(*rounds, strict=True))
    notes = {"events_per_second": 1e6 / ours, "events_per_cpu_second": 1e6 / used}
    return Row(
        f"an event dispatched: {load.name}",
        "XREADGROUP + XACK",
        "us",
        ours,
        floor,
        most=PROMISED_US / floor,
        notes=notes,
    )


def _publish(store: BlockingRedis, load: Load, events: int) -> None:
    """Events as the append script writes them, before anybody reads."""
    make_groups(store)
    build = int(load.wants_builds)
    pipe = store.pipeline(transaction=False)
    for number, session in enumerate(_named(load, events)):
        keys = SessionKeys.of("acme", session)
        seq = number // max(1, load.sessions(events)) + 1
        pipe.xadd(keys.events, {"turns": f"{keys.label}:{number % 16:012x} {seq} {seq} {build}"})
        if number % 1_000 == 999:
            pipe.execute()
    pipe.execute()


def _named(load: Load, events: int) -> Iterator[str]:
    """A session for each event, all in the load's partitions."""
    wanted = max(1, load.sessions(events))
    names: list[str] = []
    number = 0
    while len(names) < wanted:
        if load.partitions == PARTITIONS or partition_of("acme", f"s{number}") < load.partitions:
            names.append(f"s{number}")
        number += 1
    for event in range(events):
        yield names[event % wanted]


def make_groups(store: BlockingRedis) -> None:
    pipe = store.pipeline(transaction=False)
    for partition in range(PARTITIONS):
        for group in (GROUP, _FLOOR_GROUP):
            pipe.xgroup_create(PartitionKeys.of(partition).events, group, id="0", mkstream=True)
    pipe.execute()


async def _drain_only(path: str, wanted: int) -> float:
    """The same entries by a plain client."""
    streams: dict[Any, Any] = {PartitionKeys.of(partition).events: ">" for partition in range(PARTITIONS)}
    async with Redis(unix_socket_path=path) as client:
        start, seen = time.perf_counter(), 0
        while seen < wanted:
            reply: Any = await client.xreadgroup(_FLOOR_GROUP, "floor", streams, count=_READ_COUNT)
            async with client.pipeline(transaction=False) as pipe:
                for key, entries in reply:
                    pipe.xack(key, _FLOOR_GROUP, *(entry_id for entry_id, _ in entries))
                    seen += len(entries)
                await pipe.execute()
        return time.perf_counter() - start


async def _dispatch(path: str, queue_path: str, wanted: int) -> tuple[float, float]:
    """Seconds, and those of them that this process used."""
    connection = queue_connection(f"unix://{queue_path}")
    async with Redis(unix_socket_path=path) as client:
        with closing(JobQueue(connection)) as jobs:
            options = IntakeOptions(consumer="bench", read_count=_READ_COUNT)
            asking = Asking(jobs, 10**9, now_ms)
            intake = Intake(TurnEvents(client), asking, Attempts(5_000, 60_000), options, now_ms)
            stop = asyncio.Event()
            start, used = time.perf_counter(), time.process_time()
            running = asyncio.create_task(intake.run(stop))
            while intake.events_seen < wanted:  # noqa: ASYNC110 (a counter, not an event)
                await asyncio.sleep(0.005)
            stop.set()
            await running
            return time.perf_counter() - start, time.process_time() - used


def now_ms() -> int:
    """Milliseconds of the monotonic clock."""
    return time.monotonic_ns() // 1_000_000


def path_of(server: BlockingRedis) -> str:
    return str(server.connection_pool.connection_kwargs["path"])
