"""``python -m bench [append] [swap] [read] … [--json FILE] [--quick]``, and ``python -m bench paced | reduction | recall | beam_context …``."""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from bench.appends import append_rows, client_rows, swap_rows
from bench.background import embed_rows
from bench.builds import build_rows, memory_rows
from bench.direct import direct_rows
from bench.dispatch import dispatch_rows
from bench.embed_throughput import pass_rows
from bench.fairness import fairness_rows
from bench.http import durable_rows, http_rows
from bench.ingest import ingest_rows
from bench.measure import Row
from bench.memory import session_memory_rows
from bench.metrics import metrics_rows
from bench.reads import read_rows
from bench.search_scale import search_rows
from bench.startup import startup_rows

Suite = Callable[[int], list[Row]]
SUITES: Mapping[str, Suite] = {
    "append": lambda scale: [
        *append_rows("fast", 2000 // scale),
        *client_rows(1000 // scale),
        *append_rows("durable", 300 // scale),
    ],
    "direct": lambda scale: direct_rows(3_000 // scale),
    "memory": lambda scale: session_memory_rows(300 // scale),
    "swap": lambda scale: swap_rows(40 // scale),
    "read": lambda scale: read_rows(1000 // scale),
    "http": lambda scale: [*http_rows(9_600 // scale), *durable_rows(3_200 // scale)],
    "metrics": lambda scale: metrics_rows(800 // scale),
    "embed": lambda scale: [*embed_rows(400 // scale), *pass_rows(200 // scale)],
    "search": lambda scale: search_rows(100_000 // scale),
    "startup": lambda scale: startup_rows(1 if scale > 1 else 3),
    "dispatch": lambda scale: dispatch_rows(20_000 // scale),
    "ingest": lambda scale: ingest_rows(5_000 // scale),
    "dispatch_fairness": lambda scale: fairness_rows(50_000 // scale),
    "builds": lambda scale: [*build_rows(), *memory_rows(max(10_000, 30_000 // scale), (1, 16))],
}
"""By name; ``scale`` divides the number of calls."""


SCENARIOS = ("beam_context", "paced", "recall", "reduction", "side_by_side", "simulation", "unit_costs")
"""Each with arguments of its own: ``bench paced --help``. They take minutes, so only those run that are named."""


def main(argv: list[str]) -> int:
    """Prints a table and, with ``--json``, the same as JSON. Exit code 1: a promise is missed."""
    if argv and argv[0] in SCENARIOS:
        scenario = importlib.import_module(f"bench.{argv[0]}.main")
        return int(scenario.main(argv[1:]))
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Each hop against its floor, in one run. Apart from these: bench beam_context, paced, recall, reduction, side_by_side, simulation.",
    )
    parser.add_argument("names", nargs="*", choices=[*SUITES, []], help="all by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also as JSON; '-' for standard output")
    parser.add_argument("--quick", action="store_true", help="a tenth of the calls: to see that it runs")
    given = parser.parse_args(argv)
    rows: list[Row] = []
    for name in given.names or SUITES:
        made = SUITES[name](10 if given.quick else 1)
        rows += made
        for row in made:
            print(_line(row), flush=True)
    if given.json:
        text = json.dumps([{**asdict(row), "ratio": row.ratio, "kept": row.kept} for row in rows], indent=1)
        sys.stdout.write(text + "\n") if str(given.json) == "-" else given.json.write_text(text + "\n", "utf-8")
    return 0 if all(row.kept for row in rows) else 1


def _line(row: Row) -> str:
    promise = "" if row.most is None else f"≤ {row.most:g} {'ok' if row.kept else 'MISSED'}"
    return (
        f"{row.name:<42} {row.value:>10.1f} {row.unit:<8} {row.floor_name:<26} {row.floor:>10.1f}"
        f"   ×{row.ratio:>5.2f}  {promise}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
