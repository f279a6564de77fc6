"""What is printed."""

from collections.abc import Iterable, Sequence

from prefold.pricing import BilledTokens, Comparison, Price, PriceTable, Rates, Workload
from prefold.storage.spending import DaySpending
from prefold.storage.types import ModelUsage

__all__ = ["comparison_lines", "price_lines", "session_lines", "spending_lines", "usd"]

_SPENT = (
    "tenant",
    "day",
    "calls",
    "input",
    "cache read",
    "cache write",
    "output",
    "USD",
    "set aside",
    "failed",
    "notes",
)
_SESSIONS = ("session", "calls", "input", "cache read", "cache write", "output", "USD")
_PRICES = ("model", "input", "write 5m", "write 1h", "read", "output", "from")


def usd(micro_usd: float) -> str:
    """Dollars with the digits that a single call needs."""
    return f"{micro_usd / 1_000_000:.6f}"


def spending_lines(days: Sequence[DaySpending]) -> list[str]:
    """A line a tenant and day with any call, and the sum."""
    spent = [day for day in days if day.usage.calls or day.failed or day.held_micro_usd]
    rows = [
        (
            _plain(day.tenant),
            day.day.isoformat(),
            *_counts(day.usage),
            usd(day.held_micro_usd),
            str(day.failed),
            _notes(day),
        )
        for day in spent
    ]
    total = sum(day.usage.micro_usd for day in spent)
    return [*_table(_SPENT, rows), f"{usd(total)} USD in {sum(day.usage.calls for day in spent)} calls"]


def _notes(day: DaySpending) -> str:
    notes = []
    if day.budget_micro_usd is not None:
        notes.append(f"budget {usd(day.budget_micro_usd)}")
    if day.unclear:
        notes.append(f"{day.unclear} counted as estimated")
    if day.unpriced:
        notes.append(f"{day.unpriced} without a price")
    return ", ".join(notes)


def session_lines(sessions: Sequence[tuple[str, ModelUsage]]) -> list[str]:
    """A line a session, the dearest first."""
    return _table(_SESSIONS, [(_plain(name), *_counts(usage)) for name, usage in sessions])


def _counts(usage: ModelUsage) -> tuple[str, ...]:
    tokens = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens)
    return (f"{usage.calls:,}", *(f"{count:,}" for count in tokens), usd(usage.micro_usd))


def price_lines(table: PriceTable) -> list[str]:
    """A line a row, two where a price has a step."""
    rows: list[tuple[str, ...]] = []
    for price, origin in table.rows:
        note = f"{origin}{', assumed' if price.assumed else ''}"
        rows.append((price.model, *_rates(price), note))
        if price.above is not None:
            rows.append((f"  above {price.above.input_tokens:,} of input", *_rates(price.above), ""))
    return [
        *_table(_PRICES, rows),
        "USD per million tokens. The first row that fits holds; a date at the end of a model's name does not matter.",
        f"The packaged rows are of {table.as_of}: {table.source}.",
    ]


def _rates(rates: Rates) -> tuple[str, ...]:
    return tuple(
        f"{value:g}"
        for value in (rates.input, rates.cache_write_5m, rates.cache_write_1h, rates.cache_read, rates.output)
    )


def comparison_lines(workload: Workload, chat: Price, small: Price, compared: Comparison) -> list[str]:
    """The arithmetic of both ways, and when the other one would be cheaper."""
    lines = [f"shared prefix, {chat.model}{_assumed(chat)}: one call", *_sum_lines(chat, [compared.prefix_calls])]
    count = len(compared.small_calls)
    lines += [f"own prompt, {small.model}{_assumed(small)}: {count} call{'s' if count > 1 else ''}"]
    lines += _sum_lines(small, compared.small_calls)
    cheaper = "the shared prefix" if compared.prefix_is_cheaper else "the small model"
    low, high = sorted((compared.prefix, compared.small))
    factor = f", {high / low:.1f} times" if low and high != low else ""
    lines.append(f"{cheaper} is cheaper{factor}" if high != low else "both cost the same")
    if compared.break_even_new_tokens is None:
        lines.append(
            f"break-even: none; even to read all {workload.context_tokens:,} tokens anew costs the small model less"
        )
    else:
        lines.append(
            f"break-even: the shared prefix pays from {compared.break_even_new_tokens:,} tokens of new source on"
        )
    return lines


def _sum_lines(price: Price, calls: Sequence[BilledTokens]) -> list[str]:
    total = 0
    lines = []
    parts = (
        ("read from cache", "cache_read_tokens", "cache_read"),
        ("written to cache", "cache_write_5m_tokens", "cache_write_5m"),
        ("input", "input_tokens", "input"),
        ("output", "output_tokens", "output"),
    )
    rates = price.rates_for(max(call.prompt_tokens for call in calls))
    for name, tokens_of, rate_of in parts:
        tokens, rate = sum(getattr(call, tokens_of) for call in calls), getattr(rates, rate_of)
        if tokens:
            lines.append(f"  {name:<17}{tokens:>12,} x {rate:>7g} / 1,000,000 = {usd(tokens * rate):>12} USD")
    total = sum(price.cost(call) for call in calls)
    return [*lines, f"  {'together':<17}{'':>35}= {usd(total):>12} USD"]


def _assumed(price: Price) -> str:
    return " (assumed price)" if price.assumed else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns as wide as they have to be; numbers to the right."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    left = {
        column for column, name in enumerate(head) if name in ("tenant", "day", "session", "model", "from", "notes")
    }
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _plain(text: str) -> str:
    """Without what a terminal would follow."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
