"""What a library of ours may say where structlog is not installed: an event and its fields, to the standard logging."""

import logging
from typing import Any, NamedTuple


class Log(NamedTuple):
    """Takes what a structlog logger takes."""

    to: logging.Logger

    def info(self, event: str, **fields: Any) -> None:
        self.to.info("%s %s", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self.to.warning("%s %s", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self.to.error("%s %s", event, fields)


def get_logger(name: str) -> Log:
    """A logger of that name."""
    return Log(logging.getLogger(name))
