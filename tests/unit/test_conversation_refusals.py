"""What is refused at the door, by name and before anything is stored."""

from typing import Any

import pytest

from prefold.conversation import prepare_turn
from prefold.errors import InvalidInputError
from prefold.tokens import load_counter

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
FUNCTION = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def refusal(raw: object) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        prepare_turn(raw, 2, load_counter(), lambda: "made")
    assert len(caught.value.detail) < 500
    return caught.value


@pytest.mark.parametrize("raw", [None, "hi", 5, [], ["role", "user"]])
def test_a_turn_is_an_object(raw: object) -> None:
    assert refusal(raw).field == "turns[2]"


@pytest.mark.parametrize("role", [None, "", "User", "function", "model", 5, ["user"], {}])
def test_an_unknown_role_is_refused(role: object) -> None:
    assert refusal({"role": role, "content": "x"}).field == "turns[2].role"
    assert refusal({"content": "x"}).field == "turns[2].role"


def test_an_unknown_member_is_refused_by_name() -> None:
    error = refusal({"role": "user", "content": "x", "priority": 1})
    assert (error.field, error.code) == ("turns[2].priority", "unknown_member")
    assert refusal({"role": "user", "content": "x", "seq": 1}).field == "turns[2].seq"


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
@pytest.mark.parametrize(
    "content", ["", " \n\t", None, [], [{"type": "text", "text": ""}, {"type": "text", "text": "  "}]]
)
def test_empty_content_is_refused(role: str, content: object) -> None:
    error = refusal({"role": role, "content": content})
    assert (error.field, error.code) == ("turns[2].content", "empty_content")
    assert refusal({"role": role}).code == "empty_content"


def test_thinking_alone_is_empty() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "E"}
    assert refusal({"role": "assistant", "content": [thought]}).code == "empty_content"


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ("text", ""),
        (None, ""),
        ([], ""),
        ({}, ".type"),
        ({"type": 5}, ".type"),
        ({"type": ["text"]}, ".type"),
        ({"type": "video"}, ".type"),
        ({"type": "x" * 10_000}, ".type"),
        ({"type": "input_audio", "input_audio": {}}, ".type"),
        ({"type": "text"}, ".text"),
        ({"type": "text", "text": None}, ".text"),
        ({"type": "text", "text": ["a"]}, ".text"),
        ({"type": "image"}, ".source"),
        ({"type": "image", "source": "https://example.com/a.png"}, ".source"),
        ({"type": "image", "source": {"type": "text", "data": "x"}}, ".source.type"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png"}}, ".source.data"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "aa=="}}, ".source.media_type"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}, ".source.data"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!!! no"}}, ".source.data"),
        ({"type": "image", "source": {"type": "url", "url": "https://"}}, ".source.url"),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/x", "data": "aa=="}}, ".source.media_type"),
        ({"type": "document", "source": {"type": "text", "media_type": "x", "data": "hi"}}, ".source.media_type"),
        ({"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}, ".source.url"),
        ({"type": "image", "source": {"type": "file", "file_id": 7}}, ".source.file_id"),
        ({**IMAGE, "caption": 5}, ".caption"),
        ({"type": "image_url"}, ".image_url"),
        ({"type": "image_url", "image_url": {}}, ".image_url.url"),
        ({"type": "image_url", "image_url": {"url": "ftp://x"}}, ".image_url.url"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,abc"}}, ".image_url.url"),
        ({"type": "image_url", "image_url": {"url": "data:text/html;base64,abcd"}}, ".image_url.url"),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": " "}}, ".source.data"),
        ({"type": "document", "source": {"type": "content", "content": []}}, ".source.content"),
        ({"type": "document", "source": {"type": "content", "content": [CALL]}}, ".source.content[0].type"),
        ({"type": "document", "source": {"type": "url", "url": "x"}}, ".source.url"),
        ({"type": "document", "source": IMAGE["source"], "title": 5}, ".title"),
        (CALL, ".type"),
        ({"type": "thinking", "thinking": "x", "signature": "y"}, ".type"),
        ({"type": "refusal", "refusal": "x"}, ".type"),
        ({"type": "server_tool_use", "id": "x"}, ".type"),
        ({"type": "web_search_tool_result", "tool_use_id": "x"}, ".type"),
        ({"type": "tool_result", "content": "x"}, ".tool_use_id"),
        ({"type": "tool_result", "tool_use_id": "", "content": "x"}, ".tool_use_id"),
        ({**RESULT, "is_error": "no"}, ".is_error"),
        ({**RESULT, "content": 5}, ".content"),
        ({**RESULT, "content": {"type": "text", "text": "x"}}, ".content"),
        ({**RESULT, "content": [RESULT]}, ".content[0].type"),
        ({**RESULT, "content": [{"type": "text", "text": "x"}, {"type": "tool_reference"}]}, ".content[1].type"),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_a_wrong_block_of_the_user_is_refused_by_its_place(block: object, field: str) -> None:
    error = refusal({"role": "user", "content": [{"type": "text", "text": "hi"}, block]})
    assert error.field == f"turns[2].content[1]{field}"


@pytest.mark.parametrize(
    ("block", "field"),
    [
        (RESULT, ".type"),
        ({**CALL, "input": "{}"}, ".input"),
        ({**CALL, "input": None}, ".input"),
        ({**CALL, "input": []}, ".input"),
        ({**CALL, "id": ""}, ".id"),
        ({**CALL, "id": 5}, ".id"),
        ({**CALL, "name": ""}, ".name"),
        ({"type": "tool_use", "id": "c", "input": {}}, ".name"),
        ({"type": "thinking", "thinking": 5, "signature": "x"}, ".thinking"),
        ({"type": "redacted_thinking", "data": 5}, ".data"),
    ],
)
def test_a_wrong_block_of_the_assistant_is_refused_by_its_place(block: object, field: str) -> None:
    assert refusal({"role": "assistant", "content": [block]}).field == f"turns[2].content[0]{field}"


def test_a_block_that_only_its_provider_can_continue_says_why() -> None:
    error = refusal(
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}]}
    )
    assert error.code == "unsupported_block"
    assert "provider" in error.detail


def test_media_in_a_system_turn_are_refused() -> None:
    assert refusal({"role": "system", "content": [IMAGE]}).code == "misplaced_block"


@pytest.mark.parametrize("content", [5, True, {"type": "text", "text": "x"}, 1.5])
def test_content_is_a_string_or_a_list(content: object) -> None:
    assert refusal({"role": "user", "content": content}).field == "turns[2].content"


def test_too_many_blocks_are_refused() -> None:
    assert refusal({"role": "user", "content": [{"type": "text", "text": "x"}] * 1_001}).field == "turns[2].content"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"id": "x" * 300}, "id"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a\n"}, "name"),
        ({"ts": ""}, "ts"),
        ({"ts": True}, "ts"),
        ({"ts": ["2024"]}, "ts"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"usage": 5}, "usage"),
        ({"usage": {"input_tokens": -1}}, "usage.input_tokens"),
        ({"usage": {"input_tokens": 1.5}}, "usage.input_tokens"),
        ({"usage": {"cache_read_input_tokens": "7"}}, "usage.cache_read_input_tokens"),
        ({"usage": {"prompt_tokens": True}}, "usage.prompt_tokens"),
        ({"usage": {"output_tokens": 10**12}}, "usage.output_tokens"),
        ({"function_call": {"name": "f", "arguments": "{}"}}, "function_call"),
        ({"audio": {"id": "a"}}, "audio"),
        ({"refusal": 5}, "refusal"),
        ({"tool_call_id": "c"}, "tool_call_id"),
        ({"tool_calls": "x"}, "tool_calls"),
        ({"tool_calls": {"id": "c"}}, "tool_calls"),
        ({"tool_calls": [5]}, "tool_calls[0]"),
        ({"tool_calls": [{"id": "c", "type": "function"}]}, "tool_calls[0].type"),
        ({"tool_calls": [{**FUNCTION, "type": "web"}]}, "tool_calls[0].type"),
        ({"tool_calls": [{**FUNCTION, "id": None}]}, "tool_calls[0].id"),
        ({"tool_calls": [FUNCTION, {**FUNCTION, "function": {"name": 5}}]}, "tool_calls[1].function.name"),
        ({"tool_calls": [{**FUNCTION, "function": {"name": "f", "arguments": {}}}]}, "tool_calls[0].function.arguments"),
        ({"tool_calls": [FUNCTION] * 129}, "tool_calls"),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_a_wrong_member_is_refused_by_name(members: dict[str, Any], field: str) -> None:
    assert refusal({"role": "assistant", "content": "x", **members}).field == f"turns[2].{field}"


def test_tool_members_belong_to_their_roles() -> None:
    assert refusal({"role": "user", "content": "x", "tool_calls": [FUNCTION]}).field == "turns[2].tool_calls"
    assert refusal({"role": "tool", "content": "x"}).field == "turns[2].tool_call_id"
    assert refusal({"role": "tool", "content": "x", "tool_call_id": ""}).field == "turns[2].tool_call_id"
    assert refusal({"role": "user", "content": "x", "refusal": "no"}).field == "turns[2].refusal"


def test_a_call_that_stands_twice_is_refused() -> None:
    assert refusal({"role": "assistant", "content": [CALL, CALL]}).code == "duplicate_call"
    assert refusal({"role": "assistant", "content": None, "tool_calls": [FUNCTION, FUNCTION]}).code == "duplicate_call"


def test_two_results_of_one_call_in_a_turn_are_refused() -> None:
    error = refusal({"role": "user", "content": [RESULT, {"type": "text", "text": "x"}, {**RESULT, "content": "y"}]})
    assert (error.code, error.field) == ("duplicate_result", "turns[2].content")


def test_calls_in_both_formats_at_once_are_refused() -> None:
    assert refusal({"role": "assistant", "content": [CALL], "tool_calls": [FUNCTION]}).field == "turns[2].tool_calls"


def test_too_many_results_are_refused() -> None:
    many = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "x"} for n in range(129)]
    assert refusal({"role": "user", "content": many}).field == "turns[2].content"


def test_text_that_did_not_pass_the_parser_is_refused_rather_than_stored_broken() -> None:
    assert refusal({"role": "user", "content": "a\ud800"}).code == "invalid_json"
