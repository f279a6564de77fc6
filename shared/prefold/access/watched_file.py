"""The key file as it is now, for a process that runs on while it changes."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

from prefold.access.key_file import MOST_FILE_BYTES, KeyFile, parse_key_file
from prefold.errors import ConfigurationError
from prefold.telemetry.metrics import KEY_FILE_UNUSABLE

log = structlog.get_logger(__name__)

Monotonic = Callable[[], float]

CHECK_EVERY: Final = timedelta(seconds=5)


class WatchedFile:
    """A change counts within ``check_every``; what cannot be read or meant is logged and changes nothing."""

    def __init__(self, path: Path, *, check_every: timedelta = CHECK_EVERY, clock: Monotonic = time.monotonic) -> None:
        self.path = path
        self.content = KeyFile()
        """As it was read last."""
        self._check_seconds = check_every.total_seconds()
        self._clock = clock
        self._stamp: tuple[int, int, int] | None = None
        self._is_refused = False
        self._next_check = 0.0

    def load(self) -> KeyFile:
        """The file now. Raises ``ConfigurationError`` when it is missing or broken."""
        try:
            stamp, text = self._read()
        except OSError as error:
            raise ConfigurationError(f"the key file {self.path} cannot be read: {error.strerror}") from error
        self._keep(parse_key_file(text), stamp)
        return self.content

    def look(self) -> bool:
        """True when there is another content than at the last look. Looks at the file only when it is time again."""
        now = self._clock()
        if now < self._next_check:
            return False
        self._next_check = now + self._check_seconds
        try:
            if self._stamp_of_file() == self._stamp:
                KEY_FILE_UNUSABLE.set(self._is_refused)
                return False
            stamp, text = self._read()
            self._keep(parse_key_file(text), stamp)
        except (OSError, ConfigurationError) as error:
            self._tell(error)
            return False
        log.info("keys_reloaded", keys=len(self.content.keys))
        return True

    def refuse(self, error: ConfigurationError) -> None:
        """The content cannot be used after all, until there is another."""
        self._is_refused = True
        self._tell(error)

    def _keep(self, content: KeyFile, stamp: tuple[int, int, int]) -> None:
        self.content, self._stamp, self._is_refused = content, stamp, False
        KEY_FILE_UNUSABLE.set(0)

    def _tell(self, error: Exception) -> None:
        KEY_FILE_UNUSABLE.set(1)
        log.error("key_file_unusable", path=str(self.path), reason=str(error), kept="what was read before")

    def _read(self) -> tuple[tuple[int, int, int], bytes]:
        # The stamp is taken first: a change during the read is then seen at the next check.
        stamp = self._stamp_of_file()
        with self.path.open("rb") as file:
            return stamp, file.read(MOST_FILE_BYTES + 1)

    def _stamp_of_file(self) -> tuple[int, int, int]:
        status = self.path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
