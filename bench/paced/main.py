"""``./run bench paced``: sessions at their pace, a slow model behind them, and what their users notice."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.paced.plan import MEDIAN_SECONDS, P95_SECONDS, Scale
from bench.paced.report import Outcome, told
from bench.paced.run import run
from bench.reduction.figures import percentile


def main(argv: Sequence[str]) -> int:
    """Exit code 1: a promise is missed."""
    given = _arguments(argv)
    scale = Scale(
        sessions=given.sessions,
        time_factor=1 / given.faster,
        spread_seconds=given.spread,
        workers=given.workers,
        fail_share=given.fail_share,
        soft_ratio=given.soft_ratio,
        http_share=given.http_share,
        model_median_seconds=given.model_median,
        model_p95_seconds=given.model_p95,
    )
    outcome = asyncio.run(run(scale, int(os.environ.get("PREFOLD_SEED", "1"))))
    print(told(outcome))
    if given.json:
        given.json.write_text(json.dumps(_as_json(outcome), indent=1) + "\n", "utf-8")
    misses = outcome.misses()
    print("\nkept" if not misses else "\nMISSED: " + "; ".join(misses))
    return 1 if misses else 0


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "seed": outcome.seed,
        "scale": asdict(outcome.scale),
        "figures": {
            **asdict(outcome.figures),
            "building_seconds": None,
            "idle_seconds": None,
            "errors": dict(outcome.figures.errors),
        },
        "waiting_appends": outcome.waiting_appends,
        "stalls": asdict(outcome.stalls),
        "builds": {
            **asdict(outcome.builds),
            "seconds": {f"p{share}": percentile(outcome.builds.seconds, share / 100) for share in (50, 75, 90, 95)},
        },
        "calls": len(outcome.calls),
        "run_seconds": outcome.run_seconds,
        "load": outcome.load,
        "cpu_share": outcome.cpu_share,
        "misses": outcome.misses(),
    }


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench paced", description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--faster", type=float, default=4.0, help="so many times faster than the story goes the run")
    parser.add_argument(
        "--spread", type=float, default=2160.0, help="sessions begin within so many seconds of the story"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes that write summaries")
    parser.add_argument(
        "--model-median", type=float, default=MEDIAN_SECONDS, help="of the model's calls, in s of the story"
    )
    parser.add_argument("--model-p95", type=float, default=P95_SECONDS, help="likewise")
    parser.add_argument("--fail-share", type=float, default=0.0, help="of the model's calls")
    parser.add_argument("--soft-ratio", type=float, default=None, help="fixed; default: as the product decides")
    parser.add_argument("--http-share", type=float, default=0.2, help="of the sessions, by way of the gateway")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures, as JSON")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
