"""``prefold up`` with its real processes."""

import os
import re
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.processes import command_line, descendants, is_running
from tests.support.waiting import wait_until

ROLES = ["vectors", "gateway", "dispatcher", "worker embed", "worker compact", "worker memory"]
PREFOLD = Path(sysconfig.get_path("scripts")) / "prefold"

pytestmark = pytest.mark.timeout(180)
PATIENCE_SECONDS = 60
"""Six processes that load at once need fifteen seconds of a core, and a busy machine has none to spare."""


def up(*arguments: str | Path) -> "subprocess.Popen[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFOLD_")}
    command = [str(PREFOLD), "up", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@contextmanager
def running(data: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The process and the URL of its API, once it is ready."""
    with up("--data-dir", data, "--port", "0") as process:
        try:
            assert process.stdout is not None
            banner = [process.stdout.readline() for _ in range(5)]
            found = re.search(r"API +(\S+)", "".join(banner))
            assert found, process.communicate(timeout=10)
            yield process, found[1]
        finally:
            process.kill()


def turn(text: str) -> dict[str, str]:
    return {"id": text, "role": "user", "content": text}


def stored_ids(url: str) -> list[str]:
    return [
        stored["id"]
        for stored in httpx.get(f"{url}/v1/sessions/s/turns", timeout=20).raise_for_status().json()["turns"]
    ]


def test_a_turn_is_kept_over_an_orderly_stop_and_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as (process, url):
        httpx.post(f"{url}/v1/sessions/s/turns", json=turn("first"), timeout=20).raise_for_status()
        everything = descendants(process.pid)
        asked_at = time.monotonic()
        process.send_signal(signal.SIGINT)
        _output, errors = process.communicate(timeout=10)
        assert time.monotonic() - asked_at < 5
        assert (process.returncode, errors) == (0, "")
        assert [command_line(pid) for pid in everything if is_running(pid)] == []

    with running(tmp_path) as (process, url):
        assert stored_ids(url) == ["first"]
        httpx.post(f"{url}/v1/sessions/s/turns", json=turn("second"), timeout=20).raise_for_status()
        everything = descendants(process.pid)
        process.kill()
        wait_until("no process is left", lambda: not any(is_running(pid) for pid in everything))

    with running(tmp_path) as (_process, url):
        assert stored_ids(url) == ["first", "second"]


def test_every_process_names_its_role_and_comes_back_when_it_dies(tmp_path: Path) -> None:
    def roles(of: int) -> dict[str, int]:
        lines = {pid: command_line(pid).strip() for pid in descendants(of) if is_running(pid)}
        return {role: pid for role in ROLES for pid, line in lines.items() if line.endswith(f"prefold {role}")}

    with running(tmp_path) as (process, url):
        before = roles(process.pid)
        assert sorted(before) == sorted(ROLES)
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        wait_until(
            "all roles run again",
            lambda: sorted(now := roles(process.pid)) == sorted(ROLES) and not set(now.values()) & set(before.values()),
            timeout=PATIENCE_SECONDS,
        )
        wait_until("turns are taken again", lambda: _takes_turns(url), timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize("flags", [("--host", "0.0.0.0"), ("--port", "70000"), ("--redis-url", "nonsense")])
def test_wrong_settings_are_one_line_and_exit_code_two(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with up("--data-dir", tmp_path, *flags) as process:
        _output, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert re.fullmatch(rf"prefold up: PREFOLD_{flags[0][2:].replace('-', '_').upper()}: .+\n", errors)


def test_a_port_in_use_is_one_line_that_names_it(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with up("--data-dir", tmp_path, "--port", str(port)) as process:
            _output, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert errors.startswith(f"prefold up: cannot listen on 127.0.0.1 port {port}: ")
    assert errors.count("\n") == 1


def _takes_turns(url: str) -> bool:
    try:
        return httpx.post(f"{url}/v1/sessions/s/turns", json=turn("again"), timeout=2).status_code == 201
    except httpx.HTTPError:
        return False
