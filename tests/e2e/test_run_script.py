"""``./run`` in a fresh copy, with nothing on PATH but Python, git and coreutils."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import command_line, descendants
from tests.support.sources import ROOT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

LEFT_OUT = (".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis")
PROGRAMS = ("git", "cat", "cksum")

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    pip_settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    environment = {"PATH": str(programs), "HOME": str(Path.home()), **pip_settings}

    def start(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["/bin/sh", str(copy / "run"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    return start


def finished(process: "subprocess.Popen[str]") -> str:
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return output


def test_two_first_starts_at_once_both_work_and_the_next_one_is_quick(run: Run) -> None:
    both = [run("--version"), run("python", "-m", "pytest", "--version")]
    outputs = [finished(process) for process in both]
    assert outputs[0].startswith("prefold ")
    assert outputs[1].startswith("pytest ")
    started = time.monotonic()
    assert finished(run("--version")) == outputs[0]
    assert time.monotonic() - started < 1


def test_a_start_after_a_killed_install_begins_anew(run: Run) -> None:
    first = run("--version")
    wait_until(
        "packages are being installed",
        lambda: any(" install " in command_line(pid) for pid in descendants(first.pid)),
        timeout=120,
    )
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=10)
    assert finished(run("--version")).startswith("prefold ")
