"""The figures of a replay: what it measured, and the JSON line that it ends with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from prefold.replay.pace import Crossing, judged


def percentile(samples: Sequence[float], share: float) -> float | None:
    """Value below which ``share`` (0 to 1) of the samples lie, between neighbours by line; None without samples."""
    if not samples:
        return None
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def p50_p99(samples: Sequence[float]) -> dict[str, float | None]:
    """Both percentiles, to a microsecond where the samples are milliseconds."""
    return {
        name: None if (value := percentile(samples, share)) is None else round(value, 3)
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }


@dataclass(slots=True)
class Figures:
    """What one replay has counted so far."""

    hard_limit_tokens: int
    turns: int = 0
    swaps: int = 0
    degraded: int = 0
    """Turns after which the context was degraded."""
    limit_crossings: int = 0
    ready_crossings: int = 0
    max_context_tokens: int = 0
    over_limit_reads: int = 0
    invalid_contexts: int = 0
    lost_turns: int = 0
    append_ms: list[float] = field(default_factory=list)
    swap_append_ms: list[float] = field(default_factory=list)
    context_read_ms: list[float] = field(default_factory=list)
    turn_tokens: list[int] = field(default_factory=list)
    model_input_tokens: int = 0
    """Sum of the contexts that the model would have been called with, once before each assistant turn."""
    model_largest: int = 0
    naive_input_tokens: int = 0
    """The same for a backend that sends the whole conversation each time."""
    naive_largest: int = 0
    model_calls: int = 0
    crossings: list[Crossing] = field(default_factory=list)
    durability: str = ""
    faults: list[str] = field(default_factory=list)
    """The first faults, in words."""
    is_whole: bool = True
    """False when an error ended the replay."""

    @property
    def is_clean(self) -> bool:
        """Nothing over the limit, nothing invalid, nothing lost, and played to the end."""
        return self.is_whole and not (self.over_limit_reads or self.invalid_contexts or self.lost_turns)

    def end_early(self, reason: str) -> None:
        """The replay did not reach its end."""
        self.is_whole = False
        self.faults.append(reason)

    @property
    def standby_ready_ratio(self) -> float | None:
        """Share of the limit crossings that found a standby ready."""
        return round(self.ready_crossings / self.limit_crossings, 4) if self.limit_crossings else None

    @property
    def judged_crossings(self) -> list[Crossing]:
        """The crossings that left the background time for a standby."""
        return judged(self.crossings, self.turn_tokens, self.hard_limit_tokens)

    def json_line(self) -> dict[str, Any]:
        """What ``--json`` prints, its members in the documented order."""
        return {
            "turns": self.turns,
            "swaps": self.swaps,
            "degraded": self.degraded,
            "limit_crossings": self.limit_crossings,
            "hard_limit_tokens": self.hard_limit_tokens,
            "max_context_tokens": self.max_context_tokens,
            "over_limit_reads": self.over_limit_reads,
            "invalid_contexts": self.invalid_contexts,
            "lost_turns": self.lost_turns,
            "append_ms": p50_p99(self.append_ms),
            "swap_append_ms": p50_p99(self.swap_append_ms),
            "context_read_ms": p50_p99(self.context_read_ms),
            "standby_ready_ratio": self.standby_ready_ratio,
        }
