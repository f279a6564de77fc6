"""Changes of the key file: one at a time, and seen whole or not at all."""

import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from prefold.access import KeyFile, parse_key_file
from prefold.errors import ConfigurationError

__all__ = ["change_key_file", "read_key_file", "write_new"]

_OWNER_ONLY = 0o600


def read_key_file(path: Path) -> KeyFile:
    """The file now. Raises ``ConfigurationError``."""
    try:
        return parse_key_file(path.read_bytes())
    except FileNotFoundError as error:
        raise ConfigurationError(f"there is no {path}: prefold keys init makes one") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error


def change_key_file(path: Path, change: Callable[[KeyFile], KeyFile]) -> KeyFile:
    """The file as ``change`` makes it of what stands there. Raises ``ConfigurationError``, and what ``change`` raises.

    Whoever reads meanwhile sees the old one or the new one, also after a crash. Owner and mode stay.
    """
    target = path.resolve()  # a link stays a link
    try:
        with _locked(target):
            changed = change(read_key_file(target))
            text = changed.to_bytes()
            parse_key_file(text)  # nobody could read it otherwise
            _replace(target, text)
            return changed
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise ConfigurationError(f"{path} is a mount of its own: mount its folder, or edit the original") from error
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def write_new(path: Path, text: bytes) -> None:
    """A file that only its owner can read. Raises ``ConfigurationError`` where there is one already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(descriptor, "wb") as file:
            _write(file, text)
        _sync_folder(path.parent)
    except FileExistsError as error:
        raise ConfigurationError(f"{path} is there already: nothing was changed") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_WRONLY | os.O_CREAT, _OWNER_ONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: bytes) -> None:
    before = path.stat()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(descriptor, "wb") as file:
            _keep_owner(descriptor, before)
            os.fchmod(descriptor, before.st_mode & 0o777)
            _write(file, text)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _keep_owner(descriptor: int, before: os.stat_result) -> None:
    """``ConfigurationError`` where it cannot be: a gateway of another user could not read the file any more."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) == (before.st_uid, before.st_gid):
        return
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except PermissionError as error:
        raise ConfigurationError(
            f"the key file belongs to user {before.st_uid} and group {before.st_gid}, which only they themselves or root "
            "can keep so: run this as that user"
        ) from error


def _write(file: BinaryIO, text: bytes) -> None:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
