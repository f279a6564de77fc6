"""What happens behind the conversation: embedding and dispatching."""

import asyncio
import time
from contextlib import closing

from redis.asyncio import Redis

from bench.appends import Appender
from bench.measure import Row
from bench.servers import make_turn, session_server
from prefold.client import Prefold
from prefold.dispatcher.attempts import Attempts
from prefold.dispatcher.intake import Intake, IntakeOptions
from prefold.embedding import create_embedder
from prefold.jobs import JobQueue, queue_connection
from prefold.stack.embedded import temporary_stack
from prefold.storage.events import GROUP, TurnEvents

DEADLINE_SECONDS = 300


def embed_rows(turns: int) -> list[Row]:
    """Appended to searchable, one embed worker, against the embedder alone on the same texts."""
    texts = [
        f"Parcel {i} left the warehouse in Leipzig on day {i % 28 + 1} and is due at gate {i % 9}."
        for i in range(turns)
    ]
    embedder = create_embedder()
    embedder.embed_documents(texts[:8])
    start = time.perf_counter()
    embedder.embed_documents(texts)
    alone = turns / (time.perf_counter() - start)
    with temporary_stack(durability="fast") as stack, Prefold(stack.gateway_url) as sdk:
        sdk.append("warm", "user", "hello there, is anybody in?")
        _wait_embedded(sdk, ["warm"])
        sessions = [f"s{i}" for i in range(10)]
        start = time.perf_counter()
        for number, text in enumerate(texts):
            sdk.append(sessions[number % len(sessions)], "user", text)
        _wait_embedded(sdk, sessions)
        through = turns / (time.perf_counter() - start)
    return [Row("a turn embedded, all in (1 worker)", "the embedder alone", "ms", 1000 / through, 1000 / alone)]


def _wait_embedded(sdk: Prefold, sessions: list[str]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    for session in sessions:
        while True:
            state = sdk.session(session)
            if state.embedded_to >= state.head_seq:
                break
            if time.monotonic() > deadline:
                raise TimeoutError("the embed worker did not keep up")
            time.sleep(0.02)


def dispatch_rows(events: int) -> list[Row]:
    """Events to jobs on the queue, against reading and acknowledging them and nothing else."""
    with session_server("fast") as client:
        path = str(client.connection_pool.connection_kwargs["path"])
        asyncio.run(TurnEvents(Redis(unix_socket_path=path)).ensure_groups())
        appender = Appender(client)
        for number in range(events):
            appender.send(appender.prepare(f"s{number % 200}-{number // 4000}", make_turn(number, "hello")))
        floor = asyncio.run(_drain_only(path, events))
        ours = asyncio.run(_dispatch(path, events))
    return [Row("an event dispatched", "XREADGROUP + XACK", "us", ours * 1e6 / events, floor * 1e6 / events)]


async def _drain_only(path: str, wanted: int) -> float:
    async with Redis(unix_socket_path=path) as client:
        stream = TurnEvents(client)
        start, seen = time.perf_counter(), 0
        while seen < wanted:
            got = await stream.read("floor", 64, 0)
            await stream.ack(got)
            seen += len(got)
        taken = time.perf_counter() - start
        async for key in client.scan_iter("*:events"):
            await client.xgroup_setid(key, GROUP, "0")
        return taken


async def _dispatch(path: str, wanted: int) -> float:
    with session_server("fast") as queue_server:
        queue_path = str(queue_server.connection_pool.connection_kwargs["path"])
        connection = queue_connection(f"unix://{queue_path}")
        async with Redis(unix_socket_path=path) as client:
            with closing(JobQueue(connection)) as jobs:
                options = IntakeOptions(consumer="bench", max_queue_depth=10**9, read_pause_ms=0)
                intake = Intake(
                    TurnEvents(client), jobs, Attempts(5000, 60000), options, lambda: time.monotonic_ns() // 10**6
                )
                stop = asyncio.Event()
                start = time.perf_counter()
                running = asyncio.create_task(intake.run(stop))
                while intake.events_seen < wanted:  # noqa: ASYNC110 (a counter, not an event)
                    await asyncio.sleep(0.005)
                stop.set()
                await running
                return time.perf_counter() - start
