"""What is simulated. Every number has the meaning that it has in the product or in ``bench paced``."""

import math
from dataclasses import dataclass

from prefold.storage import limits


@dataclass(frozen=True, slots=True)
class Scenario:
    """Sessions, the model behind them, and the workers between the two. Times in seconds, sizes in raw tokens."""

    sessions: int = 1_000
    spread_seconds: float = 600.0
    """Sessions begin evenly within this time."""
    limit_tokens: int = 4_000
    turn_tokens: tuple[int, int] = (60, 200)
    """Evenly between these."""
    seconds_per_token: float = 0.18
    """Of the fastest session."""
    slowest: float = 1.5
    """A session's pace is between the fastest and this many times slower."""
    swaps: tuple[float, ...] = (0.8, 0.15, 0.05)
    """Shares of the sessions that go on for one swap, two, three."""
    soft_ratio: float | None = None
    """None: adaptive, as the product does it."""
    prior_seconds: float = 180.0
    """What the adaptive threshold takes for a build's time while none was measured."""
    model_median_seconds: float = 20.0
    model_p95_seconds: float = 60.0
    """Of a model's call: log-normal."""
    calls_per_build: float = 1.0
    """One after the other; 1.1: every tenth build makes two."""
    fail_share: float = 0.0
    """Of the calls; each is made again after ``retry_seconds``."""
    retry_seconds: float = 2.0
    workers: int = 2
    builds_at_once: int = 64
    """In one worker."""
    build_cpu_seconds: float = 0.05
    """That a build computes, on its worker's one core."""
    notice_seconds: float = 0.1
    """From the append that wants a build to the worker's ticket, when a worker is free (measured: 0.04)."""
    head_share: float = 0.2
    """Of the limit that head (first message, summary, ledger) takes after a swap."""
    keep_turns: int = limits.DEFAULT_KEEP_RECENT_TURNS

    @property
    def sigma(self) -> float:
        """Of the logarithm of a call's time."""
        return math.log(self.model_p95_seconds / self.model_median_seconds) / 1.6448536269514722
