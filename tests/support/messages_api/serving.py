"""The fake over real HTTP, in a thread of this process, and without any connection at all."""

import asyncio
import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import httpx2
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tests.support.messages_api.api import MessagesApi
from tests.support.messages_api.exchange import ABORT, ConnectionCutError

_MOST_SECONDS_TO_END = 0.5
_NO_LINGER = struct.pack("ii", 1, 0)


class _Cuttable(HttpToolsProtocol):
    """Lets the application reset its connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions: dict[str, Any] = {ABORT: self._reset}
        self.scope["extensions"] = extensions

    def _reset(self) -> None:
        taken = self.transport.get_extra_info("socket")
        if taken is not None:
            # uvloop's stand-in for a socket cannot set options: the descriptor can.
            with socket.socket(fileno=os.dup(taken.fileno())) as copy:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()


class Server(uvicorn.Server):
    """Stops at once: calls that run are cut off."""

    async def main_loop(self) -> None:
        self._loop, self._is_asked = asyncio.get_running_loop(), asyncio.Event()
        while not self._is_asked.is_set():
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_asked.wait(), 1)

    def stop(self) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._is_asked.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.stop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        # Whoever waits for time to pass notices; who waits for something else is told.
        running = list(self.server_state.tasks)
        if running:
            _, stuck = await asyncio.wait(running, timeout=_MOST_SECONDS_TO_END)
            for task in stuck:
                task.cancel()


def server_of(api: MessagesApi) -> Server:
    """The fake as it is served, whoever serves it."""
    return Server(
        uvicorn.Config(api, http=_Cuttable, lifespan="off", log_config=None, access_log=False, server_header=False)
    )


@contextmanager
def serving(api: MessagesApi) -> Iterator[str]:
    """Its base URL, for ``ANTHROPIC_BASE_URL`` or ``base_url``. It runs in a thread of this process."""
    listener = listening(0)
    server = server_of(api)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the fake Messages API did not start")
            time.sleep(0.001)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        thread.join()
        listener.close()


def listening(port: int) -> socket.socket:
    """A socket of this machine; 0: any port that is free."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(1024)
    return listener


@contextmanager
def refusing() -> Iterator[str]:
    """A base URL whose connections are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


class _InProcess(httpx2.ASGITransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except ConnectionCutError as cut:
            raise httpx2.RemoteProtocolError(f"connection cut: {cut}", request=request) from cut


def in_process(api: MessagesApi) -> httpx2.AsyncClient:
    """An HTTP client whose every call ends in ``api``; for the SDK's ``http_client``."""
    return httpx2.AsyncClient(transport=_InProcess(app=api), base_url="http://messages.fake")
