"""HTTP to one server over connections that stay open: the least a search needs.

A general client spends four times the CPU of the search itself on each request; this one writes a request in one
piece, parses the answer with httptools and does nothing else. One server, no redirects, no proxies, no cookies.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Final, NamedTuple, Self, cast
from urllib.parse import urlsplit

import httptools

from prefold.errors import ConfigurationError, UnavailableError

_MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024


class Answer(NamedTuple):
    """What the server said."""

    status: int
    body: bytes


class _Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._size = 0
        self.answering = False
        """A part of the answer has come."""

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes) -> Answer:
        """Sends and waits. Raises ``ConnectionError`` when the connection ends or its bytes are not HTTP."""
        if self._transport is None:
            raise ConnectionResetError("the server closed the connection")
        self._answer = asyncio.get_running_loop().create_future()
        self._parser, self._parts, self._size, self.answering = httptools.HttpResponseParser(self), [], 0, False
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is none by class

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(exc or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self.answering = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"not an HTTP answer: {error}"))
            self.close()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > _MAX_ANSWER_BYTES:
            self._fail(ConnectionError(f"the answer is larger than {_MAX_ANSWER_BYTES} bytes"))
            self.close()
            return
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if not self._parser.should_keep_alive():
            self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._parser.get_status_code(), b"".join(self._parts)))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error if isinstance(error, ConnectionError) else ConnectionError(str(error)))


class HttpTransport:
    """Requests to one server. Belongs to the event loop in which it is first used.

    Raises ``UnavailableError`` when the server does not answer in time or not in HTTP. Never tries again but in one
    case: a connection that had waited in the pool was closed before the first byte of the answer, as servers do with
    idle ones; then once, on a new connection.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: dict[str, str],
        connect_timeout: timedelta,
        request_timeout: timedelta,
        max_connections: int,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"{url!r} is not an http:// or https:// address")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/")
        fields = {"host": parts.netloc.rpartition("@")[2], "accept": "application/json", **headers}
        self._head = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in fields.items())
        self._connect_timeout = connect_timeout.total_seconds()
        self._request_timeout = request_timeout.total_seconds()
        self._places = asyncio.Semaphore(max_connections)
        self._idle: list[_Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections. Twice is legal."""
        while self._idle:
            self._idle.pop().close()

    async def request(self, method: str, path: str, body: bytes = b"") -> Answer:
        """The server's answer, whatever its status. ``path`` is quoted already; a body is JSON."""
        content = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
        message = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._head}{content}\r\n".encode("latin-1") + body
        try:
            async with asyncio.timeout(self._request_timeout), self._places:
                return await self._send(message)
        except TimeoutError as error:
            raise UnavailableError(f"{self._name} did not answer within {self._request_timeout:g} s") from error
        except OSError as error:
            raise UnavailableError(f"{self._name} cannot be reached: {error}") from error

    @property
    def _name(self) -> str:
        return f"the vector store at {self._host}:{self._port}"

    async def _send(self, message: bytes) -> Answer:
        if connection := self._pooled():
            try:
                return await self._exchange(connection, message)
            except ConnectionError:
                if connection.answering:
                    raise
                self.close()  # the others have waited longer
        return await self._exchange(await self._connected(), message)

    async def _exchange(self, connection: _Connection, message: bytes) -> Answer:
        try:
            answer = await connection.exchange(message)
        except BaseException:
            # Whatever ended it, also a cancellation: an answer still under way must not meet the next request.
            connection.close()
            raise
        if connection.usable:
            self._idle.append(connection)
        return answer

    def _pooled(self) -> _Connection | None:
        while self._idle:
            if (connection := self._idle.pop()).usable:
                return connection
        return None

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        factory: Callable[[], _Connection] = _Connection
        async with asyncio.timeout(self._connect_timeout):
            _, connection = await loop.create_connection(factory, self._host, self._port, ssl=self._tls)
        return connection


def _one_line(value: str) -> str:
    with suppress(UnicodeEncodeError):
        value.encode("latin-1")
        if "\r" not in value and "\n" not in value:
            return value
    raise ConfigurationError("a header of the vector store's client has characters that no header can carry")
