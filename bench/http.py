"""The gateway over HTTP against a bare ASGI application on the same server: what an append and a read add to it.

CPU time of the server's process is the steadier figure; the time a request takes depends on who else is at work.
"""

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

from bench.load import Load, offer, request
from bench.measure import ROUNDS, Row
from bench.servers import TEXT, HttpProcess, gateway_process, http_process, session_server
from prefold.client import Prefold

CONNECTIONS = 32
WINDOW = 60
"""Turns of a context: of 1.7 KB each, that is about 100 KB."""
_CONTEXT = "/v1/sessions/{}/context"
Lanes = list[list[bytes]]


@dataclass(frozen=True, slots=True)
class _Side:
    """A kind of request, made anew for each round."""

    server: HttpProcess
    lanes: Callable[[int, int], Lanes]
    """From the number of the round and of the requests."""
    share: float = 1
    """Of the number of requests."""


def http_rows(calls: int) -> list[Row]:
    """``calls`` appends a round over ``CONNECTIONS`` connections that are kept, on a session server of class ``fast``."""
    with _servers("fast") as (gateway, floor):
        context = _window_of(gateway)
        static = _Side(floor, lambda _, calls: _same(f"/?bytes={context}", calls), 0.25)
        noop = _Side(floor, _appends)
        sides = {
            "append": _Side(gateway, _appends),
            "no-op": noop,
            "batch": _Side(gateway, _batches, 0.25),
            "read": _Side(gateway, lambda _, calls: _same(_CONTEXT.format("reads"), calls), 0.25),
            "static": static,
            "pair": _Side(gateway, _pairs, 0.5),
            "openai": _Side(gateway, lambda _, calls: _same(f"{_CONTEXT.format('reads')}?format=openai", calls), 0.1),
        }
        taken = _rounds(sides, calls)
    cpu = {name: statistics.median(one.cpu_us for one in loads) for name, loads in taken.items()}
    each = {name: statistics.median(1e6 / one.rate for one in loads) for name, loads in taken.items()}
    most_us, promised = max(400.0, each["no-op"] / 0.4), "2,500/s or 40 % of no-op"
    post, bytes_of = f"no-op POST, {CONNECTIONS} conn.", f"static {context // 1000} KB"
    return [
        Row("HTTP append, gateway CPU a turn", post, "us", cpu["append"], cpu["no-op"], 2.5),
        Row(
            "HTTP append, time a turn", promised, "us", each["append"], most_us, 1.0, {"turns_s": 1e6 / each["append"]}
        ),
        Row("… ten turns a call, CPU a turn", post, "us", cpu["batch"] / _BATCH, cpu["no-op"]),
        Row("HTTP context read, gateway CPU", bytes_of, "us", cpu["read"], cpu["static"], 2.0),
        Row("HTTP context read, time a read", bytes_of, "us", each["read"], each["static"], 2.0),
        Row("… after an append, CPU of both", bytes_of, "us", 2 * cpu["pair"], cpu["static"]),
        Row("… in OpenAI's form, CPU", bytes_of, "us", cpu["openai"], cpu["static"]),
    ]


def durable_rows(calls: int) -> list[Row]:
    """Appends of class ``durable``: as many as come at once share a flush to the disk. The floor is one connection."""
    with _servers("durable") as (gateway, _):
        sides = {
            "many": _Side(gateway, _appends),
            "one": _Side(gateway, lambda number, calls: [_lane(f"one{number}", calls)], 1 / 16),
        }
        taken = _rounds(sides, calls)
    each = {name: statistics.median(1e6 / one.rate for one in loads) for name, loads in taken.items()}
    notes = {"turns_s": 1e6 / each["many"]}
    return [
        Row(
            f"durable append, {CONNECTIONS} conn., time a turn",
            "one connection",
            "us",
            each["many"],
            each["one"],
            0.5,
            notes,
        )
    ]


@contextmanager
def _servers(durability: Literal["durable", "fast"]) -> Iterator[tuple[HttpProcess, HttpProcess]]:
    with ExitStack() as stack:
        redis = stack.enter_context(session_server(durability))
        url = f"unix://{redis.connection_pool.connection_kwargs['path']}"
        yield (
            stack.enter_context(gateway_process(url, durability)),
            stack.enter_context(http_process([sys.executable, "-m", "bench.floor"], {})),
        )


def _rounds(sides: Mapping[str, _Side], calls: int) -> dict[str, list[Load]]:
    """Interleaved; the first round only warms up."""
    taken: dict[str, list[Load]] = {name: [] for name in sides}
    for number in range(ROUNDS + 1):
        for name, side in sides.items():
            load = offer(side.server.url, side.server.pid, side.lanes(number, int(calls * side.share)))
            if number:
                taken[name].append(load)
    return taken


def _window_of(gateway: HttpProcess) -> int:
    """Makes the session that is read; the length of what is read of it."""
    with Prefold(gateway.url) as sdk:
        for number in range(WINDOW):
            sdk.append("reads", "assistant" if number % 2 else "user", TEXT)
        return len(json.dumps(sdk.context("reads").messages, separators=(",", ":")))


def _appends(round_number: int, calls: int) -> Lanes:
    return [_lane(f"s{round_number}-{lane}", calls // CONNECTIONS) for lane in range(CONNECTIONS)]


def _lane(session: str, count: int) -> list[bytes]:
    return [request("POST", _turns(session, number), json.dumps(_turn(number)).encode()) for number in range(count)]


_BATCH = 10


def _batches(round_number: int, calls: int) -> Lanes:
    def body(number: int) -> bytes:
        return json.dumps({"turns": [_turn(_BATCH * number + one) for one in range(_BATCH)]}).encode()

    return [
        [
            request("POST", _turns(f"b{round_number}-{lane}", number), body(number))
            for number in range(calls // CONNECTIONS)
        ]
        for lane in range(CONNECTIONS)
    ]


def _pairs(round_number: int, calls: int) -> Lanes:
    """A read after each append, in sessions that are half as long on the average."""
    lanes: Lanes = []
    for lane in range(CONNECTIONS):
        name = f"p{round_number}-{lane}"
        appends = _lane(name, calls // CONNECTIONS // 2)
        reads = [request("GET", _CONTEXT.format(f"{name}-{number // WINDOW}")) for number in range(len(appends))]
        lanes.append([one for pair in zip(appends, reads, strict=True) for one in pair])
    return lanes


def _turns(session: str, number: int) -> str:
    return f"/v1/sessions/{session}-{number // WINDOW}/turns"


def _turn(number: int) -> dict[str, str]:
    return {"id": f"turn-{number}", "role": "assistant" if number % 2 else "user", "content": f"{number} {TEXT}"}


def _same(path: str, calls: int) -> Lanes:
    return [[request("GET", path)] * max(1, calls // CONNECTIONS) for _ in range(CONNECTIONS)]
