"""One request and its reply over ASGI, and the ways to spoil it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import orjson

from tests.support.messages_api.clock import Clock, MachineClock
from tests.support.messages_api.errors import ApiError
from tests.support.messages_api.journal import Entry

T = TypeVar("T")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

ABORT = "messages_api.abort"
"""The ASGI extension by which our own server cuts a connection."""
MOST_BODY_BYTES = 32 * 1024 * 1024


class ConnectionCutError(Exception):
    """Stands for a cut connection where there is none, in process."""


class ClientGoneError(Exception):
    """The client hung up: nobody reads an answer."""


class Exchange:
    """The reply is started once; whatever is sent after the client has gone raises ``ClientGoneError``."""

    def __init__(self, scope: Message, receive: Receive, send: Send, entry: Entry, clock: Clock) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.entry = entry
        self.clock = clock
        self.headers: dict[str, str] = {"request-id": entry.request_id, "anthropic-organization-id": "org_fake"}
        self.has_started = False

    async def read(self) -> None:
        """The whole body into the entry; 413 past the limit, which is told before anything else is looked at."""
        chunks, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise self._gone()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > MOST_BODY_BYTES:
                raise ApiError(413, "request_too_large", "Request exceeds the maximum size")
            if not message.get("more_body", False):
                break
        self.entry.body = b"".join(chunks)

    async def pause(self, seconds: float | None) -> None:
        """Waits so long (None: for ever), unless the client hangs up first."""
        if seconds is not None and seconds <= 0:
            return
        if not isinstance(self.clock, MachineClock) and seconds is not None:
            await self.clock.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._left()
                raise self._gone()

    async def wait_for(self, work: Awaitable[T]) -> T:
        """What ``work`` returns; it is cancelled when the client hangs up."""
        working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._left())
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise self._gone()
            return await working
        finally:
            working.cancel()
            leaving.cancel()

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, kind: str, size: int | None = None) -> None:
        self.entry.status = status
        length = {} if size is None else {"content-length": str(size)}
        headers = {"content-type": kind, **length, **self.headers}
        self.entry.answer_headers = headers
        self.has_started = True
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def chunk(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def json(self, status: int, value: Any) -> None:
        await self.whole(status, "application/json", orjson.dumps(value))

    async def whole(self, status: int, kind: str, data: bytes) -> None:
        """A reply in one piece."""
        await self.start(status, kind, len(data))
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def fail(self, error: ApiError) -> None:
        self.headers.update(error.headers)
        await self.json(error.status, error.body(self.entry.request_id))

    async def cut(self) -> None:
        """Ends the connection as it is: a reset, no further byte."""
        abort = (self._scope.get("extensions") or {}).get(ABORT)
        if abort is None:
            raise ConnectionCutError(self.entry.fault or "cut")
        abort()
        await self._left()
        raise ClientGoneError

    def _gone(self) -> ClientGoneError:
        self.entry.hung_up = True
        return ClientGoneError()
