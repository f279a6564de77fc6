"""How a process stops: a signal sets an event, and a watchdog ends a process that does not follow.

A stop request is an event that loops look at, never an exception in the middle of their work.
"""

import _thread
import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any

HARD_EXIT_AFTER = timedelta(seconds=4)
"""The supervisor waits five seconds."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_async(serve: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    """Run ``serve(stop)`` until it returns, on uvloop where that is installed; 0 when it returned.

    ``stop`` is set at SIGTERM or SIGINT. The process ends by force ``HARD_EXIT_AFTER`` later if it still lives.
    """

    async def main() -> None:
        async with stop_event() as stop:
            await serve(stop)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main())
    return 0


@asynccontextmanager
async def stop_event(grace: timedelta = HARD_EXIT_AFTER) -> AsyncIterator[asyncio.Event]:
    """An event of the running loop that SIGTERM and SIGINT set; main thread only."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    with _handled(lambda: loop.call_soon_threadsafe(stop.set), grace):
        yield stop


@contextmanager
def stop_flag(grace: timedelta = HARD_EXIT_AFTER) -> Iterator[threading.Event]:
    """The same for a process without an event loop."""
    stop = threading.Event()
    with _handled(stop.set, grace):
        yield stop


@contextmanager
def _handled(request: Callable[[], object], grace: timedelta) -> Iterator[None]:
    requested: list[int] = []

    # Not loop.add_signal_handler: a loop that is blocked would never start the watchdog.
    def handle(number: int, _frame: FrameType | None) -> None:
        if not requested:
            requested.append(number)
            # In a thread, because the main thread may hold the very lock that the request needs.
            _thread.start_new_thread(_stop_within, (request, grace.total_seconds()))

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if requested else handler)


def _stop_within(request: Callable[[], object], grace_seconds: float) -> None:
    with suppress(RuntimeError):  # the loop is closed: we are on our way out
        request()
    time.sleep(grace_seconds)
    sys.stderr.write("prefold: still not stopped; leaving by force\n")
    sys.stderr.flush()
    os._exit(1)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop
