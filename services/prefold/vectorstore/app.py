"""The routes: the part of Qdrant's REST API that Prefold uses."""

import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from prefold.telemetry.probe import Ready, always_ready
from prefold.vectorstore.calls import Calls
from prefold.vectorstore.gate import Gate, Rules
from prefold.vectorstore.rejections import RejectedError
from prefold.vectorstore.responses import error_response, json_response, refusal_of, result_response
from prefold.vectorstore.searches import Searches
from prefold.vectorstore.store import Store

log = structlog.get_logger()

Call = Callable[[Request], Awaitable[object]]
Endpoint = Callable[[Request], Awaitable[Response]]

_API_VERSION: Final = "1.17.0"
"""The release whose REST API this subset follows; clients compare it with their own."""


def create_app(store: Store, *, max_body_bytes: int, api_key: str | None, ready: Ready = always_ready) -> Starlette:
    """The ASGI application over an open store. ``ready`` is what its ``/readyz`` goes by."""
    return app_of(Calls(store, max_body_bytes), Rules(api_key), max_body_bytes, ready)


def app_of(calls: Calls, rules: Rules, max_body_bytes: int, ready: Ready = always_ready) -> Starlette:
    """The same of its parts."""
    collection, points = "/collections/{collection}", "/collections/{collection}/points"
    table: list[tuple[str, str, Call]] = [
        ("GET", "/collections", calls.list_collections),
        ("GET", collection, calls.describe_collection),
        ("PUT", collection, calls.create_collection),
        ("DELETE", collection, calls.delete_collection),
        ("GET", f"{collection}/exists", calls.collection_exists),
        ("PUT", f"{collection}/index", calls.create_index),
        ("DELETE", f"{collection}/index/{{field:path}}", calls.delete_index),
        ("PUT", points, calls.upsert),
        ("POST", points, calls.retrieve),
        ("POST", f"{points}/delete", calls.delete_points),
        ("POST", f"{points}/scroll", calls.scroll),
        ("POST", f"{points}/count", calls.count),
        ("POST", f"{points}/payload", calls.set_payload),
    ]
    searches = Middleware(Searches, calls.query, calls.query_batch, max_body_bytes)
    routes = [Route(path, answering(call), methods=[method]) for method, path, call in table]
    return Starlette(
        routes=[*_open_routes(ready), *routes],
        middleware=[Middleware(Gate, rules), searches],
        exception_handlers={HTTPException: _unknown_route},
    )


def answering(call: Call) -> Endpoint:
    """An endpoint that wraps the call's result, or what it was refused with, as Qdrant does."""

    async def endpoint(request: Request) -> Response:
        started = time.perf_counter()
        try:
            result = await call(request)
        except Exception as error:  # noqa: BLE001  # refusal_of logs it
            return error_response(refusal_of(error, request.url.path), time.perf_counter() - started)
        return result_response(result, time.perf_counter() - started)

    return endpoint


def _open_routes(ready: Ready) -> list[Route]:
    async def version(_request: Request) -> Response:
        return json_response({"title": "prefold vectors (qdrant-edge)", "version": _API_VERSION})

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("healthz check passed")

    async def readiness(_request: Request) -> Response:
        wrong = [f"{name}: {state}" for name, state in (await ready()).items() if state != "ok"]
        return PlainTextResponse("; ".join(wrong), HTTPStatus.SERVICE_UNAVAILABLE) if wrong else await healthy(_request)

    health = [Route(path, healthy, methods=["GET"]) for path in ("/healthz", "/livez")]
    return [Route("/", version, methods=["GET"]), *health, Route("/readyz", readiness, methods=["GET"])]


async def _unknown_route(request: Request, error: Exception) -> Response:
    status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
    return error_response(
        RejectedError(status, f"{request.method} {request.url.path} is not part of the embedded store")
    )
