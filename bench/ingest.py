"""Turns published by XADD and stored by a dispatcher, against the append script alone on the same turns."""

import asyncio
import json
import statistics
import time

from redis import Redis as BlockingRedis

from bench.appends import Appender
from bench.dispatch import path_of
from bench.measure import Row
from bench.servers import TEXT, make_turn, session_server
from prefold.dispatcher.ingesting import opened_ingest
from prefold.dispatcher.settings import DispatcherSettings
from prefold.storage.keys import TenantKeys

SESSIONS = 200
ROUNDS = 3
_TENANT = "acme"


def ingest_rows(turns: int) -> list[Row]:
    """From the first read to the last entry taken out of the stream."""
    rounds = []
    for _ in range(ROUNDS):
        with session_server("fast") as client:
            floor = _append_only(client, turns)
        with session_server("fast") as client:
            _publish(client, turns)
            rounds.append((asyncio.run(_ingest(client, turns)), floor))
    ours, floor = (statistics.median(side) * 1e6 / turns for side in zip(*rounds, strict=True))
    return [
        Row("a published turn stored", "append script, one a call", "us", ours, floor, notes={"per_second": 1e6 / ours})
    ]


def _append_only(client: BlockingRedis, turns: int) -> float:
    appender = Appender(client)
    prepared = [appender.prepare(f"s{number % SESSIONS}", make_turn(number)) for number in range(turns)]
    start = time.perf_counter()
    for one in prepared:
        appender.send(one)
    return time.perf_counter() - start


def _publish(client: BlockingRedis, turns: int) -> None:
    pipe = client.pipeline(transaction=False)
    for number in range(turns):
        turn = json.dumps({"id": f"t{number}", "role": "assistant" if number % 2 else "user", "content": TEXT})
        pipe.xadd(TenantKeys.of(_TENANT).ingest, {"v": 1, "session": f"s{number % SESSIONS}", "turn": turn})
    pipe.execute()


async def _ingest(client: BlockingRedis, turns: int) -> float:
    settings = DispatcherSettings(
        redis_url=f"unix://{path_of(client)}", ingest_tenants=_TENANT, durability="fast", dispatcher_name="bench"
    )
    stop = asyncio.Event()
    async with opened_ingest(settings) as ingest:
        start = time.perf_counter()
        running = asyncio.create_task(ingest.run(stop))
        while ingest.entries_applied < turns:  # noqa: ASYNC110 (a counter, not an event)
            await asyncio.sleep(0.005)
        taken = time.perf_counter() - start
        stop.set()
        await running
    return taken
