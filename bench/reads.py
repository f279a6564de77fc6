"""A context read against a raw GET of the same bytes, and what making messages of it adds."""

import asyncio
import statistics
from collections.abc import Awaitable, Callable

from redis import Redis

from bench.appends import TENANT, Appender
from bench.measure import ROUNDS, Row, Timed, median_of, timed_calls
from bench.servers import make_turn, server_cpu_seconds, session_server
from prefold.conversation.project import anthropic_messages_json, parse_lines
from prefold.facts import FactBook, NewFact
from prefold.gateway.profiles import ContextReads
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import SessionOptions
from prefold.tokens import load_counter


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
        p50 = asyncio.run(_asyncio_p50(f"unix://{path}", calls))
    floor = median_of(floors).p50_us
    return [
        Row("context read by GET, p50", "raw GET", "us", median_of(ours).p50_us, floor, 1.5),
        Row("… joined into messages, p50", "raw GET", "us", median_of(full).p50_us, floor),
        Row("gateway's snapshot read (asyncio), p50", "raw GET (asyncio)", "us", p50["snapshot"], p50["floor"]),
        Row("… of nobody's session, p50", "snapshot read", "us", p50["nobodys"], p50["snapshot"]),
        Row("… with its user's profile, p50", "snapshot read", "us", p50["users"], p50["snapshot"]),
    ]


def _read(client: Redis, key: str) -> tuple[bytes, bytes]:
    body: bytes = client.get(key)  # type: ignore[assignment]
    header, _, lines = body.partition(b"\n")
    return header, lines


def _messages(client: Redis, key: str) -> bytes:
    body: bytes = client.get(key)  # type: ignore[assignment]
    return anthropic_messages_json(parse_lines(body)[1])


async def _asyncio_p50(url: str, calls: int) -> dict[str, float]:
    """Microseconds through asyncio, by name: a raw GET, our snapshot, a context read of nobody's and of a user's."""
    async with connect_sessions(url) as sessions:
        reads = ContextReads(sessions, FactBook(sessions.users, load_counter()), within_seconds=1)
        await _of_a_user(sessions, "s1", "s2")
        sides: dict[str, Callable[[], Awaitable[object]]] = {
            "floor": lambda: sessions.client.get("floor"),
            "snapshot": lambda: sessions.read_context(TENANT, "s1"),
            "nobodys": lambda: reads.read(TENANT, "s1"),
            "users": lambda: reads.read(TENANT, "s2"),
        }
        rounds: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, call in sides.items():
                rounds[name].append(await _p50(calls // ROUNDS, call))
    return {name: statistics.median(taken) for name, taken in rounds.items()}


async def _of_a_user(sessions: Sessions, source: str, session: str) -> None:
    """The same conversation as a user's, with a profile of full length."""
    view = await sessions.view(TENANT, source)
    await sessions.fork(TENANT, source, session, view.head_seq)
    await sessions.open(TENANT, session, SessionOptions(user="u"))
    book = FactBook(sessions.users, load_counter())
    for number in range(40):
        new = NewFact("user", f"likes_{number}", f"thing number {number} of many", "preference")
        await book.add(TENANT, "u", new, now_ms=1_800_000_000_000)


async def _p50(calls: int, call: Callable[[], Awaitable[object]]) -> float:
    loop = asyncio.get_running_loop()
    taken = []
    for _ in range(calls):
        start = loop.time()
        await call()
        taken.append(loop.time() - start)
    return sorted(taken)[len(taken) // 2] * 1e6
