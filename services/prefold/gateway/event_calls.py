"""``GET …/events``: what happens to a session's context, as server-sent events."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Final

import orjson
import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from prefold.conversation.ids import check_name
from prefold.errors import GoneError, NotFoundError, OverloadedError, TransientError
from prefold.gateway.callers import Caller
from prefold.gateway.exchange import Exchange
from prefold.gateway.guard import Guard
from prefold.storage import Sessions
from prefold.storage.types import SessionView

__all__ = ["EVENT_STREAM", "EventCalls"]

log = structlog.get_logger(__name__)

EVENT_STREAM: Final = "text/event-stream"
MOST_STREAMS: Final = 64
"""That one process keeps open."""
LOOK_SECONDS: Final = 1.0
_SIGN_OF_LIFE_SECONDS: Final = 15.0
_LONGEST_SECONDS: Final = 600.0
"""Then the client connects again, with a key that is still good."""


class EventCalls:
    """Looks at a session once a second for whoever listens. ``stopping`` ends all streams, a revoked key its own."""

    def __init__(self, sessions: Sessions, guard: Guard, stopping: asyncio.Event) -> None:
        self._sessions = sessions
        self._guard = guard
        self._stopping = stopping
        self._open = 0

    async def listen(self, exchange: Exchange) -> Response:
        """Events from now on; what stands already (a standby, a degraded context) is told at once."""
        session = check_name(exchange.path["session"], "session")
        exchange.query()
        first = await self._sessions.view(exchange.tenant, session)
        if self._open >= MOST_STREAMS:
            raise OverloadedError("too many streams of events are open", code="too_many_streams")
        self._open += 1  # here, for many may ask before the first of them hears anything
        return _Stream(self._pieces(exchange.caller, session, first), self._ended)

    def _ended(self) -> None:
        self._open -= 1

    async def _pieces(self, caller: Caller, session: str, first: SessionView) -> AsyncGenerator[bytes, None]:
        yield b"retry: 2000\n\n"
        before, now = None, first
        ends, silent_since = time.monotonic() + _LONGEST_SECONDS, time.monotonic()
        while time.monotonic() < ends:
            for piece in _events(before, now):
                silent_since = time.monotonic()
                yield piece
            if time.monotonic() - silent_since >= _SIGN_OF_LIFE_SECONDS:
                silent_since = time.monotonic()
                yield b": still here\n\n"
            if await self._is_stopping() or not self._guard.holds(caller):
                return
            before, seen = now, await self._look(caller.tenant, session, now)
            if seen is None or seen.ref != first.ref:
                yield _event("erased", first, {})
                return
            now = seen

    async def _is_stopping(self) -> bool:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self._stopping.wait()
        except TimeoutError:
            return False

    async def _look(self, tenant: str, session: str, last: SessionView) -> SessionView | None:
        try:
            return await self._sessions.view(tenant, session)
        except (GoneError, NotFoundError):
            return None
        except TransientError as error:  # the next look may see it
            log.warning("events_look_failed", tenant=tenant, session=session, error=error.code)
            return last


def _events(before: SessionView | None, now: SessionView) -> Iterator[bytes]:
    standby, known = now.standby, before.standby if before else None
    if before is not None and now.swaps > before.swaps:
        yield _event("swapped", now, {"covers_to": now.covers_to, "swaps": now.swaps})
    # Behind the swap: it used up the standby that was, so this one is for the context after it.
    if standby is not None and (known is None or known.covers_to != standby.covers_to):
        yield _event("standby_ready", now, {"covers_to": standby.covers_to})
    if now.degraded and not (before and before.degraded):
        yield _event("degraded", now, {})


def _event(name: str, view: SessionView, more: dict[str, object]) -> bytes:
    data = {"session": view.ref.session, "version": view.version, "tokens": view.tokens, **more}
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))


class _Stream(Response):
    """Sends pieces as they come, until they end or the client has gone."""

    media_type = EVENT_STREAM

    def __init__(self, pieces: AsyncGenerator[bytes, None], ended: Callable[[], None]) -> None:
        super().__init__(headers={"Cache-Control": "no-store"})
        self._pieces = pieces
        self._ended = ended
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(scope, receive, send)
        finally:
            self._ended()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            sending = asyncio.create_task(self._send(send))
            gone = asyncio.create_task(_gone(receive))
            try:
                await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (sending, gone):
                    task.cancel()
                await asyncio.gather(sending, gone, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send) -> None:
        async with aclosing(self._pieces) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
