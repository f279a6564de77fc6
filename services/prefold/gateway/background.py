"""Things that take a second to load, loaded beside the start of the server."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import structlog

from prefold.errors import TransientError

T = TypeVar("T")

log = structlog.get_logger(__name__)

_THREADS = "load "
"""How the names of the threads begin."""


def is_loading() -> bool:
    """True while anything in this process is still being made."""
    return any(thread.name.startswith(_THREADS) for thread in threading.enumerate())


class InBackground(Generic[T]):
    """Makes one thing once, in a thread. Who needs it earlier waits without holding up the others.

    ``make`` may raise: then every ``get`` raises the same, and it is logged. After a ``TransientError`` it is made
    again by itself, ``pause_seconds`` later. A load under way never holds up the end of the process.
    """

    def __init__(self, name: str, make: Callable[[], T], *, pause_seconds: float = 5.0) -> None:
        self._name = name
        self._make = make
        self._pause_seconds = pause_seconds
        self._made: asyncio.Future[T] | None = None

    def start(self) -> None:
        """Begin. Needs a running loop; twice is legal."""
        if self._made is not None:
            return
        loop = asyncio.get_running_loop()
        made: asyncio.Future[T] = loop.create_future()
        made.add_done_callback(self._after)
        # Not the loop's executor: the loop would wait for it when it closes.
        threading.Thread(target=self._run, args=(loop, made), name=f"{_THREADS}{self._name}", daemon=True).start()
        self._made = made

    async def get(self) -> T:
        """The thing, as soon as it is there."""
        self.start()
        made = self._made
        assert made is not None
        if made.done():
            return made.result()
        # A caller that gives up must not take the others' load with it.
        return await asyncio.shield(made)

    def now(self) -> T | None:
        """The thing if it is there already."""
        return self._made.result() if self.is_ready and self._made is not None else None

    @property
    def is_ready(self) -> bool:
        """True when ``get`` answers at once."""
        made = self._made
        return made is not None and made.done() and not made.cancelled() and made.exception() is None

    def _run(self, loop: asyncio.AbstractEventLoop, made: "asyncio.Future[T]") -> None:
        try:
            thing = self._make()
        except Exception as error:  # noqa: BLE001  # the thread's boundary: whoever asks gets it
            self._hand_over(loop, made.set_exception, error)
        else:
            self._hand_over(loop, made.set_result, thing)

    @staticmethod
    def _hand_over(loop: asyncio.AbstractEventLoop, give: Callable[..., None], what: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody asks any more
            loop.call_soon_threadsafe(give, what)

    def _after(self, made: "asyncio.Future[T]") -> None:
        if made.cancelled() or (error := made.exception()) is None:
            return
        log.error("load_failed", what=self._name, error=type(error).__qualname__, reason=str(error))
        if isinstance(error, TransientError):
            made.get_loop().call_later(self._pause_seconds, self._again)

    def _again(self) -> None:
        self._made = None
        self.start()
