"""One process owns a data folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prefold.errors import ConfigurationError

_FILE: Final = "owner.lock"


@contextmanager
def owned(data_dir: Path) -> Iterator[None]:
    """Holds the folder, making it first. Raises ``ConfigurationError`` while another process holds it.

    The lock goes with the process, however it ends. qdrant-edge locks each shard as well, but not a folder
    without shards.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(data_dir / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigurationError(f"cannot keep vectors in {data_dir}: {error.strerror}") from error
    try:
        _lock(descriptor, data_dir)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise ConfigurationError(f"{data_dir} is in use by another vector store (process {owner})") from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
