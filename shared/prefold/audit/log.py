"""Where audit entries go: a file of their own, or the log of the process."""

import fcntl
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

import structlog

from prefold.audit.entries import AuditAction, AuditEntry
from prefold.telemetry.metrics import AUDIT_UNWRITTEN

log = structlog.get_logger(__name__)

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_LASTING: Final = frozenset({"session_erased", "user_erased", "turn_removed", "fact_deleted"})
"""What a restored backup must be told again: on disk before whoever asked hears that it is done."""

Clock = Callable[[], float]


class AuditLog:
    """Notes who changed access or removed data. Many processes may share one file.

    Each note opens the file anew, so that it may be moved away at any time (logrotate needs no signal).
    """

    def __init__(self, path: Path | None, *, role: str, clock: Clock = time.time) -> None:
        self._path = path
        self._role = role
        self._clock = clock

    def note(
        self, action: AuditAction, *, tenant: str, key_id: str = "", subject: Mapping[str, str] = _NOTHING
    ) -> None:
        """Note it; erasures are on disk afterwards. Blocks for a write: in an event loop, run it in a thread.

        Never raises for a file that cannot be written: what was done is done. The entry is then in the process's log,
        as ``audit_unwritten`` at error level.
        """
        entry = AuditEntry(_iso(self._clock()), action, tenant, key_id, self._role, subject)
        if self._path is None:
            log.info("audit", **_shown(entry))
            return
        try:
            append_line(self._path, entry.line(), sync=action in _LASTING)
        except OSError as error:
            AUDIT_UNWRITTEN.inc()
            log.error("audit_unwritten", reason=error.strerror, path=str(self._path), **_shown(entry))


def append_line(path: Path, line: bytes, *, sync: bool) -> None:
    """Adds a whole line, whoever else writes and whatever a crash left at the end. Raises ``OSError``.

    The file belongs to its owner alone (0600) when this makes it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        _write_whole(descriptor, b"\n" + line if is_torn else line)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_whole(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(entry: AuditEntry) -> dict[str, object]:
    return {
        "action": entry.action,
        "at": entry.at,
        "tenant": entry.tenant,
        "key_id": entry.key_id,
        "subject": dict(entry.subject),
    }
