"""One compact worker's builds, all of which wait for a model that never answers: what they take, as JSON.

Standard input: ``[[tenant, session, incarnation], …]``. Settings from the environment, as the worker's.
"""

import ctypes
import gc
import json
import sys
import threading
import time
from pathlib import Path

from prefold.compaction.build_job import pool_of
from prefold.config.logs import configure_logging
from prefold.storage.types import SessionRef
from prefold.worker.runtime import Runtime
from prefold.worker.settings import WorkerSettings

DEADLINE_SECONDS = 300


def main() -> int:
    """Prints MB: resident without a build, with all waiting, and the most in between."""
    refs = [SessionRef(*names) for names in json.load(sys.stdin)]
    settings = WorkerSettings()
    configure_logging("bench", settings)
    shared = Runtime(settings, threading.Event())
    pool = pool_of(shared)
    idle = _resident_mb()
    told: dict[SessionRef, list[object]] = {ref: [] for ref in refs}
    began = time.monotonic()
    for at in range(0, len(refs), 8):
        ended = shared.run(pool.hand_over(refs[at : at + 8]))
        for ref, one in ended.ongoing.items():
            one.follow(told[ref].append)
    while not all(what and what[-1] is True for what in told.values()):
        if time.monotonic() - began > DEADLINE_SECONDS:
            raise TimeoutError(f"not all builds wait: {[what[-1:] for what in told.values()]}")
        time.sleep(0.05)
    seconds = time.monotonic() - began
    time.sleep(1)
    waiting = _resident_mb()
    figures = {"idle_mb": idle, "waiting_mb": waiting, "peak_mb": _status_mb("VmHWM"), "seconds": seconds}
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}))
    shared.run(pool.cancel())
    shared.close()
    return 0


def _resident_mb() -> float:
    """After what is free was given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _status_mb("VmRSS")


def _status_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


if __name__ == "__main__":
    sys.exit(main())
