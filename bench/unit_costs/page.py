"""The tables of ``docs/scaling.md``, made of the packaged unit costs, so that page and plan never tell two things."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from prefold.planning.arithmetic import planned
from prefold.planning.sheet import Sheet, told
from prefold.planning.unit_costs import load_unit_costs
from prefold.planning.workload import checked
from prefold.pricing import load_prices

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
LOADS = ((1e4, 1e3), (1e5, 1e4), (1e6, 1e5))
"""Sessions, and turns a second."""
MODEL = "claude-haiku-5-5"
LONG_TURNS = 2_000
_HEAD = "| | 10,000 sessions, 1,000 turns/s | 100,000, 10,000 | 1,000,000, 100,000 |\n| --- | --- | --- | --- |\n"
_Rows = Sequence[tuple[str, str, str]]
"""Label, part, line."""
SHORT: _Rows = (
    ("days that a session is kept", "load", "days that a session is kept"),
    ("session store: memory, GB", "session store", "memory"),
    ("shards by memory", "session store", "shards by memory"),
    ("shards by CPU", "session store", "shards by CPU"),
    ("servers, replicas included", "session store", "servers"),
    ("queue stores", "queue store", "servers"),
    ("gateways", "gateways", "processes"),
    ("dispatchers", "dispatchers", "processes"),
    ("embed workers", "embed workers", "processes"),
    ("memory workers", "memory workers", "processes"),
    ("compact workers", "compact workers", "processes"),
    ("vectors: points", "vectors", "points"),
    ("disk, GB", "vectors", "disk"),
    ("memory, GB", "vectors", "memory"),
    ("nodes of 64 GB", "vectors", "nodes"),
    ("cores", "vectors", "cores"),
    ("into gateways, MB/s", "network", "into gateways"),
    ("out of gateways, MB/s", "network", "out of gateways"),
    ("into the session store, MB/s", "network", "into the session store"),
    ("replication, MB/s", "network", "replication"),
)
LONG: _Rows = (
    ("swaps a session", "load", "swaps a session"),
    ("builds a second", "load", "builds"),
    ("model calls in flight", "compact workers", "model calls in flight"),
    ("compact workers", "compact workers", "processes"),
    ("tokens read a build", "model", "tokens read a build"),
    ("cost a day, USD", "model", "cost a day"),
    ("session store: memory, GB", "session store", "memory"),
    ("vectors: points", "vectors", "points"),
)


def tables() -> dict[str, str]:
    """By the name of their markers."""
    return {"short": _table(SHORT, {}), "long": _table(LONG, {"turns_per_session": float(LONG_TURNS)})}


def with_tables(page: str) -> str:
    """The page with what stands between its markers made anew. ``ValueError``: a marker is missing."""
    for name, table in tables().items():
        begin, end = f"<!-- {name}: by ./run bench unit_costs -->\n", f"<!-- {name}: end -->\n"
        before, found_begin, rest = page.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"the page has no place for the table {name!r}")
        page = before + begin + table + end + after
    return page


def _table(rows: _Rows, given: dict[str, float]) -> str:
    return _HEAD + "".join(_lines(rows, [_sheet(*load, given) for load in LOADS]))


def _sheet(sessions: float, turns_per_second: float, given: dict[str, float]) -> Sheet:
    load = checked({"sessions": sessions, "turns_per_second": turns_per_second, **given})
    return planned(load, load_unit_costs(), load_prices().find(MODEL))


def _lines(rows: _Rows, sheets: Sequence[Sheet]) -> Iterator[str]:
    for label, part, name in rows:
        yield f"| {label} | {' | '.join(told(sheet.value(part, name)) for sheet in sheets)} |\n"
