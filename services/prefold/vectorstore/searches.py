"""Searches, answered without the framework: most calls of the store are searches, and all of a search is short.

``WholeSearches`` answers those that came in one piece and ask for nothing special, ``Searches`` all others.
"""

import re
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from prefold.vectorstore.calls import Calls
from prefold.vectorstore.counted import count_query
from prefold.vectorstore.gate import Rules, parse_json, read_json
from prefold.vectorstore.responses import error_body, refusal_of, result_body, send_json
from prefold.vectorstore.wire import Headers

Search = Callable[[str, object], Awaitable[object]]
"""From a collection's name and a body to the result. Raises ``RejectedError``."""

_PATH: Final = re.compile(r"/collections/([^/]+)/points/(query|query/batch)")
_PLAIN_PATH: Final = re.compile(rb"/collections/([A-Za-z0-9_.-]+)/points/query(/batch)?")


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


class WholeSearches:
    """Answers searches of a few in a batch at once. All else it leaves alone, refusals at the gate included."""

    def __init__(self, calls: Calls, rules: Rules, max_body_bytes: int) -> None:
        self._calls = calls
        self._rules = rules
        self._max_body_bytes = max_body_bytes

    def __call__(self, target: bytes, headers: Headers, body: bytes) -> tuple[int, bytes] | None:
        """See ``wire.Whole``."""
        started = time.perf_counter()
        found = _PLAIN_PATH.fullmatch(target)
        if found is None or len(body) > self._max_body_bytes:
            return None
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}
        path = target.decode("ascii")
        if "content-encoding" in named or self._rules.refusal(path, named) is not None:
            return None
        status = HTTPStatus.OK
        try:
            asked = parse_json(body)
            collection = found[1].decode("ascii")
            result = (self._calls.query_batch_now if found[2] else self._calls.query_now)(collection, asked)
            if result is None:
                return None
            answer = result_body(result, time.perf_counter() - started)
        except Exception as error:  # noqa: BLE001  # refusal_of logs it
            refusal = refusal_of(error, path)
            status, answer = refusal.status, error_body(refusal, time.perf_counter() - started)
        count_query(status, time.perf_counter() - started)
        return status, answer
