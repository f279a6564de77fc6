"""``prefold plan``: what a load needs, with the arithmetic."""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from prefold.errors import ConfigurationError
from prefold.planning.arithmetic import planned
from prefold.planning.sheet import Sheet, told
from prefold.planning.unit_costs import Measured, load_unit_costs
from prefold.planning.workload import Workload, checked
from prefold.pricing import Price, load_prices

__all__ = ["main"]

_DESCRIPTION = """Says what a load needs: servers, processes by kind, memory, model calls in flight, vectors, network and
cost a day, each line with its arithmetic. The unit costs were measured on one machine (`./run bench unit_costs`); measure
on yours and give the file. A plan is a beginning: run the load at a tenth before you trust it."""


def main(argv: Sequence[str]) -> int:
    """0. Raises ``ConfigurationError`` for what cannot be planned."""
    given = _parser().parse_args(argv)
    asked = {
        field.name: value for field in dataclasses.fields(Workload) if (value := getattr(given, field.name)) is not None
    }
    load = checked(asked)
    measured = load_unit_costs(given.unit_costs, dict(given.unit))
    sheet = planned(load, measured, _price(given.model, load, given.prices_file))
    print(_as_json(load, measured, sheet) if given.json else as_text(load, measured, sheet))
    return 0


def _price(model: str | None, load: Workload, prices_file: Path | None) -> Price | None:
    if model is None or not load.model_seconds:
        return None
    price = load_prices(prices_file).find(model)
    if price is None:
        raise ConfigurationError(f"--model: there is no price for {model!r}; see prefold cost prices", field="--model")
    return price


def as_text(load: Workload, measured: Measured, sheet: Sheet) -> str:
    """A table a part: name, value, unit, arithmetic."""
    out = [f"unit costs: {measured.source}"]
    if measured.changed:
        out.append(f"given by hand: {', '.join(measured.changed)}")
    for part, lines in groupby(sheet.lines, key=lambda line: line.part):
        out += ["", part]
        out += [f"  {line.name:<28}{told(line.value):>14} {line.unit:<7} = {line.arithmetic}" for line in lines]
    out += ["", f"For {told(load.sessions)} sessions and {told(load.turns_per_second)} turns/s: {summary(sheet)}."]
    return "\n".join(out)


def summary(sheet: Sheet) -> str:
    """One sentence of what to set up."""
    wanted = (
        ("session store", "servers", "Redis servers"),
        ("gateways", "processes", "gateways"),
        ("dispatchers", "processes", "dispatchers"),
        ("embed workers", "processes", "embed workers"),
        ("compact workers", "processes", "compact workers"),
        ("memory workers", "processes", "memory workers"),
        ("vectors", "nodes", "vector nodes"),
    )
    return ", ".join(f"{told(sheet.value(part, name))} {text}" for part, name, text in wanted)


def _as_json(load: Workload, measured: Measured, sheet: Sheet) -> str:
    document = {
        "workload": dataclasses.asdict(load),
        "unit_costs": {"source": measured.source, "changed": measured.changed, **dataclasses.asdict(measured.costs)},
        "lines": [dataclasses.asdict(line) for line in sheet.lines],
    }
    return json.dumps(document, indent=1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prefold plan", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for field in dataclasses.fields(Workload):
        flag = "--" + field.name.replace("_", "-")
        text = f"{field.metadata['text']}; {told(float(str(field.default)))} if not said"
        parser.add_argument(flag, type=_number, metavar="N", help=text)
    parser.add_argument("--model", help="model that writes the summaries, by the price table; none: offline")
    parser.add_argument("--prices-file", type=Path, metavar="FILE", help="prices that go before the packaged ones")
    parser.add_argument(
        "--unit-costs", type=Path, metavar="FILE", help="figures of your machine, as the bench wrote them"
    )
    parser.add_argument(
        "--unit", type=_unit, action="append", default=[], metavar="NAME=N", help="one unit cost; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _number(text: str) -> float:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error


def _unit(text: str) -> tuple[str, float]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=NUMBER")
    return name, _number(value)
