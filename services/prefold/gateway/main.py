"""The process ``prefold gateway``."""

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

import structlog

from prefold.config.checking import check_log_file
from prefold.config.flags import load_settings
from prefold.config.lifecycle import run_async
from prefold.config.logs import configure_logging
from prefold.embedding import check_embedder
from prefold.gateway.background import is_loading
from prefold.gateway.composition import gateway, key_ring_of
from prefold.gateway.door import Door
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.traced import traced
from prefold.gateway.whole_requests import WholeRequestProtocol
from prefold.serving import answer, listening, url_of
from prefold.telemetry.probe import serving_probe
from prefold.telemetry.process import observed

log = structlog.get_logger(__name__)

_GARBAGE = (10_000, 20, 50)
"""Objects between two looks for garbage, and how many looks go by before one at older objects."""


def main(argv: Sequence[str]) -> int:
    """Serves until SIGTERM or SIGINT, then finishes the calls under way; 0.

    Raises ``ConfigurationError`` when the settings cannot serve or the port is in use, ``UnavailableError`` when the
    session store does not answer.
    """
    settings = load_settings(
        GatewaySettings, argv, prog="prefold gateway", description="The HTTP API.", check=check_settings
    )
    configure_logging("gateway", settings)
    with observed("gateway", settings):
        code = run_async(lambda stop: serve(settings, stop))
    if is_loading():
        # A native library that is still being loaded aborts an interpreter that ends around it.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(code)
    return code


def check_settings(settings: GatewaySettings) -> None:
    """``ConfigurationError``: the keys' file cannot be read, or the embedder cannot be loaded."""
    if (ring := key_ring_of(settings)) is not None:
        ring.load()
    check_log_file(settings.audit_file, "PREFOLD_AUDIT_FILE")
    check_embedder(settings)


async def serve(settings: GatewaySettings, stop: asyncio.Event) -> None:
    """Serves until ``stop`` is set. Logs ``gateway_ready`` with its URL once it answers."""
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(gateway(settings))
        listener = stack.enter_context(listening(settings.host, settings.port))
        log.info("gateway_ready", url=url_of(listener), pid=os.getpid())
        await stack.enter_async_context(serving_probe(settings, app.ready))
        ending = asyncio.create_task(_end_streams(app, stop))
        stack.callback(ending.cancel)
        served = traced(app)
        # Of a request on the short way no trace is made.
        http = partial(WholeRequestProtocol, shortcut=app.shortcut if served is app else None)
        settle()
        await answer(served, listener, stop, http=http)
    log.info("gateway_stopped")


def settle() -> None:
    """Keeps the collector of garbage off what is there from the start: a look at all of it takes tens of milliseconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


async def _end_streams(app: Door, stop: asyncio.Event) -> None:
    await stop.wait()
    app.stopping.set()
