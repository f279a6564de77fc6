"""The process ``prefold vectors``."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import structlog
import uvicorn

from prefold.config.flags import load_settings
from prefold.config.lifecycle import run_async
from prefold.config.logs import configure_logging
from prefold.errors import ConfigurationError
from prefold.vectorstore.app import create_app
from prefold.vectorstore.settings import VectorstoreSettings
from prefold.vectorstore.store import Store, opened_store
from prefold.vectorstore.upkeep import keep_up

log = structlog.get_logger()

_KEEP_ALIVE_SECONDS: Final = 75
_FINISH_CALLS_SECONDS: Final = 2
_BACKLOG: Final = 1024


def main(argv: Sequence[str]) -> int:
    """Serves until SIGTERM or SIGINT, then flushes and closes the shards; 0.

    Raises ``ConfigurationError`` when another process owns the folder or the port, or a shard does not load.
    """
    settings = load_settings(
        VectorstoreSettings, argv, prog="prefold vectors", description="The embedded vector store."
    )
    configure_logging("vectors", settings)
    return run_async(lambda stop: serve(settings, stop))


async def serve(settings: VectorstoreSettings, stop: asyncio.Event) -> None:
    """Runs the store until ``stop`` is set. Logs ``vectors_ready`` with its URL once it answers."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings.data_dir / "vectors"))
        listener = stack.enter_context(_listener(settings.vectors_host, settings.vectors_port))
        await stack.enter_async_context(_upkeep(store, settings))
        host, port = listener.getsockname()[:2]
        log.info("vectors_ready", url=f"http://{f'[{host}]' if ':' in host else host}:{port}", pid=os.getpid())
        await _answer(store, settings, listener, stop)
    log.info("vectors_stopped")


class _Server(uvicorn.Server):
    """Leaves the signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _answer(store: Store, settings: VectorstoreSettings, listener: socket.socket, stop: asyncio.Event) -> None:
    key = settings.qdrant_api_key
    app = create_app(
        store, max_body_bytes=settings.vectors_max_body_bytes, api_key=key.get_secret_value() if key else None
    )
    server = _Server(
        uvicorn.Config(
            app,
            http="httptools",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_FINISH_CALLS_SECONDS,
        )
    )
    serving = asyncio.create_task(server.serve([listener]))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    server.should_exit = True
    await serving


@contextlib.contextmanager
def _listener(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; made here so that a port in use is our error, and port 0 is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        yield listener


@asynccontextmanager
async def _upkeep(store: Store, settings: VectorstoreSettings) -> AsyncIterator[None]:
    task = asyncio.create_task(
        keep_up(
            store,
            flush_every_seconds=settings.vectors_flush_seconds,
            vacuum_after_idle_seconds=settings.vectors_vacuum_idle_seconds,
        )
    )
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
