"""What one conversation and all of them come to."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SwapSizes:
    """Served tokens of the context around one swap."""

    before: int
    """As it was last served before."""
    after: int
    """With the turn that made the swap."""
    parts: dict[str, int]
    """Raw tokens of what stands there then: the parts of the head, and ``window``."""
    turns: int
    """Of the window."""

    @property
    def share(self) -> float:
        return self.after / self.before


@dataclass(slots=True)
class BuildCount:
    """What became of the builds that were begun."""

    used: int = 0
    """By a swap."""
    replaced: int = 0
    """By a fresher one before any swap."""
    waiting: int = 0
    """A standby when the conversation ended."""
    failed: Counter[str] = field(default_factory=Counter)
    """By reason: begun, but nothing came of it."""

    @property
    def unused(self) -> int:
        return self.waiting + self.failed.total()

    @property
    def begun(self) -> int:
        return self.used + self.replaced + self.unused

    def add(self, other: "BuildCount") -> None:
        self.used += other.used
        self.replaced += other.replaced
        self.waiting += other.waiting
        self.failed.update(other.failed)


@dataclass(slots=True)
class TalkFigures:
    """One conversation, played to its end."""

    name: str
    tokens: int
    turns: int
    hard_limit: int
    swaps: list[SwapSizes] = field(default_factory=list)
    builds: BuildCount = field(default_factory=BuildCount)
    engine: Counter[str] = field(default_factory=Counter)
    """Summaries of the first engine by its name, and its failures by code: those builds its stand-in took."""
    crossings: int = 0
    ready: int = 0
    over_limit: int = 0
    """Contexts that were served above the limit."""
    read_tokens: int = 0
    written_tokens: int = 0
    """By a model, as it reported them."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """All conversations of one limit together."""

    hard_limit: int
    talks: int
    swaps: int
    median: float
    p90: float
    builds: BuildCount
    engine: Counter[str]
    crossings: int
    ready: int
    over_limit: int

    @property
    def unused_share(self) -> float:
        """Of all builds. One that a fresher one replaced counts as a build, not as unused."""
        return self.builds.unused / max(1, self.builds.begun)

    @property
    def unused_share_strict(self) -> float:
        """The same with the replaced ones left out altogether."""
        return self.builds.unused / max(1, self.builds.begun - self.builds.replaced)


def summed(hard_limit: int, talks: Sequence[TalkFigures]) -> Reduction:
    builds = BuildCount()
    engine: Counter[str] = Counter()
    for talk in talks:
        builds.add(talk.builds)
        engine.update(talk.engine)
    shares = [swap.share for talk in talks for swap in talk.swaps]
    return Reduction(
        hard_limit,
        len(talks),
        len(shares),
        statistics.median(shares) if shares else float("nan"),
        percentile(shares, 0.9),
        builds,
        engine,
        sum(talk.crossings for talk in talks),
        sum(talk.ready for talk in talks),
        sum(talk.over_limit for talk in talks),
    )


def percentile(values: Iterable[float], share: float) -> float:
    """The value that ``share`` of them do not exceed; nan without any."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def part_shares(talks: Sequence[TalkFigures]) -> dict[str, float]:
    """Mean share of the context after a swap that each part takes of the hard limit."""
    sums: Counter[str] = Counter()
    swaps = 0
    for talk in talks:
        for swap in talk.swaps:
            swaps += 1
            sums.update({part: tokens / talk.hard_limit for part, tokens in swap.parts.items()})
    return {part: total / max(1, swaps) for part, total in sums.items()}
