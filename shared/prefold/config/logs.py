"""Logging of a process: structured events on standard error, those of libraries among them."""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TextIO, cast

import orjson
import structlog
from structlog.typing import Processor

from prefold.config.clock import utc_now
from prefold.config.settings import ProcessSettings

QUIET = ("anthropic", "asyncio", "httpcore", "httpcore2", "httpx", "httpx2", "hpack", "urllib3")
"""Libraries whose info events say nothing that ours do not, or whose debug events say too much."""

_MOST_FRAMES = 12


class _Lines:
    """A stream of lines. What a thread writes within ``together`` leaves it in one piece."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._of_thread = threading.local()

    def write(self, text: str) -> None:
        held: list[str] | None = getattr(self._of_thread, "held", None)
        if held is None:
            self._stream.write(text)
        else:
            held.append(text)

    def flush(self) -> None:
        if getattr(self._of_thread, "held", None) is None:
            self._stream.flush()

    @contextmanager
    def together(self) -> Iterator[None]:
        held = self._of_thread.held = []
        try:
            yield
        finally:
            self._of_thread.held = None
            if held:
                self.write("".join(held))
                self.flush()


_lines: _Lines | None = None


def logged_together() -> AbstractContextManager[None]:
    """Structured events within it are written in one piece at its end: a call of the system for all. Not nested."""
    return nullcontext() if _lines is None else _lines.together()


def configure_logging(role: str, settings: ProcessSettings) -> None:
    """Send structlog's and the standard library's events to standard error; each carries ``role``.

    JSON lines, or readable lines on a terminal. No event carries the text of a conversation: of an exception, types and
    places are written, never its message, which may quote one.
    """
    global _lines
    _lines = _Lines(sys.stderr)
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    shared = _processors(role)
    renderer = _renderer(settings.log_format)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _lines)),
        cache_logger_on_first_use=True,
    )
    _configure_standard_logging(level, shared, renderer)


def _processors(role: str) -> list[Processor]:
    def add_role_and_time(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["timestamp"] = utc_now()
        event["role"] = role
        return event

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.StackInfoRenderer(),
        add_role_and_time,
        _without_messages,
    ]


def _without_messages(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Types of an exception and of its causes, each with its way through the code, in place of a traceback."""
    given = event.pop("exc_info", None)
    if given:
        error = (
            given if isinstance(given, BaseException) else given[1] if isinstance(given, tuple) else sys.exc_info()[1]
        )
        if error is not None:
            event["exception"] = "\n".join(_told(error))
    return event


def _told(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        frames = traceback.extract_tb(following.__traceback__)[-_MOST_FRAMES:]
        way = ", ".join(f"{frame.filename.rpartition('/prefold/')[2]}:{frame.lineno} {frame.name}" for frame in frames)
        yield f"{type(following).__qualname__} at {way}"
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)


def _renderer(log_format: str) -> Processor:
    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    return structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer(_json)


def _json(event: Any, *, default: Callable[[Any], Any]) -> str:
    """A third of what the standard library takes, which would be the most costly part of a context read."""
    try:
        return orjson.dumps(event, default=default).decode()
    except TypeError:  # an integer beyond 64 bits, a key that is no text
        return json.dumps(event, default=default)


def _configure_standard_logging(level: int, shared: list[Processor], renderer: Processor) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
