"""uvicorn's HTTP protocol with bounds on the head of a request, which uvicorn and httptools leave open."""

import asyncio
import itertools
from asyncio import TimerHandle
from typing import Any, cast

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

HEAD_MOST_BYTES = 32_768
"""Request line and headers."""
HEAD_MOST_HEADERS = 100
HEAD_WITHIN_SECONDS = 10.0
"""From the opening of a connection, or the first byte of a later request, to the end of its head."""
_LINGER_SECONDS = 0.5


class _HeadTooLargeError(Exception):
    pass


class BoundedHttpProtocol(HttpToolsProtocol):
    """Refuses a head that is too large (431), slow (408), or no HTTP (400), each with a problem document."""

    _head_open = True
    _head_bytes = 0
    _head_timer: TimerHandle | None = None
    _too_large = False
    _refused = False
    _answered: RequestResponseCycle | None = None
    """The request that was given to the application last."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock of the first head."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser. It keeps an unfinished header to itself, so its bytes are counted here."""
        if self._refused:
            return  # what is still under way is read and dropped, else the client loses the answer to a reset
        super().data_received(data)
        if self._head_open and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MOST_BYTES:
                self._refuse(431, "head_too_large", "the request line and headers are too large")
            elif self._head_timer is None:
                self._start_head_timer()

    def on_message_begin(self) -> None:
        """Another head begins. Its clock starts when a piece of it is still to come."""
        super().on_message_begin()
        self._head_open, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        """Count a piece of the request line."""
        self._head_bytes += len(url)
        if self._head_bytes > HEAD_MOST_BYTES:
            self._too_large = True
            raise _HeadTooLargeError
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        self._head_bytes += len(name) + len(value) + 4
        headers = self.headers
        if self._head_bytes > HEAD_MOST_BYTES or len(headers) >= HEAD_MOST_HEADERS:
            self._too_large = True
            raise _HeadTooLargeError
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole and within its bounds."""
        self._head_open = False
        self._stop_head_timer()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser refused; ``msg`` is uvicorn's text."""
        if self._too_large:
            self._refuse(431, "head_too_large", "the request line and headers are too large")
        else:
            self._refuse(400, "malformed_http", msg)

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_WITHIN_SECONDS, self._head_is_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(408, "head_timeout", "the request line and headers did not arrive in time")

    def _refuse(self, status: int, code: str, detail: str) -> None:
        self._stop_head_timer()
        self._head_open = False
        if self._answered is not None:
            self._answered.disconnected = True  # what is under way gets no answer behind this one
        document: dict[str, Any] = {
            "type": f"urn:prefold:problem:{code}",
            "title": STATUS_LINE[status][13:-2].decode(),
            "status": status,
            "detail": detail,
            "code": code,
        }
        body = orjson.dumps(document)
        fixed = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        headers = b"".join(
            name + b": " + value + b"\r\n" for name, value in itertools.chain(self.server_state.default_headers, fixed)
        )
        self.transport.write(STATUS_LINE[status] + headers + b"\r\n" + body)
        self._refused = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)
