"""What the jobs of one worker process share.

RQ calls a job by its name and hands it nothing but arguments. So the process has one runtime, which ``runtime()``
builds when it is first asked for, in the process that runs the jobs. Tests ``install`` one of their own.
"""

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from prefold.errors import ConfigurationError, TransientError
from prefold.storage import Sessions, connect_sessions
from prefold.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from prefold.embedding import Embedder
    from prefold.messages import Messages
    from prefold.recall import VectorIndex
    from prefold.recall.memory import MemoryIndex
    from prefold.tokens import TokenCounter
    from prefold.worker.turn_store import MadeIndex

T = TypeVar("T")

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.1
_CANCEL_SECONDS = 3
_CLOSE_SECONDS = 2


class HandedBackError(TransientError):
    """The worker stops, and the job goes back to the queue."""

    code = "handed_back"


class Runtime:
    """An event loop in a thread of its own, and the collaborators that live on it.

    The loop is not the main thread's, because RQ ends a job that takes too long by an exception raised in the
    main thread: that must interrupt somebody who waits, never a loop in the middle of its bookkeeping.

    Collaborators are built when they are first used. Use them in the job's own function, before ``run``:
    loading a model takes a moment and would hold up the loop.
    """

    def __init__(self, settings: WorkerSettings, stop: threading.Event) -> None:
        self.settings = settings
        self.stop = stop
        """Set when the process is to stop. A job looks at it between two sessions or batches, and returns."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="jobs", daemon=True)
        self._thread.start()
        self._resources = AsyncExitStack()
        self._stopping_since: float | None = None
        self._settling: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns or raises; it runs on the loop while this thread waits.

        When the stop is set and ``worker_stop_seconds`` have passed, the work is cancelled and
        ``HandedBackError`` raised. Whatever interrupts the wait cancels the work too, before it is passed on.
        ``RuntimeError`` on the loop's own thread, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "run() waits for the loop: take collaborators from the runtime before, not in a coroutine"
            )
        tasks: list[asyncio.Task[Any] | None] = []

        async def supervised() -> T:
            tasks.append(asyncio.current_task())
            return await work

        future = asyncio.run_coroutine_threadsafe(supervised(), self._loop)
        try:
            while not wait([future], timeout=_LOOK_SECONDS).done:
                if self._stop_is_overdue():
                    raise HandedBackError("the worker stops")
        except BaseException:
            self._cancel(future, tasks)
            raise
        return future.result()

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """What the context gives; it is left when the runtime closes."""
        return self.run(self._resources.enter_async_context(context))

    def outlives_jobs(
        self, settle: Callable[[], Coroutine[Any, Any, None]], cancel: Callable[[], Awaitable[None]]
    ) -> None:
        """Work that no job waits for: ``settle`` waits for its end, ``cancel`` ends it before its collaborators go."""
        self._settling.append(settle)
        self._resources.push_async_callback(cancel)

    def settle(self) -> None:
        """Waits until such work has ended; cancels it, as ``run`` does, once the stop is overdue."""
        with suppress(HandedBackError):
            for settle in self._settling:
                self.run(settle())

    def close(self) -> bool:
        """Closes every collaborator and the loop. Closing twice is legal.

        False: a thread of the work is still blocked, in an embedder for example, and Python would wait for it at exit.
        """
        if self._loop.is_closed():
            return True
        closing = asyncio.run_coroutine_threadsafe(self._close_resources(), self._loop)
        has_ended = bool(wait([closing], timeout=_CLOSE_SECONDS).done)
        if not has_ended:
            log.warning("runtime_close_timed_out")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
        return has_ended

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions, usable on the loop only."""
        settings = self.settings
        connecting = connect_sessions(settings.redis_url, max_connections=settings.redis_max_connections)
        return self.run(self._resources.enter_async_context(connecting))

    @cached_property
    def embedder(self) -> "Embedder":
        """The configured embedder, loaded. Its calls block: use them in a thread."""
        from prefold.embedding import embedder_from_settings

        embedder = embedder_from_settings(self.settings)
        self._resources.callback(embedder.close)
        return embedder

    @cached_property
    def index(self) -> "VectorIndex":
        """The collection of the configured embedder's vectors, usable on the loop only."""
        from prefold.recall import CollectionSpec, connect_vectors

        key = self.settings.qdrant_api_key
        connecting = connect_vectors(
            self.settings.qdrant_url,
            CollectionSpec(self.embedder.id, self.embedder.dimension),
            scale=self.embedder.scale,
            api_key=key.get_secret_value() if key else None,
        )
        return self.run(self._resources.enter_async_context(connecting))

    @cached_property
    def memory_index(self) -> "MemoryIndex":
        """The collection of what is derived from turns, usable on the loop only."""
        from prefold.recall import CollectionSpec
        from prefold.recall.memory import connect_memory

        key = self.settings.qdrant_api_key
        connecting = connect_memory(
            self.settings.qdrant_url,
            CollectionSpec(self.embedder.id, self.embedder.dimension),
            scale=self.embedder.scale,
            api_key=key.get_secret_value() if key else None,
        )
        return self.run(self._resources.enter_async_context(connecting))

    @cached_property
    def turn_store(self) -> "MadeIndex":
        """The same, as the embed job writes to it."""
        from prefold.worker.turn_store import MadeIndex

        return MadeIndex(self.index)

    @cached_property
    def counter(self) -> "TokenCounter":
        """Counts raw tokens."""
        from prefold.tokens import load_counter

        return load_counter()

    @cached_property
    def messages(self) -> "Messages":
        """The model that writes summaries, usable on the loop only. ``ConfigurationError``: it is not set up."""
        import anthropic  # noqa: F401 (takes seconds: here, not on the loop)

        from prefold.messages import connect_messages

        connecting = connect_messages(self.settings, self.sessions.spending, gate_url=self.settings.queue_url)
        return self.run(self._resources.enter_async_context(connecting))

    @staticmethod
    def now_ms() -> int:
        """Milliseconds of the wall clock."""
        return time.time_ns() // 1_000_000

    def _stop_is_overdue(self) -> bool:
        if not self.stop.is_set():
            return False
        now = time.monotonic()
        if self._stopping_since is None:
            self._stopping_since = now
        return now - self._stopping_since >= self.settings.worker_stop_seconds

    def _cancel(self, future: "Future[Any]", tasks: "list[asyncio.Task[Any] | None]") -> None:
        for task in tasks:
            if task is not None:
                self._loop.call_soon_threadsafe(task.cancel)
        if not wait([future], timeout=_CANCEL_SECONDS).done:
            # Something blocks the loop, and the next job would wait behind it. The process has to go, as if it
            # had been told to: by its watchdog if need be.
            log.critical("job_does_not_end")
            signal.raise_signal(signal.SIGTERM)

    async def _close_resources(self) -> None:
        await self._resources.aclose()
        await self._loop.shutdown_default_executor()


_prepared: tuple[WorkerSettings, threading.Event] | None = None
_runtime: Runtime | None = None


def prepare(settings: WorkerSettings, stop: threading.Event) -> None:
    """Says from what ``runtime()`` is built. Opens nothing."""
    global _prepared
    _prepared = (settings, stop)


def runtime() -> Runtime:
    """The process's runtime, built at the first call; main thread only."""
    global _runtime
    if _runtime is None:
        if _prepared is None:
            raise ConfigurationError("this process is not a worker: run `prefold worker`")
        _runtime = Runtime(*_prepared)
    return _runtime


def install(replacement: Runtime) -> None:
    """Makes ``replacement`` the process's runtime: for tests."""
    global _runtime
    _runtime = replacement


def close_runtime() -> bool:
    """Closes the runtime if there is one; the next ``runtime()`` builds another. False: see ``Runtime.close``."""
    global _runtime
    closing, _runtime = _runtime, None
    return closing.close() if closing is not None else True
