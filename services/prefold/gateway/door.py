"""The way in and out: every request gets an id and a tenant, every failure becomes a problem document."""

import asyncio
import itertools
import re
import secrets
import traceback
from collections.abc import Iterable
from time import perf_counter

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from prefold.errors import PrefoldError, UnavailableError
from prefold.gateway.admission import Admission
from prefold.gateway.exchange import ClientGoneError, Exchange
from prefold.gateway.guard import Guard
from prefold.gateway.metrics import Metrics
from prefold.gateway.operations import Operation, OperationTable
from prefold.gateway.problems import internal_problem, problem_response
from prefold.gateway.whole_requests import Shortcut
from prefold.storage.watching import Store
from prefold.telemetry.probe import Ready, always_ready

log = structlog.get_logger(__name__)

_CLIENT_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Door:
    """The ASGI application. Without lifespan: what it uses is opened and closed by the composition root."""

    def __init__(
        self,
        table: OperationTable,
        guard: Guard,
        metrics: Metrics,
        store: Store,
        *,
        admission: Admission,
        most_in_flight: int,
        answer_within_seconds: float,
        stopping: asyncio.Event | None = None,
        ready: Ready = always_ready,
    ) -> None:
        self.stopping = stopping or asyncio.Event()
        """To be set when the process ends: answers that go on until then end too."""
        self.ready = ready
        """What the probe's port says of this application."""
        self.shortcut: Shortcut | None = None
        """Answers whole requests to the hot calls, where the protocol offers them."""
        self._table = table
        self._guard = guard
        self._metrics = metrics
        self._store = store
        self._admission = admission
        self._most_in_flight = most_in_flight
        self._within = answer_within_seconds
        self._numbers = itertools.count(1)
        self._id_prefix = secrets.token_hex(6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        if scope["type"] != "http":
            raise RuntimeError(f"not served here: {scope['type']}")
        started = perf_counter()
        request_id = self.request_id_of(scope["headers"])
        route, response = "", None
        self._metrics.in_flight += 1
        try:
            route, response = await self._respond(scope, receive, request_id)
        except ClientGoneError:
            return
        finally:
            self._metrics.in_flight -= 1
        self._metrics.observe(scope["method"], route, response.status_code, perf_counter() - started)
        response.raw_headers += ((b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff"))
        if scope["method"] == "HEAD":
            response.body = b""
        await response(scope, receive, send)

    def route_of(self, scope: Scope) -> str:
        """The path's template, which names nobody; empty: there is no such call."""
        try:
            return self._table.find(scope["method"], scope["raw_path"])[0].path
        except PrefoldError:
            return ""

    async def _respond(self, scope: Scope, receive: Receive, request_id: str) -> tuple[str, Response]:
        route = ""
        try:
            operation, exchange = self._admit(scope, receive, request_id)
            route = operation.path
            return route, await self._handle(operation, exchange)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001  # the boundary: a fault of ours must still be answered
            return route, self.problem_of(error, request_id, route)

    def problem_of(self, error: Exception, request_id: str, route: str) -> Response:
        """The answer to a request that failed; a fault of ours is logged."""
        response = problem_response(error) if isinstance(error, PrefoldError) else internal_problem()
        if response.status_code == 500:
            _log_failure(error, request_id, route)
        return response

    def _admit(self, scope: Scope, receive: Receive, request_id: str) -> tuple[Operation, Exchange]:
        refused: PrefoldError | None = None
        operation: Operation | None = None
        path: dict[str, str] = {}
        try:
            operation, path = self._table.find(scope["method"], scope["raw_path"])
        except PrefoldError as error:
            refused = error
        # Strangers learn nothing, not even which paths exist.
        caller = self._guard.admit(scope, operation)
        if operation is None:
            assert refused is not None
            raise refused
        return operation, Exchange(caller.tenant, path, scope, receive, request_id, caller)

    async def _handle(self, operation: Operation, exchange: Exchange) -> Response:
        if not operation.public:  # probes are answered all the same
            is_crowded = self._metrics.in_flight > self._most_in_flight
            exchange.queue = self._admission.arrive(exchange.tenant, crowded=is_crowded)
            exchange.admission = self._admission
        try:
            async with asyncio.timeout(self._within) as exchange.deadline:
                if operation.grows:
                    await self._store.admit()
                if operation.body is None:
                    await exchange.enter()
                return await operation.handler(exchange)
        except TimeoutError as error:
            raise UnavailableError("the stores did not answer in time", code="timeout") from error
        finally:
            exchange.leave()

    def request_id_of(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The client's id of a request, or one of ours."""
        for name, value in headers:
            if name == b"x-request-id" and _CLIENT_ID.fullmatch(value):
                return str(value, "ascii")
        return f"{self._id_prefix}-{next(self._numbers):x}"


def _log_failure(error: Exception, request_id: str, route: str) -> None:
    # The message of an exception may quote a conversation, so only its kind and its way are logged.
    frames = traceback.extract_tb(error.__traceback__)
    log.error(
        "request_failed",
        request_id=request_id,
        route=route,
        error=type(error).__qualname__,
        cause=type(error.__cause__).__qualname__ if error.__cause__ else None,
        at=[f"{frame.filename.rpartition('/prefold/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-8:]],
    )
