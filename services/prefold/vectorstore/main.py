"""The process ``prefold vectors``."""

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import structlog

from prefold.config.checking import check_folder
from prefold.config.flags import load_settings
from prefold.config.lifecycle import run_async
from prefold.config.logs import configure_logging
from prefold.serving import answer, listening, url_of
from prefold.telemetry.probe import serving_probe
from prefold.telemetry.process import observed
from prefold.vectorstore.app import app_of
from prefold.vectorstore.calls import Calls
from prefold.vectorstore.counted import Counted
from prefold.vectorstore.gate import Rules
from prefold.vectorstore.readiness import Readiness
from prefold.vectorstore.searches import WholeSearches
from prefold.vectorstore.settings import VectorstoreSettings
from prefold.vectorstore.store import Store, opened_store
from prefold.vectorstore.upkeep import keep_up
from prefold.vectorstore.wire import SearchProtocol

log = structlog.get_logger()

_GARBAGE = (10_000, 20, 50)


def main(argv: Sequence[str]) -> int:
    """Serves until SIGTERM or SIGINT, then flushes and closes the shards; 0.

    Raises ``ConfigurationError`` when another process owns the folder or the port, or a shard does not load.
    """
    settings = load_settings(
        VectorstoreSettings,
        argv,
        prog="prefold vectors",
        description="The embedded vector store.",
        check=lambda given: check_folder(given.data_dir / "vectors", "PREFOLD_DATA_DIR"),
    )
    configure_logging("vectors", settings)
    with observed("vectors", settings):
        return run_async(lambda stop: serve(settings, stop))


async def serve(settings: VectorstoreSettings, stop: asyncio.Event) -> None:
    """Runs the store until ``stop`` is set. Logs ``vectors_ready`` with its URL once it answers."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings.data_dir / "vectors"))
        listener = stack.enter_context(listening(settings.vectors_host, settings.vectors_port))
        upkeep = await stack.enter_async_context(_upkeep(store, settings))
        ready = Readiness(settings.data_dir / "vectors", upkeep)
        await stack.enter_async_context(serving_probe(settings, ready))
        log.info("vectors_ready", url=url_of(listener), pid=os.getpid())
        key = settings.qdrant_api_key
        limit = settings.vectors_max_body_bytes
        calls = Calls(store, limit)
        rules = Rules(key.get_secret_value() if key else None)
        app = app_of(calls, rules, limit, ready)
        _settle()
        http = partial(SearchProtocol, whole=WholeSearches(calls, rules, limit))
        await answer(Counted(app), listener, stop, http=http)
    log.info("vectors_stopped")


def _settle() -> None:
    """Keeps the collector of garbage off what is there from the start; an answer makes hundreds of objects, no circles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


@asynccontextmanager
async def _upkeep(store: Store, settings: VectorstoreSettings) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(
        keep_up(
            store,
            flush_every_seconds=settings.vectors_flush_seconds,
            vacuum_after_idle_seconds=settings.vectors_vacuum_idle_seconds,
        )
    )
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
