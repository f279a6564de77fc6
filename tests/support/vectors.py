"""A real vector store process for tests, on a free port and a folder of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prefold.stack.leash import leashed
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


class RunningVectors:
    """A process that a test may stop, kill and start again on the same data."""

    def __init__(self, data_dir: Path, flags: Sequence[str] = ()) -> None:
        self.data_dir = data_dir
        self.flags = tuple(flags)
        self.url = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._log = data_dir / "vectors.log"

    def start(self) -> None:
        """Returns once it answers."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.launch()
        self.url = wait_until("the vector store is ready", self._ready_url, timeout=50)

    def launch(self) -> None:
        """Starts the process and does not wait."""
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                leashed(vectors_command(self.data_dir, *self.flags)),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=python_environment(),
            )

    def kill(self) -> None:
        """As ``kill -9``."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """As ``kill``; the exit code."""
        return self._end(signal.SIGTERM)

    def events(self) -> list[dict[str, object]]:
        """What it logged since its last start."""
        lines = self._log.read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def _ready_url(self) -> str:
        assert self.process is not None
        if (code := self.process.poll()) is not None:
            raise AssertionError(f"the vector store ended with {code}: {self._log.read_text('utf-8')[-2000:]}")
        return next((str(event["url"]) for event in self.events() if event["event"] == "vectors_ready"), "")

    def _end(self, number: signal.Signals) -> int:
        if self.process is None:
            return 0
        process, self.process = self.process, None
        if process.poll() is None:
            os.killpg(process.pid, number)
        code = process.wait(10)
        assert process.stdin is not None
        process.stdin.close()
        return code


def vectors_command(data_dir: Path, *flags: str) -> list[str]:
    """Command line of a vector store on a free port that logs JSON."""
    base = [sys.executable, "-m", "prefold.cli.main", "vectors", "--log-format", "json", "--vectors-port", "0"]
    return [*base, "--data-dir", str(data_dir), *flags]


def python_environment() -> dict[str, str]:
    """This environment without settings of ours, able to import us."""
    roots = os.pathsep.join(str(ROOT / name) for name in ("services", "workers", "shared"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFOLD_")}
    return {**kept, "PYTHONPATH": roots}


@contextmanager
def running_vectors(data_dir: Path, *flags: str) -> Iterator[RunningVectors]:
    """A started store; gone at the end, its data left where it is."""
    running = RunningVectors(data_dir, flags)
    try:
        running.start()
        yield running
    finally:
        running.stop()
