"""However ``prefold up`` ends, it leaves no process behind. With stand-ins for the roles."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from tests.support.processes import command_line, descendants, is_running, open_files
from tests.support.waiting import wait_until

STUB = Path(__file__).resolve().parent.parent / "support" / "stub_role.py"

UP = """
import functools, json, sys
from prefold.stack import main
from prefold.stack.embedded import EmbeddedStack

stub, data, port = sys.argv[1:]
main.EmbeddedStack = functools.partial(EmbeddedStack, command=lambda role: [sys.executable, stub, *role.split()])
main.banner = lambda stack: json.dumps({"pids": stack.pids(), "redis": stack.redis_url})
raise SystemExit(main.main(["--data-dir", data, "--port", port]))
"""


@contextmanager
def launched(data: Path, port: int = 0) -> Iterator[subprocess.Popen[str]]:
    """``prefold up``, perhaps not ready yet."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFOLD_")}
    command = [sys.executable, "-c", UP, str(STUB), str(data), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    with process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: subprocess.Popen[str]) -> tuple[dict[str, int], str]:
    """Process ids by part, and the URL of the sessions' Redis, once all is ready."""
    assert process.stdout is not None
    assert process.stdout.readline() == "Prefold is starting …\n", process.communicate(timeout=10)[1]
    line = process.stdout.readline()
    assert line, process.communicate(timeout=10)[1]
    told = json.loads(line)
    return told["pids"], told["redis"]


def left(pids: set[int]) -> list[str]:
    return [command_line(pid) for pid in pids if is_running(pid)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_all_within_five_seconds(tmp_path: Path, number: signal.Signals) -> None:
    with launched(tmp_path) as process:
        pids, _redis = ready(process)
        asked_at = time.monotonic()
        process.send_signal(number)
        output, errors = process.communicate(timeout=10)
        assert time.monotonic() - asked_at < 5
    assert (process.returncode, output, errors) == (0, "stopping …\n", "")
    assert left(set(pids.values())) == []


def test_a_killed_supervisor_takes_every_process_with_it(tmp_path: Path) -> None:
    with launched(tmp_path) as process:
        pids, _redis = ready(process)
        process.kill()
        wait_until("no process is left", lambda: not left(set(pids.values())))


@pytest.mark.parametrize("moment", [0.15, 0.2, 0.25, 0.3, 0.4])
def test_a_supervisor_killed_while_it_starts_leaves_nothing_either(tmp_path: Path, moment: float) -> None:
    with launched(tmp_path) as process:
        until = time.monotonic() + moment
        wait_until("the moment has come", lambda: time.monotonic() > until)
        seen = descendants(process.pid)
        process.kill()
        wait_until("no process is left", lambda: not left(seen))


def test_after_a_kill_the_next_start_finds_the_data(tmp_path: Path) -> None:
    with launched(tmp_path) as process:
        _pids, url = ready(process)
        with Redis.from_url(url) as client:
            client.set("turn", "kept")
        process.kill()
    with launched(tmp_path) as process:
        _pids, url = ready(process)
        with Redis.from_url(url) as client:
            assert client.get("turn") == b"kept"


def test_a_frozen_orphan_keeps_the_folder_locked(tmp_path: Path) -> None:
    with launched(tmp_path) as process:
        pids, _redis = ready(process)
        orphan = pids["redis sessions"]
        os.kill(orphan, signal.SIGSTOP)  # it cannot follow the request to end
        process.kill()
        wait_until("only the orphan is left", lambda: len(left(set(pids.values()))) == 1)
    try:
        with launched(tmp_path) as process:
            wait_until("it waits for the folder", lambda: tmp_path / "lock" in open_files(process.pid))
            assert descendants(process.pid) == set()
            os.kill(orphan, signal.SIGCONT)
            assert ready(process)[0]
    finally:
        if is_running(orphan):
            os.kill(orphan, signal.SIGKILL)


def test_a_folder_in_use_is_refused_with_the_name_of_its_process(tmp_path: Path) -> None:
    with launched(tmp_path) as first:
        ready(first)
        with launched(tmp_path) as second:
            _output, errors = second.communicate(timeout=10)
    assert second.returncode == 1
    assert f"in use by another Prefold (process {first.pid})" in errors
