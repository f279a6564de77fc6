"""The door with a span around each request: put before it only where traces are made."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prefold.gateway.door import Door
from prefold.telemetry.tracing import TRACEPARENT, is_on, note, span

__all__ = ["traced"]

_HEADER = TRACEPARENT.encode()


def traced(door: Door) -> ASGIApp:
    """``door`` itself where no spans are made."""
    if not is_on():
        return door

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                note({"http.response.status_code": message["status"]})
            await send(message)

        method, route = scope["method"], door.route_of(scope)
        named = {"http.request.method": method, "http.route": route}
        with span(f"{method} {route}".rstrip(), named, kind="server", parent=_parent_of(scope)):
            await door(scope, receive, watched)

    return served


def _parent_of(scope: Scope) -> str | None:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == _HEADER), None)
