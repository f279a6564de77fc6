"""What the door makes of a handler's failures, without a server."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import structlog
from starlette.responses import Response

from prefold.errors import (
    ConfigurationError,
    ConflictError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    OverloadedError,
    PrefoldError,
    TooLargeError,
    UnavailableError,
)
from prefold.gateway.admission import Admission
from prefold.gateway.door import Door
from prefold.gateway.exchange import ClientGoneError, Exchange
from prefold.gateway.guard import LoopbackGuard
from prefold.gateway.metrics import Metrics
from prefold.gateway.operations import Operation, OperationTable
from tests.support.gateway import DecidedStore

SECRET = "what the user said"


class Answered:
    """What a client would see."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.messages[1]["body"])
        return body


def door_to(handler: Callable[[Exchange], Awaitable[Response]], *, most: int = 8, within: float = 5.0) -> Door:
    table = OperationTable([Operation("POST", "/x/{name}", "", handler, {})])
    return Door(
        table,
        LoopbackGuard(),
        Metrics(),
        DecidedStore(),
        admission=Admission(places=8, most_of_tenant=8),
        most_in_flight=most,
        answer_within_seconds=within,
    )


async def ask(door: Door, *chunks: bytes, path: bytes = b"/x/a", gone: bool = False) -> Answered:
    sent: list[dict[str, Any]] = []
    left = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]

    async def receive() -> dict[str, Any]:
        if left:
            return left.pop(0)
        return {"type": "http.disconnect"} if gone else {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "raw_path": path, "query_string": b"", "headers": headers}
    await door(scope, receive, send)
    return Answered(sent)


def failing(error: Exception) -> Callable[[Exchange], Awaitable[Response]]:
    async def handler(exchange: Exchange) -> Response:
        raise error

    return handler


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInputError("x", field="turns[0]"), 422),
        (InvalidInputError("x", code="invalid_json", field="body"), 400),
        (NotFoundError("x"), 404),
        (ConflictError("x"), 409),
        (GoneError("x"), 410),
        (TooLargeError("x"), 413),
        (OverloadedError("x"), 429),
        (UnavailableError("x"), 503),
    ],
)
async def test_each_error_has_its_status_and_keeps_code_and_field(error: PrefoldError, status: int) -> None:
    answer = await ask(door_to(failing(error)))
    assert answer.status == status
    assert answer.headers[b"content-type"] == b"application/problem+json"
    assert (answer.json()["code"], answer.json().get("field")) == (error.code, error.field)


async def test_a_transient_error_says_when_to_come_back_in_whole_seconds() -> None:
    late = UnavailableError("x", retry_after=timedelta(seconds=2.1))
    assert (await ask(door_to(failing(late)))).headers[b"retry-after"] == b"3"
    assert (await ask(door_to(failing(OverloadedError("x"))))).headers[b"retry-after"] == b"1"


@pytest.mark.parametrize("error", [RuntimeError(SECRET), ConfigurationError(SECRET), KeyError(SECRET)])
async def test_a_fault_of_ours_shows_and_logs_nothing_of_the_conversation(error: Exception) -> None:
    with structlog.testing.capture_logs() as logs:
        answer = await ask(door_to(failing(error)))
    assert (answer.status, answer.json()["code"]) == (500, "internal")
    (event,) = logs
    assert event["error"] == type(error).__name__
    assert event["request_id"] == answer.headers[b"x-request-id"].decode()
    assert any("failing" in frame or "handler" in frame for frame in event["at"])
    assert SECRET not in json.dumps([answer.json(), logs])


async def test_an_answer_that_takes_too_long_is_given_up() -> None:
    async def handler(exchange: Exchange) -> Response:
        await asyncio.Event().wait()
        raise AssertionError("nobody set it")

    answer = await ask(door_to(handler, within=0.01))
    assert (answer.status, answer.json()["code"]) == (503, "timeout")


async def test_the_arrival_of_a_body_does_not_count_against_the_answer() -> None:
    async def handler(exchange: Exchange) -> Response:
        assert exchange.deadline is not None
        before = exchange.deadline.when()
        body = await exchange.body(most_bytes=100, within_seconds=5)
        after = exchange.deadline.when()
        assert before is not None
        assert after is not None
        assert after >= before
        return Response(body)

    answer = await ask(door_to(handler), b"{", b"}")
    assert answer.messages[1]["body"] == b"{}"


async def test_above_the_bound_a_request_is_refused_at_once_and_later_ones_are_served() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def handler(exchange: Exchange) -> Response:
        entered.set()
        await leave.wait()
        return Response(b"{}")

    door = door_to(handler, most=1)
    first = asyncio.create_task(ask(door))
    await entered.wait()
    refused = await ask(door)
    assert (refused.status, refused.json()["code"]) == (429, "overloaded")
    assert refused.headers[b"retry-after"] == b"1"
    leave.set()
    assert (await first).status == 200
    assert (await ask(door)).status == 200


async def test_a_client_that_hangs_up_gets_no_answer_and_leaves_nothing_behind() -> None:
    seen: list[type[BaseException]] = []

    async def handler(exchange: Exchange) -> Response:
        try:
            await exchange.body(most_bytes=100, within_seconds=5)
        except ClientGoneError as error:
            seen.append(type(error))
            raise
        return Response(b"{}")

    door = door_to(handler, most=1)
    assert (await ask(door, b"{", gone=True)).messages == []
    assert seen == [ClientGoneError]
    assert (await ask(door, b"{}")).status == 200


async def test_an_encoded_slash_stays_inside_its_segment() -> None:
    async def handler(exchange: Exchange) -> Response:
        return Response(exchange.path["name"])

    assert (await ask(door_to(handler), path=b"/x/a%2Fb")).messages[1]["body"] == b"a/b"


def test_a_table_refuses_two_calls_in_one_place() -> None:
    one = Operation("GET", "/x/{name}", "", failing(RuntimeError()), {})
    with pytest.raises(ValueError, match="twice"):
        OperationTable([one, one])
    with pytest.raises(ValueError, match="elsewhere"):
        OperationTable([one, Operation("GET", "/x/{other}/y", "", failing(RuntimeError()), {})])
