"""What a run says on the terminal, and whether it keeps its promises."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.paced.figures import BuildEvents, ModelCall, PacedFigures, Stalls
from bench.paced.plan import SOFT_SHARE, SOFT_TO_HARD_SECONDS, Scale
from bench.reduction.figures import percentile

LEAST_READY = 0.99
"""Promised share of the crossings that find a standby."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run whole."""

    scale: Scale
    seed: int
    figures: PacedFigures
    builds: BuildEvents
    calls: tuple[ModelCall, ...]
    stalls: Stalls
    run_seconds: float
    cpu_share: dict[str, float]
    """Of one core, by process."""
    load: tuple[float, float]
    """The machine's, one minute's average, before and after."""

    def misses(self) -> list[str]:
        """Promises that the run does not keep."""
        found, figures = [], self.figures
        late = figures.crossings - figures.ready
        if late > max(1, (1 - LEAST_READY) * figures.crossings):  # one of a few says nothing of a share
            found.append(f"ready at {figures.ready_share:.2%} of the crossings")
        if figures.crossings < self.scale.sessions:
            found.append(f"{figures.crossings} crossings of {self.scale.sessions} sessions")
        if figures.over_limit:
            found.append(f"{figures.over_limit} contexts over the limit")
        if figures.lost_turns:
            found.append(f"{figures.lost_turns} turns lost")
        if figures.errors:
            found.append(f"errors: {dict(figures.errors)}")
        if self.waiting_appends:
            found.append(f"{self.waiting_appends} appends took as long as a call of the model")
        return found

    @property
    def call_median_ms(self) -> float:
        """Of the calls that were answered, in the run's time."""
        return percentile((call.seconds for call in self.calls if call.is_answered), 0.5) * 1000

    @property
    def waiting_appends(self) -> int:
        """Appends that look as if they had waited for the build of their session that was under way.

        One that waits for a model takes as long as what is left of the call: half of them longer than half of a usual
        one. A busy machine delays all appends alike, so those count that are as slow beyond what the appends without
        a build lead to expect, twice that and a few allowed for chance.
        """
        slow = self.call_median_ms / 2000
        idle, building = self.figures.idle_seconds, self.figures.building_seconds
        expected = len(building) * sum(one > slow for one in idle) / max(1, len(idle))
        found = sum(one > slow for one in building)
        return 0 if found <= 2 * expected + (3 if expected else 0) else found - round(expected)


def told(outcome: Outcome) -> str:
    """For people."""
    width = 28
    rows = [f"{name:<{width}} {text}" for part in (_setting, _users, _background) for name, text in part(outcome)]
    return "\n".join([*rows, *(f"not ready: {missed}" for missed in outcome.figures.missed[:_MOST_TOLD])])


_Rows = Iterator[tuple[str, str]]
_MOST_TOLD = 20


def _setting(outcome: Outcome) -> _Rows:
    scale = outcome.scale
    threshold = "adaptive" if scale.soft_ratio is None else f"{scale.soft_ratio:g} of it"
    yield "seed", f"PREFOLD_SEED={outcome.seed}"
    yield "sessions", f"{scale.sessions}, {scale.http_share:.0%} of them over HTTP; {scale.workers} compact workers"
    yield "limit", f"{scale.hard_limit} tokens; soft threshold {threshold}"
    yield "time", f"× {scale.time_factor:.3g}"
    yield (
        "model",
        f"median {scale.model_median_seconds:g} s, p95 {scale.model_p95_seconds:g} s; {scale.fail_share:.0%} of calls fail",
    )
    yield "pace", f"at least {SOFT_TO_HARD_SECONDS:g} s from {SOFT_SHARE:g} of the limit to all of it"
    yield (
        "machine",
        f"load {outcome.load[0]:.1f} before, {outcome.load[1]:.1f} after; the run took {outcome.run_seconds:.0f} s",
    )
    yield "CPU of a core", ", ".join(f"{name} {share:.0%}" for name, share in outcome.cpu_share.items())


def _users(outcome: Outcome) -> _Rows:
    figures, stalls = outcome.figures, outcome.stalls
    yield (
        "crossings of the limit",
        f"{figures.crossings}, a standby was ready at {figures.ready} ({figures.ready_share:.2%})",
    )
    yield "contexts over the limit", f"{figures.over_limit} of {figures.turns} answers and {figures.reads} reads"
    yield "lost turns", f"{figures.lost_turns} of {figures.turns}"
    yield "errors", f"{dict(figures.errors) or 0}; appends made again {figures.retries}"
    yield "append, no build under way", _times(figures.idle_ms)
    yield "append, a build under way", _times(figures.building_ms)
    yield "append that crosses", _times(figures.crossing_ms)
    yield "appends that waited", f"{outcome.waiting_appends} for a model"
    yield "blocking would have cost", f"{stalls.total / 3600:.1f} h of waiting in all, here 0"
    yield "  for each swap", f"median {stalls.swap_median:.0f} s, p95 {stalls.swap_p95:.0f} s"
    yield "  for each session", f"median {stalls.session_median:.0f} s, p95 {stalls.session_p95:.0f} s"


def _background(outcome: Outcome) -> _Rows:
    figures, builds = outcome.figures, outcome.builds
    answered = [call.seconds / outcome.scale.time_factor for call in outcome.calls if call.is_answered]
    yield "model calls", f"{len(outcome.calls)}, of them failed {len(outcome.calls) - len(answered)}"
    yield "  seconds of the story", f"median {percentile(answered, 0.5):.1f}, p95 {percentile(answered, 0.95):.1f}"
    yield "  of the run", f"median {outcome.call_median_ms:.0f} ms"
    yield "builds made", f"{builds.made} {builds.by_engine}; ended otherwise {builds.failed or 0}"
    yield (
        "  committed",
        f"{builds.committed} for {figures.swaps} swaps; standbys left at the end {figures.unused_standbys}",
    )
    yield "from soft to hard", f"{figures.soft_to_hard_seconds} s of the story"
    yield "soft threshold at the end", f"{figures.soft_ratio} of the limit"
    yield "latest turn of the driver", f"{figures.late_turn_seconds * 1000:.0f} ms behind its time"


def _times(found: dict[str, float]) -> str:
    if not found:
        return "none"
    return f"{found['n']:.0f}: p50 {found['p50']:.1f} ms, p99 {found['p99']:.1f} ms, longest {found['max']:.0f} ms"
