"""A context read against a raw GET of the same bytes, and what making messages of it adds."""

import asyncio

from redis import Redis

from bench.appends import TENANT, Appender
from bench.measure import ROUNDS, Row, Timed, median_of, timed_calls
from bench.servers import make_turn, server_cpu_seconds, session_server
from prefold.conversation.project import anthropic_messages_json, parse_lines
from prefold.storage import connect_sessions
from prefold.storage.keys import SessionKeys


def read_rows(calls: int, turns: int = 60) -> list[Row]:
    """One connection; the context holds ``turns`` turns of about 1.7 KB."""
    with session_server("fast") as client:
        appender = Appender(client)
        for number in range(turns):
            appender.append("s1", make_turn(number))
        key = SessionKeys.of(TENANT, "s1").context
        body: bytes = client.get(key)  # type: ignore[assignment]
        client.set("floor", body)

        def cpu() -> float:
            return server_cpu_seconds(client)

        floors: list[Timed] = []
        ours: list[Timed] = []
        full: list[Timed] = []
        for _ in range(ROUNDS):
            floors.append(timed_calls(lambda _: client.get("floor"), range(calls), cpu))
            ours.append(timed_calls(lambda _: _read(client, key), range(calls), cpu))
            full.append(timed_calls(lambda _: _messages(client, key), range(calls), cpu))
        path = str(client.connection_pool.connection_kwargs["path"])
        snapshot = asyncio.run(_snapshot_p50(f"unix://{path}", calls))
    floor = median_of(floors).p50_us
    return [
        Row("context read by GET, p50", "raw GET", "us", median_of(ours).p50_us, floor, 1.5),
        Row("… joined into messages, p50", "raw GET", "us", median_of(full).p50_us, floor),
        Row("gateway's snapshot read (asyncio), p50", "raw GET (asyncio)", "us", *snapshot),
    ]


def _read(client: Redis, key: str) -> tuple[bytes, bytes]:
    body: bytes = client.get(key)  # type: ignore[assignment]
    header, _, lines = body.partition(b"\n")
    return header, lines


def _messages(client: Redis, key: str) -> bytes:
    body: bytes = client.get(key)  # type: ignore[assignment]
    return anthropic_messages_json(parse_lines(body)[1])


async def _snapshot_p50(url: str, calls: int) -> tuple[float, float]:
    """(our snapshot, a raw GET), microseconds, both through asyncio."""
    loop = asyncio.get_running_loop()
    async with connect_sessions(url) as sessions:
        ours = await _p50(loop, calls, lambda: sessions.read_context(TENANT, "s1"))
        floor = await _p50(loop, calls, lambda: sessions.client.get("floor"))
    return ours, floor


async def _p50(loop: asyncio.AbstractEventLoop, calls: int, call: object) -> float:
    taken = []
    for _ in range(calls):
        start = loop.time()
        await call()  # type: ignore[operator]
        taken.append(loop.time() - start)
    return sorted(taken)[len(taken) // 2] * 1e6
