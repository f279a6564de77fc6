"""Each rule of the OpenAI checker fires on its fault, and on nothing else."""

from typing import Any

import pytest

from prefold.conversation import check_openai

SYSTEM = {"role": "system", "content": "Be kind."}
USER = {"role": "user", "content": "hi"}
ASSISTANT = {"role": "assistant", "content": "ho"}


def call(call_id: str = "c1", arguments: object = "{}", name: object = "f") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Any, **changed: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **changed}


def tool(call_id: str = "c1", content: object = "4") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def parts(*given: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(given)}


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
VALID = [
    SYSTEM,
    parts({"type": "text", "text": "see"}, IMAGE, {"type": "file", "file": {"filename": "a", "file_data": "data:"}}),
    calling(call("c1"), call("c2", '{"a":1}'), content="I look."),
    tool("c1"),
    tool("c2", [{"type": "text", "text": "x"}]),
    USER,
    calling(call("c3")),
    tool("c3"),
    ASSISTANT,
]


def test_a_valid_request_has_no_findings() -> None:
    for length in range(1, len(VALID) + 1):
        assert check_openai(VALID[:length]) == []


@pytest.mark.parametrize(
    ("messages", "finding"),
    [
        ("hi", "not a list"),
        ([], "at least one message"),
        (["hi"], "not a message of a known role"),
        ([{"role": "function", "content": "x"}], "not a message of a known role"),
        ([ASSISTANT], "the first message is not the user's"),
        ([SYSTEM, ASSISTANT], "the first message is not the user's"),
        ([tool()], "the first message is not the user's"),
        ([USER, SYSTEM], "a system message that is not the first"),
        ([USER, USER], "two messages of one role in a row"),
        ([USER, ASSISTANT, ASSISTANT], "two messages of one role in a row"),
        ([{**USER, "name": "Mel"}], "messages[0].name: not a member"),
        ([{**USER, "tool_calls": [call()]}], "messages[0].tool_calls: not a member"),
        ([{"role": "user"}], "content: empty"),
        ([{"role": "user", "content": ""}], "content: empty"),
        ([{"role": "user", "content": " "}], "content: empty"),
        ([parts()], "content: empty"),
        ([parts({"type": "text", "text": " "})], "content[0].text: empty"),
        ([parts({"type": "text", "text": "x", "cache_control": {}})], "content[0]: members are"),
        ([parts({"type": "image", "source": {}})], "not a part that can stand here"),
        ([parts({"type": "image_url", "image_url": {"url": ""}})], "content[0].image_url: empty"),
        ([USER, {"role": "assistant", "content": [IMAGE]}], "not a part that can stand here"),
        ([USER, {"role": "assistant", "content": None}], "content: empty"),
        ([USER, calling(content="")], "tool_calls: an empty list"),
        ([USER, calling(call(), content=" ")], "content: empty"),
        ([USER, calling("x")], "tool_calls[0]: not a call"),
        ([USER, calling({**call(), "index": 0})], "tool_calls[0]: not a call"),
        ([USER, calling(call(""))], "tool_calls[0].id: empty"),
        ([USER, calling({**call(), "function": {"name": "f"}})], "function: not a name with arguments"),
        ([USER, calling(call(name=""))], "no name, or arguments that are no JSON object"),
        ([USER, calling(call(arguments={}))], "no name, or arguments that are no JSON object"),
        ([USER, calling(call(arguments='{"a":'))], "no name, or arguments that are no JSON object"),
        ([USER, calling(call(arguments="[1]"))], "no name, or arguments that are no JSON object"),
        ([USER, calling(call()), {"role": "tool", "content": "x"}], "tool_call_id: field required"),
        ([USER, calling(call()), tool(content="")], "content: empty"),
        ([USER, calling(call()), tool("c2")], "a result without its call"),
        ([USER, ASSISTANT, tool()], "a result without its call"),
        ([USER, calling(call()), tool(), tool()], "a second result"),
        ([USER, calling(call()), tool(), ASSISTANT, tool()], "a result without its call"),
        ([USER, calling(call()), USER], "calls before it have no result: c1"),
        ([USER, calling(call("c1"), call("c2")), tool("c1"), ASSISTANT], "calls before it have no result: c2"),
        ([USER, calling(call(), call())], "a call id that was used before"),
        ([USER, calling(call()), tool(), calling(call())], "a call id that was used before"),
        ([{"role": "user", "content": "\udfff"}], "a lone surrogate or NUL"),
    ],
)
def test_a_fault_is_found(messages: Any, finding: str) -> None:
    findings = check_openai(messages)
    assert any(finding in found for found in findings), findings
