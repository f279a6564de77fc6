"""The few calls of Qdrant's REST API that recall needs, and what their failures mean."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

import orjson

from prefold.errors import (
    ConfigurationError,
    OverloadedError,
    PrefoldError,
    RefusedError,
    TooLargeError,
    UnavailableError,
)
from prefold.recall.transport import Answer, HttpTransport
from prefold.telemetry.tracing import is_on, span

_OK: Final = 200
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_SERVER_ERRORS: Final = 500
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)', re.DOTALL)


@asynccontextmanager
async def connect_server(
    url: str,
    *,
    api_key: str | None,
    connect_timeout: timedelta,
    request_timeout: timedelta,
    max_connections: int,
) -> AsyncIterator["VectorServer"]:
    """The server at a URL. Opens no connection before the first call, closes all at the end."""
    transport = HttpTransport(
        url,
        headers={"api-key": api_key} if api_key else {},
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        max_connections=max_connections,
    )
    async with transport:
        yield VectorServer(transport)


class VectorServer:
    """Calls of one server, a real Qdrant or ``prefold vectors``.

    Raises ``UnavailableError`` when it does not answer, fails, or has lost the collection (code
    ``collection_missing``); ``ConfigurationError`` when it does not let us in; ``RefusedError`` when it does not
    take a request of ours.
    """

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def collections(self) -> list[str]:
        """Names of all collections."""
        result = await self._call("GET", "/collections")
        return [item["name"] for item in result["collections"]]

    async def collection(self, name: str) -> dict[str, Any] | None:
        """Description of one, or None."""
        answer = await self._transport.request("GET", _path(name))
        return None if answer.status == _NOT_FOUND else dict(_result(answer))

    async def create_collection(self, name: str, layout: Mapping[str, Any]) -> bool:
        """False if there is one already, made with this layout or another."""
        answer = await self._transport.request("PUT", _path(name), orjson.dumps(layout))
        if answer.status == _CONFLICT or (answer.status != _OK and b"already exists" in answer.body):
            return False
        _result(answer)
        return True

    async def create_index(self, name: str, field: str, schema: Mapping[str, Any]) -> None:
        """Indexes a member of the payload. Again is legal."""
        body = {"field_name": field, "field_schema": schema}
        _completed(await self._call("PUT", _path(name, "/index?wait=true"), body))

    async def upsert(self, name: str, points: Sequence[Mapping[str, Any]]) -> None:
        """Returns once the points are stored and searchable."""
        _completed(await self._call("PUT", _path(name, "/points?wait=true"), {"points": points}))

    async def delete(self, name: str, chosen: Mapping[str, Any]) -> None:
        """Deletes what the filter matches."""
        _completed(await self._call("POST", _path(name, "/points/delete?wait=true"), {"filter": chosen}))

    async def search(self, name: str, searches: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """The hits of each search, in order."""
        result = await self._call("POST", _path(name, "/points/query/batch"), {"searches": searches})
        return [item["points"] for item in result]

    async def count(self, name: str, chosen: Mapping[str, Any], *, exact: bool) -> int:
        """How many points the filter matches."""
        result = await self._call("POST", _path(name, "/points/count"), {"filter": chosen, "exact": exact})
        return int(result["count"])

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        content = b"" if body is None else orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        if not is_on():
            return _result(await self._transport.request(method, path, content))
        with span(f"qdrant {method}", {"path": path}, kind="client"):
            return _result(await self._transport.request(method, path, content))


def _path(collection: str, rest: str = "") -> str:
    return f"/collections/{quote(collection, safe='')}{rest}"


def _completed(result: Mapping[str, Any]) -> None:
    """A server may say "acknowledged" to a write that it then drops."""
    if result.get("status") != "completed":
        raise UnavailableError(f"the vector store did not complete a write: {result.get('status')!r}")


def _result(answer: Answer) -> Any:
    if answer.status != _OK:
        raise _failure(answer)
    try:
        return orjson.loads(answer.body)["result"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UnavailableError("the vector store's answer cannot be read") from error


def _failure(answer: Answer) -> PrefoldError:
    detail = f"the vector store answered {answer.status}: {_reason(answer.body)}"
    if answer.status == _NOT_FOUND:
        return UnavailableError(detail, code="collection_missing")
    if answer.status in (401, 403):
        return ConfigurationError(f"{detail}; check PREFOLD_QDRANT_URL and PREFOLD_QDRANT_API_KEY")
    if answer.status == _TOO_MANY:
        return OverloadedError(detail)
    if answer.status >= _SERVER_ERRORS:
        return UnavailableError(detail)
    if answer.status == _TOO_LARGE:
        return TooLargeError(detail)
    return RefusedError(detail, code="vector_store_refused")


def _reason(body: bytes) -> str:
    """What the server says, without what it quotes: that may be a text of ours, and this goes into logs."""
    try:
        told = str(orjson.loads(body)["status"]["error"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        told = body.decode("utf-8", "replace")
    return _QUOTED.sub('"…"', told)[:300]
