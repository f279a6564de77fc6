"""The model's server as a process: slow by a log-normal distribution, and failing at times."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from bench.paced.figures import ModelCall
from bench.paced.plan import Scale
from bench.reduction.sources import ROOT
from prefold.stack.leash import leashed

_KEPT_CALLS = 1_000_000
_CALLS = 20_000
"""Most that are fetched: the newest."""


@dataclass(frozen=True, slots=True)
class RunningModel:
    """The stand-in for the Messages API that the tests use."""

    url: str
    pid: int

    def calls(self) -> tuple[ModelCall, ...]:
        """Every call that has ended, as the server met it."""
        answer = httpx.get(f"{self.url}/_journal", params={"last": _CALLS}, timeout=60, trust_env=False)
        entries: list[dict[str, Any]] = answer.raise_for_status().json()["last"]
        return tuple(_call(entry) for entry in entries if entry["ended"] is not None)


def _call(entry: dict[str, Any]) -> ModelCall:
    answered = entry["status"] == 200 and entry["fault"] is None and not entry["hung_up"]
    return ModelCall(entry["ended"] - entry["arrived"], answered)


@contextmanager
def running_model(scale: Scale, seed: int) -> Iterator[RunningModel]:
    """As slow, and failing as often, as ``scale`` says."""
    arguments = ["--brain", "faithful", "--fail-share", str(scale.fail_share), "--seed", str(seed)]
    arguments += [
        "--latency-median",
        str(scale.scaled(scale.model_median_seconds)),
        "--latency-p95",
        str(scale.scaled(scale.model_p95_seconds)),
    ]
    with served_model(arguments) as model:
        yield model


@contextmanager
def served_model(arguments: Sequence[str]) -> Iterator[RunningModel]:
    """A process of its own, gone at the end; ``arguments`` of ``python -m tests.support.messages_api``."""
    command = [
        sys.executable,
        "-m",
        "tests.support.messages_api",
        "--port",
        "0",
        "--keep",
        str(_KEPT_CALLS),
        *arguments,
    ]
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    process = subprocess.Popen(
        leashed(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError("the model's server did not start")
        yield RunningModel(url, process.pid)
    finally:
        process.terminate()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()
