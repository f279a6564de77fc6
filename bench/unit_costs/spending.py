"""CPU time of the stack's processes between two moments, without what they spend when nothing happens."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis

from bench.load import cpu_seconds

Pids = Callable[[], dict[str, int]]


@dataclass(slots=True)
class Spent:
    """CPU seconds by process, over idle ones."""

    seconds: Counter[str] = field(default_factory=Counter)

    def us(self, process: str, count: float) -> float:
        """Microseconds of a process for each of ``count`` things; never below 0, which idle noise can bring it to."""
        return max(0.0, self.seconds[process]) / count * 1e6


class Meter:
    """Reads the processes of one stack."""

    def __init__(self, pids: Pids) -> None:
        self._pids = pids
        self._idle: Counter[str] = Counter()

    def learn_idle(self, seconds: float) -> None:
        """What each process spends a second when nothing happens."""
        before, start = self._read(), time.monotonic()
        time.sleep(seconds)
        taken = time.monotonic() - start
        self._idle = Counter({name: used / taken for name, used in _less(self._read(), before).items()})

    @contextmanager
    def measuring(self) -> Iterator[Spent]:
        """Filled in when the block ends."""
        spent = Spent()
        before, start = self._read(), time.monotonic()
        yield spent
        taken = time.monotonic() - start
        for name, used in _less(self._read(), before).items():
            spent.seconds[name] = used - self._idle[name] * taken  # type: ignore[assignment]

    def _read(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._pids().items()}


class Traffic:
    """Bytes into and out of a Redis server, over those of pollers that find nothing."""

    def __init__(self, url: str) -> None:
        self._client = Redis.from_url(url)
        self._idle = (0.0, 0.0)
        self.begin()

    def begin(self) -> None:
        """From now on."""
        self._before, self._start = self._read(), time.monotonic()

    def end_idle(self) -> None:
        """Nothing happened since ``begin``."""
        taken = time.monotonic() - self._start
        received, sent = self.since()
        self._idle = (received / taken, sent / taken)

    def since(self) -> tuple[float, float]:
        """Received and sent since ``begin``; never below 0."""
        taken, now = time.monotonic() - self._start, self._read()
        return (
            max(0.0, now[0] - self._before[0] - self._idle[0] * taken),
            max(0.0, now[1] - self._before[1] - self._idle[1] * taken),
        )

    def _read(self) -> tuple[int, int]:
        stats = self._client.info("stats")
        return int(stats["total_net_input_bytes"]), int(stats["total_net_output_bytes"])


def _less(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: used - before.get(name, 0.0) for name, used in after.items()}


def resident_mb(pid: int) -> float:
    """Memory of a process now."""
    with Path(f"/proc/{pid}/status").open() as status:
        kilobytes = next(line.split()[1] for line in status if line.startswith("VmRSS:"))
    return int(kilobytes) / 1000
