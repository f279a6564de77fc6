"""The process ``prefold gateway``."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

import structlog

from prefold.config.flags import load_settings
from prefold.config.lifecycle import run_async
from prefold.config.logs import configure_logging
from prefold.gateway.background import is_loading
from prefold.gateway.composition import gateway
from prefold.gateway.door import Door
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.wire import BoundedHttpProtocol
from prefold.serving import answer, listening, url_of

log = structlog.get_logger(__name__)


def main(argv: Sequence[str]) -> int:
    """Serves until SIGTERM or SIGINT, then finishes the calls under way; 0.

    Raises ``ConfigurationError`` when the settings cannot serve or the port is in use, ``UnavailableError`` when the
    session store does not answer.
    """
    settings = load_settings(GatewaySettings, argv, prog="prefold gateway", description="The HTTP API.")
    configure_logging("gateway", settings)
    code = run_async(lambda stop: serve(settings, stop))
    if is_loading():
        # A native library that is still being loaded aborts an interpreter that ends around it.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(code)
    return code


async def serve(settings: GatewaySettings, stop: asyncio.Event) -> None:
    """Serves until ``stop`` is set. Logs ``gateway_ready`` with its URL once it answers."""
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(gateway(settings))
        listener = stack.enter_context(listening(settings.host, settings.port))
        log.info("gateway_ready", url=url_of(listener), pid=os.getpid())
        ending = asyncio.create_task(_end_streams(app, stop))
        stack.callback(ending.cancel)
        await answer(app, listener, stop, http=BoundedHttpProtocol)
    log.info("gateway_stopped")


async def _end_streams(app: Door, stop: asyncio.Event) -> None:
    await stop.wait()
    app.stopping.set()
