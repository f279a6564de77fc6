"""The embedded stack as a thing that starts and stops: for ``prefold up``, for the demo, for tests."""

import asyncio
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prefold.config.addresses import Addresses
from prefold.config.settings import Durability
from prefold.stack.parts import Plan, RoleCommand, make_plan, role_command
from prefold.stack.places import DataFolder
from prefold.stack.settings import StackSettings
from prefold.stack.supervisor import Supervisor


def report_to_stderr(text: str) -> None:
    """One line for the person at the terminal."""
    print(f"prefold up: {text}", file=sys.stderr, flush=True)


class EmbeddedStack:
    """Every process of a one-machine Prefold, on one data folder.

    Building it takes the folder and decides on ports: ConfigurationError where the folder or the port is in use.
    As a context manager it is started on entry and stopped on exit.
    """

    def __init__(
        self,
        settings: StackSettings,
        *,
        report: Callable[[str], None] = report_to_stderr,
        command: RoleCommand = role_command,
    ) -> None:
        self.settings = settings
        self.folder = DataFolder(settings.data_dir)
        try:
            self.plan: Plan = make_plan(settings, self.folder, command)
            self._addresses().write(self.folder.path)
        except BaseException:
            self.folder.close()
            raise
        self._supervisor = Supervisor(self.plan.stages, self.folder.logs, report)

    @property
    def gateway_url(self) -> str:
        """Base URL of the HTTP API."""
        return self.plan.gateway_url

    @property
    def probe_url(self) -> str:
        """Base URL of the gateway's probe, which tells its metrics without a key."""
        return self.plan.probe_url

    @property
    def redis_url(self) -> str:
        """Redis of the sessions."""
        return self.plan.redis_url

    @property
    def queue_url(self) -> str:
        """Redis of the job queue."""
        return self.plan.queue_url

    @property
    def qdrant_url(self) -> str:
        """Qdrant's REST API."""
        return self.plan.qdrant_url

    @property
    def qdrant_api_key(self) -> str | None:
        """The key that it asks for in the header ``api-key``; None: none."""
        return self.plan.qdrant_api_key

    def start(self, interrupted: threading.Event | None = None) -> bool:
        """Return True when all parts are ready, False when ``interrupted`` was set before that.

        Raises UnavailableError with the part's last log lines when one cannot start; nothing runs then.
        """
        return self._supervisor.start(interrupted)

    def stop(self) -> None:
        """End all processes and give the data folder free. Twice, or before the start, is legal."""
        self._supervisor.stop()
        if not self.folder.is_closed:  # afterwards the file may be another stack's
            Addresses.remove(self.folder.path)
        self.folder.close()

    def _addresses(self) -> Addresses:
        """What other commands on this machine need to find the parts."""
        plan = self.plan
        return Addresses(
            plan.redis_url, plan.queue_url, plan.qdrant_url, plan.qdrant_api_key, plan.gateway_url, plan.probe_url
        )

    def pids(self) -> dict[str, int]:
        """Process ids of the parts that run now, by name."""
        return self._supervisor.pids()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@contextmanager
def temporary_stack(
    *, durability: Durability = "fast", command: RoleCommand = role_command, **settings: Any
) -> Iterator[EmbeddedStack]:
    """A stack of its own on a free port and a temporary folder, gone at the end with its data.

    The addresses, host, keys and folder of the environment are not used; ``settings`` are further fields of
    StackSettings.
    """
    not_used = ("redis_url", "queue_url", "qdrant_url", "qdrant_api_key", "api_keys_file", "api_keys_secret_file")
    own: dict[str, Any] = dict.fromkeys(not_used) | {"probe_port": 0}
    with tempfile.TemporaryDirectory(prefix="prefold-", ignore_cleanup_errors=True) as folder:
        own |= {"host": "127.0.0.1", "port": 0, "data_dir": Path(folder), "durability": durability}
        with EmbeddedStack(StackSettings(**(own | settings)), command=command) as stack:
            yield stack


@asynccontextmanager
async def temporary_stack_async(**settings: Any) -> AsyncIterator[EmbeddedStack]:
    """The same for an event loop, which goes on while the processes start and stop."""
    context = temporary_stack(**settings)
    stack = await asyncio.to_thread(context.__enter__)
    try:
        yield stack
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)
