"""Each rule of the Anthropic checker fires on its fault, and on nothing else."""

from copy import deepcopy
from typing import Any

import pytest

from prefold.conversation import check_anthropic


def text(value: str = "x", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def call(call_id: str = "c1", **changed: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "search", "input": {}, **changed}


def result(call_id: str = "c1", **changed: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "4", **changed}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks) or [text()]}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks) or [text()]}


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
PDF = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}, "title": "Invoice"}
THOUGHT = {"type": "thinking", "thinking": "", "signature": "E"}
MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}

VALID = [
    user(text("go", **MARK), IMAGE, PDF),
    assistant(THOUGHT, text(), call("c1"), call("c2")),
    user(result("c2", is_error=True), result("c1", content=[text(), IMAGE]), text()),
    assistant({"type": "redacted_thinking", "data": "E"}, call("c3")),
    user(result("c3")),
    assistant(),
]


def test_a_valid_request_has_no_findings() -> None:
    assert check_anthropic(VALID, "Be kind.") == []
    assert check_anthropic(VALID, [text(**MARK)]) == []
    assert check_anthropic([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}], "") == []


def test_every_prefix_of_a_valid_request_is_valid() -> None:
    for length in range(1, len(VALID) + 1):
        assert check_anthropic(VALID[:length]) == []


def test_nothing_said_yet_is_valid_beside_a_system_prompt_alone() -> None:
    assert check_anthropic([], "Be kind.") == []
    assert check_anthropic([]) == ["messages: at least one message is required"]


def test_a_round_may_wait_for_results_at_the_tail_alone() -> None:
    waiting = [user(), assistant(call("c1"), call("c2"))]
    assert check_anthropic(waiting) == []
    assert check_anthropic([*waiting, user(result("c1"))]) == []
    assert check_anthropic([*waiting, user(text())]) != []
    assert check_anthropic([*waiting, user(result("c1"), text())]) != []
    assert check_anthropic([*waiting, user(result("c1")), assistant()]) != []


@pytest.mark.parametrize(
    ("messages", "finding"),
    [
        ("hi", "not a list"),
        ([assistant()], "the first message is not the user's"),
        ([user(result())], "unexpected `tool_use_id`"),
        ([user(), user()], "two messages of one role in a row"),
        ([user(), assistant(), assistant()], "two messages of one role in a row"),
        (["hi"], "not an object"),
        ([{"role": "user"}], "members are"),
        ([{**user(), "name": "Mel"}], "members are"),
        ([{"role": "system", "content": "x"}], "neither user nor assistant"),
        ([{"role": "tool", "content": "x"}], "neither user nor assistant"),
        ([{"role": "user", "content": ""}], "non-empty content"),
        ([{"role": "user", "content": []}], "non-empty content"),
        ([{"role": "user", "content": None}], "non-empty content"),
        ([{"role": "user", "content": " \n"}], "non-whitespace"),
        ([user(text(""))], "must be non-empty"),
        ([user(text(" \t"))], "non-whitespace"),
        ([user({"type": "text"})], "field required"),
        ([user("hi")], "not a block"),
        ([user({"type": "video"})], "cannot stand in user"),
        ([user(text(caption="x"))], "content[0].caption: extra inputs"),
        ([user({**IMAGE, "caption": "x"})], "content[0].caption: extra inputs"),
        ([user(), assistant(call(caller={}))], "caller: extra inputs"),
        ([user(text(citations=[]))], "citations on user text"),
        ([user(call())], "cannot stand in user"),
        ([user(THOUGHT)], "cannot stand in user"),
        ([user(), assistant(result())], "cannot stand in assistant"),
        ([user(), assistant(IMAGE)], "cannot stand in assistant"),
        ([user(), assistant(PDF)], "cannot stand in assistant"),
        ([user({"type": "image", "source": {"type": "text", "data": "x", "media_type": "text/plain"}})], "not a source"),
        ([user({"type": "image", "source": {"type": "url", "url": "x", "note": 1}})], "source: members are"),
        ([user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}})], "source: members"),
        ([user({"type": "document"})], "not a source"),
        ([user(), assistant(call("a.b"))], "not the id of a call"),
        ([user(), assistant(call("x" * 65))], "not the id of a call"),
        ([user(), assistant(call(name=""))], "not the name of a tool"),
        ([user(), assistant(call(name="a.b"))], "not the name of a tool"),
        ([user(), assistant(call(input="{}"))], "not an object"),
        ([user(), assistant(call()), user(result(content=""))], "an empty result"),
        ([user(), assistant(call()), user(result(content=[]))], "an empty result"),
        ([user(), assistant(call()), user(result(content=[text("")]))], "must be non-empty"),
        ([user(), assistant(call()), user(result(content=[call()]))], "cannot stand in result"),
        ([user(), assistant(call()), user(result(is_error="yes"))], "not true or false"),
        ([user(), assistant(call()), assistant()], "`tool_use` ids were found without"),
        ([user(), assistant(call()), user(text())], "`tool_use` ids were found without"),
        ([user(), assistant(call("c1"), call("c2")), user(result("c1")), assistant()], "without `tool_result` blocks immediately after: c2"),
        ([user(), assistant(call()), user(result()), assistant(), user(result())], "unexpected `tool_use_id`"),
        ([user(), assistant(call()), user(result("c2"))], "unexpected `tool_use_id`"),
        ([user(), assistant(call()), user(result(), result())], "a second result"),
        ([user(), assistant(call()), user(text(), result())], "a result after something else"),
        ([user(), assistant(call("c1"), call("c2")), user(result("c1"), text(), result("c2"))], "a result after something else"),
        ([user(), assistant(call(), call())], "ids must be unique"),
        ([user(), assistant(call()), user(result()), assistant(call())], "ids must be unique"),
        ([user(), assistant({"type": "thinking", "thinking": "x"}, text())], "signature: field required"),
        ([user(), assistant({"type": "thinking", "thinking": "x", "signature": ""}, text())], "signature: empty"),
        ([user(), assistant({"type": "redacted_thinking"}, text())], "data: field required"),
        ([user(), assistant({**THOUGHT, **MARK}, text())], "cache_control cannot be set on thinking"),
        ([user(), assistant(text(), THOUGHT)], "the final block of an assistant message cannot be thinking"),
        ([user(*[text(**MARK)] * 5)], "a maximum of 4 blocks with cache_control"),
        ([user(text("a\ud800"))], "a lone surrogate or NUL"),
        ([user(text("a\x00"))], "a lone surrogate or NUL"),
        ([user(), assistant(call(input={"\udfff": [{"a": "b"}]}))], "a lone surrogate or NUL"),
        ([user(), assistant(call(input={"a": ["\udfff"]}))], "a lone surrogate or NUL"),
    ],
)  # fmt: skip
def test_a_fault_is_found(messages: Any, finding: str) -> None:
    findings = check_anthropic(messages)
    assert any(finding in found for found in findings), findings


@pytest.mark.parametrize(
    ("system", "finding"),
    [
        (" ", "system: text content blocks must contain non-whitespace"),
        (5, "system: neither"),
        ([IMAGE], "system[0]: only text"),
        ([text("")], "system[0]: text content blocks must be non-empty"),
        ([text(caption="x")], "system[0].caption: extra inputs"),
        ("a\ud800", "system: a lone surrogate"),
    ],
)
def test_a_fault_of_the_system_prompt_is_found(system: Any, finding: str) -> None:
    assert any(finding in found for found in check_anthropic(VALID, system))


def test_breakpoints_of_system_and_messages_count_together() -> None:
    messages = deepcopy(VALID)
    for message in messages[1:4]:
        message["content"][-1].update(MARK)
    assert check_anthropic(messages) == []
    assert any("found 5" in found for found in check_anthropic(messages, [text(**MARK)]))
