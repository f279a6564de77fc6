"""A leashed program ends with the process that asked for it, on Linux by the kernel, elsewhere by a guardian."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from prefold.stack import leash
from tests.support.processes import descendants, is_running
from tests.support.waiting import wait_until

ELSEWHERE = f"import runpy, sys; sys.platform = 'elsewhere'; runpy.run_path({leash.__file__!r}, run_name='__main__')"

FOREVER = "import time; print('ready', flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {FOREVER}"


def leashed(code: str, *, platform: str, death_signal: signal.Signals = signal.SIGTERM) -> list[str]:
    command = leash.leashed([sys.executable, "-c", code], death_signal=death_signal)
    if platform == "elsewhere":
        script = command.index(leash.__file__)
        command[script : script + 1] = ["-c", ELSEWHERE]
    return command


def start(command: list[str]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("platform", ["linux", "elsewhere"])
def test_the_exit_code_is_the_programs(platform: str) -> None:
    with subprocess.Popen(leashed("raise SystemExit(7)", platform=platform), stdin=subprocess.PIPE) as process:
        assert process.wait(10) == 7


@pytest.mark.parametrize("platform", ["linux", "elsewhere"])
def test_a_request_to_end_reaches_the_program(platform: str) -> None:
    with start(leashed(FOREVER, platform=platform)) as process:
        process.terminate()
        process.communicate(timeout=10)
    assert process.returncode == -signal.SIGTERM


@pytest.mark.parametrize("platform", ["linux", "elsewhere"])
@pytest.mark.parametrize("code", [FOREVER, DEAF], ids=["polite", "deaf"])
def test_the_program_ends_with_the_process_that_asked_for_it(platform: str, code: str) -> None:
    death_signal = signal.SIGTERM if code == FOREVER or platform == "elsewhere" else signal.SIGKILL
    holder = f"""
import subprocess, sys
sys.path[:0] = {[str(Path(__file__).resolve().parent.parent.parent)]!r}
from tests.integration.test_leash import leashed
import signal
process = subprocess.Popen(
    leashed({code!r}, platform={platform!r}, death_signal=signal.Signals({int(death_signal)})),
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)
print(process.stdout.readline(), end="", flush=True)
process.wait()
"""
    with start([sys.executable, "-c", holder]) as process:
        below = descendants(process.pid)
        assert below
        process.kill()
        wait_until("nothing is left", lambda: not any(is_running(pid) for pid in below))


def test_a_program_whose_asker_is_already_gone_never_starts() -> None:
    command = leash.leashed([sys.executable, "-c", "print('ran')"])
    command[5] = "1"  # as if our parent had died in between, and we were given to init
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
