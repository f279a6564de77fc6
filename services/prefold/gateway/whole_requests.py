"""The HTTP protocol with a short way for requests that arrive whole and ask for nothing special.

uvicorn makes a task, a scope, two events and two timers for each request, and its application a dozen coroutines; for
the two hot calls that is most of what they cost. Here a request of theirs that came in one piece, on a connection with
nothing else under way, is offered to a ``Shortcut`` as it is. Whatever the shortcut does not take, and every other
request, goes the general way from its head on, as if nothing had been tried: limits, slow senders, pipelines, HEAD,
``Expect``, upgrades and shutdown are handled there alone.
"""

import asyncio
from asyncio import TimerHandle
from collections.abc import Sequence
from typing import Any, Protocol, cast

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from prefold.gateway.wire import BoundedHttpProtocol

__all__ = ["Headers", "Shortcut", "WholeRequest", "WholeRequestProtocol"]

log = structlog.get_logger(__name__)

Headers = Sequence[tuple[bytes, bytes]]
_ONE_WRITE_BYTES = 16_384
"""Up to here head and body are joined; more is not copied once again."""


class Shortcut(Protocol):
    """What may answer whole requests. Its methods run in the event loop and return at once."""

    def knows(self, method: bytes, target: bytes) -> bool:
        """Whether such a request may be for it."""
        ...

    def take(self, request: "WholeRequest") -> bool:
        """True: ``request.respond`` is called, now or later, once. False: it goes the general way; nothing was done."""
        ...


class _NobodyWaits:
    """In the place of an event of uvicorn's."""

    def set(self) -> None:
        pass


class WholeRequest:
    """One request, and for uvicorn the cycle that is under way on its connection."""

    __slots__ = ("_protocol", "body", "disconnected", "headers", "keep_alive", "method", "response_complete", "target")

    message_event = _NobodyWaits()

    def __init__(
        self, protocol: "WholeRequestProtocol", method: bytes, target: bytes, headers: Headers, body: bytes
    ) -> None:
        self._protocol = protocol
        self.method = method
        self.target = target
        """Path and query as they were sent."""
        self.headers = headers
        """Names in lower case."""
        self.body = body
        self.keep_alive = True
        self.response_complete = False
        self.disconnected = False
        """True: the client has hung up, nobody hears an answer."""

    def respond(self, head: bytes, body: bytes) -> None:
        """Send the answer: status line and headers, each line ended, and the body. Not twice."""
        self._protocol.respond(self, head, body)

    def run(self, task: "asyncio.Task[None]") -> None:
        """Note a task that will respond: a server that stops waits for it."""
        tasks = self._protocol.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)


class WholeRequestProtocol(BoundedHttpProtocol):
    """Offers whole requests to a shortcut."""

    def __init__(self, *arguments: Any, shortcut: Shortcut | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._shortcut = shortcut
        self._held: list[bytes] | None = None
        """Pieces of the body of a request whose way is not decided."""
        self._idle_since: float | None = None
        self._idle_timer: TimerHandle | None = None
        self._date: list[tuple[bytes, bytes]] = []
        self._date_lines = b""

    def data_received(self, data: bytes) -> None:
        """Feed the parser. A request that has not come whole goes the general way, where its arrival is timed."""
        super().data_received(data)
        if self._held is not None and not self._refused:
            try:
                self._go_general()
            except Exception:  # noqa: BLE001  # such as a target that is none: as in a callback of the parser
                self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        """Another head begins; its scope is made when the general way is taken."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._head_open, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Decide who may answer."""
        cycle, parser = self.cycle, self.parser
        if (
            self._shortcut is not None
            and (cycle is None or cycle.response_complete)  # type: ignore[redundant-expr]  # None before the first one
            and self._shortcut.knows(parser.get_method(), self.url)
            and not self.expect_100_continue
            and not self.flow.write_paused
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
        ):
            self._head_open = False
            self._stop_head_timer()
            self._held = []
        else:
            self._general_head()

    def on_body(self, body: bytes) -> None:
        """Keep a piece of a body that is under way."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held.append(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._held is None:
            super().on_message_complete()
            return
        request = WholeRequest(self, self.parser.get_method(), self.url, self.headers, b"".join(self._held))
        before, self.cycle = self.cycle, cast("Any", request)
        if not self._is_taken(request):
            request.response_complete = True  # whatever may still come of it
            self.cycle = before
            self._go_general()
            super().on_message_complete()
        self._held = None

    def _is_taken(self, request: WholeRequest) -> bool:
        assert self._shortcut is not None
        try:
            return self._shortcut.take(request)
        except Exception as error:  # noqa: BLE001  # the boundary: the general way answers, and says what is wrong
            log.error("shortcut_failed", error=type(error).__qualname__)
            return False

    def _go_general(self) -> None:
        held, self._held = self._held or [], None
        self._general_head()
        for piece in held:
            super().on_body(piece)

    def _general_head(self) -> None:
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.expect_100_continue = url, expects
        self.headers += headers  # the very list that is in the scope
        super().on_headers_complete()

    def respond(self, request: WholeRequest, head: bytes, body: bytes) -> None:
        """Write the answer of a request that was taken."""
        if request.response_complete or self._refused or self.transport.is_closing():
            return  # after a refusal of what came behind it nothing may be written any more
        start = head + self._default_lines() + (b"\r\n" if request.keep_alive else b"connection: close\r\n\r\n")
        if len(body) <= _ONE_WRITE_BYTES:
            self.transport.write(start + body)
        else:
            self.transport.writelines((start, body))
        request.response_complete = True
        if not request.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _default_lines(self) -> bytes:
        """The server's own headers: a list that uvicorn makes anew every second."""
        headers = self.server_state.default_headers
        if headers is not self._date:
            self._date = headers
            self._date_lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        return self._date_lines

    def on_response_complete(self) -> None:
        """Begin what waits in the pipeline, or wait for more: one timer a connection instead of one an answer."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look_whether_idle)

    def _unset_keepalive_if_required(self) -> None:
        self._idle_since = None

    def _look_whether_idle(self) -> None:
        left = float(self.timeout_keep_alive)
        if self._idle_since is not None:
            left -= self.loop.time() - self._idle_since
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look_whether_idle)
        else:
            self._idle_timer = None
            self.timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        super().connection_lost(exc)
