"""What can befall a call of the fake Messages API, and what the real SDK makes of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from email.utils import formatdate
from typing import Any

import anthropic
import httpx2
import pytest

from tests.support.messages_api import (
    Fault,
    Latency,
    Limits,
    MessagesApi,
    VirtualClock,
    faults,
    refusing,
    serving,
    verdict,
)
from tests.support.messages_api.sdk import sdk_of
from tests.support.waiting import wait_until, wait_until_async

HELLO: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 500,
    "messages": [{"role": "user", "content": "Hello."}],
}


@pytest.fixture
def api() -> MessagesApi:
    return MessagesApi()


@pytest.fixture
def url(api: MessagesApi) -> Iterator[str]:
    with serving(api) as url:
        yield url


@pytest.fixture(params=["in process", "loopback"])
async def client(request: pytest.FixtureRequest, api: MessagesApi) -> AsyncIterator[anthropic.AsyncAnthropic]:
    target = api if request.param == "in process" else request.getfixturevalue("url")
    async with sdk_of(target) as client:
        yield client


@pytest.mark.parametrize(
    ("fault", "wanted", "told"),
    [
        (faults.rate_limited(3), anthropic.RateLimitError, "rate_limit_error"),
        (faults.overloaded(), anthropic.APIStatusError, "overloaded_error"),
        (faults.server_error(), anthropic.InternalServerError, "api_error"),
        (faults.gateway_timeout(), anthropic.APIStatusError, "timeout_error"),
        (faults.unauthorized(), anthropic.AuthenticationError, "authentication_error"),
        (faults.usage_limit(), anthropic.BadRequestError, "invalid_request_error"),
        (faults.status(402), anthropic.APIStatusError, "billing_error"),
        (faults.status(413), anthropic.APIStatusError, "request_too_large"),
        (faults.html(502), anthropic.InternalServerError, None),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
async def test_a_scripted_status_reaches_the_client_once(
    client: anthropic.AsyncAnthropic,
    api: MessagesApi,
    fault: Fault,
    wanted: type[anthropic.APIStatusError],
    told: str | None,
) -> None:
    api.script(fault)
    with pytest.raises(wanted) as caught:
        await client.messages.create(**HELLO)
    assert (caught.value.status_code, caught.value.type) == (fault.status, told)
    assert caught.value.response.headers.get("retry-after") == fault.headers.get("retry-after")
    assert (await client.messages.create(**HELLO)).stop_reason == "end_turn"
    assert api.faults.left == 0


async def test_a_spend_limit_is_a_429_of_its_own_without_retry_after(
    client: anthropic.AsyncAnthropic, api: MessagesApi
) -> None:
    api.script(faults.spend_limit())
    with pytest.raises(anthropic.RateLimitError) as caught:
        await client.messages.create(**HELLO)
    assert caught.value.error_code == "enforced_spend_limit_reached"
    assert "retry-after" not in caught.value.response.headers


@pytest.mark.parametrize("after_headers", [False, True])
async def test_a_cut_connection_is_a_connection_error(
    client: anthropic.AsyncAnthropic, api: MessagesApi, after_headers: bool
) -> None:
    api.script(faults.reset(after_headers=after_headers))
    with pytest.raises((anthropic.APIConnectionError, httpx2.TransportError)):
        await client.messages.create(**HELLO)
    (entry,) = api.journal.entries
    assert entry.status == (200 if after_headers else None)
    assert entry.has_failed


async def test_a_refused_connection_is_a_connection_error() -> None:
    with refusing() as url:
        async with sdk_of(url) as client:
            with pytest.raises(anthropic.APIConnectionError):
                await client.messages.create(**HELLO)


async def test_a_page_under_200_is_a_decode_error_of_json(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    """No ``AnthropicError``: who catches only those is killed by it. Under its own content type it is a string."""
    api.script(Fault("empty_stream"), faults.cut_stream(after=40))
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            await client.messages.create(**HELLO)
    api.script(faults.html(200))
    answer: object = await client.messages.create(**HELLO)
    assert isinstance(answer, str)


@pytest.mark.parametrize("after_headers", [False, True])
async def test_a_server_that_hangs_is_given_up_and_sees_it(api: MessagesApi, url: str, after_headers: bool) -> None:
    api.script(faults.hang(after_headers=after_headers))
    async with sdk_of(url, timeout=0.2) as client:
        with pytest.raises((anthropic.APITimeoutError, httpx2.ReadTimeout)):
            await client.messages.create(**HELLO)
    wait_until("the server has seen the client go", lambda: api.journal.hung_up == 1)


async def test_a_cancelled_call_counts_as_hung_up_in_process_too(api: MessagesApi) -> None:
    api.script(faults.hang())
    async with sdk_of(api) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.messages.create(**HELLO)
    assert (api.journal.hung_up, api.journal.running) == (1, 0)


async def test_a_trickle_outlives_every_read_timeout(api: MessagesApi, url: str) -> None:
    """Only a deadline over the whole call ends it."""
    api.script(faults.trickle(0.05))
    async with sdk_of(url, timeout=0.3) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.8):
                await client.messages.create(**HELLO)


async def test_retry_after_is_obeyed_without_limit(api: MessagesApi, url: str) -> None:
    api.script(faults.rate_limited(3600))
    async with sdk_of(url, max_retries=1) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.messages.create(**HELLO)
    assert api.journal.count == 1


async def test_x_should_retry_overrides_the_status(api: MessagesApi, url: str) -> None:
    api.script(
        faults.should_retry(529, wanted=False),
        Fault("status", 400, headers={"x-should-retry": "true", "retry-after-ms": "1"}),
    )
    async with sdk_of(url, max_retries=2) as client:
        with pytest.raises(anthropic.APIStatusError):
            await client.messages.create(**HELLO)
        assert api.journal.count == 1
        await client.messages.create(**HELLO)
    assert [entry.status for entry in api.journal.messages] == [529, 400, 200]
    assert [entry.headers["x-stainless-retry-count"] for entry in api.journal.messages] == ["0", "0", "1"]
    assert not any("idempotency-key" in entry.headers for entry in api.journal.messages)


async def test_a_stream_that_is_cut_looks_like_success(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.brain = lambda wanted: "word " * 200
    api.script(faults.cut_stream(after=8))
    async with client.messages.stream(**HELLO) as stream:
        message = await stream.get_final_message()
    assert message.stop_reason is None
    assert message.content[-1].model_dump()["text"].startswith("word ")


async def test_an_error_inside_a_stream_has_status_200(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.script(faults.error_event())
    with pytest.raises(anthropic.APIStatusError) as caught:
        async with client.messages.stream(**HELLO) as stream:
            await stream.get_final_message()
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
    assert type(caught.value) is anthropic.APIStatusError


async def test_an_empty_stream_is_an_assertion_error(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.script(faults.empty_stream())
    with pytest.raises(AssertionError):
        async with client.messages.stream(**HELLO) as stream:
            await stream.get_final_message()


async def test_unknown_events_and_pings_are_borne(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.script(faults.odd_events())
    async with client.messages.stream(**HELLO) as stream:
        assert (await stream.get_final_message()).stop_reason == "end_turn"


async def test_a_stream_that_stalls_is_ended_by_the_read_timeout(api: MessagesApi, url: str) -> None:
    api.script(faults.stall())
    async with sdk_of(url, timeout=0.2) as client:
        with pytest.raises((anthropic.APIConnectionError, httpx2.ReadTimeout)):
            async with client.messages.stream(**HELLO) as stream:
                await stream.get_final_message()


async def test_faults_befall_the_calls_that_they_fit(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.script(faults.answers("refuses"), when=lambda entry: entry.json["model"] == "claude-opus-5-5")
    api.script(faults.none(), faults.answers("empty"), forever=True)
    ends = [await client.messages.create(**HELLO) for _ in range(3)]
    assert [len(message.content) for message in ends] == [2, 0, 0]
    refused = await client.messages.create(**{**HELLO, "model": "claude-opus-5-5"})
    assert refused.stop_reason == "refusal"
    assert refused.stop_details is not None


async def test_a_share_of_the_calls_fails_and_the_same_ones_again(api: MessagesApi) -> None:
    async def failed(seed: int) -> list[int]:
        api.faults.fail_share(0.2, faults.server_error(), seed=seed)
        async with sdk_of(api) as client:
            ends = await asyncio.gather(*(client.messages.create(**HELLO) for _ in range(100)), return_exceptions=True)
        return [number for number, end in enumerate(ends) if isinstance(end, anthropic.InternalServerError)]

    first = await failed(7)
    assert 8 <= len(first) <= 35
    assert first == await failed(7)


async def test_limits_let_through_what_they_hold_and_say_when_to_come_back() -> None:
    clock = VirtualClock()
    api = MessagesApi(clock=clock, limits=Limits(requests=60, input_tokens=3000, output_tokens=1000))
    body = {**HELLO, "messages": [{"role": "user", "content": "word " * 1000}]}
    async with sdk_of(api) as client:
        await client.messages.create(**body)
        raw = await client.messages.with_raw_response.create(**body)
        assert raw.headers["anthropic-ratelimit-input-tokens-limit"] == "3000"
        assert raw.headers["anthropic-ratelimit-input-tokens-remaining"] == str(3000 - 2 * 1436)
        assert raw.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
        with pytest.raises(anthropic.RateLimitError) as caught:
            await client.messages.create(**body)
        wait = int(caught.value.response.headers["retry-after"])
        assert wait == 27
        clock.advance(wait)
        await client.messages.create(**body)


async def test_what_comes_from_the_cache_is_not_limited() -> None:
    api = MessagesApi(clock=VirtualClock(), limits=Limits(input_tokens=2000))
    block = {"type": "text", "text": "word " * 1000, "cache_control": {"type": "ephemeral"}}
    body = {**HELLO, "messages": [{"role": "user", "content": [block]}]}
    async with sdk_of(api) as client:
        ends = [await client.messages.create(**body) for _ in range(5)]
    assert [message.usage.cache_read_input_tokens for message in ends] == [0, 1436, 1436, 1436, 1436]


async def test_output_that_was_too_much_is_paid_back_first() -> None:
    clock = VirtualClock()
    api = MessagesApi(clock=clock, limits=Limits(output_tokens=300), brain=lambda wanted: "word " * 400)
    async with sdk_of(api) as client:
        await client.messages.create(**HELLO)
        with pytest.raises(anthropic.RateLimitError):
            await client.messages.create(**HELLO)
        clock.advance(60)
        await client.messages.create(**HELLO)


def test_a_latency_has_the_median_and_p95_that_were_asked_for() -> None:
    latency = Latency(median=20, p95=60, seed=3)
    drawn = sorted(sum(latency.draw(0, 0)) for _ in range(4000))
    assert 19 < drawn[2000] < 21
    assert 55 < drawn[3800] < 66
    again = Latency(median=20, p95=60, seed=3)
    assert sum(again.draw(0, 0)) in drawn


async def test_a_latency_by_size_counts_what_was_not_cached() -> None:
    clock = VirtualClock()
    api = MessagesApi(clock=clock, latency=Latency(base=1, input_ms=1, output_ms=10), brain=lambda wanted: "word")
    block = {"type": "text", "text": "word " * 1000, "cache_control": {"type": "ephemeral"}}
    body = {**HELLO, "messages": [{"role": "user", "content": [block]}]}
    took, written = [], 0.0
    async with sdk_of(api) as client:
        for _ in range(2):
            before = clock.now()
            message = await client.messages.create(**body)
            took.append(clock.now() - before)
            written = 0.01 * message.usage.output_tokens
    assert took == pytest.approx([1 + 1.436 + written, 1 + written])


async def test_many_slow_calls_run_at_once(api: MessagesApi, url: str) -> None:
    api.script(faults.slow(30), forever=True)
    async with sdk_of(url) as client:
        calls = [asyncio.create_task(client.messages.create(**HELLO)) for _ in range(64)]

        async def all_run() -> bool:
            return api.journal.running == 64

        await wait_until_async("64 calls run", all_run)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    wait_until("the server has seen all go", lambda: (api.journal.hung_up, api.journal.running) == (64, 0))


async def test_the_verdict_names_what_a_client_did_wrong() -> None:
    clock = VirtualClock()
    api = MessagesApi(clock=clock)
    api.script(
        faults.usage_limit(), faults.none(), faults.rate_limited(5), faults.none(), faults.overloaded(), faults.none()
    )
    sent = formatdate(0, usegmt=True)
    api.script(Fault("status", 429, headers={"date": sent, "retry-after": formatdate(9, usegmt=True)}), faults.none())
    async with sdk_of(api) as client:
        for number, pause in enumerate([0, 60, 0, 4, 0, 0.1, 0, 8]):
            clock.advance(pause)
            body = {**HELLO, "messages": [{"role": "user", "content": f"Hello, number {number // 2}."}]}
            await asyncio.gather(client.messages.create(**body), return_exceptions=True)
    told = verdict(api.journal.entries)
    assert len(told) == 4
    assert "repeats what got a 400" in told[0]
    assert "ignores retry-after: 5" in told[1]
    assert "faster than the floor" in told[2]
    assert "ignores retry-after: 9" in told[3]


async def test_the_verdict_on_a_client_that_waits_is_empty() -> None:
    clock = VirtualClock()
    api = MessagesApi(clock=clock)
    api.script(faults.rate_limited(5), faults.overloaded(), faults.none())
    async with sdk_of(api) as client:
        for pause in (0, 5, 1):
            clock.advance(pause)
            await asyncio.gather(client.messages.create(**HELLO), return_exceptions=True)
    assert verdict(api.journal.entries) == []
    assert [entry.has_failed for entry in api.journal.entries] == [True, True, False]


async def test_a_stopped_server_cuts_the_calls_that_wait(api: MessagesApi) -> None:
    api.script(faults.hang())

    async def runs() -> bool:
        return api.journal.running == 1

    async with AsyncExitStack() as clients:
        with serving(api) as url:
            client = await clients.enter_async_context(sdk_of(url))
            call = asyncio.create_task(client.messages.create(**HELLO))
            await wait_until_async("the call runs", runs)
        with pytest.raises(anthropic.APIConnectionError):
            await call
    assert api.journal.running == 0
