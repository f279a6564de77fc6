"""The demo and a replay as a person starts them, on a stack of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import descendants, is_running
from tests.support.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
PREFOLD = [sys.executable, "-m", "prefold.cli.main"]


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where the stack puts its data."""
    return tmp_path


def environment(temporary: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(temporary), "COLUMNS": "100"}


@pytest.mark.timeout(120)
def test_the_demo_swaps_serves_nothing_over_the_limit_and_leaves_nothing_behind(temporary: Path) -> None:
    done = subprocess.run(
        [*PREFOLD, "demo", "--json", "--rate", "36"],
        env=environment(temporary),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert line["turns"] == 189
    assert line["swaps"] >= 3
    assert line["max_context_tokens"] <= line["hard_limit_tokens"] == 4000
    assert (line["over_limit_reads"], line["invalid_contexts"], line["lost_turns"]) == (0, 0, 0)
    assert list(temporary.iterdir()) == []


@pytest.mark.timeout(120)
def test_a_plain_replay_of_several_files_ends_with_their_table(temporary: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.jsonl"
    short.write_text("".join((EXAMPLES / "support.jsonl").read_text().splitlines(keepends=True)[:60]))
    files = [str(EXAMPLES / "openai_chat.jsonl"), str(short)]
    command = [*PREFOLD, "replay", *files, "--limits", "2000,8000", "--rate", "0", "--jobs", "2"]
    done = subprocess.run(command, env=environment(temporary), capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[:3] for row in rows[1:5]] == [
        ["openai_chat", "2,000", "12"],
        ["openai_chat", "8,000", "12"],
        ["short", "2,000", "60"],
        ["short", "8,000", "60"],
    ]
    assert all(row[-3:] == ["0", "0", "0"] for row in rows[1:5])


@contextmanager
def running_demo(temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """The demo in a process group of its own, as a shell starts it."""
    with subprocess.Popen(
        [*PREFOLD, "demo", "--plain"],
        env={**environment(temporary), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("number", "to_the_group"),
    [
        pytest.param(signal.SIGINT, True, id="ctrl-c"),
        pytest.param(signal.SIGTERM, False, id="kill", marks=pytest.mark.long),
    ],
)
def test_an_interrupted_demo_leaves_no_process_and_no_file(
    temporary: Path, number: signal.Signals, to_the_group: bool
) -> None:
    with running_demo(temporary) as process:
        assert process.stdout is not None
        assert "turn" in process.stdout.readline()
        children = descendants(process.pid)
        if to_the_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        code = process.wait(20)

    assert code == 130
    assert len(children) >= 6
    wait_until("all children are gone", lambda: not any(is_running(pid) for pid in children))
    assert list(temporary.iterdir()) == []
