"""``prefold top`` on a terminal: a look a second, until a key or a signal ends it."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live

from prefold.status.frame import Frame
from prefold.status.look import opened_looker
from prefold.status.settings import StatusSettings

__all__ = ["run_top"]

_EVERY_SECONDS: Final = 1.0
_SESSIONS_A_LOOK: Final = 500
"""A look may take so many more: half a million sessions are passed in a quarter of an hour."""
_ENDING: Final = frozenset(b"qQ\x03\x04")


async def run_top(settings: StatusSettings) -> None:
    """Draws until q, Ctrl-C or SIGTERM; then the terminal is as it was before."""
    stop, frame = asyncio.Event(), Frame()
    async with opened_looker(settings) as looker:
        with _keys(stop), Live(frame, console=Console(), screen=True, auto_refresh=False) as live:
            while not stop.is_set():
                frame.take(await looker.look(_SESSIONS_A_LOOK))
                live.update(frame, refresh=True)
                try:
                    async with asyncio.timeout(_EVERY_SECONDS):
                        await stop.wait()
                except TimeoutError:
                    continue


@contextmanager
def _keys(stop: asyncio.Event) -> Iterator[None]:
    """Sets ``stop`` at a key that ends, or a signal. Keys come one by one and are not shown."""
    loop, source = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(source)

    def heard() -> None:
        keys = os.read(source, 64)
        if not keys or _ENDING.intersection(keys):
            stop.set()

    tty.setcbreak(source)
    loop.add_reader(source, heard)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        loop.remove_reader(source)
        termios.tcsetattr(source, termios.TCSADRAIN, before)
