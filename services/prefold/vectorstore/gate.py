"""What stands before every route: who may call, and how much they may send."""

import hmac
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from prefold.vectorstore.rejections import RejectedError, malformed, too_large
from prefold.vectorstore.responses import error_response

_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_OPEN_PATHS = frozenset({"/healthz", "/readyz", "/livez"})


class Rules:
    """Who may call: programs on this machine, with the key if there is one, and no web page.

    A page in a browser can send requests to loopback. It cannot do so without an Origin header, or else under a
    name of its own in Host.
    """

    def __init__(self, api_key: str | None) -> None:
        self._api_key = api_key

    def refusal(self, path: str, headers: Mapping[str, str]) -> RejectedError | None:
        """None: the call may be done. Names of ``headers`` are in lower case, or looked up without case."""
        if "origin" in headers or _host_name(headers.get("host", "")) not in _LOCAL_NAMES:
            return RejectedError(HTTPStatus.FORBIDDEN, "only programs on this machine may call")
        if self._api_key is not None and path not in _OPEN_PATHS and not self._has_key(headers):
            return RejectedError(HTTPStatus.UNAUTHORIZED, "Must provide an API key or an Authorization bearer token")
        return None

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode("utf-8"), (self._api_key or "").encode("utf-8"))


class Gate:
    """ASGI middleware: lets in whom the rules let in."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and (refusal := self._rules.refusal(scope["path"], Headers(scope=scope))):
            await error_response(refusal)(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def read_json(scope: Scope, receive: Receive, limit_bytes: int) -> object:
    """The body, refused as soon as it is known to be too large. Raises ``RejectedError``, ``ClientDisconnect``."""
    headers = Headers(scope=scope)
    if int(headers.get("content-length", "0")) > limit_bytes:
        raise too_large(limit_bytes)
    if headers.get("content-encoding", "identity") != "identity":
        raise RejectedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed")
    parts: list[bytes] = []
    received, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        received += len(part)
        if received > limit_bytes:
            raise too_large(limit_bytes)
        parts.append(part)
        more = message.get("more_body", False)
    return parse_json(b"".join(parts))


def parse_json(body: bytes) -> object:
    """Raises ``RejectedError`` for what is no JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise malformed("body", str(error)) from error


@lru_cache(maxsize=64)
def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
