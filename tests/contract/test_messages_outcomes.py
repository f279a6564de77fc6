"""Every way in which a call of the model ends, against a server that behaves as the real one."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from prefold.errors import PrefoldError, RefusedError, TransientError
from prefold.messages import (
    AnswerRefusedError,
    BadRequestError,
    InputTooLongError,
    Messages,
    ModelAwayError,
    ModelBusyError,
    ModelParkedError,
)
from prefold.messages.client import Timeouts
from prefold.storage.spending import Held, Settlement
from prefold.worker.waiting import desk_of_work
from tests.support.messages_api import (
    Fault,
    MessagesApi,
    VirtualClock,
    faults,
    in_process,
    refusing,
    serving,
)
from tests.support.messages_api.answers import Answer, thinking_block
from tests.support.messaging import KEY, MODEL, Sums, ask, calling
from tests.support.waiting import wait_until_async

SECRET = "the patient's name is Zephyrine"
"""Said in every question: it may stand in no error and in no log."""


@pytest.fixture
def api() -> MessagesApi:
    return MessagesApi(brain=lambda _: "All is well.", clock=VirtualClock())


@pytest.fixture
def sums() -> Sums:
    return Sums()


@pytest.fixture
async def messages(api: MessagesApi, sums: Sums) -> AsyncIterator[Messages]:
    async with calling(in_process(api), ledger=sums) as made:
        yield made


def block(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def failure(messages: Messages, **members: Any) -> PrefoldError:
    """The error of one call; nothing of the conversation is in it, nor in what was logged."""
    with capture_logs() as logs, pytest.raises(PrefoldError) as caught:
        await messages.ask(ask(SECRET, **members))
    shown = f"{caught.value!r} {caught.value.detail} {logs}"
    assert SECRET not in shown
    assert caught.value.__suppress_context__
    return caught.value


async def test_a_normal_answer_has_text_name_usage_and_cost(api: MessagesApi, messages: Messages, sums: Sums) -> None:
    reply = await messages.ask(ask())
    assert (reply.text, reply.model) == ("All is well.", MODEL)
    (entry,) = api.journal.entries
    assert reply.request_id == entry.request_id
    assert entry.usage is not None
    assert reply.usage.input_tokens == entry.usage["input_tokens"] > 0
    assert reply.usage.output_tokens == entry.usage["output_tokens"] > 0
    assert reply.usage.micro_usd >= 1
    assert [one.usage for one in sums.settled] == sums.noted == [reply.usage]


async def test_thinking_first_and_text_in_several_blocks_is_one_text(api: MessagesApi, messages: Messages) -> None:
    api.brain = lambda _: Answer([thinking_block("Hm."), block("One. "), block("Two.")])
    assert (await messages.ask(ask())).text == "One. Two."


async def test_the_key_is_sent_and_nobody_is_named(api: MessagesApi, messages: Messages) -> None:
    await messages.ask(ask())
    (entry,) = api.journal.entries
    assert entry.key == KEY
    assert set(entry.json) == {"model", "max_tokens", "messages", "system", "output_config"}
    sent = entry.body.decode() + json.dumps(entry.headers)
    assert not any(word in sent for word in ("acme", '"s1"', "0123456789ab"))


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (faults.server_error(), ModelAwayError, "model_unavailable"),
        (faults.status(503), ModelAwayError, "model_unavailable"),
        (faults.status(408), ModelAwayError, "model_unavailable"),
        (faults.status(409), ModelAwayError, "model_unavailable"),
        (faults.gateway_timeout(), ModelAwayError, "model_timeout"),
        (faults.overloaded(), ModelAwayError, "model_overloaded"),
        (faults.html(502), ModelAwayError, "model_unavailable"),
        (faults.html(200), ModelAwayError, "model_unavailable"),
        (faults.reset(), ModelAwayError, "model_unavailable"),
        (faults.reset(after_headers=True), ModelAwayError, "model_unavailable"),
        (faults.cut_stream(20), ModelAwayError, "model_unavailable"),
        (faults.rate_limited(7), ModelBusyError, "model_rate_limited"),
        (faults.rate_limited(), ModelBusyError, "model_rate_limited"),
        (faults.rate_limited(9, error_code="ramp_limit_exceeded"), ModelBusyError, "model_rate_limited"),
        (faults.should_retry(400, True), ModelAwayError, "model_unavailable"),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else None,
)
async def test_what_passes_is_transient_and_says_when_to_come_back(
    api: MessagesApi, messages: Messages, fault: Fault, kind: type[PrefoldError], code: str
) -> None:
    api.script(fault)
    error = await failure(messages)
    assert (type(error), error.code) == (kind, code)
    assert isinstance(error, TransientError)
    assert error.retry_after is not None
    assert timedelta(seconds=0.5) <= error.retry_after <= timedelta(minutes=5, seconds=2)
    assert api.journal.count == 1, "the SDK's own retries are off"


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (faults.unauthorized(), ModelParkedError, "model_credentials"),
        (faults.status(402), ModelParkedError, "model_credentials"),
        (faults.status(403), ModelParkedError, "model_credentials"),
        (faults.status(400, "On hold", error_code="organization_on_hold"), ModelParkedError, "model_credentials"),
        (faults.spend_limit(), ModelParkedError, "model_spend_limit"),
        (faults.spend_limit("contract_spend_limit_reached"), ModelParkedError, "model_spend_limit"),
        (faults.spend_limit("ramp_limit_exceeded"), ModelParkedError, "model_spend_limit"),
        (faults.usage_limit(), ModelParkedError, "model_spend_limit"),
        (faults.status(400, "Your credit balance is too low to access it."), ModelParkedError, "model_spend_limit"),
        (faults.should_retry(429, False), ModelParkedError, "model_spend_limit"),
        (faults.status(404, "model: claude-none"), ModelParkedError, "model_unknown"),
        (faults.status(413), InputTooLongError, "input_too_long"),
        (faults.status(400, "prompt is too long: 208310 tokens > 200000 maximum"), InputTooLongError, "input_too_long"),
        (
            faults.status(400, "input length and `max_tokens` exceed context limit: 199 + 8 > 200, decrease one"),
            InputTooLongError,
            "input_too_long",
        ),
        (
            faults.status(
                400, "request (9 tokens) exceeds the available context size", error_type="exceed_context_size_error"
            ),
            InputTooLongError,
            "input_too_long",
        ),
        (faults.status(400, "max_tokens: 21333 > 4096, which is the maximum"), BadRequestError, "model_bad_request"),
        (faults.status(422), BadRequestError, "model_bad_request"),
        (faults.status(405), BadRequestError, "model_bad_request"),
        (faults.should_retry(500, False), BadRequestError, "model_bad_request"),
    ],
    ids=lambda value: f"{value.name} {value.message[:20]}" if isinstance(value, Fault) else None,
)
async def test_what_does_not_pass_is_refused_and_bills_nothing(
    api: MessagesApi, messages: Messages, sums: Sums, fault: Fault, kind: type[PrefoldError], code: str
) -> None:
    api.script(fault)
    error = await failure(messages)
    assert (type(error), error.code) == (kind, code)
    assert isinstance(error, RefusedError)
    assert api.journal.count == 1
    assert [(one.usage.calls, one.usage.micro_usd, one.failed) for one in sums.settled] == [(0, 0, True)]


async def test_an_error_says_where_in_the_request_and_which_request_but_not_what(
    api: MessagesApi, messages: Messages
) -> None:
    api.script(faults.status(400, f"messages.0.content.1: no good: {SECRET}"))
    error = await failure(messages)
    assert "messages.0.content.1" in error.detail
    assert api.journal.entries[0].request_id in error.detail


def answering(content: Any, stop_reason: str | None = "end_turn", **members: Any) -> httpx2.AsyncClient:
    """A server whose every answer is this message."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"type": "message", "content": content, "stop_reason": stop_reason, "usage": usage, **members}
    return saying(json.dumps(message).encode())


def saying(body: bytes, **headers: str) -> httpx2.AsyncClient:
    """A server that answers 200 with these bytes."""
    return httpx2.AsyncClient(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, content=body, headers=headers))
    )


WORDS = [block(SECRET)]
CALL = [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]


@pytest.mark.parametrize(
    ("content", "stop_reason", "code", "heard"),
    [
        (WORDS, "refusal", "answer_refusal", SECRET),
        ([], "refusal", "answer_refusal", ""),
        ([], "end_turn", "answer_empty", ""),
        ([{"type": "text", "text": " \n\t"}], "end_turn", "answer_empty", " \n\t"),
        ([{"type": "thinking", "thinking": "Hm."}], "end_turn", "answer_empty", ""),
        (CALL, "end_turn", "answer_empty", ""),
        (WORDS, "max_tokens", "answer_cut", SECRET),
        ([{"type": "thinking", "thinking": "Hm."}], "max_tokens", "answer_cut", ""),
        (CALL, "tool_use", "answer_stopped", ""),
        (WORDS, "pause_turn", "answer_stopped", SECRET),
        (WORDS, "stop_sequence", "answer_stopped", SECRET),
        (WORDS, "compaction", "answer_stopped", SECRET),
        (WORDS, "something new", "answer_stopped", SECRET),
        (WORDS, 7, "answer_stopped", SECRET),
        (None, "end_turn", "answer_malformed", ""),
        ("text", "end_turn", "answer_malformed", ""),
        (["text"], "end_turn", "answer_malformed", ""),
        ([{"type": "text"}], "end_turn", "answer_malformed", ""),
        ([{"type": "text", "text": None}], "end_turn", "answer_malformed", ""),
    ],
)
async def test_an_answer_that_is_none_is_refused_with_what_was_said_and_paid(
    sums: Sums, content: Any, stop_reason: Any, code: str, heard: str
) -> None:
    async with calling(answering(content, stop_reason), ledger=sums) as messages:
        error = await failure(messages)
    assert isinstance(error, AnswerRefusedError)
    assert error.code == code
    assert error.reply is not None
    assert (error.reply.text, error.reply.usage.output_tokens) == (heard, 5)
    assert [one.usage.calls for one in sums.settled] == [1]


async def test_an_answer_that_the_window_cut_asks_for_less_input() -> None:
    async with calling(answering(WORDS, "model_context_window_exceeded")) as messages:
        assert isinstance(await failure(messages), InputTooLongError)


async def test_an_answer_without_a_stop_reason_was_cut_and_is_paid(sums: Sums) -> None:
    async with calling(answering(WORDS, None), ledger=sums) as messages:
        error = await failure(messages)
    assert (type(error), error.code) == (ModelAwayError, "model_unavailable")
    assert [(one.usage.output_tokens, one.failed) for one in sums.settled] == [(5, True)]


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [
        ("overloaded_error", ModelAwayError, "model_overloaded"),
        ("api_error", ModelAwayError, "model_unavailable"),
        ("timeout_error", ModelAwayError, "model_timeout"),
        ("rate_limit_error", ModelBusyError, "model_rate_limited"),
        ("authentication_error", ModelParkedError, "model_credentials"),
        ("billing_error", ModelParkedError, "model_credentials"),
        ("permission_error", ModelParkedError, "model_credentials"),
        ("not_found_error", ModelParkedError, "model_unknown"),
        ("request_too_large", InputTooLongError, "input_too_long"),
        ("invalid_request_error", BadRequestError, "model_bad_request"),
        ("something_new", ModelAwayError, "model_unavailable"),
        (None, ModelAwayError, "model_unavailable"),
    ],
)
async def test_an_error_in_the_body_of_a_success_is_an_error(
    kind: str | None, error: type[PrefoldError], code: str
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": SECRET}}
    async with calling(saying(json.dumps(body).encode())) as messages:
        failed = await failure(messages)
    assert (type(failed), failed.code) == (error, code)


@pytest.mark.parametrize(
    ("body", "is_paid"),
    [
        (b"", False),
        (b"<html>Sign in</html>", False),
        (b"event: message_start\ndata: {}\n\n", False),
        (b"[]", False),
        (b'"text"', False),
        (b"null", False),
        (b'{"type":"message","content":[{"type":"te', True),
        (b'{"type":"message","content":[{"type":"text","text":"\\ud800"}]}', True),
        (b"{" * 100_000, True),
        (b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}", True),
    ],
    ids=range(10),
)
async def test_a_success_that_is_no_message_is_worth_a_retry(sums: Sums, body: bytes, is_paid: bool) -> None:
    async with calling(saying(body), ledger=sums) as messages:
        error = await failure(messages)
    assert (type(error), error.code) == (ModelAwayError, "model_unavailable")
    assert [one.unclear for one in sums.settled] == [is_paid]


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 7, "output_tokens": 3}, (7, 0, 0, 3)),
        ({"input_tokens": 7, "output_tokens": None, "cache_read_input_tokens": None}, (7, 0, 0, 0)),
        ({"output_tokens": 3}, (0, 0, 0, 3)),
        ({"input_tokens": "7", "output_tokens": True, "cache_read_input_tokens": -4}, (0, 0, 0, 0)),
        ({"input_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 6}, (1, 5, 6, 0)),
        (
            {"input_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 2}},
            (1, 0, 6, 0),
        ),
        ({"input_tokens": 1, "cache_creation": "none", "cache_creation_input_tokens": 6}, (1, 0, 6, 0)),
    ],
)
async def test_counts_that_are_missing_or_none_are_nothing(usage: Any, tokens: tuple[int, ...]) -> None:
    async with calling(answering(WORDS, usage=usage)) as messages:
        used = (await messages.ask(ask())).usage
    assert (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens, used.output_tokens) == tokens


@pytest.mark.parametrize("usage", [None, {}, [], "7", {"service_tier": "standard"}])
async def test_an_answer_that_does_not_say_what_it_took_counts_as_what_was_set_aside(sums: Sums, usage: Any) -> None:
    async with calling(answering(WORDS, usage=usage), ledger=sums) as messages:
        used = (await messages.ask(ask())).usage
    assert used.micro_usd > 0
    assert [(one.unclear, one.usage) for one in sums.settled] == [(True, used)]


async def test_an_hour_of_cache_costs_more_than_five_minutes() -> None:
    costs = []
    for split in ({"ephemeral_5m_input_tokens": 80_000}, {"ephemeral_1h_input_tokens": 80_000}):
        usage = {"input_tokens": 0, "cache_creation_input_tokens": 80_000, "cache_creation": split}
        async with calling(answering(WORDS, usage=usage)) as messages:
            costs.append((await messages.ask(ask())).usage.micro_usd)
    assert costs == [10_000, 16_000]


async def test_a_header_that_is_no_identifier_is_not_passed_on() -> None:
    body = b'{"type":"error","error":{"type":"api_error"}}'
    async with calling(saying(body, **{"request-id": f"req {SECRET}"})) as messages:
        await failure(messages)


async def test_a_refused_connection_is_away_and_free(sums: Sums) -> None:
    with refusing() as base_url:
        async with calling(base_url=base_url, ledger=sums) as messages:
            error = await failure(messages)
    assert (type(error), error.code) == (ModelAwayError, "model_unavailable")
    assert [(one.unclear, one.usage.calls) for one in sums.settled] == [(False, 0)]


@pytest.mark.parametrize(
    "fault",
    [faults.hang(), faults.hang(after_headers=True), faults.slow(30), faults.trickle(0.05)],
    ids=lambda f: f.name,
)
async def test_a_call_ends_at_its_deadline_whatever_the_server_does_and_counts_as_set_aside(
    sums: Sums, fault: Fault
) -> None:
    api = MessagesApi(brain=lambda _: "All is well. " * 50)
    api.script(fault)
    times = Timeouts(deadline=timedelta(seconds=0.4))
    with serving(api) as base_url:
        async with calling(base_url=base_url, ledger=sums, timeouts=times) as messages:
            began = asyncio.get_running_loop().time()
            error = await failure(messages)
            assert asyncio.get_running_loop().time() - began < 5
            assert (type(error), error.code) == (ModelAwayError, "model_timeout")
            assert [(one.unclear, one.usage.calls) for one in sums.settled] == [(True, 1)]
            assert sums.settled[0].usage.micro_usd > 0
            assert (await messages.ask(ask())).text.startswith("All is well.")


async def test_a_silent_server_is_given_up_after_the_read_timeout(sums: Sums) -> None:
    api = MessagesApi()
    api.script(faults.hang())
    with serving(api) as base_url:
        async with calling(base_url=base_url, timeouts=Timeouts(read=timedelta(seconds=0.2)), ledger=sums) as messages:
            error = await failure(messages)
    assert (type(error), error.code) == (ModelAwayError, "model_timeout")
    assert [one.unclear for one in sums.settled] == [True]


async def test_a_cancelled_call_ends_at_once_and_counts_as_what_was_set_aside(sums: Sums) -> None:
    api = MessagesApi()
    api.script(faults.hang())
    with serving(api) as base_url:
        async with calling(base_url=base_url, ledger=sums) as messages:
            task = asyncio.create_task(messages.ask(ask()))

            async def has_arrived() -> bool:
                return api.journal.count == 1

            await wait_until_async("the call is at the server", has_arrived)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert [(one.unclear, one.usage.calls, one.failed) for one in sums.settled] == [(True, 1, True)]
    assert sums.held == {}


async def test_text_that_is_not_unicode_is_refused_without_being_shown(messages: Messages, api: MessagesApi) -> None:
    error = await failure(messages, system="\ud800")
    assert (type(error), error.code) == (BadRequestError, "model_bad_request")
    assert api.journal.count == 0


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_takes_nothing_to_another_server(status: int) -> None:
    here, there = MessagesApi(), MessagesApi()
    with serving(here) as base_url, serving(there) as elsewhere:
        here.script(faults.status(status, headers={"location": f"{elsewhere}/v1/messages"}))
        async with calling(base_url=base_url) as messages:
            error = await failure(messages)
    assert (type(error), error.code) == (ModelAwayError, "model_unavailable")
    assert (here.journal.count, there.journal.count) == (1, 0)


async def test_a_caller_that_is_cancelled_at_any_moment_leaves_nothing_set_aside() -> None:
    class Slow(Sums):
        async def reserve(self, held: Held, budget_micro_usd: int | None) -> bool:
            await asyncio.sleep(0.001)
            return await super().reserve(held, budget_micro_usd)

        async def settle(self, held: Held, settlement: Settlement) -> bool:
            await asyncio.sleep(0.001)
            return await super().settle(held, settlement)

    sums = Slow()
    async with calling(answering(WORDS), ledger=sums) as messages:
        for delay in range(12):
            task = asyncio.create_task(messages.ask(ask()))
            await asyncio.wait([task], timeout=delay / 3_000)
            task.cancel()
            await asyncio.wait([task])
    assert sums.held == {}
    assert len(sums.settled) > 1


async def test_not_even_debug_logs_show_a_request(messages: Messages, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with capture_logs() as logs:
        await messages.ask(ask(SECRET))
    assert SECRET not in caplog.text + repr(logs)
    assert KEY not in caplog.text + repr(logs)


async def test_an_answer_is_never_streamed_and_nobody_is_named_whatever_is_asked_for(
    api: MessagesApi, messages: Messages
) -> None:
    await messages.ask(ask(extra={"stream": True, "metadata": {"user_id": "ann@example.org"}}))
    assert not {"stream", "metadata"} & set(api.journal.entries[-1].json)


async def test_a_fault_of_ours_is_raised_as_it_is_and_nothing_stays_set_aside(messages: Messages, sums: Sums) -> None:
    with pytest.raises(TypeError, match="JSON serializable"):
        await messages.ask(ask(extra={"odd": object()}))
    await messages.close()
    assert sums.held == {}


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        (86_400, 300),
        (4_294_967_296, 300),
        (12, 12),
        (0, None),
        (-5, None),
        ("soon", None),
        ("nan", None),
        ("Wed, 21 Oct 2065 07:28:00 GMT", 300),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
    ],
)
async def test_what_a_rate_limit_asks_for_is_waited_for_up_to_five_minutes(
    api: MessagesApi, messages: Messages, asked: float | str, seen: int | None
) -> None:
    api.script(faults.rate_limited(asked))
    with capture_logs() as logs, pytest.raises(ModelBusyError) as caught:
        await messages.ask(ask())
    assert caught.value.retry_after is not None
    least, most = (0.5, 9) if seen is None else (seen, seen + 3)
    assert least <= caught.value.retry_after.total_seconds() <= most
    is_capped = seen == 300
    assert [entry["event"] for entry in logs if entry["event"] == "retry_after_capped"] == [
        "retry_after_capped"
    ] * is_capped


async def test_models_that_think_unasked_are_told_to_think_little_and_no_others(
    api: MessagesApi, messages: Messages
) -> None:
    known: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
        ("claude-haiku-5-5", lambda body: body["output_config"] == {"effort": "low"}),
        ("claude-sonnet-5", lambda body: body["output_config"] == {"effort": "low"}),
        ("claude-haiku-4-5", lambda body: "output_config" not in body),
    ]
    for model, is_right in known:
        await messages.ask(ask(model=model))
        assert is_right(api.journal.entries[-1].json), model


async def test_a_shared_prefix_and_an_own_choice_keep_their_effort(api: MessagesApi, messages: Messages) -> None:
    await messages.ask(ask(purpose="prefix"))
    assert "output_config" not in api.journal.entries[-1].json
    await messages.ask(ask(extra={"output_config": {"effort": "high"}}))
    assert api.journal.entries[-1].json["output_config"] == {"effort": "high"}


async def test_only_so_many_calls_are_under_way_at_once() -> None:
    most, now = 0, 0
    gate = asyncio.Event()

    async def answer(_: httpx2.Request) -> httpx2.Response:
        nonlocal most, now
        now += 1
        most = max(most, now)
        if most == 8:
            gate.set()
        await gate.wait()
        now -= 1
        return httpx2.Response(200, json={"content": WORDS, "stop_reason": "end_turn", "usage": {"input_tokens": 1}})

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    async with calling(client, calls_at_once=8) as messages:
        await asyncio.gather(*(messages.ask(ask()) for _ in range(40)))
    assert most == 8


@pytest.mark.parametrize("is_good", [True, False])
async def test_whoever_asks_is_known_to_wait_until_the_answer_is_counted(
    api: MessagesApi, messages: Messages, sums: Sums, is_good: bool
) -> None:
    class Desk:
        said: tuple[str, ...] = ()

        def leave(self) -> None:
            self.said += ("left",)

        async def come_back(self) -> None:
            self.said += (f"back after {len(sums.settled)}",)

        def come_back_at_once(self) -> None:
            raise AssertionError("nobody cancelled it")

    desk = Desk()
    token = desk_of_work.set(desk)
    try:
        if is_good:
            await messages.ask(ask())
        else:
            api.script(faults.server_error())
            await failure(messages)
    finally:
        desk_of_work.reset(token)
    assert desk.said == ("left", "back after 1")
