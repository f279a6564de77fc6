"""A gateway process for tests, on a free port."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prefold.stack.leash import leashed
from tests.support.vectors import python_environment
from tests.support.waiting import wait_until


class RunningGateway:
    def __init__(self, folder: Path, *flags: str) -> None:
        self._log = folder / "gateway.log"
        base = [sys.executable, "-m", "prefold.cli.main", "gateway", "--log-format", "json", "--port", "0"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                leashed([*base, *flags]), stdin=subprocess.PIPE, stdout=log, stderr=log, env=python_environment()
            )

    def events(self) -> list[dict[str, object]]:
        lines = self._log.read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def text(self) -> str:
        return self._log.read_text("utf-8")

    def ready_url(self) -> str:
        if (code := self.process.poll()) is not None:
            raise AssertionError(f"the gateway ended with {code}: {self.text()[-2000:]}")
        return next((str(event["url"]) for event in self.events() if event["event"] == "gateway_ready"), "")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        assert self.process.stdin is not None
        self.process.stdin.close()


@contextmanager
def running_gateway(folder: Path, *flags: str) -> Iterator[tuple[RunningGateway, str]]:
    gateway = RunningGateway(folder, *flags)
    try:
        yield gateway, wait_until("the gateway is ready", gateway.ready_url, timeout=50)
    finally:
        gateway.end()
