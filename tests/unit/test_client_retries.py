"""What the SDK tries again, how long, and what it makes of refusals."""

import asyncio
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from prefold.client import AsyncPrefold, Prefold, RetryPolicy
from prefold.client.answers import retry_after
from prefold.client.retrying import Attempts
from prefold.errors import (
    ConflictError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    OverloadedError,
    PrefoldError,
    RefusedError,
    TooLargeError,
    TransientError,
    UnauthenticatedError,
    UnavailableError,
)
from tests.support.fake_gateway import FakeGateway, running_fake_gateway

QUICK = RetryPolicy(deadline_seconds=5, first_pause_seconds=0.001)
IMPATIENT = RetryPolicy(deadline_seconds=0.2, first_pause_seconds=0.001)


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        yield fake


def problem(status: int, code: str, detail: str = "no", **headers: str) -> tuple[int, dict[str, str], bytes]:
    body = {"type": "about:blank", "status": status, "code": code, "detail": detail, "field": "turns[0].role"}
    return status, {"content-type": "application/problem+json", **headers}, json.dumps(body).encode()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_gateway_that_is_not_ready_is_asked_again(gateway: FakeGateway, status: int) -> None:
    gateway.refusals = [problem(status, "overloaded"), problem(status, "overloaded")]
    with Prefold(gateway.url, retry=QUICK) as client:
        appended = client.append("chat", "user", "Hello")

    assert appended.turns[0].seq == 1
    assert len(gateway.requests) == 3


async def test_the_async_client_asks_again_as_well(gateway: FakeGateway) -> None:
    gateway.refusals = [problem(503, "unavailable")]
    async with AsyncPrefold(gateway.url, retry=QUICK) as client:
        appended = await client.append("chat", "user", "Hello")

    assert appended.turns[0].seq == 1
    assert len(gateway.requests) == 2


def test_an_append_whose_answer_is_lost_is_stored_once(gateway: FakeGateway) -> None:
    gateway.stores_then_drops = 2
    with Prefold(gateway.url, retry=QUICK) as client:
        appended = client.append("chat", "user", "Hello")

    assert appended.turns[0].duplicate
    assert len(gateway.sessions["chat"].turns) == 1
    assert len({json.dumps(body) for _, _, body in gateway.requests}) == 1, "each attempt sends the same id"


def test_a_gateway_that_nobody_listens_at_is_unavailable_after_the_deadline() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Prefold(url, retry=IMPATIENT) as client, pytest.raises(UnavailableError) as caught:
            client.session("chat")

    assert caught.value.code == "no_answer"
    assert url in caught.value.detail


def test_a_gateway_that_never_answers_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Prefold(url, retry=IMPATIENT) as client, pytest.raises(UnavailableError):
            client.session("chat")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInputError),
        (401, UnauthenticatedError),
        (403, UnauthenticatedError),
        (404, NotFoundError),
        (405, RefusedError),
        (409, ConflictError),
        (410, GoneError),
        (413, TooLargeError),
        (422, InvalidInputError),
        (500, PrefoldError),
        (501, PrefoldError),
    ],
)
def test_a_refusal_is_raised_at_once_with_code_detail_and_field(
    gateway: FakeGateway, status: int, kind: type[PrefoldError]
) -> None:
    gateway.refusals = [problem(status, "some_code", "what is wrong")]
    with Prefold(gateway.url, retry=QUICK) as client, pytest.raises(PrefoldError) as caught:
        client.append("chat", "user", "Hello")

    error = caught.value
    assert type(error) is kind
    assert (error.code, error.detail, error.field) == ("some_code", "what is wrong", "turns[0].role")
    assert len(gateway.requests) == 1


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b'"text"', b"", b"\xff"])
def test_a_refusal_without_a_problem_document_says_the_status(gateway: FakeGateway, body: bytes) -> None:
    gateway.refusals = [(404, {}, body)]
    with Prefold(gateway.url, retry=QUICK) as client, pytest.raises(NotFoundError, match="answered 404 Not Found"):
        client.session("chat")


@pytest.mark.parametrize("body", [b"{}", b"[]", b"hello", b'{"turns": 7}'])
def test_an_answer_of_something_else_than_a_gateway_is_no_success(gateway: FakeGateway, body: bytes) -> None:
    gateway.refusals = [(200, {}, body)]
    with Prefold(gateway.url, retry=QUICK) as client, pytest.raises(PrefoldError) as caught:
        client.append("chat", "user", "Hello")

    assert caught.value.code == "unexpected_answer"


def test_a_retry_after_beyond_the_deadline_is_raised_without_waiting(gateway: FakeGateway) -> None:
    gateway.refusals = [problem(429, "overloaded", **{"retry-after": "3600"})]
    with Prefold(gateway.url, retry=QUICK) as client, pytest.raises(OverloadedError) as caught:
        client.append("chat", "user", "Hello")

    assert caught.value.retry_after == timedelta(hours=1)
    assert len(gateway.requests) == 1


def attempts_at(times: list[float], policy: RetryPolicy, jitter: float) -> Attempts:
    return Attempts(policy, clock=lambda: times[0], jitter=lambda: jitter)


def outage(retry_after_seconds: float | None = None) -> TransientError:
    after = None if retry_after_seconds is None else timedelta(seconds=retry_after_seconds)
    return UnavailableError("not now", retry_after=after)


def test_pauses_double_up_to_the_longest() -> None:
    policy = RetryPolicy(first_pause_seconds=0.1, longest_pause_seconds=0.5)
    attempts = attempts_at([0.0], policy, jitter=1.0)

    assert [attempts.pause_after(outage()) for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_a_pause_is_never_shorter_than_the_server_asks(jitter: float) -> None:
    pause = attempts_at([0.0], RetryPolicy(), jitter).pause_after(outage(2.0))

    assert 2.0 <= pause <= 2.0 + RetryPolicy().first_pause_seconds


def test_a_pause_that_would_pass_the_deadline_raises_the_error_itself() -> None:
    now = [100.0]
    attempts = attempts_at(now, RetryPolicy(deadline_seconds=10, first_pause_seconds=1), jitter=1.0)
    now[0] = 109.5
    error = outage()

    with pytest.raises(UnavailableError) as caught:
        attempts.pause_after(error)

    assert caught.value is error


def test_an_attempt_near_the_deadline_may_only_take_what_is_left() -> None:
    now = [0.0]
    attempts = attempts_at(now, RetryPolicy(deadline_seconds=12, attempt_seconds=10), jitter=0.0)
    first = attempts.timeout_seconds()
    now[0] = 9.0

    assert (first, attempts.timeout_seconds()) == (10.0, 3.0)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0), ("7", 7), (" 12 ", 12), ("", None), ("-1", None), ("soon", None), ("1.5", None), ("9" * 40, None)],
)
def test_retry_after_in_seconds_is_read_and_nonsense_ignored(value: str, seconds: int | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)

    assert retry_after({"retry-after": value}) == expected


@pytest.mark.parametrize(("offset_seconds", "least", "most"), [(90, 80, 90), (-90, 0, 0)])
def test_retry_after_as_a_date_is_read(offset_seconds: int, least: int, most: int) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=offset_seconds), usegmt=True)

    pause = retry_after({"retry-after": date})

    assert pause is not None
    assert least <= pause.total_seconds() <= most


async def test_many_tasks_share_one_async_client(gateway: FakeGateway) -> None:
    async with AsyncPrefold(gateway.url) as client:
        await asyncio.gather(*(client.append("chat", "user", str(n)) for n in range(8)))
        log = await client.turns("chat")

    assert {turn["content"] for turn in log} == {str(n) for n in range(8)}
