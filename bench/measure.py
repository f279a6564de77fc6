"""Interleaved rounds of a thing and its floor, and what comes of them.

These figures are ratios: the machine may be busy, but both sides meet the same noise.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report. ``most``: the ratio that we promise, None where we promise nothing."""

    name: str
    floor_name: str
    unit: str
    value: float
    floor: float
    most: float | None = None
    notes: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times its floor it takes."""
        return self.value / self.floor if self.floor else float("inf")

    @property
    def kept(self) -> bool:
        """False: it misses its promise."""
        return self.most is None or self.ratio <= self.most


@dataclass(frozen=True, slots=True)
class Timed:
    """What one round of calls took."""

    p50_us: float
    p99_us: float
    server_us: float
    """The server's CPU time a call, 0 where it was not asked."""


def timed_calls(call: Callable[[int], object], numbers: Sequence[int], cpu_seconds: Callable[[], float]) -> Timed:
    """Times ``call(number)`` one by one."""
    taken = []
    before = cpu_seconds()
    for number in numbers:
        start = time.perf_counter_ns()
        call(number)
        taken.append(time.perf_counter_ns() - start)
    used = cpu_seconds() - before
    taken.sort()
    return Timed(
        statistics.median(taken) / 1000, taken[int(len(taken) * 0.99)] / 1000, used / max(1, len(numbers)) * 1e6
    )


def median_of(rounds: Sequence[Timed]) -> Timed:
    """The median round, each figure by itself."""
    return Timed(
        statistics.median(one.p50_us for one in rounds),
        statistics.median(one.p99_us for one in rounds),
        statistics.median(one.server_us for one in rounds),
    )
