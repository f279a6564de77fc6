"""A lean connection for the two hot paths, append and context read.

Commands of many callers share one connection and go out in one write a loop turn; a general client spends ten
times the CPU a call. It speaks plain RESP2 to one server (no cluster, no TLS): ``connect_hot`` says whether a URL
can be served by it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit

from redis import exceptions

if TYPE_CHECKING:
    import hiredis
else:
    try:
        import hiredis
    except ImportError:  # a backend that has the base dependencies only
        from prefold.storage import plain_resp as hiredis

__all__ = ["Argument", "HotClient", "Waiting", "connect_hot", "serves"]

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
    ("ERR max number of clients", exceptions.ConnectionError),
)


class Waiting(Protocol):
    """Whoever waits for a reply: a future, or less. Called in the event loop, once; must not raise."""

    def done(self) -> bool:
        """True: nobody waits any more."""
        ...

    def set_result(self, reply: Any, /) -> None:
        """The reply."""
        ...

    def set_exception(self, error: Exception, /) -> None:
        """Redis-py's exception: a refusal, or a connection that failed."""
        ...


class _Together:
    """Waits for the replies to several commands; they come to ``waiting`` as one list, with what was refused in it."""

    __slots__ = ("_left", "_replies", "_waiting")

    def __init__(self, waiting: Waiting, count: int) -> None:
        self._waiting = waiting
        self._left = count
        self._replies: list[Any] = []

    def done(self) -> bool:
        return False  # replies are counted, whoever still waits for them

    def set_result(self, reply: Any, /) -> None:
        self._replies.append(reply)
        self._left -= 1
        if not self._left and not self._waiting.done():
            last = self._replies[-1]
            if isinstance(last, exceptions.ConnectionError | exceptions.TimeoutError):
                self._waiting.set_exception(last)
            else:
                self._waiting.set_result(self._replies)

    set_exception = set_result


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
        self._waiting: deque[tuple[Waiting, float]] = deque()
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
        reply: asyncio.Future[Any] = self._loop.create_future()
        self.start(packed, reply)
        return reply

    def start(self, packed: bytes, waiting: Waiting, count: int = 1) -> None:
        """The same without a future, for ``count`` commands, each of which has a reply for ``waiting``.

        Raises ``ConnectionError`` when it was closed between its opening and this: nobody would ever answer.
        """
        if self.closed:
            raise exceptions.ConnectionError("closed as soon as it was opened")
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(packed)
        entry = (waiting, self._loop.time())
        if count == 1:
            self._waiting.append(entry)
        else:
            self._waiting.extend([entry] * count)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and not self.closed:
            self._transport.writelines(out)

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

    def start(self, waiting: Waiting, *commands: Sequence[Argument]) -> bool:
        """Sends at once and once only, for a caller that goes the long way after any failure; False: not connected.

        ``waiting`` gets the reply to a single command, or the list of the replies as ``exchange`` gives it.
        """
        connection = self._connection
        if connection is None or connection.closed:
            return False
        if len(commands) == 1:
            connection.start(_pack(*commands[0]), waiting)
        else:
            packed = b"".join([_pack(*command) for command in commands])
            connection.start(packed, _Together(waiting, len(commands)), len(commands))
        return True

    def start_packed(self, waiting: Waiting, packed: bytes, count: int = 1) -> bool:
        """The same of ``count`` commands that are packed already."""
        connection = self._connection
        if connection is None or connection.closed:
            return False
        connection.start(packed, waiting if count == 1 else _Together(waiting, count), count)
        return True

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
        answered: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        connection.start(packed, _Together(answered, count), count)
        replies = await answered
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
