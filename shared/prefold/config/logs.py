"""Logging of a process: structured events on standard error, those of libraries among them."""

import logging
import sys
from typing import Any

import structlog
from structlog.typing import Processor

from prefold.config.settings import ProcessSettings

QUIET = ("anthropic", "asyncio", "httpcore", "httpcore2", "httpx", "httpx2", "hpack")
"""Libraries whose info events say nothing that ours do not, or whose debug events say too much."""


def configure_logging(role: str, settings: ProcessSettings) -> None:
    """Send structlog's and the standard library's events to standard error; each carries ``role``.

    JSON lines, or readable lines on a terminal. Events at info never carry the text of a conversation.
    """
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    shared = _processors(role)
    renderer = _renderer(settings.log_format)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _configure_standard_logging(level, shared, renderer)


def _processors(role: str) -> list[Processor]:
    def add_role(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["role"] = role
        return event

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        add_role,
    ]


def _renderer(log_format: str) -> Processor:
    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    if console:
        # Not the default: it prints local variables, and with them conversations and secrets.
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    render = structlog.processors.JSONRenderer()

    def render_json(logger: Any, method: str, event: structlog.typing.EventDict) -> str | bytes:
        return render(logger, method, dict(structlog.processors.format_exc_info(logger, method, event)))

    return render_json


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
