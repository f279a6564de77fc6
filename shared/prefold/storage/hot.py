"""A lean connection for the two hot paths, append and context read.

Commands of many callers share one connection and go out in one write a loop turn; a general client spends ten
times the CPU a call. It speaks plain RESP2 to one server (no cluster, no TLS): ``connect_hot`` says whether a URL
can be served by it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

import hiredis
from redis import exceptions

__all__ = ["Argument", "HotClient", "connect_hot", "serves"]

T = TypeVar("T")
Argument = str | bytes | int
_PAUSES = (0.0, 0.02, 0.1, 0.3)
"""Seconds before each try: a server that restarts is ridden through, a dead one is reported within half a second."""
_SETTLED_SECONDS = 1.0
"""A connection younger than this led to the server that the address names now."""
_PREFIXES: tuple[tuple[str, type[exceptions.ResponseError] | type[exceptions.ConnectionError]], ...] = (
    ("NOSCRIPT", exceptions.NoScriptError),
    ("OOM", exceptions.OutOfMemoryError),
    ("READONLY", exceptions.ReadOnlyError),
    ("LOADING", exceptions.BusyLoadingError),
)


def _pack(*command: Argument) -> bytes:
    packed: bytes = hiredis.pack_command(command)  # type: ignore[arg-type]  # its stub knows one-tuples only
    return packed


def _error(text: str) -> Exception:
    for prefix, kind in _PREFIXES:
        if text.startswith(prefix):
            return kind(text)
    return exceptions.ResponseError(text)


class _Connection(asyncio.Protocol):
    """One socket; replies come in the order of the commands."""

    def __init__(self, timeout_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=_error)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._out: list[bytes] = []
        self._transport: asyncio.WriteTransport | None = None
        self._timeout = timeout_seconds
        self._watch: asyncio.TimerHandle | None = None
        self.made_at = self._loop.time()
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is not one by its class
        self._check()

    def _check(self) -> None:
        """Drops the connection when its oldest command has waited too long: one timer instead of one a call."""
        if self._waiting and self._loop.time() - self._waiting[0][1] > self._timeout:
            self.fail(exceptions.TimeoutError("the server took too long"))
        if not self.closed:
            self._watch = self._loop.call_later(self._timeout / 4, self._check)

    def send(self, packed: bytes) -> asyncio.Future[Any]:
        """The reply to come; commands of one loop turn leave in one write."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(packed)
        reply = self._loop.create_future()
        self._waiting.append((reply, self._loop.time()))
        return reply

    def _flush(self) -> None:
        if self._transport is not None and not self.closed:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while self._waiting:
            reply = self._reader.gets()
            if reply is False:
                return
            future, _ = self._waiting.popleft()
            if future.done():  # its caller gave up
                continue
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(exceptions.ConnectionError(f"connection lost: {exc}" if exc else "connection closed"))

    def fail(self, error: Exception) -> None:
        """Ends the connection; all who wait hear why."""
        if self.closed:
            return
        self.closed = True
        if self._watch is not None:
            self._watch.cancel()
        if self._transport is not None:
            self._transport.abort() if isinstance(self._transport, asyncio.Transport) else self._transport.close()
        while self._waiting:
            future, _ = self._waiting.popleft()
            if not future.done():
                future.set_exception(error)


class HotClient:
    """Sends what is safe to repeat: after a lost connection a command goes out again, a few times.

    A command whose reply did not come in time is never sent again from here: nobody knows what became of it, and the
    server may be busy with it still. ``timeout_seconds`` bounds a connect, and each reply. ``pauses``: seconds before
    each try.
    """

    def __init__(self, url: str, timeout_seconds: float = 5.0, pauses: Sequence[float] = _PAUSES) -> None:
        self._url = urlsplit(url)
        self._timeout = timeout_seconds
        self._pauses = pauses
        self._connection: _Connection | None = None
        self._connecting: asyncio.Task[_Connection] | None = None
        self.connections_made = 0
        """Rises with each new connection: behind it there may be another server, or the same one set up otherwise."""

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Argument) -> Any:
        """The script's reply."""
        return await self.execute(("EVALSHA", sha, numkeys, *keys_and_args))

    async def script_load(self, script: str) -> Any:
        """The script's digest."""
        return await self.execute(("SCRIPT", "LOAD", script))

    async def execute(self, *commands: Sequence[Argument]) -> Any:
        """The reply to the last of ``commands``, which go out together. Raises redis-py's exceptions."""
        if len(commands) == 1:
            packed = _pack(*commands[0])
            return await self._persist(lambda: self._alone(packed))
        replies = await self.exchange(commands)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return replies[-1]

    async def exchange(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """The replies to ``commands``, which go out together; what the server refuses stands as an exception.

        Raises redis-py's exceptions when the connection fails: then all of them are sent again, or none.
        """
        packed = b"".join(_pack(*command) for command in commands)
        return await self._persist(lambda: self._together(packed, len(commands)))

    async def _persist(self, once: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        started = loop.time()
        problem: Exception | None = None
        for pause in self._pauses:
            if pause:
                await asyncio.sleep(pause)
            try:
                return await once()
            except exceptions.ReadOnlyError as error:
                problem = error
                self._leave_replica()
            except (exceptions.ConnectionError, OSError) as error:
                problem = error
            if loop.time() - started > self._timeout:
                break
        assert problem is not None
        raise problem

    async def _alone(self, packed: bytes) -> Any:
        connection = self._connection
        if connection is None or connection.closed:
            connection = await self._connected()
        return await connection.send(packed)

    async def _together(self, packed: bytes, count: int) -> list[Any]:
        connection = self._connection
        if connection is None or connection.closed:
            connection = await self._connected()
        waiting = [connection.send(packed), *(connection.send(b"") for _ in range(count - 1))]
        replies = await asyncio.gather(*waiting, return_exceptions=True)
        last = replies[-1]
        if isinstance(last, exceptions.ConnectionError | exceptions.TimeoutError):
            raise last
        if any(isinstance(reply, exceptions.ReadOnlyError) for reply in replies):
            self._leave_replica()
        return replies

    def _leave_replica(self) -> None:
        """After a failover the address may lead to the new primary, but an open connection never does."""
        connection = self._connection
        if connection is not None and asyncio.get_running_loop().time() - connection.made_at > _SETTLED_SECONDS:
            connection.fail(exceptions.ConnectionError("the server has become a replica"))

    async def _connected(self) -> _Connection:
        """The connection, made once for all who wait: with a server that hangs they wait for one attempt together."""
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(_hear)
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        connection = _Connection(self._timeout)
        try:
            async with asyncio.timeout(self._timeout):
                if self._url.scheme == "unix":
                    await loop.create_unix_connection(lambda: connection, self._url.path)
                else:
                    host, port = self._url.hostname or "127.0.0.1", self._url.port or 6379
                    await loop.create_connection(lambda: connection, host, port)
                await self._greet(connection)
        except BaseException as error:
            connection.fail(exceptions.ConnectionError("not opened"))
            if isinstance(error, TimeoutError):
                raise exceptions.TimeoutError("no connection in time") from error
            raise
        self._connection = connection
        self.connections_made += 1
        return connection

    async def _greet(self, connection: _Connection) -> None:
        if self._url.password:
            user = (unquote(self._url.username),) if self._url.username else ()
            await connection.send(_pack("AUTH", *user, unquote(self._url.password)))
        database = self._url.path.strip("/") if self._url.scheme == "redis" else ""
        if database and database != "0":
            await connection.send(_pack("SELECT", database))

    def close(self) -> None:
        """Ends the connection; twice is harmless."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.fail(exceptions.ConnectionError("closed"))


def _hear(attempt: "asyncio.Task[_Connection]") -> None:
    """All who waited for it may have given up; a failure that nobody hears is reported as a bug."""
    if not attempt.cancelled():
        attempt.exception()


def serves(url: str) -> bool:
    """True for a plain server: ``unix:///path`` or ``redis://…``, without options in a query."""
    parts = urlsplit(url)
    return parts.scheme in ("unix", "redis") and not parts.query


@asynccontextmanager
async def connect_hot(url: str) -> AsyncIterator[HotClient | None]:
    """A lean client, or None where the URL asks for more than it can do."""
    client = HotClient(url) if serves(url) else None
    try:
        yield client
    finally:
        if client is not None:
            client.close()
