"""The append script against a bare XADD of the same bytes, and an append that swaps against one that does not."""

import asyncio
import statistics
import time
from typing import Any, Literal

from redis import Redis

from bench.measure import ROUNDS, Row, Timed, median_of, timed_calls
from bench.servers import make_turn, server_cpu_seconds, session_server
from prefold.conversation.turns import PreparedTurn
from prefold.storage import Defaults, connect_sessions
from prefold.storage.append import append_args, parse_append
from prefold.storage.builds import commit_args, parse_begin
from prefold.storage.hot import connect_hot
from prefold.storage.keys import SessionKeys
from prefold.storage.scripts import script
from prefold.storage.types import AppendResult, BuildTicket, BuiltSummary, HeadFragment, SessionRef

TENANT = "bench"
INCARNATION = "0123456789ab"
TURNS_A_SESSION = 100


class Appender:
    """Direct appends over one connection."""

    def __init__(self, client: Redis, defaults: Defaults | None = None) -> None:
        self.client = client
        self.defaults = defaults or Defaults()
        self.append_script = script("append")
        for name in ("append", "begin_build", "commit_build"):
            client.script_load(script(name).source)

    def prepare(self, session: str, turn: PreparedTurn) -> tuple[str | bytes | int, ...]:
        keys = SessionKeys.of(TENANT, session)
        args = append_args(keys.label, INCARNATION, [turn], self.defaults, time.time_ns() // 1_000_000)
        return (*keys.script_keys(), *args)

    def send(self, packed: tuple[str | bytes | int, ...]) -> bytes:
        reply: bytes = self.client.evalsha(self.append_script.sha, 11, *packed)
        return reply

    def append(self, session: str, turn: PreparedTurn) -> AppendResult:
        return parse_append(TENANT, session, [turn], self.send(self.prepare(session, turn)))

    def build(self, session: str) -> None:
        """Begins and commits a summary of a usual size."""
        keys = SessionKeys.of(TENANT, session)
        begin: list[str | int] = ["", keys.label, INCARNATION, 20_000]
        reply = self.client.evalsha(script("begin_build").sha, 11, *keys.script_keys(), *begin)
        ticket = parse_begin(SessionRef(TENANT, session, INCARNATION), reply)
        assert isinstance(ticket, BuildTicket), ticket
        text = '{"type":"text","text":"' + "a line of the summary. " * 160 + '"}'
        summary = BuiltSummary((HeadFragment("summary", text.encode(), 800),), "{}", 1.0)
        outcome = self.client.evalsha(
            script("commit_build").sha, 11, *keys.script_keys(), *commit_args("", keys.label, ticket, summary)
        )
        assert outcome[0] == b"standby", outcome


def append_rows(durability: Literal["durable", "fast"], calls: int) -> list[Row]:
    """One connection, one turn a call."""
    with session_server(durability) as client:
        appender = Appender(client)
        turns = [make_turn(number) for number in range(TURNS_A_SESSION)]

        def cpu() -> float:
            return server_cpu_seconds(client)

        floors: list[Timed] = []
        ours: list[Timed] = []
        for number in range(ROUNDS + 1):
            packed = [
                appender.prepare(f"s{number}-{i // TURNS_A_SESSION}", turns[i % TURNS_A_SESSION]) for i in range(calls)
            ]
            floor = timed_calls(lambda i, n=number: _bare_xadd(client, n, turns, i), range(calls), cpu)  # type: ignore[misc]
            mine = timed_calls(lambda i, p=packed: appender.send(p[i]), range(calls), cpu)  # type: ignore[misc]
            if number:
                floors.append(floor)
                ours.append(mine)
        floor, mine = median_of(floors), median_of(ours)
    most = 2.0 if durability == "fast" else None  # under `always` both sides wait for the disk, which is the noise
    rows = [Row(f"append, {durability}, p50", "bare XADD", "us", mine.p50_us, floor.p50_us, most, {"p99": mine.p99_us})]
    if durability == "fast":
        rows.append(Row("append, fast, server CPU", "bare XADD", "us", mine.server_us, floor.server_us, 4.0))
    return rows


def client_rows(calls: int) -> list[Row]:
    """The same as the gateway does it: typed call, lean asyncio connection, parsed result."""
    with session_server("fast") as client:
        path = str(client.connection_pool.connection_kwargs["path"])
        ours, floor = asyncio.run(_client_p50(f"unix://{path}", calls))
    return [Row("append, fast, as the gateway's client, p50", "bare XADD, same client", "us", ours, floor)]


async def _client_p50(url: str, calls: int) -> tuple[float, float]:
    turns = [make_turn(number) for number in range(TURNS_A_SESSION)]
    ours: list[float] = []
    floors: list[float] = []
    async with connect_sessions(url) as sessions, connect_hot(url) as hot:
        assert hot is not None
        for number in range(ROUNDS):
            for i in range(calls):
                turn, name = turns[i % TURNS_A_SESSION], f"{number}-{i // TURNS_A_SESSION}"
                start = time.perf_counter()
                fields = [part for pair in _entry(turn).items() for part in pair]
                await hot.execute(("XADD", f"floor:{name}", "*", *fields))
                middle = time.perf_counter()
                await sessions.append(TENANT, name, [turn])
                ours.append(time.perf_counter() - middle)
                floors.append(middle - start)
    return statistics.median(ours) * 1e6, statistics.median(floors) * 1e6


def _bare_xadd(client: Redis, number: int, turns: list[PreparedTurn], i: int) -> None:
    turn = turns[i % TURNS_A_SESSION]
    stream = f"floor:{number}:{i // TURNS_A_SESSION}"
    client.xadd(stream, _entry(turn))


def _entry(turn: PreparedTurn) -> dict[Any, Any]:
    """The fields that the script writes to the log for this turn: the same bytes, and nothing else."""
    sizes = f"{turn.tokens} {turn.short_tokens} {turn.tokens} 0 1 p {turn.role[0]} {turn.verbatim[0]} 0 {turn.id}\n"
    fields = {"r": sizes.encode() + turn.envelope, "c": turn.content}
    return {**fields, "s": turn.short} if turn.short else fields


def swap_rows(sessions: int, window: int = 200, tail: int = 60) -> list[Row]:
    """The append that passes the limit with a standby ready, against the one just before it."""
    turns = [make_turn(number) for number in range(window + 2)]
    limit = sum(turn.tokens for turn in turns[:window]) + turns[window].tokens - 1
    plain: list[Timed] = []
    swapping: list[Timed] = []
    with session_server("fast") as client:
        appender = Appender(client, Defaults(hard_limit_tokens=limit, keep_recent_turns=tail, soft_ratio=0.6))

        def cpu() -> float:
            return server_cpu_seconds(client)

        for number in range(sessions):
            session = f"s{number}"
            for turn in turns[: window - 1]:
                appender.append(session, turn)
            appender.build(session)
            before = appender.prepare(session, turns[window - 1])
            after = appender.prepare(session, turns[window])
            plain.append(timed_calls(lambda _, p=before: appender.send(p), (0,), cpu))  # type: ignore[misc]
            replies: list[bytes] = []
            swapping.append(timed_calls(lambda _, p=after, r=replies: r.append(appender.send(p)), (0,), cpu))  # type: ignore[misc]
            assert parse_append(TENANT, session, [turns[window]], replies[0]).swapped_now
        floor, mine = median_of(plain), median_of(swapping)
    return [
        Row("append that swaps, p50", "plain append", "us", mine.p50_us, floor.p50_us, 2.0),
        Row("append that swaps, server CPU", "plain append", "us", mine.server_us, floor.server_us, 2.0),
    ]
