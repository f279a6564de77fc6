"""What a replay prints at its end, for people."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefold.replay.figures import Figures, percentile


class Run(NamedTuple):
    """One file under one limit."""

    name: str
    figures: Figures


def print_result(console: Console, figures: Figures) -> None:
    """The figures of one replay, one a line, then its faults."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, told in {**_counts(figures), **_measurements(figures)}.items():
        table.add_row(Text(name, "bright_black"), told)
    console.print(table)
    print_faults(console, figures.faults)


def _counts(figures: Figures) -> dict[str, str]:
    over, invalid, reads = figures.over_limit_reads, figures.invalid_contexts, len(figures.context_read_ms)
    crossings = f"{figures.ready_crossings} of {figures.limit_crossings} limit crossings"
    return {
        "turns": f"{figures.turns:,}, {figures.lost_turns} lost",
        "context": f"{figures.max_context_tokens:,} tokens at most, of {figures.hard_limit_tokens:,}",
        "reads": f"{reads:,}: {over} over the limit, {invalid} invalid",
        "swaps": f"{figures.swaps}; {crossings} found a standby ready",
        "degraded": f"after {figures.degraded} turns",
    }


def _measurements(figures: Figures) -> dict[str, str]:
    share = max(figures.turn_tokens, default=0) / figures.hard_limit_tokens
    return {
        "largest turn": f"{share:.0%} of the limit",
        "append": f"{_times(figures.append_ms)}   ({figures.durability})",
        "swap append": _times(figures.swap_append_ms),
        "context read": _times(figures.context_read_ms),
    }


def print_faults(console: Console, faults: Sequence[str]) -> None:
    """Each fault on a line of its own."""
    for fault in faults:
        console.print(Text(f"  {fault}", "red"))


def print_runs(console: Console, runs: Sequence[Run]) -> None:
    """A table with a line for each file and limit, the faults, and what the standbys did."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bright_black")
    table.add_column("file", no_wrap=True)
    for heading in ("limit", "turns", "swaps", "degraded", "crossed", "ready", "in time", "over", "invalid", "lost"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in sorted(runs, key=lambda one: (one.name, one.figures.hard_limit_tokens)):
        table.add_row(*_cells(run), style="" if run.figures.is_clean else "red")
    console.print(table)
    for run in runs:
        if run.figures.faults:
            console.print(Text(f"{run.name}, limit {run.figures.hard_limit_tokens:,}", "bold"))
            print_faults(console, run.figures.faults)
    console.print()
    console.print(judgement(runs))


def judgement(runs: Sequence[Run]) -> str:
    """What the ready ratio is where the background had enough time, and how often the ladder served."""
    crossings = [crossing for run in runs for crossing in run.figures.judged_crossings]
    ready = sum(crossing.is_ready for crossing in crossings)
    ratio = f"{ready} of {len(crossings)} ({ready / len(crossings):.1%})" if crossings else "none"
    degraded, turns = sum(run.figures.degraded for run in runs), sum(run.figures.turns for run in runs)
    return (
        f"In time (no turn over a tenth of the limit, 2 s or more from soft to hard at 20 turns/s) a standby was "
        f"ready at {ratio} of the crossings. The ladder served after {degraded:,} of {turns:,} turns."
    )


def _cells(run: Run) -> list[str]:
    figures = run.figures
    ratio, judged = figures.standby_ready_ratio, figures.judged_crossings
    return [
        run.name,
        f"{figures.hard_limit_tokens:,}",
        str(figures.turns),
        str(figures.swaps),
        str(figures.degraded),
        str(figures.limit_crossings),
        "–" if ratio is None else f"{ratio:.0%}",
        f"{sum(crossing.is_ready for crossing in judged)}/{len(judged)}" if judged else "–",
        str(figures.over_limit_reads),
        str(figures.invalid_contexts),
        str(figures.lost_turns),
    ]


def _times(samples: Sequence[float]) -> str:
    if not samples:
        return "–"
    return f"p50 {percentile(samples, 0.5):.1f} ms, p99 {percentile(samples, 0.99):.1f} ms, {len(samples):,} times"
