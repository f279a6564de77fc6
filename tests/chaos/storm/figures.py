"""What a storm measures."""

import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

SILENCE_SECONDS = 0.5
"""So long without an acknowledged turn, at 50 turns a second from many publishers, is an outage for all."""
_BEFORE_SECONDS = 4
"""So long a killed process may take to be back."""


@dataclass
class Figures:
    """Counts and times of one run. Times are seconds unless a name says otherwise."""

    started_at: float = field(default_factory=time.monotonic)
    turns: int = 0
    append_seconds: list[float] = field(default_factory=list)
    """From the first attempt to the acknowledgement, retries included."""
    read_seconds: list[float] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    """By format and status."""
    failed_attempts: Counter[str] = field(default_factory=Counter)
    """Attempts below the client's retries that had no answer, or a 503, by what they met."""
    in_flight: int = 0
    """Appends that wait for their answer now."""
    deadlines: int = 0
    """Calls that the client gave up, and that were made again with the same ids."""
    found_stored: int = 0
    """Turns that were stored already when a retry came: their first answer was lost."""
    silences: list[tuple[float, str]] = field(default_factory=list)
    """How long nothing was acknowledged, and who had been killed in it or a little before."""
    kills: Counter[str] = field(default_factory=Counter)
    _kills: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=4))
    publishing_seconds: float = 0
    drained_seconds: float = 0
    """From the last kill, or the last turn if that was later."""
    owed_last: str = ""
    """What was done last of all that was owed."""
    notes: dict[str, object] = field(default_factory=dict)
    _acked_at: float | None = None

    def acknowledged(self, turns: int, seconds: float) -> None:
        now = time.monotonic()
        if self._acked_at is not None and now - self._acked_at > SILENCE_SECONDS:
            killed = [name for at, name in self._kills if at > self._acked_at - _BEFORE_SECONDS]
            self.silences.append((now - self._acked_at, ", ".join(killed)))
        self._acked_at = now
        self.turns += turns
        self.append_seconds.append(seconds)

    def killed(self, name: str) -> None:
        self.kills[name] += 1
        self._kills.append((time.monotonic(), name))

    def lines(self) -> list[str]:
        """For people."""
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        silent = sum(seconds for seconds, _ in self.silences)
        longest = "; ".join(f"{seconds:.1f} s ({name})" for seconds, name in sorted(self.silences, reverse=True)[:5])
        speed = self.turns / max(self.publishing_seconds, 0.001)
        published = (
            f"{self.turns:,} turns acknowledged in {self.publishing_seconds:.0f} s ({speed:.1f} a second);"
            f" {self.found_stored} of them had lost their first answer;"
            f" {self.deadlines} calls passed the client's deadline"
        )
        silence = (
            f"no turn acknowledged for over {SILENCE_SECONDS:g} s: {len(self.silences)} times,"
            f" {silent:.1f} s in all; the longest: {longest or 'none'}"
        )
        return [
            published,
            f"{sum(self.kills.values())} SIGKILLs: {kills}",
            f"append ms, retries included: {_percentiles(self.append_seconds)}",
            f"read ms, retries included: {_percentiles(self.read_seconds)}; {_counts(self.reads)}",
            f"attempts that failed: {_counts(self.failed_attempts)}",
            silence,
            f"drained {self.drained_seconds:.1f} s after the last kill or turn, at last {self.owed_last or 'nothing'}",
            *(f"{name}: {value}" for name, value in self.notes.items()),
        ]


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counter.items())) or "none"


def _percentiles(seconds: Sequence[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    shown = {f"p{share:g}": ordered[math.ceil(len(ordered) * share / 100) - 1] for share in (50, 95, 99, 99.9)}
    return ", ".join(f"{name} {value * 1000:,.0f}" for name, value in (shown | {"most": ordered[-1]}).items())
