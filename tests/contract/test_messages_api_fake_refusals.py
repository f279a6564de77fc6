"""What the fake Messages API refuses, each with the words that it refuses it in; asked through the real SDK."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import pytest
from anthropic.types import Message

from tests.support.messages_api import MessagesApi, serving, thinking_block
from tests.support.messages_api.sdk import sdk_of

HAIKU, OLD = "claude-haiku-5-5", "claude-haiku-4-5"


def user(content: Any = "Hello.") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any = "Good day.") -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def words(text: str = "Hello.", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def call(identifier: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "look_up", "input": {}}


def result(identifier: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": "found"}


def tool(name: str = "look_up", **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object", "properties": {}}, **more}


def marked(ttl: str | None = None) -> dict[str, Any]:
    return {"cache_control": {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}}


@dataclass(frozen=True)
class Case:
    """A body that differs from a good one in these members (``...``: left out), and what is said of it."""

    name: str
    message: str
    changes: dict[str, Any]
    status: int = 400
    kind: str = "invalid_request_error"


def refused(name: str, message: str, **changes: Any) -> Case:
    return Case(name, message, changes)


def schema(**members: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "schema": {"type": "object", **members}}}


_UNANSWERED = (
    "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block"
    " must have a corresponding `tool_result` block in the next message."
)
_UNASKED = (
    "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {ids}. Each `tool_result` block must have a"
    " corresponding `tool_use` block in the previous message."
)
_HOW_TO_THINK = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
_NO_CONTENT = "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
_OPTIONAL = {f"field_{index}": {"type": "string"} for index in range(25)}

CASES = (
    refused("max_tokens is missing", "max_tokens: Field required", max_tokens=...),
    refused("the model is missing", "model: Field required", model=...),
    refused("messages are missing", "messages: Field required", messages=...),
    refused("a member is unknown", "colour: Extra inputs are not permitted", colour="red"),
    refused("the temperature is gone", "temperature: Extra inputs are not permitted", temperature=0.2),
    refused(
        "a block's member is unknown",
        "messages.0.content.0.text.colour: Extra inputs are not permitted",
        messages=[user([words(colour="red")])],
    ),
    refused(
        "a block's member is missing",
        "messages.0.content.0.text.text: Field required",
        messages=[user([{"type": "text"}])],
    ),
    refused("compaction has no beta", "compaction: Extra inputs are not permitted", compaction={"type": "summarize"}),
    refused(
        "the role is unknown",
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
        messages=[{"role": "robot", "content": "Hello."}],
    ),
    refused("max_tokens is a text", "max_tokens: Input should be a valid integer", max_tokens="12"),
    Case("the model is unknown", "model: claude-none", {"model": "claude-none"}, 404, "not_found_error"),
    refused(
        "max_tokens is above the model's",
        f"max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for {OLD}",
        model=OLD,
        max_tokens=64_001,
    ),
    refused("max_tokens 0 with a stream", "max_tokens: 0 is not permitted with stream", max_tokens=0, stream=True),
    refused("there is no message", "messages: at least one message is required", messages=[]),
    refused("a text is empty", "messages: text content blocks must be non-empty", messages=[user([words("")])]),
    refused(
        "a text is blank",
        "messages: text content blocks must contain non-whitespace text",
        messages=[user([words(), words(" \n")])],
    ),
    refused(
        "a plain text is blank", "messages: text content blocks must contain non-whitespace text", messages=[user("  ")]
    ),
    refused("a content is empty", _NO_CONTENT.format(at=0), messages=[user([])]),
    refused("a plain content is empty", _NO_CONTENT.format(at=2), messages=[user(), assistant(), user("")]),
    refused("the assistant begins", 'messages: first message must use the "user" role', messages=[assistant(), user()]),
    refused(
        "the assistant ends",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        messages=[user(), assistant()],
    ),
    refused(
        "an older model's prefill ends in a space",
        "messages: final assistant content cannot end with trailing whitespace",
        model=OLD,
        messages=[user(), assistant("It is ")],
    ),
    refused(
        "a system turn comes first",
        "messages.0: a system message must directly follow a user message",
        messages=[{"role": "system", "content": "Be brief."}, user()],
    ),
    refused(
        "a system turn comes before a user's",
        "messages.1: a system message must be last or followed by an assistant message",
        messages=[user(), {"role": "system", "content": "Be brief."}, user()],
    ),
    refused(
        "a system turn stands between a call and its result",
        "messages.2: a system message must directly follow a user message",
        tools=[tool()],
        messages=[user(), assistant([call()]), {"role": "system", "content": "Be brief."}, user([result()])],
    ),
    refused(
        "an older model gets a system turn",
        "messages.1: role 'system' is not supported on this model",
        model=OLD,
        messages=[user(), {"role": "system", "content": "Be brief."}],
    ),
    refused(
        "calls have no results",
        _UNANSWERED.format(at=1, ids="toolu_1, toolu_2"),
        messages=[user(), assistant([words(), call(), call("toolu_2")]), user()],
    ),
    refused(
        "one of two calls has no result",
        _UNANSWERED.format(at=1, ids="toolu_2"),
        messages=[user(), assistant([call(), call("toolu_2")]), user([result()])],
    ),
    refused(
        "a text comes before the result",
        _UNANSWERED.format(at=1, ids="toolu_1"),
        messages=[user(), assistant([call()]), user([words(), result()])],
    ),
    refused(
        "a result has no call",
        _UNASKED.format(at="0.content.0", ids="toolu_1"),
        messages=[user([result()])],
    ),
    refused(
        "a result comes two turns late",
        _UNASKED.format(at="4.content.0", ids="toolu_1"),
        messages=[user(), assistant([call()]), user([result()]), assistant(), user([result()])],
    ),
    refused(
        "an id is used twice",
        "messages.3.content.0: `tool_use` ids must be unique",
        messages=[user(), assistant([call()]), user([result()]), assistant([call()]), user([result()])],
    ),
    refused(
        "a call has two results",
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id:"
        " toolu_1",
        messages=[user(), assistant([call()]), user([result(), result()])],
    ),
    refused(
        "there are five markers",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        messages=[user([words(**marked()) for _ in range(5)])],
    ),
    refused(
        "the automatic marker is the fifth",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        messages=[user([*(words(**marked()) for _ in range(4)), words()])],
        **marked(),
    ),
    refused(
        "a marker is on an empty text",
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
        messages=[user([words(), words("", **marked())])],
    ),
    refused(
        "a marker is on thinking",
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        messages=[user(), assistant([{**thinking_block(), **marked()}, words()]), user()],
    ),
    refused(
        "a long life comes after a short one",
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'"
        " cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
        system=[words("Be brief.", **marked())],
        messages=[user([words(**marked("1h"))])],
    ),
    refused(
        "the automatic marker has another life than the last block's",
        "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'",
        messages=[user([words(**marked("1h"))])],
        **marked("5m"),
    ),
    refused(
        "a budget for thinking on a newer model",
        f'"thinking.type.enabled" is not supported for this model. {_HOW_TO_THINK}',
        thinking={"type": "enabled", "budget_tokens": 1024},
        max_tokens=2000,
    ),
    refused(
        "no thinking where it is always on",
        f'"thinking.type.disabled" is not supported for this model. {_HOW_TO_THINK}',
        model="claude-opus-5-5",
        thinking={"type": "disabled"},
    ),
    refused(
        "adaptive thinking on an older model",
        "adaptive thinking is not supported on this model",
        model=OLD,
        thinking={"type": "adaptive"},
    ),
    refused(
        "the budget leaves no room",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        model=OLD,
        thinking={"type": "enabled", "budget_tokens": 1024},
        max_tokens=1024,
    ),
    refused(
        "a thinking block was edited",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        messages=[user(), assistant([{**thinking_block("I see."), "thinking": "I saw."}, words()]), user()],
    ),
    refused(
        "a document is the assistant's",
        "messages.1.content.0: `document` blocks can only be in user messages",
        messages=[
            user(),
            assistant([{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}]),
            user(),
        ],
    ),
    refused(
        "a user text has citations",
        "messages.0.content.0.text.citations: citations are not permitted on user text",
        messages=[user([words(citations=[])])],
    ),
    refused(
        "an object of the schema is open",
        "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
        output_config=schema(properties={}),
    ),
    refused(
        "25 members of the schema are optional",
        "Schema is too complex for compilation",
        output_config=schema(properties=_OPTIONAL, additionalProperties=False),
    ),
    refused(
        "21 tools are strict",
        "Schema is too complex for compilation",
        tools=[tool(f"tool_{index}", strict=True) for index in range(21)],
    ),
    refused(
        "a user id is an address",
        "metadata.user_id: must be opaque, and not an e-mail address or a phone number",
        metadata={"user_id": "jo@example.org"},
    ),
    refused("two tools have one name", "tools: Tool names must be unique.", tools=[tool(), tool()]),
    refused(
        "the forced tool is not there",
        "Tool 'other' not found in provided tools",
        tools=[tool()],
        tool_choice={"type": "tool", "name": "other"},
    ),
)

ACCEPTED = (
    ("two turns of one role", {"messages": [user(), user([words("Again.")]), assistant(), assistant(), user()]}),
    (
        "a result in the second of two user turns",
        {"messages": [user(), assistant([call()]), user([result()]), user("And now?")]},
    ),
    ("a system turn at the end", {"messages": [user(), {"role": "system", "content": "Be brief."}]}),
    (
        "a system turn after results",
        {"messages": [user(), assistant([call()]), user([result()]), {"role": "system", "content": "Be brief."}]},
    ),
    ("an older model's prefill", {"model": OLD, "messages": [user(), assistant("It is")]}),
    ("four markers", {"messages": [user([words(**marked("1h")), *(words(**marked()) for _ in range(3))])]}),
    ("signed thinking", {"messages": [user(), assistant([thinking_block("I see."), words()]), user()]}),
    ("a closed schema", {"output_config": schema(properties={}, additionalProperties=False)}),
    ("no thinking where it may be off", {"thinking": {"type": "disabled"}}),
    ("a tool's empty answer", {"messages": [user(), assistant([call()]), user([{**result(), "content": ""}])]}),
)


@pytest.fixture(scope="module")
def loopback() -> Iterator[str]:
    with serving(MessagesApi(keep=10)) as url:
        yield url


@pytest.fixture(params=["in process", "loopback"])
async def client(request: pytest.FixtureRequest, loopback: str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with sdk_of(MessagesApi() if request.param == "in process" else loopback) as client:
        yield client


def body_with(changes: dict[str, Any]) -> dict[str, Any]:
    whole = {"model": HAIKU, "max_tokens": 500, "messages": [user()], **changes}
    return {name: value for name, value in whole.items() if value is not ...}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_wrong_request_is_refused_in_the_apis_words(client: anthropic.AsyncAnthropic, case: Case) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        await client.post("/v1/messages", body=body_with(case.changes), cast_to=Message)
    error = caught.value
    assert (error.status_code, error.type, error.api_message) == (case.status, case.kind, case.message)
    assert error.request_id == error.response.headers["request-id"]


@pytest.mark.parametrize("changes", [changes for _, changes in ACCEPTED], ids=[name for name, _ in ACCEPTED])
async def test_what_only_looks_wrong_is_answered(client: anthropic.AsyncAnthropic, changes: dict[str, Any]) -> None:
    message = await client.post("/v1/messages", body=body_with(changes), cast_to=Message)
    assert message.stop_reason == "end_turn"
