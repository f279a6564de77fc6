"""Counts the calls of the store by what they ask for, around everything that answers them."""

import time
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prefold.telemetry.metrics import VECTORS_FAILURES, VECTORS_SECONDS

__all__ = ["Counted", "count_query"]

_CALLS: Final[Mapping[tuple[str, str], str]] = {
    ("POST", "points/query"): "query",
    ("POST", "points/query/batch"): "query",
    ("PUT", "points"): "upsert",
    ("POST", "points"): "retrieve",
    ("POST", "points/delete"): "delete",
    ("POST", "points/scroll"): "scroll",
    ("POST", "points/count"): "count",
    ("POST", "points/payload"): "payload",
}
"""By method and what follows the collection's name; all others are ``other``."""
_FAULT: Final = 500


_QUERIES: Final = VECTORS_SECONDS.labels("query")


def count_query(status: int, seconds: float) -> None:
    """Counts a search that did not come through ``Counted``."""
    _QUERIES.observe(seconds)
    if status >= _FAULT:
        VECTORS_FAILURES.labels("query").inc()


class Counted:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._seconds = {call: VECTORS_SECONDS.labels(call) for call in (*_CALLS.values(), "other")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        path: str = scope["path"]
        if not path.startswith("/collections"):  # probes
            await self._app(scope, receive, send)
            return
        call = _CALLS.get((scope["method"], "/".join(path.split("/")[3:])), "other")

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= _FAULT:
                VECTORS_FAILURES.labels(call).inc()
            await send(message)

        began = time.perf_counter()
        try:
            await self._app(scope, receive, watched)
        finally:
            self._seconds[call].observe(time.perf_counter() - began)
