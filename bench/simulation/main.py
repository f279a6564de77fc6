"""``./run bench simulation``: where the standby stops being ready, by workers, latencies and thresholds."""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from bench.paced.plan import Scale
from bench.simulation.running import Outcome, simulate
from bench.simulation.scenario import Scenario

READY = 0.99
"""Of the crossings: below this the standby is not ready any more."""
THRESHOLDS: tuple[float | None, ...] = (None, 0.5, 0.6, 0.7, 0.8, 0.85)
WORKERS = (1, 2, 4)
_LONGEST_SECONDS = 900.0
_MORE_TOKENS = 19
"""A paced turn is whole sentences and has overheads: 149 in the mean where 60 to 200 are asked for."""


def main(argv: Sequence[str]) -> int:
    """Prints the edges, or with ``--paced FILE`` the run of that file again, simulated."""
    given = _arguments(argv)
    seed = int(os.environ.get("PREFOLD_SEED", "1"))
    print(f"PREFOLD_SEED={seed}")
    if given.paced:
        return _compare(given.paced, seed)
    base = Scenario(
        sessions=given.sessions,
        spread_seconds=given.spread,
        limit_tokens=given.limit,
        seconds_per_token=1 / given.tokens_per_second,
        builds_at_once=given.builds_at_once,
        fail_share=given.fail_share,
    )
    rows = [
        {
            "workers": workers,
            "soft": soft,
            "median_seconds": edge(replace(base, workers=workers, soft_ratio=soft), seed),
        }
        for workers in WORKERS
        for soft in THRESHOLDS
    ]
    print(f"the slowest model (median, p95 three times that) with {READY:.0%} of the standbys ready, in s")
    print("workers  " + "".join(f"{_named(soft):>10}" for soft in THRESHOLDS))
    for workers in WORKERS:
        found = [row["median_seconds"] for row in rows if row["workers"] == workers]
        print(f"{workers:>7}  " + "".join(f"{median:>10.0f}" for median in found))
    if given.json:
        given.json.write_text(json.dumps({"base": asdict(base), "seed": seed, "rows": rows}, indent=1) + "\n", "utf-8")
    return 0


def edge(scenario: Scenario, seed: int, *, share: float = READY) -> float:
    """The largest median of a model's calls, in s, with which ``share`` of the standbys are ready; found by halving."""

    def is_ready(median: float) -> bool:
        slower = replace(scenario, model_median_seconds=median, model_p95_seconds=3 * median, prior_seconds=3 * median)
        ratio = simulate(slower, seed).ready_ratio
        return ratio is None or ratio >= share

    return largest(is_ready, 1.0, _LONGEST_SECONDS)


def largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest value for which it holds, to 2 %; ``low`` where it never does."""
    if holds(high):
        return high
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def as_simulated(scale: Scale, *, calls_per_build: float = 1.0, notice_seconds: float = 0.1) -> Scenario:
    """A run of ``bench paced`` as a scenario. What the product does by its own clock takes longer in the story."""
    return Scenario(
        sessions=scale.sessions,
        spread_seconds=scale.spread_seconds,
        limit_tokens=scale.hard_limit,
        turn_tokens=(scale.turn_tokens[0] + _MORE_TOKENS, scale.turn_tokens[1] + _MORE_TOKENS),
        seconds_per_token=scale.seconds_per_token,
        slowest=scale.slowest,
        swaps=scale.swaps,
        soft_ratio=scale.soft_ratio,
        model_median_seconds=scale.model_median_seconds,
        model_p95_seconds=scale.model_p95_seconds,
        calls_per_build=calls_per_build,
        fail_share=scale.fail_share,
        retry_seconds=2.0 / scale.time_factor,
        workers=scale.workers,
        build_cpu_seconds=0.05 / scale.time_factor,
        notice_seconds=notice_seconds / scale.time_factor,
    )


def _compare(file: Path, seed: int) -> int:
    real = json.loads(file.read_text("utf-8"))
    scale = Scale(
        **{**real["scale"], "turn_tokens": tuple(real["scale"]["turn_tokens"]), "swaps": tuple(real["scale"]["swaps"])}
    )
    figures = real["figures"]
    builds = sum(count for engine, count in real["builds"]["by_engine"].items() if engine != "extractive")
    calls = (real["calls"] - real["builds"]["by_engine"].get("extractive", 0)) / max(1, builds)
    scenario = as_simulated(scale, calls_per_build=calls)
    print(f"{calls:.2f} calls a build, as the run had them")
    runs = [simulate(scenario, seed + number, time_factor=scale.time_factor) for number in range(20)]
    ratios = sorted(run.ready_ratio or 0.0 for run in runs)
    print(f"real: {json.dumps(figures)[:400]}")
    print(
        f"simulated, 20 seeds: ready {statistics.mean(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); {_told(runs[0])}"
    )
    return 0


def _told(outcome: Outcome) -> str:
    seconds = outcome.build_seconds
    mean = statistics.mean(seconds) if seconds else 0.0
    return f"{outcome.crossings} crossings, {outcome.builds} builds of {mean:.0f} s, {outcome.most_under_way} at once"


def _named(soft: float | None) -> str:
    return "adaptive" if soft is None else f"{soft:g}"


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench simulation", description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--spread", type=float, default=600.0, help="sessions begin within so many seconds")
    parser.add_argument("--limit", type=int, default=4_000, help="tokens")
    parser.add_argument("--tokens-per-second", type=float, default=1 / 0.18, help="of the fastest session")
    parser.add_argument("--builds-at-once", type=int, default=64, help="in one worker")
    parser.add_argument("--fail-share", type=float, default=0.0, help="of the model's calls")
    parser.add_argument("--paced", type=Path, metavar="FILE", help="simulate the run whose JSON `bench paced` wrote")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the edges, as JSON")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
