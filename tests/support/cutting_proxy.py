"""A proxy that cuts connections: after the server has done the work, in the middle of its reply, or before."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Cuts:
    """Shares of the exchanges (a request and its reply) that are cut, and which exchanges count."""

    after: float = 0.3
    """The server has the whole request; its reply is lost, or arrives in part."""
    before: float = 0.03
    """The request is lost, or arrives in part."""
    concerns: Callable[[bytes], bool] = lambda _request: True


class CuttingProxy:
    """Listens on a free port of this machine for a server on TCP or a unix socket. Cuts nothing until told to."""

    def __init__(self, target: str, cuts: Cuts, seed: int) -> None:
        self._target = urlsplit(target)
        self._cuts = cuts
        self._random = random.Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.is_cutting = False
        self.exchanges = 0
        self.lost_replies = 0
        self.lost_requests = 0

    @property
    def url(self) -> str:
        """With the target's scheme; a unix socket's is ``redis``."""
        scheme = "redis" if self._target.scheme == "unix" else self._target.scheme
        return f"{scheme}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # the one who cancels waits in ``close``; asyncio's own callback would call it an error
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def close(self) -> None:
        """Ends all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._target.scheme == "unix":
            server_reader, server_writer = await asyncio.open_unix_connection(self._target.path)
        else:
            server_reader, server_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        exchange = _Exchange()
        pumps = {
            asyncio.create_task(self._requests(reader, server_writer, exchange)),
            asyncio.create_task(self._replies(server_reader, writer, exchange)),
        }
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Not aborted: what was sent to the server has to reach it, or a cut "after" would be one "before".
            server_writer.close()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _requests(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, exchange: "_Exchange"
    ) -> None:
        while data := await reader.read(_CHUNK):
            if not exchange.is_open and self._cuts.concerns(data):
                exchange.is_open = True
                self.exchanges += self.is_cutting
                if self._draws(self._cuts.before):
                    self.lost_requests += 1
                    server.write(data[: self._random.randrange(len(data))])
                    return
            server.write(data)
            await server.drain()

    async def _replies(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter, exchange: "_Exchange") -> None:
        while data := await server.read(_CHUNK):
            if exchange.is_open:
                exchange.is_open = False
                if self._draws(self._cuts.after):
                    self.lost_replies += 1
                    writer.write(data[: self._random.choice((0, 0, len(data) // 2))])
                    with suppress(ConnectionError):
                        await writer.drain()
                    return
            writer.write(data)
            await writer.drain()

    def _draws(self, share: float) -> bool:
        return self.is_cutting and self._random.random() < share


@dataclass(slots=True)
class _Exchange:
    """Of one connection: a request that counts has gone out, and no byte of its reply has come."""

    is_open: bool = False


@asynccontextmanager
async def cutting_proxy(target: str, seed: int, cuts: Cuts | None = None) -> AsyncIterator[CuttingProxy]:
    """A listening proxy; all of its connections end with it."""
    proxy = CuttingProxy(target, cuts or Cuts(), seed)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        await proxy.close()
