"""The end of the demo: what the model would see, what is left of the early facts, and what it all cost."""

from typing import NamedTuple

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from prefold.client import Context
from prefold.replay.charts import FAINT
from prefold.replay.figures import Figures, percentile
from prefold.replay.sections import print_sections, sections_of
from prefold.replay.tables import print_faults


class Fact(NamedTuple):
    """Something that the customer said in the first half, and that must not get lost."""

    told: str
    value: str
    """As it was written; found whatever the case of its letters."""


FACTS = (
    Fact("order", "LF-4827-19306"),
    Fact("e-mail", "dana.kowalczyk@example.org"),
    Fact("constraint", "NEVER deliver anything to the neighbour"),
    Fact("fallback", "Locker 418"),
    Fact("deadline", "friday the 18th"),
    Fact("correction", "I meant the 14-inch one"),
    Fact("budget", "950 euro"),
    Fact("allergy", "nickel allergy"),
)


def print_end(console: Console, context: Context, figures: Figures) -> None:
    """Everything that is to be said when the last turn is stored."""
    _heading(console, f"What the model sees after {figures.turns} turns")
    print_sections(console, context)
    _heading(console, "What the customer said early")
    console.print(_facts_table(context))
    _heading(console, "What was sent to the model")
    console.print(_savings_table(figures))
    console.print()
    console.print(_measured(figures))
    print_faults(console, figures.faults)


def where_found(context: Context, value: str) -> list[str]:
    """Names of the sections whose text has ``value``, whatever the case of its letters."""
    wanted = value.casefold()
    return [section.name for section in sections_of(context) if wanted in section.text.casefold()]


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Rule(Text(text, "bold"), align="left", style=FAINT))


def _facts_table(context: Context) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for fact in FACTS:
        found = where_found(context, fact.value)
        where = Text(", ".join(name.replace("_", " ") for name in found) or "gone", FAINT)
        table.add_row(Text("✓", "green") if found else Text("✗", "red"), fact.told, Text(fact.value, "bold"), where)
    return table


def _savings_table(figures: Figures) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style=FAINT)
    table.add_column("")
    for heading in ("calls", "tokens in total", "largest call"):
        table.add_column(heading, justify="right", no_wrap=True)
    calls = f"{figures.model_calls}"
    table.add_row("the whole conversation", calls, f"{figures.naive_input_tokens:,}", f"{figures.naive_largest:,}")
    table.add_row("with Prefold", calls, f"{figures.model_input_tokens:,}", f"{figures.model_largest:,}")
    if figures.naive_input_tokens:
        less = 1 - figures.model_input_tokens / figures.naive_input_tokens
        table.add_row(Text("less", FAINT), "", Text(f"{less:.0%}", "bold green"), "")
    return table


def _measured(figures: Figures) -> Table:
    over, invalid, lost = map(_none, (figures.over_limit_reads, figures.invalid_contexts, figures.lost_turns))
    reads, limit = len(figures.context_read_ms), f"{figures.hard_limit_tokens:,}"
    ready = f"{figures.ready_crossings} of {figures.limit_crossings} with a standby ready"
    times = (f"append {_median(figures.append_ms)}", f"one that swaps {_median(figures.swap_append_ms)}")
    rows = {
        "context": f"{reads} reads, {over} over {limit} tokens, {invalid} invalid for its provider",
        "log": f"{figures.turns} turns published, {lost} lost or changed",
        "swaps": f"{figures.swaps}; the limit was crossed {figures.limit_crossings} times, {ready}",
        "medians": f"{', '.join(times)}, read {_median(figures.context_read_ms)} (HTTP, {figures.durability})",
    }
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, told in rows.items():
        table.add_row(Text(name, FAINT), told)
    return table


def _none(count: int) -> str:
    return f"{count}" if count else "none"


def _median(samples: list[float]) -> str:
    median = percentile(samples, 0.5)
    return "–" if median is None else f"{median:.1f} ms"
