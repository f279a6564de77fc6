"""``prefold status`` and ``prefold top``."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from prefold.config.flags import add_flags, settings_from
from prefold.config.logs import configure_logging
from prefold.errors import ConfigurationError
from prefold.status.look import Look, opened_looker
from prefold.status.report import as_json, as_text
from prefold.status.settings import StatusSettings, with_running
from prefold.status.troubles import troubles_of

__all__ = ["main", "top"]

_STATUS = """Looks once at stores, queues and gateways: how far behind the work is, who works, which sessions are near
their limits. Changes nothing. Leaves with 0 when all is well, 1 when something is not, 2 for wrong usage."""
_TOP = """The same, live: once a second until q or Ctrl-C. Wants a terminal."""


def main(argv: Sequence[str]) -> int:
    """``prefold status``: 0 all is well, 1 something is not or does not answer."""
    parser = argparse.ArgumentParser(prog="prefold status", description=_STATUS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_flags(parser, StatusSettings)
    parsed = parser.parse_args(argv)
    settings = with_running(settings_from(StatusSettings, parsed))
    configure_logging("status", settings)
    look = asyncio.run(_look(settings))
    print(as_json(look) if parsed.json else as_text(look))
    return 1 if troubles_of(look) else 0


def top(argv: Sequence[str]) -> int:
    """``prefold top``: 0 when it was told to end. ``ConfigurationError``: there is no terminal."""
    parser = argparse.ArgumentParser(prog="prefold top", description=_TOP)
    add_flags(parser, StatusSettings)
    settings = with_running(settings_from(StatusSettings, parser.parse_args(argv)))
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise ConfigurationError("it draws on a terminal, and this is none; use prefold status")
    configure_logging("top", settings)
    from prefold.status.live import run_top

    asyncio.run(run_top(settings))
    return 0


async def _look(settings: StatusSettings) -> Look:
    async with opened_looker(settings) as looker:
        return await looker.look(settings.status_sessions)
