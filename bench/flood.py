"""One tenant floods a gateway at many times the rate of each of twenty quiet ones: what do those wait?

``python -m bench.flood [--rounds 10] [--seconds 3] [--times 100]``. A gateway process and a Redis process; two more
processes make the load, so that the flood's own work is not in the measured times. Short rounds without and with the
flood alternate, so that whatever else the machine does meets both. Appends and reads of the quiet tenants are timed from
when each was due; the result is the p95 over all rounds of a kind.
"""

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.servers import TEXT, HttpProcess, http_process, session_server

QUIET = 20
RATE = 5.0
"""Requests a second of each quiet tenant: half appends, half reads of the context."""
TIMES = 100.0
"""As many of the one that floods, all of them appends."""
SHARES = (0.5, 0.95)
_FLOOD_CONNECTIONS = 128
_TURNS = 40
_TURN = TEXT[:600]

Run = Callable[..., Awaitable[object]]


class Waits(NamedTuple):
    """Of the quiet tenants' calls, in ms, and what came of the flood."""

    appends: list[float]
    reads: list[float]
    worked: float = 0.0
    """Time that the gateway was on a core, in s."""
    starved: float = 0.0
    """Time that it was ready and waited for one, because the machine had other work."""
    flood_rate: float = 0.0
    flood_refused: float = 0.0


class Found(NamedTuple):
    """All rounds without and with the flood."""

    before: Waits
    during: Waits

    @property
    def append(self) -> float:
        """How many times as long an append takes, by the p95."""
        return percentile(self.during.appends, 0.95) / percentile(self.before.appends, 0.95)

    @property
    def read(self) -> float:
        """The same of a read."""
        return percentile(self.during.reads, 0.95) / percentile(self.before.reads, 0.95)


def measure(rounds: int, seconds: float, times: float = TIMES) -> Found:
    """Alternating rounds, all together."""
    with _gateway() as gateway, _loader(_quiet, gateway.url) as quiet, _loader(_flood, gateway.url) as flood:
        pid = gateway.pid
        _round(pid, quiet, None, 2.0)
        taken = [(_round(pid, quiet, None, seconds), _round(pid, quiet, flood, seconds, times)) for _ in range(rounds)]
    return Found(*map(_together, zip(*taken, strict=True)))


def _together(rounds: Sequence[Waits]) -> Waits:
    return Waits(
        [taken for one in rounds for taken in one.appends],
        [taken for one in rounds for taken in one.reads],
        sum(one.worked for one in rounds),
        sum(one.starved for one in rounds),
        statistics.median(one.flood_rate for one in rounds),
        statistics.median(one.flood_refused for one in rounds),
    )


def _round(pid: int, quiet: Connection, flood: Connection | None, seconds: float, times: float = 0.0) -> Waits:
    if flood is not None:
        flood.send((seconds + 1.5, times))
        time.sleep(1)  # it has to get going
    before = _scheduled(pid)
    quiet.send((seconds,))
    appends, reads = quiet.recv()
    worked, starved = (after - one for after, one in zip(_scheduled(pid), before, strict=True))
    return Waits(appends, reads, worked, starved, *(() if flood is None else flood.recv()))


def _scheduled(pid: int) -> tuple[float, float]:
    """Seconds on a core, and seconds of waiting for one (Linux)."""
    tasks = [(task / "schedstat").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(one[0]) for one in tasks) / 1e9, sum(int(one[1]) for one in tasks) / 1e9


@contextmanager
def _gateway() -> Iterator[HttpProcess]:
    with TemporaryDirectory(prefix="pf-bench-") as folder, session_server("fast") as redis:
        keys = Path(folder) / "keys"
        names = ["flood", *(f"quiet{number}" for number in range(QUIET))]
        keys.write_text("".join(f"{name} {hashlib.sha256(name.encode()).hexdigest()}\n" for name in names))
        environment = {
            "PREFOLD_REDIS_URL": f"unix://{redis.connection_pool.connection_kwargs['path']}",
            "PREFOLD_DURABILITY": "fast",
            "PREFOLD_API_KEYS_FILE": str(keys),
        }
        command = [sys.executable, "-m", "prefold.cli.main", "gateway", "--port", "0", "--log-format", "json"]
        with http_process(command, environment) as gateway:
            yield gateway


@contextmanager
def _loader(target: Callable[[Connection, str], None], url: str) -> Iterator[Connection]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=target, args=(theirs, url), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.join(10)


def _quiet(orders: Connection, url: str) -> None:
    _obey(orders, _Quiet(url).run)


def _flood(orders: Connection, url: str) -> None:
    os.nice(10)  # in earnest it would be on another machine
    _obey(orders, _Flood(url).run)


def _obey(orders: Connection, run: Run) -> None:
    async def obey_once(*order: float) -> object:
        return await run(*order)

    with asyncio.Runner() as runner:
        while True:
            try:
                order = orders.recv()
            except EOFError:
                return
            orders.send(runner.run(obey_once(*order)))


class _Line:
    """One connection that is kept."""

    def __init__(self, url: str, tenant: str) -> None:
        self._address = urlsplit(url)
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {tenant}\r\n"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> int:
        """The status of the answer."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._address.hostname, self._address.port)
        data = b"" if body is None else json.dumps(body).encode()
        kind = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{kind}\r\n".encode() + data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await self._reader.readexactly(int(length))
        return int(head[9:12])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class _Quiet:
    """Twenty tenants, each with a line of its own, on a fixed timetable."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._round = 0

    async def run(self, seconds: float) -> tuple[list[float], list[float]]:
        self._round += 1
        appends: list[float] = []
        reads: list[float] = []
        start = asyncio.get_running_loop().time() + 0.1
        await asyncio.gather(*(self._tenant(number, start, start + seconds, appends, reads) for number in range(QUIET)))
        return appends, reads

    async def _tenant(self, number: int, start: float, end: float, appends: list[float], reads: list[float]) -> None:
        line, loop = _Line(self._url, f"quiet{number}"), asyncio.get_running_loop()
        due, count = start + number / QUIET / RATE, 0
        await line.ask("POST", f"/v1/sessions/s{self._round}/turns", {"role": "user", "content": _TURN})
        while due < end:
            await asyncio.sleep(due - loop.time())
            if count % 2:
                status, taken = await line.ask("GET", f"/v1/sessions/s{self._round}/context"), reads
            else:
                body = {"role": "user", "content": f"{count} {_TURN}"}
                status, taken = await line.ask("POST", f"/v1/sessions/s{self._round}/turns", body), appends
            if status not in (200, 201):
                raise AssertionError(f"a quiet tenant was answered {status}")
            taken.append((loop.time() - due) * 1000)
            due, count = due + 1 / RATE, count + 1
        line.close()


class _Flood:
    """One tenant at a fixed rate, whatever it is answered, as far as its connections go round."""

    def __init__(self, url: str) -> None:
        self._lines = [_Line(url, "flood") for _ in range(_FLOOD_CONNECTIONS)]
        self._sent = 0

    async def run(self, seconds: float, times: float) -> tuple[float, float]:
        loop, statuses = asyncio.get_running_loop(), list[int]()
        start = loop.time()
        await asyncio.gather(
            *(self._go(number, start, seconds, times, statuses) for number in range(_FLOOD_CONNECTIONS))
        )
        for line in self._lines:
            line.close()
        return len(statuses) / (loop.time() - start), sum(one == 429 for one in statuses) / len(statuses)

    async def _go(self, number: int, start: float, seconds: float, times: float, statuses: list[int]) -> None:
        loop, every = asyncio.get_running_loop(), _FLOOD_CONNECTIONS / (times * RATE)
        due = start + every * number / _FLOOD_CONNECTIONS
        while due < start + seconds and loop.time() < start + seconds:
            await asyncio.sleep(due - loop.time())
            self._sent += 1
            path = f"/v1/sessions/f{self._sent // _TURNS}-{number}/turns"
            statuses.append(await self._lines[number].ask("POST", path, {"role": "user", "content": _TURN}))
            due += every


def percentile(taken: Sequence[float], share: float) -> float:
    """Of the times taken."""
    return sorted(taken)[int(len(taken) * share)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.flood", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--times", type=float, default=TIMES)
    arguments = parser.parse_args()
    found = measure(arguments.rounds, arguments.seconds, arguments.times)
    for name, before, during in (
        ("append", found.before.appends, found.during.appends),
        ("read", found.before.reads, found.during.reads),
    ):
        told = [
            f"p{share * 100:.0f} {percentile(before, share):.1f} -> {percentile(during, share):.1f} ms"
            for share in SHARES
        ]
        print(f"{name}: {', '.join(told)}, {percentile(during, 0.95) / percentile(before, 0.95):.2f} times at the p95")
    for name, one in (("without", found.before), ("with", found.during)):
        print(f"{name} the flood the gateway worked {one.worked:.1f} s and waited {one.starved:.1f} s for a core")
    print(f"flood: {found.during.flood_rate:.0f}/s, {found.during.flood_refused:.0%} refused")


if __name__ == "__main__":
    main()
