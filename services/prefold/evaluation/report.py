"""What is told at the end: a table with what failed below it, or JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefold.evaluation.cases import Case
from prefold.evaluation.playing import Judged, Outcome
from prefold.evaluation.shapes import Expectation


def print_cases(console: Console, cases: Iterable[Case]) -> None:
    """Names and what they are about."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for case in cases:
        table.add_row(Text(case.name, "bold"), Text(case.about))
    console.print(table)


def print_outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """A line a case, then what is not as expected, then the count."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="bright_black")
    table.add_column("case", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("checks", "turns", "swaps", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("about", overflow="ellipsis", no_wrap=True, ratio=1)
    for outcome in outcomes:
        table.add_row(*_cells(outcome))
    console.print(table)
    for outcome in outcomes:
        _print_faults(console, outcome)
    console.print(Text(f"\n{_count(outcomes)}"))


def outcomes_json(outcomes: Sequence[Outcome], *, seed: int, seconds: float) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "passed": sum(outcome.passed and not outcome.skipped for outcome in outcomes),
        "failed": sum(not outcome.passed for outcome in outcomes),
        "skipped": sum(outcome.skipped is not None for outcome in outcomes),
        "seed": seed,
        "seconds": round(seconds, 1),
        "cases": [_json_of(outcome) for outcome in outcomes],
    }


def told(expected: Expectation) -> str:
    """An expectation in the words of its file."""
    value: object = expected.most_tokens if expected.check == "most_tokens" else expected.texts
    if isinstance(value, list) and len(value) == 1 and expected.check not in ("holds_any", "recalled"):
        value = value[0]
    where = f" in {expected.section}" if expected.section else ""
    return f"{expected.check} {value!r}{where}"


def _cells(outcome: Outcome) -> list[Text | str]:
    mark = (
        Text("skipped", "yellow")
        if outcome.skipped
        else Text("ok", "green")
        if outcome.passed
        else Text("FAILED", "red")
    )
    held = sum(one.fault is None for one in outcome.judged)
    figures = [f"{held}/{outcome.case.checks}", f"{outcome.turns:,}", str(outcome.swaps), f"{outcome.seconds:.1f}"]
    return [Text(outcome.case.name, "bold"), mark, *figures, Text(outcome.case.about)]


def _print_faults(console: Console, outcome: Outcome) -> None:
    faults = [one for one in outcome.judged if one.fault is not None]
    lines = [_fault_line(one) for one in faults]
    lines += [Text(f"  {told}", "red") for told in (outcome.error, outcome.skipped) if told]
    lines += [Text(f"  not erased: {name}", "yellow") for name in outcome.left_behind]
    if lines:
        console.print(Text(f"\n{outcome.case.name}", "bold"))
        for line in lines:
            console.print(line, soft_wrap=True)


def _fault_line(judged: Judged) -> Text:
    head = f"  steps[{judged.step}] {judged.asked!r}: {told(judged.expected)}: "
    return Text.assemble(head, (str(judged.fault), "red"))


def _count(outcomes: Sequence[Outcome]) -> str:
    skipped = sum(outcome.skipped is not None for outcome in outcomes)
    passed = sum(outcome.passed for outcome in outcomes) - skipped
    return f"{passed} of {len(outcomes) - skipped} cases passed" + (f", {skipped} skipped" if skipped else "")


def _json_of(outcome: Outcome) -> dict[str, Any]:
    return {
        "case": outcome.case.name,
        "passed": outcome.passed and not outcome.skipped,
        "skipped": outcome.skipped,
        "error": outcome.error,
        "turns": outcome.turns,
        "swaps": outcome.swaps,
        "seconds": round(outcome.seconds, 2),
        "checks": [
            {
                "step": one.step,
                "asked": one.asked,
                "expected": one.expected.model_dump(exclude_none=True),
                "passed": one.fault is None,
                "fault": one.fault,
                "tokens": one.tokens,
            }
            for one in outcome.judged
        ],
    }
