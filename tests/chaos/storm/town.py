"""The stack under the storm: ``prefold up``'s own parts under its own supervisor, and a second gateway beside them.

Every part is one process. RQ's SimpleWorker runs its jobs in the worker itself, so a worker has no child; the one
child that a part can have is that of a Redis that rewrites its file.

The embedder is a stand-in that answers at once: the packaged model would need most of a core for 50 turns a second,
and what is proven here is that each turn's vector is stored, once, not what it says.
"""

import asyncio
import hashlib
import os
import secrets
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import httpx

from prefold.stack.embedded import EmbeddedStack
from prefold.stack.parts import LOOPBACK
from prefold.stack.places import free_port
from prefold.stack.settings import StackSettings
from prefold.stack.supervisor import Part, Supervisor
from tests.support.embedding_server import DIMENSION
from tests.support.processes import command_line, descendants, is_running
from tests.support.waiting import wait_until

SESSIONS = "redis sessions"
PARTS = (
    "gateway",
    "gateway 2",
    "dispatcher",
    "worker embed",
    "worker compact",
    "worker memory",
    SESSIONS,
    "redis queue",
    "vectors",
)


class Town:
    """Starts and stops everything, knows who runs, and kills."""

    def __init__(self, folder: Path, tenants: int, embedder_url: str) -> None:
        self.keys = {f"tenant-{number}": secrets.token_urlsafe(32) for number in range(tenants)}
        self.restarts: list[str] = []
        self._before = descendants(os.getpid())
        self._seen: set[int] = set()
        self._stack = EmbeddedStack(
            _settings(folder, _keys_file(folder, self.keys), embedder_url), report=self.restarts.append
        )
        (gateway,) = (part for stage in self._stack.plan.stages for part in stage if part.name == "gateway")
        second = _second_gateway(gateway)
        self._beside = Supervisor([[second]], self._stack.folder.logs, self.restarts.append)
        self.gateways = (self._stack.gateway_url, f"http://{LOOPBACK}:{second.environment['PREFOLD_PORT']}")

    @property
    def redis_url(self) -> str:
        return self._stack.redis_url

    @property
    def queue_url(self) -> str:
        return self._stack.queue_url

    @property
    def qdrant(self) -> tuple[str, str]:
        """URL and key."""
        return self._stack.qdrant_url, self._stack.qdrant_api_key or ""

    @property
    def logs(self) -> Path:
        return self._stack.folder.logs

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._stack.start)
            await asyncio.to_thread(self._beside.start)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.to_thread(self._beside.stop)
        await asyncio.to_thread(self._stack.stop)

    def pid(self, name: str) -> int | None:
        """Of the part if it runs now."""
        pid = (self._stack.pids() | self._beside.pids()).get(name)
        return pid if pid is not None and is_running(pid) else None

    def kill(self, pid: int) -> None:
        self.look()
        os.kill(pid, signal.SIGKILL)

    def children(self, name: str) -> list[int]:
        pid = self.pid(name)
        return [] if pid is None else sorted(descendants(pid))

    def look(self) -> None:
        """Notes who runs now."""
        self._seen |= self.ours()

    def ours(self) -> set[int]:
        """Processes that the town has started, directly or not."""
        return descendants(os.getpid()) - self._before

    def strays(self) -> list[str]:
        """While it stands: processes beside one for each part."""
        self.look()
        known = {self.pid(name) for name in PARTS}
        return [command_line(pid) for pid in self._seen - known if is_running(pid)]

    def ended_by_themselves(self) -> Counter[str]:
        """Ends that were no kill of ours, as the supervisor reported them."""
        ends = (report.partition(";")[0] for report in self.restarts)
        return Counter(end for end in ends if "SIGKILL" not in end)

    def left(self) -> list[str]:
        """After the end: processes that should be gone."""
        return [command_line(pid) for pid in self._seen | self.ours() if is_running(pid)]

    def check_nothing_is_left(self) -> None:
        """After the end. AssertionError with the command lines of processes that live on."""
        with suppress(AssertionError):
            wait_until("no process is left", lambda: not self.left(), timeout=10)
        assert self.left() == []


def _settings(folder: Path, keys: Path, embedder_url: str) -> StackSettings:
    """Nothing of the environment but what does not matter here."""
    return StackSettings(
        host=LOOPBACK,
        port=0,
        data_dir=folder / "data",
        durability="durable",
        api_keys_file=keys,
        redis_url=None,
        queue_url=None,
        qdrant_url=None,
        qdrant_api_key=None,
        embedder="http",
        embedder_url=embedder_url,
        embedder_model="stand-in",
        embedder_dimension=DIMENSION,
        summarizer="extractive",
        embed_workers=1,
        compact_workers=1,
        memory_workers=1,
    )


def _keys_file(folder: Path, keys: dict[str, str]) -> Path:
    path = folder / "keys.txt"
    path.write_text("".join(f"{name} {hashlib.sha256(key.encode()).hexdigest()}\n" for name, key in keys.items()))
    return path


def _second_gateway(first: Part) -> Part:
    port = free_port(LOOPBACK)
    return replace(
        first,
        name="gateway 2",
        environment={**first.environment, "PREFOLD_PORT": str(port), "PREFOLD_PROBE_PORT": "0"},
        is_ready=lambda: _is_ready(f"http://{LOOPBACK}:{port}"),
    )


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=1).is_success
    except httpx.HTTPError:
        return False
