"""The gateway's application on a real port, served by a thread of this process: for clients that block."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import uvicorn

from tests.support.gateway import served_gateway


class _Serving:
    """One server and the loop that it runs in."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does not see that it is TCP
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._begun = Event()
        self._server: uvicorn.Server | None = None
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), name="gateway")

    async def _serve(self) -> None:
        async with served_gateway(self._redis_url) as served:
            config = uvicorn.Config(served.transport.app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
            self._server = uvicorn.Server(config)
            self._begun.set()
            await self._server.serve(sockets=[self._socket])

    def start(self) -> None:
        self._thread.start()
        assert self._begun.wait(30), "the gateway did not begin"

    def stop(self) -> None:
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()


@contextmanager
def gateway_thread(redis_url: str) -> Iterator[str]:
    """Address of a gateway on that Redis, until the end of the block."""
    serving = _Serving(redis_url)
    serving.start()
    try:
        yield serving.url
    finally:
        serving.stop()
