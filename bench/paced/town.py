"""Every process of the run: Redis twice, gateway, dispatcher, compact workers, and the model's server."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.paced.figures import BuildEvents
from bench.paced.model import RunningModel
from bench.paced.plan import Scale
from prefold.stack.embedded import EmbeddedStack, temporary_stack

NOWHERE = "http://127.0.0.1:9"
"""No vectors: nothing is embedded here."""


@contextmanager
def paced_stack(scale: Scale, model: RunningModel) -> Iterator[EmbeddedStack]:
    """``prefold up`` without embedding and vectors, on a temporary folder; its summaries are asked of ``model``."""
    with temporary_stack(
        embed_workers=0,
        compact_workers=scale.workers,
        memory_workers=0,
        qdrant_url=NOWHERE,
        summarizer="anthropic",
        anthropic_api_key=SecretStr("paced"),
        anthropic_base_url=model.url,
    ) as stack:
        yield stack


def cpu_seconds(pids: Sequence[int]) -> dict[int, float]:
    """User and system time of processes that run now."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = {}
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[pid] = (int(fields[11]) + int(fields[12])) / ticks
    return found


def build_events(logs: Path) -> BuildEvents:
    """Out of the workers' logs."""
    made, seconds, failed, engines, committed = 0, list[float](), Counter[str](), Counter[str](), 0
    for event in _events(logs):
        if event["event"] == "build_made":
            made += 1
            seconds.append(event["seconds"])
            engines[event["engine"]] += 1
        elif event["event"] == "build_committed":
            committed += 1
        elif event["event"] in ("build_failed", "build_lost", "build_stale"):
            failed[str(event.get("reason", event["event"]))] += 1
    return BuildEvents(made, committed, dict(engines), dict(failed), tuple(seconds))


def _events(logs: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(logs.glob("worker-compact*.log*")):
        for line in path.read_text("utf-8", "replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)
