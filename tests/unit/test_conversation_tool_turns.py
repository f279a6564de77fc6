"""Turns with calls and results, of both formats, and what the append script gets of them."""

import json
from typing import Any

import pytest

from prefold.conversation import TurnKind, markers
from tests.support.prepared import PNG, blocks, call_blocks, count, prepare, published, raw_tokens


def test_a_tool_use_turn_is_split_around_its_ids() -> None:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "I look."},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "search",
            "input": {"q": "a", "n": [1, {"x": None}]},
            "caller": {},
        },
        {"type": "tool_use", "id": "toolu_2", "name": "search", "input": {}},
    ]
    turn = prepare(role="assistant", content=content)
    assert (turn.kind, turn.role, turn.content, turn.short) == (TurnKind.CALLS, "assistant", b"", None)
    assert turn.call_ids == ("toolu_1", "toolu_2")
    expected = [content[0], {key: content[1][key] for key in ("type", "id", "name", "input")}, content[2]]
    assert call_blocks(turn) == expected
    json_tokens = [count(json.dumps(block, separators=(",", ":"))) for block in expected[1:]]
    assert turn.tokens == 4 + 3 + count("I look.") + sum(json_tokens) + 2 * 3
    assert published(turn)["content"] == content


def test_openai_calls_become_tool_use() -> None:
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":[2]}'}},
        {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": ""}},
        {"id": "call_3", "type": "function", "function": {"name": "bad", "arguments": '{"a":1'}},
        {"id": "call_4", "type": "function", "function": {"name": "list", "arguments": "[1]"}},
        {"id": "call_5", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
        {"id": "call_6", "type": "function", "function": {"name": "twice", "arguments": '{"a":1,"a":2}'}},
    ]
    turn = prepare(role="assistant", content=None, tool_calls=calls)
    assert turn.kind is TurnKind.CALLS
    assert [(block["id"], block["name"], block["input"]) for block in call_blocks(turn)] == [
        ("call_1", "add", {"a": 1, "b": [2]}),
        ("call_2", "now", {}),
        ("call_3", "bad", {"_raw": '{"a":1'}),
        ("call_4", "list", {"_raw": "[1]"}),
        ("call_5", "sql", {"_raw": "SELECT 1"}),
        ("call_6", "twice", {"_raw": '{"a":1,"a":2}'}),
    ]
    assert published(turn)["tool_calls"] == calls


@pytest.mark.parametrize("content", [None, "", "  ", [], [{"type": "text", "text": ""}]])
def test_calls_need_no_text(content: object) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}]
    assert [block["type"] for block in call_blocks(prepare(role="assistant", content=content, tool_calls=calls))] == [
        "tool_use"
    ]


def test_text_before_openai_calls_is_kept() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}]
    turn = prepare(role="assistant", content="I look.", tool_calls=calls)
    assert [block["type"] for block in call_blocks(turn)] == ["text", "tool_use"]


def test_ids_and_names_that_providers_refuse_are_projected_alike_for_call_and_result() -> None:
    call = prepare(role="assistant", content=[{"type": "tool_use", "id": "a:1/é", "name": "srv.find", "input": {}}])
    result = prepare(role="user", content=[{"type": "tool_result", "tool_use_id": "a:1/é", "content": "x"}])
    openai = prepare(role="tool", tool_call_id="a:1/é", content="x")
    assert call.call_ids[0] == result.results[0].call_id == openai.results[0].call_id
    assert call.call_ids[0].startswith("call_")
    assert call_blocks(call)[0]["name"] == "srv_find"
    assert published(call)["content"][0]["id"] == "a:1/é"


def test_large_integers_in_arguments_keep_their_digits() -> None:
    number = 123456789012345678901234567890
    turn = prepare(role="assistant", content=[{"type": "tool_use", "id": "c", "name": "f", "input": {"n": number}}])
    assert call_blocks(turn)[0]["input"] == {"n": number}


def test_results_stand_apart_from_the_text_beside_them() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "4"},
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no"}], "is_error": True},
        {"type": "text", "text": "and now?"},
    ]
    turn = prepare(role="user", content=content)
    assert (turn.kind, turn.role) == (TurnKind.RESULTS, "user")
    assert [(part.call_id, part.attributes, part.content, part.is_text) for part in turn.results] == [
        ("c1", b"", b'"4"', True),
        ("c2", b',"is_error":true', b'{"type":"text","text":"no"}', False),
    ]
    assert blocks(turn.content) == [{"type": "text", "text": "and now?"}]
    assert published(turn)["content"] == content


def test_a_message_of_role_tool_is_a_result_of_the_user() -> None:
    turn = prepare(
        role="tool", tool_call_id="c1", content=[{"type": "text", "text": "4"}, {"type": "text", "text": "5"}]
    )
    assert (turn.kind, turn.role, turn.content) == (TurnKind.RESULTS, "user", b"")
    assert len(blocks(turn.results[0].content)) == 2


@pytest.mark.parametrize("content", ["", " \n", None, [], [{"type": "text", "text": " "}]])
def test_an_empty_result_says_so(content: object) -> None:
    by_block = prepare(role="user", content=[{"type": "tool_result", "tool_use_id": "c", "content": content}])
    by_role = prepare(role="tool", tool_call_id="c", content=content)
    missing = prepare(role="user", content=[{"type": "tool_result", "tool_use_id": "c"}])
    for turn in (by_block, by_role, missing):
        assert turn.results[0].content == b'"[empty result]"'
        assert turn.results[0].is_text


@pytest.mark.parametrize(
    "content",
    [
        "4",
        "words that go on " * 40,
        '{"a":"b\\n"}\n\t"quoted"' * 20,
        [{"type": "text", "text": "a"}, {"type": "image", "source": PNG}, {"type": "text", "text": "b"}],
        [{"type": "text", "text": "line\n"}] * 30,
    ],
)
@pytest.mark.parametrize("call_id", ["c", "toolu_01A09q90qw90lq917835lq9", "Zq9-_7Kx" * 8])
def test_results_cost_the_most_that_either_place_costs(content: object, call_id: str) -> None:
    turn = prepare(role="user", content=[{"type": "tool_result", "tool_use_id": call_id, "content": content}])
    part = turn.results[0]
    renamed = json.loads(markers.result_block(part))
    renamed["tool_use_id"] = call_id[:50] + "_4711"
    for used in ([json.loads(markers.result_block(part))], [renamed], blocks(markers.late_result_blocks(part))):
        assert raw_tokens(used) <= turn.tokens
    assert turn.tokens <= 40 + max(raw_tokens([renamed]), raw_tokens(blocks(markers.late_result_blocks(part))))
