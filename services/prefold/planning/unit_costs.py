"""What one turn, read, search, build and session cost, as ``./run bench unit_costs`` measured it on some machine."""

import dataclasses
import math
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from prefold.errors import ConfigurationError

__all__ = ["UnitCosts", "load_unit_costs"]

_MOST = 1e12
_BOUNDS = {
    "bytes_per_token": (0.01, _MOST),
    "read_text_bytes": (1.0, _MOST),
    "turn_bytes": (1.0, _MOST),
    "after_swap_share": (0.0, 0.99),
}
"""Of what is divided by, and of the share of which a part has to be left."""


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """CPU in microseconds of one core (``_us``), sizes in bytes, memory of one idle process in MB (``_mb``)."""

    gateway_append_us: float
    gateway_read_us: float
    gateway_search_us: float
    redis_turn_us: float
    """All that a turn costs the session store: append, events, marks of the background."""
    redis_read_us: float
    queue_turn_us: float
    dispatcher_turn_us: float
    embed_turn_us: float
    vectors_turn_us: float
    vectors_search_us: float
    memory_turn_us: float
    """Facts and digest at a session's end, for each of its turns."""
    compact_token_us: float
    """Summaries written offline, for each token of a conversation that passes its limit."""
    compact_build_us: float
    log_times_text: float
    """Bytes in Redis over bytes of text: the log, and all beside it that grows with the turns."""
    context_times_spoken: float
    """The same of a context over the text in it, while turns come, and"""
    context_times_rest: float
    """once the session has ended."""
    vector_disk_bytes: float
    vector_memory_bytes: float
    bytes_per_token: float
    http_append_bytes: float
    redis_turn_received_bytes: float
    redis_turn_sent_bytes: float
    redis_read_sent_bytes: float
    """For a read after a turn, as the gateway asks for it."""
    http_read_bytes: float
    """Of the answer, for sessions of"""
    read_text_bytes: float
    """so many bytes of text."""
    builds_per_swap: float
    after_swap_share: float
    """Of the limit that a context takes after a swap."""
    read_share: float
    """Tokens that a model reads over tokens of the conversation."""
    gateway_mb: float
    dispatcher_mb: float
    worker_embed_mb: float
    worker_compact_mb: float
    worker_memory_mb: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures, and where they come from."""

    costs: UnitCosts
    source: str
    turn_bytes: float
    turns: float
    changed: tuple[str, ...] = ()
    """Names that were given by hand."""


def load_unit_costs(path: Path | None = None, given: dict[str, float] | None = None) -> Measured:
    """Those of ``path``, else the packaged ones; ``given`` wins. ``ConfigurationError`` says what is wrong."""
    document = _read(path)
    units, measured = document.get("units"), document.get("measured")
    if not isinstance(units, dict) or not isinstance(measured, dict):
        raise ConfigurationError(f"{_name(path)}: expected the tables [measured] and [units]")
    given = given or {}
    known = [field.name for field in dataclasses.fields(UnitCosts)]
    for name in given:
        if name not in known:
            raise ConfigurationError(f"--unit {name}: no such unit cost; one of {', '.join(known)}", field="--unit")
    values = {name: _number(name, (given | {})[name] if name in given else units.get(name), path) for name in known}
    told = f"{measured.get('date', '?')} on {measured.get('processor', '?')}, {measured.get('cores', '?')} cores"
    return Measured(
        UnitCosts(**values),
        f"{_name(path)}, measured {told} (load {measured.get('load', '?')})",
        _number("turn_bytes", measured.get("turn_bytes"), path),
        _number("turns", measured.get("turns"), path),
        tuple(sorted(given)),
    )


def _read(path: Path | None) -> dict[str, Any]:
    try:
        text = (path or Path(str(files("prefold.planning") / "unit_costs.toml"))).read_text("utf-8")
        return tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"--unit-costs: {_name(path)} cannot be read: {error}", field="--unit-costs"
        ) from error


def _name(path: Path | None) -> str:
    return "the packaged unit costs" if path is None else str(path)


def _number(name: str, value: object, path: Path | None) -> float:
    least, most = _BOUNDS.get(name, (0.0, _MOST))
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not least <= value <= most
    ):
        raise ConfigurationError(f"{_name(path)}: {name} must be a number from {least:g} to {most:g}, not {value!r}")
    return float(value)
