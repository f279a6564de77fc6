"""What is to be carried: what an operator says of the load, checked before anything is computed from it."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from prefold.errors import ConfigurationError

__all__ = ["Workload", "checked"]


def _given(default: float, least: float, most: float, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"least": least, "most": most, "text": text})


@dataclass(frozen=True, slots=True)
class Workload:
    """The load at its peak. Each field is a flag of the same name."""

    sessions: float = _given(1e6, 1, 1e10, "sessions kept at once")
    turns_per_second: float = _given(1e4, 0.001, 1e8, "turns appended a second, at the peak")
    turn_bytes: float = _given(600, 1, 1_048_576, "text of a turn, in bytes")
    turns_per_session: float = _given(60, 1, 1e7, "turns of a session in its whole life")
    reads_per_turn: float = _given(0.5, 0, 100, "context reads a turn; one for each of the user's is 0.5")
    search_share: float = _given(0.2, 0, 1, "reads that ask for recall (query=), and searches, of all reads")
    embed_share: float = _given(0.8, 0, 1, "turns that are worth a vector")
    limit_tokens: float = _given(100_000, 1_000, 10_000_000, "hard limit of a session, in tokens")
    busy_share: float = _given(0.6, 0.05, 0.95, "part of a core, or of a store's memory, that the plan may use")
    shard_gb: float = _given(32, 0.25, 4_096, "memory of one Redis server, in GB")
    vector_node_gb: float = _given(64, 0.25, 4_096, "memory of one Qdrant node, in GB")
    replicas: float = _given(1, 0, 5, "replicas of each Redis primary, and of each vector")
    model_seconds: float = _given(20, 0, 3_600, "mean time of a model call, in s; 0: summaries are written offline")
    builds_at_once: float = _given(64, 1, 1_024, "summaries under way in one compact worker")
    summary_tokens: float = _given(1_000, 50, 128_000, "what a model writes at a build, in tokens")
    peak_to_mean: float = _given(3, 1, 1_000, "peak over the mean of a day: cost is that of the mean")


def checked(given: dict[str, float]) -> Workload:
    """The workload, with defaults. ``ConfigurationError`` names what cannot be, and what cannot be together."""
    for field in dataclasses.fields(Workload):
        value = given.get(field.name, float(str(field.default)))
        least, most = field.metadata["least"], field.metadata["most"]
        if not math.isfinite(value) or not least <= value <= most:
            raise _silly(field.name, f"{value:g} is not from {least:g} to {most:g}")
    load = Workload(**given)
    if load.turns_per_second > 2 * load.sessions:
        raise _silly(
            "turns_per_second",
            f"{load.turns_per_second / load.sessions:,.3g} turns a second in every session: no conversation is that fast",
        )
    if load.turns_per_second * 366 * 86_400 < load.sessions:
        raise _silly("turns_per_second", "a session would have less than one turn a year")
    if load.turn_bytes / 8 > load.limit_tokens:
        raise _silly("turn_bytes", f"one turn would be more than the limit of {load.limit_tokens:,.0f} tokens")
    return load


def _silly(name: str, problem: str) -> ConfigurationError:
    flag = "--" + name.replace("_", "-")
    return ConfigurationError(f"{flag}: {problem}", field=flag)
