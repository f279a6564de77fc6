"""Recorded conversations of other kinds than our example, through the whole stack at small and large limits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(os.environ.get("PREFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))
SAMPLE = ("tau-airline-4-0", "memorybank-zh-emily", "code-sweagent-marshmallow")
"""Tool rounds under a long system prompt; Chinese; large tool results."""
READY_SHARE = 0.95
"""Of the crossings that left the background two seconds or more."""


def replay(*arguments: str) -> list[dict[str, object]]:
    """The JSON line of each replay; its exit code says that nothing was over a limit, invalid or lost."""
    command = [sys.executable, "-m", "prefold.cli.main", "replay", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(lines: list[dict[str, object]]) -> None:
    for line in lines:
        assert (line["over_limit_reads"], line["invalid_contexts"], line["lost_turns"]) == (0, 0, 0), line


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no recorded conversations in {DATA} (PREFOLD_DATA)")
@pytest.mark.timeout(120)
def test_a_sample_of_recorded_conversations_stays_valid_and_within_its_limit() -> None:
    files = [str(DATA / f"{name}.jsonl") for name in SAMPLE]
    lines = replay(*files, "--limits", "2000,8000", "--rate", "0", "--jobs", "2")
    assert len(lines) == 2 * len(SAMPLE)
    check(lines)


@pytest.mark.long
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no recorded conversations in {DATA} (PREFOLD_DATA)")
@pytest.mark.timeout(1800)
def test_every_recorded_conversation_stays_valid_and_within_its_limit() -> None:
    lines = replay("--all", str(DATA), "--limits", "2000,8000,32000", "--jobs", "3")
    assert len(lines) == 3 * len(list(DATA.glob("*.jsonl")))
    check(lines)
    crossings = sum(int(str(line["crossings_in_time"])) for line in lines)
    ready = sum(int(str(line["ready_in_time"])) for line in lines)
    assert ready >= READY_SHARE * crossings
