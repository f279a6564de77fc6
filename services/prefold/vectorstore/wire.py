"""uvicorn's HTTP protocol, with a short way for searches, and with every answer in one write.

For each request uvicorn makes a task, a scope, an event and two timers, and sends head and body apart: of a search that
the store does in a millisecond these are a tenth, and whoever waits is woken twice. A search that comes whole is
answered here. Whatever ``Whole`` does not take, and every other request, goes uvicorn's way, as if nothing had been tried.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

__all__ = ["Headers", "SearchProtocol", "Whole"]

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case."""
Whole = Callable[[bytes, Headers, bytes], tuple[int, bytes] | None]
"""Path as it was sent, headers and body of a POST to status and body of its answer, at once; None: not taken."""

_HEAD: Final = b"HTTP/1."
_SEARCH: Final = (b"/points/query", b"/points/query/batch")
_MOST_BYTES: Final = 1_000_000
"""A body that is held; a larger one is no ordinary search."""


class SearchProtocol(HttpToolsProtocol):
    """Offers searches to ``whole``."""

    def __init__(self, *arguments: Any, whole: Whole, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._whole = whole
        self._held: list[bytes] | None = None
        """Pieces of the body of a search under way."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Stand between uvicorn and its transport."""
        super().connection_made(cast("asyncio.Transport", _Joining(cast("asyncio.Transport", transport), self.loop)))

    def on_headers_complete(self) -> None:
        """Hold a search until it is whole."""
        if self._may_be_whole():
            self._held = []
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Keep a piece of a body."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held.append(body)

    def on_message_complete(self) -> None:
        """Answer, or let uvicorn do it."""
        held, self._held = self._held, None
        if held is None:
            super().on_message_complete()
            return
        body = b"".join(held)
        answer = self._whole(self.url, self.headers, body)
        if answer is None:
            super().on_headers_complete()
            super().on_body(body)
            super().on_message_complete()
            return
        status, content = answer
        lines = [b"%b: %b\r\n" % header for header in self.server_state.default_headers]
        own = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content)
        self.transport.write(b"".join((STATUS_LINE[status], *lines, own, content)))
        self.on_response_complete()

    def _may_be_whole(self) -> bool:
        cycle, parser = self.cycle, self.parser
        return (
            self.url.endswith(_SEARCH)
            and parser.get_method() == b"POST"
            and (cycle is None or cycle.response_complete)  # type: ignore[redundant-expr]  # None before the first one
            and not self.expect_100_continue
            and not self.flow.write_paused
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and 0 < _content_length(self.headers) <= _MOST_BYTES
        )


class _Joining:
    """A transport that holds the head of an answer back for its body, or until the loop has its turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send, but for a head that is alone."""
        if self._head:
            self._send(data)
        elif data.startswith(_HEAD) and data.endswith(b"\r\n\r\n"):
            self._head = data
            self._loop.call_soon(self._send)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close once all is sent."""
        self._send()
        self._transport.close()

    def _send(self, body: bytes = b"") -> None:
        head, self._head = self._head, b""
        if (head or body) and not self._transport.is_closing():
            self._transport.write(head + body)


def _content_length(headers: Headers) -> int:
    """0 where none is given."""
    return next((int(value) for name, value in headers if name == b"content-length"), 0)
