"""The stack as ``deploy/`` sets it up: its Redis settings and users, and every process under its own user."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis import Redis

from prefold.stack.leash import leashed
from prefold.stack.places import free_port
from prefold.stack.redis_server import ask, bundled_redis_server
from tests.support.logged_roles import LoggedRole, embedding_with
from tests.support.vectors import RunningVectors
from tests.support.waiting import wait_until
from tests.support.worker_jobs import COMMAND, environment

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROLES = ("gateway", "dispatcher", "worker embed", "worker compact", "worker memory")
PROBER = "prober"
"""Name of a connection that tries what is forbidden."""
WATCHER = "user watcher on nopass ~* &* +@all\n"
"""Of the test alone: sees what the others were refused."""


@dataclass
class DeployedRedis:
    """A server with a file of ``deploy/redis``, on a unix socket of the test."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.folder / f"{self.name}.sock"

    @property
    def data(self) -> Path:
        return self.folder / f"{self.name}-data"

    def start(self) -> None:
        self.data.mkdir(exist_ok=True)
        ours = {
            "port": "0",
            "unixsocket": str(self.socket),
            "aclfile": str(self.folder / f"{self.name}.acl"),
            "dir": str(self.data),
            "repl-diskless-sync-delay": "0",
        }
        options = [part for name, value in ours.items() for part in (f"--{name}", value)]
        command = [str(bundled_redis_server()), str(DEPLOY / "redis" / f"{self.name}.conf"), *options]
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(leashed(command), stdin=subprocess.PIPE, stdout=log, stderr=log)
        wait_until(f"the {self.name} server answers", lambda: ask(self.socket, "PING").startswith(b"-NOAUTH"))

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process = None

    def refusals(self) -> list[tuple[str, str, str]]:
        """User, reason and object of all that was refused, but to whoever came to be refused."""
        with self.watcher() as redis:
            entries: Any = redis.acl_log()
        return [
            (text(one["username"]), text(one["reason"]), text(one["object"]))
            for one in entries
            if PROBER not in str(one["client-info"])
        ]

    @contextmanager
    def watcher(self) -> Iterator[Redis]:
        with Redis.from_url(f"unix://watcher@{self.socket}") as redis:
            yield redis


def text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


@dataclass
class Deployed:
    """Servers, users and processes; ``addresses`` holds what each role is started with."""

    folder: Path
    sessions: DeployedRedis
    queue: DeployedRedis
    vectors: RunningVectors
    settings: dict[str, str] = field(default_factory=dict)
    running: dict[str, LoggedRole] = field(default_factory=dict)

    def address(self, role: str) -> Mapping[str, str]:
        """Variables of ``ROLE.env``."""
        lines = (self.folder / f"{role}.env").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def redis(self, role: str, **options: Any) -> Redis:
        """A client of the sessions' server as that role."""
        return Redis.from_url(self.address(role)["PREFOLD_REDIS_URL"], **options)

    def start(self, *roles: str) -> None:
        """Returns once each says that it works."""
        for role in roles:
            place = self.address(role.replace(" ", "-"))
            env = environment(
                place["PREFOLD_QUEUE_URL"],
                place["PREFOLD_REDIS_URL"],
                log_format="json",
                qdrant_url=self.vectors.url,
                **self.settings,
            )
            log = self.folder / f"{role.replace(' ', '-')}.log"
            log.unlink(missing_ok=True)
            self.running[role] = LoggedRole([*COMMAND, *role.split()], log, env)
        for role in roles:
            wait_until(f"{role} has started", has_started(role, self.running[role]), timeout=50)

    def gateway_url(self) -> str:
        return str(self.running["gateway"].events("gateway_ready")[-1]["url"])

    def end(self, *roles: str) -> None:
        for role in roles:
            self.running.pop(role).end()

    def stop(self) -> None:
        self.end(*self.running)
        self.vectors.stop()
        self.queue.stop()
        self.sessions.stop()


def has_started(role: str, process: LoggedRole) -> Callable[[], bool]:
    if role == "gateway":
        return lambda: process.said("gateway_ready") is not None
    return process.has_started


def make_users(folder: Path, *arguments: str) -> None:
    command = [sys.executable, str(DEPLOY / "redis" / "make_users.py"), str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextmanager
def deployed(embeddings: str, **settings: str) -> Iterator[Deployed]:
    """Servers that run, and no process yet. Tenants ``default`` and ``acme`` have users for ingest and direct."""
    with tempfile.TemporaryDirectory(prefix="pf-deployed-", dir="/tmp") as name, ExitStack() as ends:
        folder = Path(name)
        sessions, queue = DeployedRedis("sessions", folder), DeployedRedis("queue", folder)
        places = [f"--{one.name}=unix://{one.socket}" for one in (sessions, queue)]
        make_users(folder, "--direct=default,acme", "--ingest=default,acme", *places)
        for server in (sessions, queue):
            with (folder / f"{server.name}.acl").open("a") as users:
                users.write(WATCHER)
        port = free_port("127.0.0.1")
        stack = Deployed(folder, sessions, queue, RunningVectors(folder / "store", ("--vectors-port", str(port))))
        stack.settings = {"port": "0", **embedding_with(embeddings), **settings}
        ends.callback(stack.stop)
        sessions.start()
        queue.start()
        stack.vectors.start()
        yield stack
