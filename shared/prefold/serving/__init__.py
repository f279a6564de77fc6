"""How a process answers HTTP: one listener, one uvicorn server that leaves the signals to the process."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final

import uvicorn

from prefold.errors import ConfigurationError

__all__ = ["answer", "listening", "url_of"]

_KEEP_ALIVE_SECONDS: Final = 75
_FINISH_CALLS_SECONDS: Final = 2
_BACKLOG: Final = 1024


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; port 0 takes a free one. ``ConfigurationError``: the address cannot be had."""
    with contextlib.ExitStack() as stack:
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Handed on to what it accepts: without uvloop an answer in two writes would wait for the client's delayed ACK.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        yield listener


def url_of(listener: socket.socket) -> str:
    """Where a listener is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Server(uvicorn.Server):
    """Leaves the signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def answer(app: Any, listener: socket.socket, stop: asyncio.Event, *, http: Any = "httptools") -> None:
    """Answers with the ASGI ``app`` until ``stop`` is set, then lets the calls under way finish for a moment."""
    server = _Server(
        uvicorn.Config(
            app,
            http=http,
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
