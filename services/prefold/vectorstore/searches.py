"""Searches, answered without the framework: most calls of the store are searches, and all of a search is short."""

import re
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from prefold.vectorstore.gate import read_json
from prefold.vectorstore.responses import error_body, refusal_of, result_body, send_json

Search = Callable[[str, object], Awaitable[object]]
"""From a collection's name and a body to the result. Raises ``RejectedError``."""

_PATH: Final = re.compile(r"/collections/([^/]+)/points/(query|query/batch)")


class Searches:
    """ASGI middleware: answers ``points/query`` and ``points/query/batch``, and hands everything else on."""

    def __init__(self, app: ASGIApp, query: Search, query_batch: Search, max_body_bytes: int) -> None:
        self._app = app
        self._calls = {"query": query, "query/batch": query_batch}
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        collection, kind = found.groups()
        started = time.perf_counter()
        try:
            asked = await read_json(scope, receive, self._max_body_bytes)
            result = await self._calls[kind](collection, asked)
            status, body = HTTPStatus.OK, result_body(result, time.perf_counter() - started)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  # refusal_of logs it
            refusal = refusal_of(error, scope["path"])
            status, body = refusal.status, error_body(refusal, time.perf_counter() - started)
        await send_json(send, status, body)
