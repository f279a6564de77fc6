"""The fake Messages API through the real SDK: answers, headers, the order of its checks, counting, models, streams."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import anthropic.types as sdk_types
import httpx2
import pytest
from anthropic.types import Message
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from tests.support.messages_api import (
    BRAINS,
    Answer,
    MessagesApi,
    Wanted,
    faults,
    in_process,
    serving,
    text,
    thinking_block,
)
from tests.support.messages_api.checks import members
from tests.support.messages_api.sdk import KEY, sdk_of

HAIKU, OLD = "claude-haiku-5-5", "claude-haiku-4-5"
HELLO: dict[str, Any] = {"model": HAIKU, "max_tokens": 500, "messages": [{"role": "user", "content": "Hello."}]}
BAD_BETA = (
    "Unexpected value(s) `nonsense` for the `anthropic-beta` header. Please consult our documentation at"
    " docs.anthropic.com or try again without the header."
)
RAW = {"authorization": f"Bearer {KEY}", "anthropic-version": "2026-10-21"}


@pytest.fixture
def api() -> MessagesApi:
    return MessagesApi(keys={KEY})


@pytest.fixture(params=["in process", "loopback"])
def target(request: pytest.FixtureRequest, api: MessagesApi) -> Iterator[MessagesApi | str]:
    if request.param == "in process":
        yield api
        return
    with serving(api) as url:
        yield url


@pytest.fixture
async def client(target: MessagesApi | str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with sdk_of(target) as client:
        yield client


@pytest.fixture
async def raw(api: MessagesApi) -> AsyncIterator[httpx2.AsyncClient]:
    async with in_process(api) as client:
        yield client


async def test_the_key_comes_as_a_bearer_token_and_the_request_is_journaled_as_it_was(
    client: anthropic.AsyncAnthropic, api: MessagesApi
) -> None:
    message = await client.messages.create(**HELLO)
    (entry,) = api.journal.entries
    assert entry.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in entry.headers
    assert entry.headers["anthropic-version"] == "2026-10-21"
    assert json.loads(entry.body) == HELLO
    assert message._request_id == entry.request_id
    assert entry.status == 200
    assert not entry.hung_up


async def test_the_first_block_of_a_model_that_thinks_is_no_text(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(**HELLO)
    assert [block.type for block in message.content] == ["thinking", "text"]
    unthinking = await client.messages.create(**{**HELLO, "model": OLD})
    assert [block.type for block in unthinking.content] == ["text"]


async def test_a_key_that_was_taken_back_is_refused(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    await client.messages.create(**HELLO)
    api.keys = {"sk-ant-newer"}
    with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
        await client.messages.create(**HELLO)


async def test_the_older_header_for_the_key_is_good_too(raw: httpx2.AsyncClient) -> None:
    headers = {"x-api-key": KEY, "anthropic-version": "2026-10-21"}
    assert (await raw.post("/v1/messages", json=HELLO, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "content", "path", "status", "message"),
    [
        ({}, b"x" * (32 * 1024 * 1024 + 1), "/v1/nowhere", 413, "Request exceeds the maximum size"),
        ({}, b"{", "/v1/nowhere", 404, "Not found"),
        ({}, b"{", "/v1/messages", 401, "x-api-key header is required"),
        ({"authorization": f"Bearer {KEY}"}, b"{", "/v1/messages", 400, "anthropic-version: header is required"),
        ({**RAW, "anthropic-beta": "no such thing"}, b"{", "/v1/messages", 400, "The request body is not valid JSON"),
        (
            {**RAW, "anthropic-beta": "nonsense"},
            json.dumps({**HELLO, "colour": 1}).encode(),
            "/v1/messages",
            400,
            BAD_BETA,
        ),
        (RAW, json.dumps({**HELLO, "model": "x", "colour": 1}).encode(), "/v1/messages", 400, "colour: Extra inputs are not permitted"),
        (RAW, json.dumps({**HELLO, "model": "x", "max_tokens": 10**9}).encode(), "/v1/messages", 404, "model: x"),
    ],
    ids=["size", "path", "key", "version", "JSON", "betas", "form", "model"],
)  # fmt: skip
async def test_checks_come_in_their_order(
    raw: httpx2.AsyncClient, headers: dict[str, str], content: bytes, path: str, status: int, message: str
) -> None:
    """Each body has the later faults too."""
    reply = await raw.post(path, content=content, headers=headers)
    told = reply.json()
    assert (reply.status_code, told["error"]["message"]) == (status, message)
    assert told["type"] == "error"
    assert told["request_id"] == reply.headers["request-id"]
    assert "anthropic-organization-id" in reply.headers


async def test_a_wrong_request_is_told_so_even_when_it_would_have_been_limited(
    client: anthropic.AsyncAnthropic, api: MessagesApi
) -> None:
    api.script(faults.rate_limited(3))
    with pytest.raises(anthropic.BadRequestError):
        await client.messages.create(**{**HELLO, "messages": []})
    with pytest.raises(anthropic.RateLimitError):
        await client.messages.create(**HELLO)
    await client.messages.create(**HELLO)


async def test_sampling_settings_are_good_under_the_older_version_only(raw: httpx2.AsyncClient) -> None:
    body = {**HELLO, "temperature": 0.2}
    older = await raw.post("/v1/messages", json=body, headers={**RAW, "anthropic-version": "2023-06-01"})
    newer = await raw.post("/v1/messages", json=body, headers=RAW)
    assert (older.status_code, newer.status_code) == (200, 400)


async def test_an_input_above_the_window_is_too_long(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.resize(HAIKU, window_tokens=1000)
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.messages.create(**{**HELLO, "messages": [{"role": "user", "content": "word " * 1000}]})
    assert caught.value.api_message == "prompt is too long: 1436 tokens > 1000 maximum"


async def test_a_newer_model_generates_up_to_its_window_and_an_older_one_refuses(
    client: anthropic.AsyncAnthropic, api: MessagesApi
) -> None:
    body = {**HELLO, "messages": [{"role": "user", "content": "word " * 600}]}
    api.resize(HAIKU, window_tokens=1000)
    api.resize(OLD, window_tokens=1000)
    api.brain = lambda wanted: text("word " * 2000)
    message = await client.messages.create(**body)
    assert message.stop_reason == "model_context_window_exceeded"
    with pytest.raises(anthropic.BadRequestError, match=r"exceed context limit: 865 \+ 500 > 1000"):
        await client.messages.create(**{**body, "model": OLD})


async def test_an_answer_ends_at_max_tokens_thinking_included(
    client: anthropic.AsyncAnthropic, api: MessagesApi
) -> None:
    api.brain = lambda wanted: "word " * 2000
    message = await client.messages.create(**{**HELLO, "max_tokens": 100})
    assert message.stop_reason == "max_tokens"
    assert 95 <= message.usage.output_tokens <= 100
    assert message.usage.output_tokens_details is not None
    assert message.usage.output_tokens_details.thinking_tokens == 40


async def test_no_room_at_all_warms_the_cache_and_says_nothing(client: anthropic.AsyncAnthropic) -> None:
    block = {"type": "text", "text": "word " * 1000, "cache_control": {"type": "ephemeral"}}
    body = {**HELLO, "messages": [{"role": "user", "content": [block]}]}
    message = await client.messages.create(**{**body, "max_tokens": 0})
    assert (message.content, message.stop_reason) == ([], "max_tokens")
    again = await client.messages.create(**body)
    assert again.usage.cache_read_input_tokens == message.usage.cache_creation_input_tokens == 1436


async def test_a_stop_sequence_ends_the_answer(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    api.brain = lambda wanted: "one two three"
    message = await client.messages.create(**HELLO, stop_sequences=["three", "two"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "two")
    assert message.content[-1].model_dump()["text"] == "one "


async def test_a_count_is_an_estimate_of_what_is_billed(client: anthropic.AsyncAnthropic) -> None:
    differences = set()
    for number in range(6):
        messages: Any = [{"role": "user", "content": f"{number} word " * 1000}]
        counted = await client.messages.count_tokens(model=HAIKU, messages=messages)
        billed = (await client.messages.create(model=HAIKU, max_tokens=100, messages=messages)).usage.input_tokens
        differences.add(counted.input_tokens - billed)
        assert abs(counted.input_tokens - billed) <= 0.03 * billed + 1
    assert len(differences) > 1


async def test_the_models_are_listed_in_pages_and_told_one_by_one(client: anthropic.AsyncAnthropic) -> None:
    names = [model.id async for model in client.models.list(limit=5)]
    assert len(names) == len(set(names)) == 22
    haiku = await client.models.retrieve(HAIKU)
    assert (haiku.line, haiku.max_tokens, haiku.max_input_tokens) == ("haiku", 128_000, 1_000_000)
    with pytest.raises(anthropic.NotFoundError, match="model: claude-none"):
        await client.models.retrieve("claude-none")


async def test_a_stream_tells_what_a_plain_answer_tells(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    def brain(wanted: Wanted) -> Answer:
        call = {"type": "tool_use", "id": "toolu_1", "name": "save", "input": {"notes": ["é" * 300, 1]}}
        return Answer([thinking_block("I see. " * 40), {"type": "text", "text": "Gut. 好。" * 90}, call], "tool_use")

    api.brain = brain
    plain = await client.messages.create(**{**HELLO, "max_tokens": 5000})
    async with client.messages.stream(**{**HELLO, "max_tokens": 5000}) as stream:
        kinds = [event.type async for event in stream]
        streamed = await stream.get_final_message()
    assert streamed.model_dump(exclude={"id"}) == plain.model_dump(exclude={"id"})
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert {"content_block_start", "content_block_delta", "content_block_stop", "message_delta"} <= set(kinds)


async def test_a_stream_begins_with_one_output_token_and_ends_with_all_of_them(raw: httpx2.AsyncClient) -> None:
    reply = await raw.post("/v1/messages", json={**HELLO, "stream": True}, headers=RAW)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in reply.text.strip().split("\n\n")]
    data = {name.removeprefix("event: "): json.loads(line.removeprefix("data: ")) for name, line in events}
    assert all(name == value["type"] for name, value in data.items())
    assert "ping" in data
    assert data["message_start"]["message"]["usage"]["output_tokens"] == 1
    assert data["message_start"]["message"]["stop_reason"] is None
    assert data["message_delta"]["usage"]["output_tokens"] > 1
    assert data["message_delta"]["delta"]["stop_reason"] == "end_turn"


@pytest.mark.parametrize("name", sorted(BRAINS))
async def test_every_brain_answers_with_a_message(
    client: anthropic.AsyncAnthropic, api: MessagesApi, name: str
) -> None:
    api.brain = name
    message = await client.messages.create(**HELLO)
    ends = {"refuses": "refusal", "truncated": "max_tokens", "tool_call_only": "tool_use", "loops": "max_tokens"}
    assert message.stop_reason == ends.get(name, "end_turn")


def test_the_members_that_are_known_are_those_of_the_sdks_types() -> None:
    headers = {"user_profile_id", "workspace_id"}
    request = set(MessageCreateParamsNonStreaming.__annotations__) | set(
        MessageCreateParamsNonStreaming.__mro__[0].__annotations__
    )
    known = members.REQUEST.required | members.REQUEST.optional
    assert request - headers <= known | {"stream"}
    for kind, known_members in members.BLOCKS.items():
        name = "".join(part.title() for part in kind.split("_")) + "BlockParam"
        assert known_members.required | known_members.optional == set(getattr(sdk_types, name).__annotations__), kind
    assert members.TOOL.required | members.TOOL.optional == set(sdk_types.ToolParam.__annotations__)
    counted = set(MessageCountTokensParams.__annotations__) - headers
    assert members.COUNTED.required | members.COUNTED.optional >= counted


async def test_a_body_without_usage_reaches_the_client(client: anthropic.AsyncAnthropic, api: MessagesApi) -> None:
    """The SDK builds what it gets without looking: whoever reads ``usage`` has to."""
    api.brain = lambda wanted: text("Hello.", without=("usage",))
    message = await client.messages.create(**HELLO)
    assert getattr(message, "usage", None) is None
    api.brain = lambda wanted: text("Hello.", usage={"cache_read_input_tokens": None})
    assert (await client.messages.create(**HELLO)).usage.cache_read_input_tokens is None


async def test_ids_of_one_seed_are_the_same_again() -> None:
    async def ids(seed: int) -> list[str]:
        async with sdk_of(MessagesApi(seed=seed)) as client:
            return [(await client.messages.create(**HELLO)).id for _ in range(3)]

    assert await ids(1) == await ids(1) != await ids(2)


def test_a_message_is_what_the_sdk_calls_one() -> None:
    known = set(Message.model_fields)
    assert known >= {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage"}
