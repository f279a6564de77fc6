"""What all sessions of a run come to, and what blocking compaction would have cost their users."""

import random
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.paced.talk import Crossing, TalkRecord
from bench.reduction.figures import percentile


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request that the model server got."""

    seconds: float
    """Of the run."""
    is_answered: bool


@dataclass(frozen=True, slots=True)
class BuildEvents:
    """What the workers logged."""

    made: int
    committed: int
    by_engine: dict[str, int]
    failed: dict[str, int]
    seconds: tuple[float, ...]
    """Of those made."""


@dataclass(frozen=True, slots=True)
class Stalls:
    """Seconds that users would have waited, in the story's time."""

    total: float
    swap_median: float
    swap_p95: float
    session_median: float
    session_p95: float


@dataclass(slots=True)
class PacedFigures:
    sessions: int = 0
    turns: int = 0
    crossings: int = 0
    ready: int = 0
    swaps: int = 0
    over_limit: int = 0
    lost_turns: int = 0
    reads: int = 0
    retries: int = 0
    """Appends that were made again, because the store did not answer in time."""
    errors: Counter[str] = field(default_factory=Counter)
    idle_ms: dict[str, float] = field(default_factory=dict)
    building_ms: dict[str, float] = field(default_factory=dict)
    crossing_ms: dict[str, float] = field(default_factory=dict)
    building_seconds: list[float] = field(default_factory=list, repr=False)
    """All appends while a build of their session was under way."""
    idle_seconds: list[float] = field(default_factory=list, repr=False)
    """All others."""
    late_turn_seconds: float = 0.0
    soft_to_hard_seconds: dict[str, float] = field(default_factory=dict)
    """In the story's time; from the first turn above the soft threshold."""
    soft_ratio: dict[str, float] = field(default_factory=dict)
    """Where the threshold was at the end of the sessions."""
    missed: list[dict[str, Any]] = field(default_factory=list)
    """Crossings without a standby."""
    unused_standbys: int = 0
    """Of sessions at their end."""

    @property
    def ready_share(self) -> float:
        return self.ready / max(1, self.crossings)


def figures_of(records: Sequence[TalkRecord], time_factor: float) -> PacedFigures:
    found = PacedFigures(sessions=len(records))
    for record in records:
        _add(found, record)
    crossings = [one for record in records for one in record.crossings]
    building = [value for record in records for value in record.building_seconds]
    idle = [value for record in records for value in record.idle_seconds]
    found.idle_ms, found.building_ms = _milliseconds(idle), _milliseconds(building)
    found.crossing_ms = _milliseconds(one.append_seconds for one in crossings)
    found.building_seconds, found.idle_seconds = building, idle
    found.late_turn_seconds = max((record.late_seconds for record in records), default=0.0)
    found.soft_to_hard_seconds = _spread(one.soft_seconds / time_factor for one in crossings)
    found.soft_ratio = _spread(_soft_share(record) for record in records if record.view)
    found.missed = [
        _missed(record, one, time_factor) for record in records for one in record.crossings if not one.ready
    ]
    return found


def _add(found: PacedFigures, record: TalkRecord) -> None:
    found.turns += len(record.sent)
    found.over_limit += record.over_limit
    found.lost_turns += record.missing + record.holes
    found.reads += record.reads
    found.retries += record.retries
    found.errors.update(record.errors)
    if record.view is not None:
        found.crossings += record.view.limit_crossings
        found.ready += record.view.ready_crossings
        found.swaps += record.view.swaps
        found.unused_standbys += record.view.standby is not None


def _soft_share(record: TalkRecord) -> float:
    assert record.view is not None
    return record.view.soft_threshold_tokens / record.view.hard_limit_tokens


def _missed(record: TalkRecord, crossing: Crossing, time_factor: float) -> dict[str, Any]:
    return {
        "session": record.plan.name,
        "at_seconds": round(crossing.at_seconds, 1),
        "soft_seconds": round(crossing.soft_seconds / time_factor, 1),
        "building": crossing.building,
        "error": crossing.error,
    }


def stalls_of(records: Sequence[TalkRecord], calls: Sequence[ModelCall], time_factor: float, seed: int) -> Stalls:
    """Each crossing waits for calls drawn from those that the model server really had, until one is answered."""
    source = random.Random(f"stalls {seed}")
    by_session = [
        [_wait(source, calls) / time_factor for _ in range(record.view.limit_crossings)]
        for record in records
        if record.view is not None and record.view.limit_crossings
    ]
    swaps = [value for session in by_session for value in session]
    sessions = [sum(session) for session in by_session]
    return Stalls(
        sum(swaps),
        percentile(swaps, 0.5),
        percentile(swaps, 0.95),
        percentile(sessions, 0.5),
        percentile(sessions, 0.95),
    )


def _wait(source: random.Random, calls: Sequence[ModelCall]) -> float:
    if not any(call.is_answered for call in calls):
        return 0.0
    waited = 0.0
    while True:
        call = source.choice(calls)
        waited += call.seconds
        if call.is_answered:
            return waited


def _milliseconds(seconds: Iterable[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    if not ordered:
        return {}
    return {
        "n": len(ordered),
        "p50": round(statistics.median(ordered) * 1000, 2),
        "p99": round(percentile(ordered, 0.99) * 1000, 2),
        "max": round(ordered[-1] * 1000, 2),
    }


def _spread(values: Iterable[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {}
    return {
        "least": round(ordered[0], 3),
        "median": round(statistics.median(ordered), 3),
        "most": round(ordered[-1], 3),
    }
