"""How a process stops. In processes of their own, because signals belong to a process."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ASYNC_ROLE = """
import asyncio
from prefold.config.lifecycle import run_async

async def serve(stop):
    print("ready", flush=True)
    await stop.wait()
    print("stopped in order", flush=True)

raise SystemExit(run_async(serve))
"""

SYNC_ROLE = """
from prefold.config.lifecycle import stop_flag

with stop_flag() as stop:
    print("ready", flush=True)
    stop.wait()
print("stopped in order", flush=True)
"""

STUBBORN_ROLE = """
import time
from datetime import timedelta
from prefold.config.lifecycle import stop_flag

with stop_flag(timedelta(seconds=0.2)) as stop:
    print("ready", flush=True)
    while True:
        time.sleep(60)
"""

BLOCKED_LOOP = """
import asyncio, time
from datetime import timedelta
from prefold.config.lifecycle import stop_event

async def main():
    async with stop_event(timedelta(seconds=0.2)):
        print("ready", flush=True)
        while True:
            time.sleep(60)

asyncio.run(main())
"""


@contextmanager
def role(code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("code", [ASYNC_ROLE, SYNC_ROLE], ids=["async", "sync"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_an_orderly_stop(code: str, number: signal.Signals) -> None:
    with role(code) as process:
        process.send_signal(number)
        output, errors = process.communicate(timeout=10)
    assert (process.returncode, output, errors) == (0, "stopped in order\n", "")


def test_more_signals_than_one_change_nothing() -> None:
    with role(SYNC_ROLE) as process:
        for _ in range(5):
            process.send_signal(signal.SIGINT)
        output, _errors = process.communicate(timeout=10)
    assert (process.returncode, output) == (0, "stopped in order\n")


@pytest.mark.parametrize("code", [STUBBORN_ROLE, BLOCKED_LOOP], ids=["stubborn", "blocked loop"])
def test_a_process_that_does_not_follow_is_ended_by_force(code: str) -> None:
    with role(code) as process:
        process.send_signal(signal.SIGTERM)
        _output, errors = process.communicate(timeout=10)
    assert process.returncode == 1
    assert "by force" in errors
