"""The context string read for both providers."""

import json
from typing import Any

import pytest

from prefold.conversation import (
    Fragment,
    Role,
    anthropic_messages,
    anthropic_messages_json,
    check_anthropic,
    check_openai,
    openai_messages,
    parse_lines,
)

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "search", "input": arguments}


def result(call_id: str, content: object = "4") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def fragment(role: Role, *blocks: dict[str, Any], seq: int = 1) -> Fragment:
    content = json.dumps(blocks, ensure_ascii=False, separators=(",", ":")).encode()[1:-1]
    return Fragment(role, seq, "", 10, content)


def line(role: str, blocks: object, seq: int = 1, part: str = "") -> bytes:
    named = f'"part":"{part}",' if part else ""
    return f'{{"role":"{role}","seq":{seq},{named}"tokens":10,"content":{json.dumps(blocks)}}}\n'.encode()


HEADER = b'{"version":12        ,"covers_to":40,"head_tokens":300}\n'


def test_lines_are_read_without_decoding_their_content() -> None:
    body = HEADER + line("user", [text("a\n]}")], 0, "summary") + line("assistant", [text("b"), text("c")], 41)
    header, fragments = parse_lines(body)
    assert header == {"version": 12, "covers_to": 40, "head_tokens": 300}
    assert fragments == [
        Fragment("user", 0, "summary", 10, b'{"type": "text", "text": "a\\n]}"}'),
        Fragment("assistant", 41, "", 10, b'{"type": "text", "text": "b"}, {"type": "text", "text": "c"}'),
    ]


def test_a_context_without_turns_has_no_fragments() -> None:
    assert parse_lines(HEADER) == ({"version": 12, "covers_to": 40, "head_tokens": 300}, [])
    assert anthropic_messages_json([]) == b"[]"
    assert openai_messages([], "") == []


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n",
        b'{"seq":1,"role":"user","tokens":1,"content":[]}\n',
        b'{"role":"system","seq":1,"tokens":1,"content":[]}\n',
        line("user", [text("cut off")])[:-5] + b"\n",
        b'{"role":"user","seq":-1,"tokens":1,"content":[]}\n',
    ],
)
def test_a_line_that_no_script_writes_is_an_error(bad: bytes) -> None:
    with pytest.raises(ValueError, match="not a line of a context"):
        parse_lines(HEADER + bad)


def test_neighbours_of_one_role_become_one_message_byte_for_byte() -> None:
    fragments = [
        fragment("user", text("a")), fragment("user", text("é"), IMAGE), fragment("assistant", text("c")),
        fragment("user", text("d")),
    ]  # fmt: skip
    spliced = anthropic_messages_json(fragments)
    assert b"\xc3\xa9" in spliced
    assert (
        json.loads(spliced)
        == anthropic_messages(fragments)
        == [
            {"role": "user", "content": [text("a"), text("é"), IMAGE]},
            {"role": "assistant", "content": [text("c")]},
            {"role": "user", "content": [text("d")]},
        ]
    )


def test_a_longer_context_begins_with_the_shorter_one() -> None:
    fragments = [fragment("user", text("a")), fragment("assistant", text("b")), fragment("assistant", text("c"))]
    before = anthropic_messages_json(fragments[:2])
    assert anthropic_messages_json(fragments).startswith(before.removesuffix(b"]}]"))


def test_fragments_without_content_leave_no_trace() -> None:
    fragments = [fragment("user", text("a")), Fragment("assistant", 2, "", 0, b""), fragment("user", text("b"))]
    assert anthropic_messages(fragments) == [{"role": "user", "content": [text("a"), text("b")]}]


def test_decoding_keeps_large_integers() -> None:
    number = 123456789012345678901234567890
    fragments = [fragment("user", text("a")), fragment("assistant", call("c", n=number))]
    assert anthropic_messages(fragments)[1]["content"][0]["input"] == {"n": number}
    arguments = openai_messages(fragments, "")[1]["tool_calls"][0]["function"]["arguments"]
    assert arguments == f'{{"n":{number}}}'


def test_openai_gets_the_system_prompt_first_and_strings_for_single_texts() -> None:
    fragments = [fragment("user", text("a")), fragment("assistant", text("b")), fragment("user", text("c"), text("d"))]
    messages = openai_messages(fragments, "Be kind.")
    assert messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": [text("c"), text("d")]},
    ]
    assert check_openai(messages) == []


def test_openai_gets_results_in_call_order_right_after_the_calls() -> None:
    fragments = [
        fragment("user", text("go")),
        fragment("assistant", text("I look."), call("c1", q="é"), call("c2")),
        fragment("user", result("c2", [text("two"), text("lines"), IMAGE])),
        fragment("user", result("c1"), text("and now?")),
    ]
    messages = openai_messages(fragments, "")
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":"é"}'}},
                {"id": "c2", "type": "function", "function": {"name": "search", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "tool", "tool_call_id": "c2", "content": "two\nlines\n[Image]"},
        {"role": "user", "content": "and now?"},
    ]
    assert check_openai(messages) == []
    assert check_anthropic(anthropic_messages(fragments)) == []


def test_openai_gets_no_thinking() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "E"}
    fragments = [
        fragment("user", text("go")), fragment("assistant", thought, call("c")), fragment("user", result("c")),
        fragment("assistant", thought, text("done")),
    ]  # fmt: skip
    messages = openai_messages(fragments, "")
    assert messages[1]["content"] is None
    assert messages[3] == {"role": "assistant", "content": "done"}
    assert check_openai(messages) == []


def test_openai_gets_media_in_its_own_parts_or_as_placeholders() -> None:
    png = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}
    blocks = [
        IMAGE,
        {"type": "image", "source": png},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "document", "source": pdf, "title": "Invoice"},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "title": "Note"},
        {"type": "document", "source": {"type": "content", "content": [text("in"), IMAGE]}},
    ]
    messages = openai_messages([fragment("user", *blocks)], "")
    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                text("[Image]"),
                {"type": "file", "file": {"filename": "Invoice", "file_data": "data:application/pdf;base64,JVBE"}},
                text("[Document]"),
                text("[Document: Note]\nwords"),
                text("[Document]\nin\n[Image]"),
            ],
        }
    ]
    assert check_openai(messages) == []
