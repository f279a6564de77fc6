"""Appends of the direct client against the bare script: the same arguments, prepared beforehand, and nothing else.

Short stretches of the two alternate, so that both meet the same neighbours. Turns of 600 bytes, the size that a chat
has, and of 1.7 KB, which also get a short form.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator

from redis import Redis

from bench.measure import Row
from bench.servers import TEXT, make_turn, session_server
from prefold.client import AsyncPrefold, Prefold
from prefold.storage import Defaults
from prefold.storage.append import append_args
from prefold.storage.hot import HotClient, connect_hot
from prefold.storage.keys import SessionKeys
from prefold.storage.scripts import script

_INCARNATION = "0123456789ab"
_TURNS_A_SESSION = 100
_AT_ONCE = 32
_STRETCHES = 21
_MOST = 2.0
"""Times what the bare script takes: half of its rate."""
_SIZES = {"600 B": TEXT[:600], "1.7 KB": TEXT}
Packed = tuple[str | bytes | int, ...]
Pairs = list[tuple[float, float]]
"""Microseconds of an append in a stretch of ours and in one of the floor's."""


def direct_rows(calls: int) -> list[Row]:
    """One at a time from a thread, many at once in an event loop, and through a buffer."""
    stretch = max(_AT_ONCE, calls // _STRETCHES)
    rows = []
    with session_server("fast") as client:
        client.script_load(script("append").source)
        url = f"unix://{client.connection_pool.connection_kwargs['path']}"
        for size, text in _SIZES.items():
            rows.append(_row(f"direct append of {size}, one at a time", _one_by_one(client, url, text, stretch)))
            many, buffered = asyncio.run(_at_once(url, text, stretch))
            rows += [
                _row(f"direct append of {size}, {_AT_ONCE} at once", many),
                _row(f"direct append of {size}, buffered", buffered),
            ]
    return rows


def _row(name: str, pairs: Pairs) -> Row:
    """The first stretches warm up."""
    ours, floor = (statistics.median(pair[side] for pair in pairs[2:]) for side in (0, 1))
    return Row(name, "bare script", "us", ours, floor, _MOST, {"per_s": 1e6 / ours, "floor_per_s": 1e6 / floor})


def _one_by_one(client: Redis, url: str, text: str, stretch: int) -> Pairs:
    sha, pairs = script("append").sha, []
    with Prefold.direct(url) as prefold:
        for number in range(_STRETCHES):
            packed = _prepared(f"one {number}", text, stretch)
            floor = _timed(stretch, lambda i, p=packed: client.evalsha(sha, 11, *p[i]))  # type: ignore[misc]
            names = _names(f"b{len(text)}-{number}")
            ours = _timed(stretch, lambda i, n=names: prefold.append(next(n), "user", text, id=f"t{i}"))  # type: ignore[misc]
            pairs.append((ours, floor))
    return pairs


def _timed(calls: int, call: Callable[[int], object]) -> float:
    started = time.perf_counter()
    for i in range(calls):
        call(i)
    return (time.perf_counter() - started) / calls * 1e6


async def _at_once(url: str, text: str, stretch: int) -> tuple[Pairs, Pairs]:
    many: Pairs = []
    buffered: Pairs = []
    async with AsyncPrefold.direct(url) as prefold, connect_hot(url) as hot:
        assert hot is not None
        for number in range(_STRETCHES):
            packed = _prepared(f"many {number}", text, stretch)
            floor = await _timed_together(stretch, lambda i, p=packed: _bare(hot, p[i]))  # type: ignore[misc]
            names = _names(f"a{len(text)}-{number}")
            ours = await _timed_together(
                stretch,
                lambda i, n=names: prefold.append(next(n), "user", text, id=f"t{i}"),  # type: ignore[misc]
            )
            many.append((ours, floor))
            buffered.append((await _timed_buffer(prefold, f"p{len(text)}-{number}", text, stretch), floor))
    return many, buffered


async def _bare(hot: HotClient, packed: Packed) -> object:
    return await hot.evalsha(script("append").sha, 11, *packed)


async def _timed_together(calls: int, call: Callable[[int], Awaitable[object]]) -> float:
    left = iter(range(calls))

    async def run() -> None:
        for i in left:
            await call(i)

    started = time.perf_counter()
    await asyncio.gather(*(run() for _ in range(_AT_ONCE)))
    return (time.perf_counter() - started) / calls * 1e6


async def _timed_buffer(prefold: AsyncPrefold, session: str, text: str, calls: int) -> float:
    started = time.perf_counter()
    async with prefold.buffer(session) as buffer:
        for i in range(calls):
            buffer.append("user", text, id=f"t{i}")
    return (time.perf_counter() - started) / calls * 1e6


def _names(prefix: str) -> Iterator[str]:
    """A session for each hundred turns."""
    return (f"{prefix}-{i // _TURNS_A_SESSION}" for i in itertools.count())


def _prepared(prefix: str, text: str, calls: int) -> list[Packed]:
    """The arguments of the script, as the client makes them."""
    defaults, now_ms, prepared = Defaults(), time.time_ns() // 1_000_000, []
    for i, name in zip(range(calls), _names(f"{prefix.replace(' ', '')}{len(text)}"), strict=False):
        keys = SessionKeys.of("bench", name)
        args = append_args(keys.label, _INCARNATION, [make_turn(i, text)], defaults, now_ms)
        prepared.append((*keys.script_keys(), *args))
    return prepared
