"""``./run bench unit_costs``: measures what ``prefold plan`` multiplies, and writes it where the plan reads it."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.unit_costs.machine import this_machine
from bench.unit_costs.measuring import TURN_BYTES, TURNS, measure
from bench.unit_costs.page import PAGE, with_tables
from bench.unit_costs.summaries import summary_costs

FILE = Path(__file__).parents[2] / "services" / "prefold" / "planning" / "unit_costs.toml"


def main(argv: Sequence[str]) -> int:
    """Prints the figures, and with ``--write`` keeps them; ``--page`` tells them in the docs."""
    parser = argparse.ArgumentParser(prog="bench unit_costs", description=__doc__)
    parser.add_argument("--sessions", type=int, default=64, help=f"of {TURNS} turns of {TURN_BYTES} bytes each")
    parser.add_argument("--talks", type=int, default=2, help="recorded conversations whose builds are counted")
    parser.add_argument("--json", action="store_true", help="as JSON on standard output")
    parser.add_argument(
        "--write", nargs="?", const=FILE, type=Path, metavar="FILE", help=f"as TOML; default {FILE.name}"
    )
    parser.add_argument("--page", action="store_true", help="measure nothing: make the tables of docs/scaling.md anew")
    given = parser.parse_args(argv)
    if given.page:
        PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
        return 0
    before = this_machine()
    units = measure(given.sessions) | summary_costs(given.talks)
    measured = {**before, "sessions": given.sessions, "turns": TURNS, "turn_bytes": TURN_BYTES}
    if given.json:
        print(json.dumps({"measured": measured, "units": units}, indent=1))
    else:
        print(as_toml(measured, units), end="")
    if given.write:
        given.write.write_text(as_toml(measured, units), "utf-8")
    return 0


def as_toml(measured: Mapping[str, str | float | int], units: Mapping[str, float]) -> str:
    """Both tables; numbers with four figures."""
    lines = [
        "# Written by `./run bench unit_costs --write`; CPU in microseconds, sizes in bytes, memory in MB.",
        "[measured]",
    ]
    lines += [f"{name} = {json.dumps(value)}" for name, value in measured.items()]
    lines += ["", "[units]", *(f"{name} = {float(f'{value:.4g}'):g}" for name, value in units.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
