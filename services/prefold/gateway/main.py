"""The process ``prefold gateway``."""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Final

import structlog
import uvicorn

from prefold.config.flags import load_settings
from prefold.config.lifecycle import run_async
from prefold.config.logs import configure_logging
from prefold.errors import ConfigurationError
from prefold.gateway.background import is_loading
from prefold.gateway.composition import gateway
from prefold.gateway.door import Door
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.wire import BoundedHttpProtocol

log = structlog.get_logger(__name__)

_KEEP_ALIVE_SECONDS: Final = 75
_FINISH_CALLS_SECONDS: Final = 2
_BACKLOG: Final = 1024


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
        listener = stack.enter_context(_listener(settings.host, settings.port))
        host, port = listener.getsockname()[:2]
        log.info("gateway_ready", url=f"http://{f'[{host}]' if ':' in host else host}:{port}", pid=os.getpid())
        await _answer(app, listener, stop)
    log.info("gateway_stopped")


class _Server(uvicorn.Server):
    """Leaves the signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _answer(app: Door, listener: socket.socket, stop: asyncio.Event) -> None:
    server = _Server(
        uvicorn.Config(
            app,
            http=BoundedHttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
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
    with contextlib.ExitStack() as stack:
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        yield listener
