"""Where the embedded stack keeps things: its data folder, owned by one supervisor at a time, and its sockets."""

import fcntl
import hashlib
import os
import random
import shutil
import socket
import stat
import tempfile
import time
from contextlib import closing
from pathlib import Path

from prefold.errors import ConfigurationError
from prefold.stack.redis_server import LONGEST_SOCKET_PATH

_ORPHANS_END_WITHIN_SECONDS = 10.0
_LONGEST_SOCKET_NAME = 20
_PORTS = range(20_000, 32_768)
"""Below the ports that Linux gives to outgoing connections, one of which could take ours before we listen."""


class DataFolder:
    """The data folder, locked from ``__init__`` to ``close``.

    The lock is an open file that the data-owning children inherit, so that it ends with the last of them:
    after a ``kill -9`` the next start waits for a Redis that is still writing its last bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.logs = self.path / "logs"
        self._make_folders()
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take_lock()
            self.sockets = _socket_folder(self.path)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def lock_descriptor(self) -> int:
        """To be inherited by every child that writes into the folder."""
        return self._lock

    @property
    def is_closed(self) -> bool:
        """True once it was given free."""
        return self._lock < 0

    def folder(self, name: str) -> Path:
        """A folder for one part, made where it is missing."""
        made = self.path / name
        made.mkdir(mode=0o700, exist_ok=True)
        return made

    def close(self) -> None:
        """Remove the sockets and give the folder free. Twice is legal."""
        if self._lock >= 0:
            shutil.rmtree(self.sockets, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def _make_folders(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"cannot use the data folder: {error}", field="PREFOLD_DATA_DIR") from error

    def _take_lock(self) -> None:
        deadline = time.monotonic() + _ORPHANS_END_WITHIN_SECONDS
        while not _try_lock(self._lock):
            owner = os.pread(self._lock, 32, 0).decode().strip()
            if _is_alive(owner) or time.monotonic() > deadline:
                raise ConfigurationError(
                    f"the data folder {self.path} is in use by another Prefold (process {owner or 'unknown'}); "
                    "stop it or choose another --data-dir",
                    field="PREFOLD_DATA_DIR",
                )
            time.sleep(0.05)
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)


def check_port_is_free(host: str, port: int) -> None:
    """Raise ConfigurationError where nothing can listen on ``host``:``port``."""
    family, kind, protocol, _name, address = _resolve(host, port)
    try:
        with closing(socket.socket(family, kind, protocol)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another --port", field="PREFOLD_PORT"
        ) from error


def free_port(host: str) -> int:
    """A port on which nothing listens, and which nobody else is given for about a minute."""
    for port in random.sample(_PORTS, 100):
        if _is_reserved_now(host, port):
            return port
    raise ConfigurationError(f"found no free port on {host}")


def _is_reserved_now(host: str, port: int) -> bool:
    """Keep the port by a connection that has ended: who sets SO_REUSEADDR to listen on it may, nobody else gets it.

    Between the choice and the moment when a process listens another could take it, or choose it too.
    """
    family, kind, protocol, _name, address = _resolve(host, port)
    try:
        with closing(socket.socket(family, kind, protocol)) as listener:
            listener.bind(address)  # without the option, which would let us have what another keeps
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.listen(1)
            with closing(socket.create_connection(listener.getsockname()[:2], timeout=1)):
                listener.accept()[0].close()  # first, so that its end is the one that stays in TIME_WAIT
    except OSError:
        return False
    return True


def _resolve(host: str, port: int) -> tuple[int, int, int, str, tuple[object, ...]]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ConfigurationError(f"{host!r} is no address to listen on: {error}", field="PREFOLD_HOST") from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _socket_folder(data: Path) -> Path:
    """A folder of ours alone with a short name that follows from ``data``, empty."""
    name = f"prefold-{os.getuid()}-{hashlib.sha256(bytes(data)).hexdigest()[:12]}"
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - checked below
        if not base or not os.access(base, os.W_OK):
            continue
        folder = Path(base) / name
        if len(bytes(folder)) + _LONGEST_SOCKET_NAME <= LONGEST_SOCKET_PATH:
            return _emptied(folder)
    raise ConfigurationError("found no writable folder with a name short enough for unix sockets; set TMPDIR")


def _emptied(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigurationError(f"{folder} is not a folder of ours alone; remove it or set TMPDIR")
    for stale in folder.iterdir():
        stale.unlink()
    return folder
