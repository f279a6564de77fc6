"""Roles as processes that log to a file, so that a test can read what they say and none waits for a reader."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefold.stack.leash import leashed
from tests.support.embedding_server import DIMENSION
from tests.support.waiting import wait_until
from tests.support.worker_jobs import COMMAND, environment


class LoggedRole:
    """A running process of ours."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str]) -> None:
        self._log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(leashed(command), stdin=subprocess.PIPE, stdout=out, stderr=out, env=env)

    def text(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """What it logged under that name so far."""
        lines = [line for line in self.text().splitlines() if line.startswith("{") and line.endswith("}")]
        return [event for line in lines if (event := json.loads(line))["event"] == name]

    def said(self, name: str) -> dict[str, Any] | None:
        """The first such event. Fails the test when the process has ended."""
        assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.text()[-2000:]}"
        return next(iter(self.events(name)), None)

    def has_started(self) -> bool:
        """A dispatcher or worker says so itself."""
        return self.said("dispatcher_started") is not None or self.said("worker_started") is not None

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        assert self.process.stdin is not None
        self.process.stdin.close()


@contextmanager
def logged_role(folder: Path, role: str, redis_url: str, queue_url: str, **settings: str) -> Iterator[LoggedRole]:
    """``prefold ROLE`` with settings that no environment changes and no model to load; killed at the end."""
    with logged_program(COMMAND, folder, role, redis_url, queue_url, **settings) as running:
        yield running


@contextmanager
def logged_program(
    program: Sequence[str], folder: Path, role: str, redis_url: str, queue_url: str, **settings: str
) -> Iterator[LoggedRole]:
    """The same with another program in place of ``prefold``."""
    env = environment(queue_url, redis_url, log_format="json", **settings)
    running = LoggedRole([*program, *role.split()], folder / f"{role.replace(' ', '-')}.log", env)
    try:
        yield running
    finally:
        running.end()


@contextmanager
def gateway_process(folder: Path, redis_url: str, queue_url: str, **settings: str) -> Iterator[str]:
    """The URL of a gateway of its own once it answers; it asks nothing of the store's file unless a setting says so."""
    settings = {"port": "0", "durability": "fast", **settings}
    with logged_role(folder, "gateway", redis_url, queue_url, **settings) as gateway:
        ready = wait_until("the gateway is ready", lambda: gateway.said("gateway_ready"), timeout=30)
        yield str((ready or {})["url"])


def embedding_with(url: str) -> dict[str, str]:
    """Settings of roles that embed by the stand-in at ``url``."""
    return {
        "embedder": "http",
        "embedder_url": url,
        "embedder_model": "stand-in",
        "embedder_dimension": str(DIMENSION),
    }
