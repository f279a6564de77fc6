"""A whole deployment of real processes that is looked at from outside: logs at debug, probes, spans."""

import hashlib
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from prefold.jobs import QUEUES
from prefold.stack.places import free_port
from tests.support.embedding_server import embedding_server
from tests.support.logged_roles import LoggedRole, embedding_with, logged_role
from tests.support.messages_api import MessagesApi, serving
from tests.support.messages_api.brains import brain_called
from tests.support.metrics import Scrape, scrape
from tests.support.otlp import Collector, collecting
from tests.support.redis import running_redis
from tests.support.waiting import wait_until

HOST = "127.0.0.1"
_LOOK_SECONDS = 0.25
T = TypeVar("T")


@dataclass
class Observed:
    """What runs, and where it tells of itself."""

    gateway_url: str
    redis_url: str
    queue_url: str
    collector: Collector
    roles: Mapping[str, LoggedRole]
    probes: Mapping[str, str]
    """URL of each role's probe."""
    client: httpx.Client
    commands: list[str] = field(default_factory=list)
    """What commands have written."""

    def metrics(self) -> dict[str, Scrape]:
        """Of every process."""
        return {role: scrape(url, self.client) for role, url in self.probes.items()}

    def count(self, role: str, name: str, **labels: str) -> float:
        """What one process has counted."""
        return scrape(self.probes[role], self.client).value(name, **labels)

    def total(self, name: str, **labels: str) -> float:
        """Sum over all processes."""
        return sum(one.value(name, **labels) for one in self.metrics().values())

    def logs(self) -> dict[str, str]:
        """Of every process."""
        return {role: one.text() for role, one in self.roles.items()}

    def command(self, main: Callable[[Sequence[str]], int], *arguments: str) -> tuple[int, str]:
        """Exit code and output of a command against this deployment, in this process: starting one takes a second."""
        out = io.StringIO()
        named = ("--redis-url", self.redis_url, "--queue-url", self.queue_url)
        with redirect_stdout(out), redirect_stderr(out):
            code = main([*arguments, *named])
        self.commands.append(out.getvalue())
        return code, out.getvalue()


def until(description: str, predicate: Callable[[], T], timeout: float = 30) -> T:
    """As ``wait_until``, but that it asks a few times a second: each look costs the processes that are looked at."""
    last, asked_at = None, -math.inf

    def now_and_then() -> T | None:
        nonlocal last, asked_at
        if time.monotonic() - asked_at >= _LOOK_SECONDS:
            last, asked_at = predicate(), time.monotonic()
        return last

    found = wait_until(description, now_and_then, timeout)
    assert found is not None
    return found


@contextmanager
def observed_deployment(folder: Path, key: str, **settings: str) -> Iterator[Observed]:
    """Gateway, dispatcher, three workers and the vector store; summaries by the stand-in of the Messages API.

    ``key``: of the one tenant ``acme``.
    """
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        sessions, queue = stack.enter_context(running_redis()), stack.enter_context(running_redis())
        embedder = stack.enter_context(embedding_server())
        model = stack.enter_context(serving(MessagesApi(brain=brain_called("faithful"))))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        patch.setenv("ANTHROPIC_API_KEY", "sk-ant-CANARY-provider-key")
        patch.setenv("ANTHROPIC_BASE_URL", model)
        keys = folder / "keys"
        keys.write_text(f"acme {hashlib.sha256(key.encode()).hexdigest()}\n")
        keys.chmod(0o600)
        vectors, port = free_port(HOST), free_port(HOST)
        shared = {
            "log_level": "debug",
            "qdrant_url": f"http://{HOST}:{vectors}",
            "qdrant_api_key": "CANARY-vectors-key",
            "vectors_port": str(vectors),
            "port": str(port),
            "data_dir": str(folder),
            "durability": "fast",
            "api_keys_file": str(keys),
            "ingest_tenants": "acme",
            "lag_seconds": "1",
            **embedding_with(embedder),
            **settings,
        }
        probes: dict[str, str] = {}
        roles: dict[str, LoggedRole] = {}
        for role in ("vectors", "gateway", "dispatcher", *(f"worker {name}" for name in QUEUES)):
            own = {"summarizer": "anthropic" if role == "worker compact" else "extractive"}
            probe = free_port(HOST)
            starting = logged_role(folder, role, sessions.url, queue.url, **{**shared, **own, "probe_port": str(probe)})
            roles[role], probes[role] = stack.enter_context(starting), f"http://{HOST}:{probe}"
        _wait_for(roles, probes)
        url = f"http://{HOST}:{port}"
        headers = {"authorization": f"Bearer {key}"}
        client = stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=20))
        yield Observed(url, sessions.url, queue.url, collector, roles, probes, client)


def _wait_for(roles: Mapping[str, LoggedRole], probes: Mapping[str, str]) -> None:
    with httpx.Client(timeout=5) as client:
        for role, url in probes.items():
            until(f"{role} is ready", partial(_is_ready, client, roles[role], url), timeout=60)


def _is_ready(client: httpx.Client, role: LoggedRole, url: str) -> bool:
    assert role.process.poll() is None, role.text()[-2000:]
    with suppress(httpx.HTTPError):
        return client.get(f"{url}/readyz").is_success
    return False
