"""What a client is connected with: credentials that nobody quotes, an event loop of its own, an end."""

import asyncio
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from prefold.client import AsyncPrefold, Prefold, RetryPolicy
from prefold.errors import InvalidInputError, PrefoldError, RefusedError, UnavailableError
from tests.support.fake_gateway import FakeGateway, running_fake_gateway

AT_ONCE = RetryPolicy(deadline_seconds=0.01, attempt_seconds=1)
URL = "http://ann:pass%40word@gateway:7077"
SECRET = ("ann", "pass%40word", "pass@word", "word")
Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        yield fake


def raised_by(answer: Answer) -> PrefoldError:
    transport = httpx.MockTransport(answer)
    with Prefold(URL, retry=AT_ONCE, transport=transport) as client, pytest.raises(PrefoldError) as caught:
        client.session("s")
    return caught.value


def away(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


@pytest.mark.parametrize(
    "answer",
    [away, lambda _: httpx.Response(502), lambda _: httpx.Response(404), lambda _: httpx.Response(200, text="Hello")],
    ids=["nobody there", "an outage", "a refusal", "no gateway"],
)
def test_an_error_names_the_gateway_and_never_the_credentials_of_its_url(answer: Answer) -> None:
    error = raised_by(answer)

    assert "gateway:7077" in str(error)
    told = "".join(traceback.format_exception(error)).replace("password", "")
    assert not [one for one in SECRET if one in str(error) or f"{one}@" in told]


@pytest.mark.parametrize(
    "url", ["http://ann:pass", "http://ann:pass@host:port", "ftp://ann:pass@host", "http://ann:pass@"]
)
def test_a_url_that_is_none_is_not_quoted_either(url: str) -> None:
    for kind in (Prefold, AsyncPrefold):
        with pytest.raises(InvalidInputError) as caught:
            kind(url)
        assert caught.value.field == "url"
        assert caught.value.__cause__ is None
        assert "pass" not in str(caught.value)


def test_name_and_password_of_the_url_are_sent_as_such() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(404)

    raised_by(answer)
    assert asked[0].headers["authorization"] == f"Basic {b64encode(b'ann:pass@word').decode()}"
    assert str(asked[0].url) == "http://gateway:7077/v1/sessions/s"


def test_a_closed_client_says_so(gateway: FakeGateway) -> None:
    client = Prefold(gateway.url)
    client.append("chat", "user", "Hello")
    client.close()
    for call in (lambda: client.append("chat", "user", "Hello"), lambda: next(iter(client.events("chat")))):
        with pytest.raises(RefusedError) as caught:
            call()
        assert caught.value.code == "client_closed"


async def test_a_closed_asyncio_client_says_so(gateway: FakeGateway) -> None:
    client = AsyncPrefold(gateway.url)
    await client.append("chat", "user", "Hello")
    for _ in range(2):
        await client.aclose()
    for call in (client.append("chat", "user", "Hello"), anext(aiter(client.events("chat")))):
        with pytest.raises(RefusedError) as caught:
            await call
        assert caught.value.code == "client_closed"


async def test_turns_that_wait_in_the_buffer_of_a_closed_client_fail_with_it(gateway: FakeGateway) -> None:
    client = AsyncPrefold(gateway.url)
    buffer = client.buffer("chat")
    await client.aclose()
    tickets = [buffer.append("user", "Hello"), buffer.append("user", "Hello again")]
    for found in await asyncio.gather(*tickets, return_exceptions=True):
        assert isinstance(found, RefusedError)
        assert found.code == "client_closed"


def test_an_asyncio_client_in_another_event_loop_says_that_it_belongs_to_the_first(gateway: FakeGateway) -> None:
    client = AsyncPrefold(gateway.url)
    calls: list[Callable[[], Any]] = [lambda: _append(client), lambda: _listen(client), client.aclose]
    with asyncio.Runner() as first:
        first.run(_append(client))
        for call in calls:
            with pytest.raises(RefusedError) as caught:
                asyncio.run(call())
            assert caught.value.code == "other_loop"
        first.run(_append(client))
        first.run(client.aclose())


def test_an_asyncio_client_may_be_made_before_its_loop_and_closed_unused_in_any(gateway: FakeGateway) -> None:
    client = AsyncPrefold(gateway.url)

    async def use() -> None:
        async with client:
            await _append(client)

    asyncio.run(use())
    asyncio.run(client.aclose())
    assert gateway.requests


async def _append(client: AsyncPrefold) -> None:
    await client.append("chat", "user", "Hello")


async def _listen(client: AsyncPrefold) -> None:
    async for _ in client.events("chat"):
        return


def test_nobody_answering_is_an_outage_whatever_the_url_holds() -> None:
    assert isinstance(raised_by(away), UnavailableError)
