"""The text by which a turn is found."""

import json
from typing import Any

import pytest

from prefold.recall import index_turn


def text_of(**turn: Any) -> str:
    return index_turn(json.dumps({"seq": 1, "id": "t1", "role": "user", **turn}).encode()).text


def test_who_and_when_stand_before_what() -> None:
    assert text_of(content="Hi there", name="Caroline", ts="2023-05-08T13:56:00") == "Caroline (8 May 2023): Hi there"


def test_without_a_name_the_role_speaks_and_without_a_time_no_date_stands() -> None:
    assert text_of(content="Hi") == "User: Hi"
    assert text_of(role="assistant", content="Hi", ts="2024-03-15") == "Assistant (15 March 2024): Hi"


@pytest.mark.parametrize(
    ("ts", "milliseconds"),
    [
        ("2023-05-08T13:56:00", 1683554160000),
        ("2023-05-08T13:56:00Z", 1683554160000),
        ("2023-05-08T15:56:00+02:00", 1683554160000),
        ("2023-05-08", 1683504000000),
        (1683554160, 1683554160000),
        (1683554160000, 1683554160000),
        (1683554160.5, 1683554160500),
        ("yesterday", None),
        ("", None),
        (-5, None),
        (True, None),
        (1e300, None),
        ({}, None),
        (None, None),
    ],
)
def test_times_are_read_as_producers_write_them(ts: Any, milliseconds: int | None) -> None:
    turn = index_turn(json.dumps({"role": "user", "content": "Hi", "ts": ts}).encode())
    assert turn.ts_ms == milliseconds
    assert ("(" in turn.text) == (milliseconds is not None)


def test_an_image_is_found_by_its_caption_only() -> None:
    source = {"type": "base64", "data": "AAAA" * 1000}
    blocks = [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": source, "caption": "a red boat"},
        {"type": "image", "source": source},
    ]
    assert text_of(content=blocks) == "User: Look [image: a red boat]"


def test_a_call_is_found_by_its_name_and_arguments_in_both_formats() -> None:
    anthropic = text_of(
        role="assistant",
        content=[{"type": "tool_use", "id": "c1", "name": "get_user", "input": {"user_id": "mia_li_3668"}}],
    )
    openai = text_of(
        role="assistant",
        content=None,
        tool_calls=[
            {"id": "c1", "type": "function", "function": {"name": "get_user", "arguments": '{"user_id":"mia_li_3668"}'}}
        ],
    )
    assert anthropic == openai == 'Assistant: [call get_user {"user_id":"mia_li_3668"}]'


@pytest.mark.parametrize(
    "turn",
    [
        {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "word " * 5000}]},
        {"content": [{"type": "tool_result", "content": [{"type": "text", "text": "word " * 5000}]}]},
        {"role": "tool", "content": "word " * 5000, "tool_call_id": "c1"},
        {"role": "tool", "content": [{"type": "text", "text": "word " * 5000}]},
    ],
)
def test_of_a_tools_result_the_beginning_is_kept(turn: dict[str, Any]) -> None:
    assert text_of(**turn).count("word") == 200


def test_a_result_is_clipped_and_the_text_beside_it_is_not() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "noise " * 1000},
        {"type": "text", "text": "Is my seat 12A confirmed?"},
    ]
    assert text_of(content=blocks).endswith("noise Is my seat 12A confirmed?")


@pytest.mark.parametrize(
    "content",
    [
        "",
        None,
        [],
        "   ",
        42,
        {"type": "text"},
        [None, 3, {}, {"type": "thinking", "thinking": "secret"}, {"type": "text", "text": None}],
        [{"type": "tool_result", "content": None}],
        [{"type": "image", "source": {}}],
    ],
)
def test_a_turn_with_nothing_to_find_it_by_has_no_text(content: Any) -> None:
    assert text_of(content=content, name="Ann") == ""


def test_deep_nesting_ends_somewhere() -> None:
    content: Any = "deep"
    for _ in range(200):
        content = [{"type": "tool_result", "content": content}]
    assert text_of(content=content) == ""


def test_a_huge_text_is_cut() -> None:
    assert len(text_of(content="x" * 1_000_000)) < 40_000


def test_an_integer_beyond_64_bits_keeps_its_digits() -> None:
    call = {"type": "tool_use", "id": "a", "name": "track", "input": {"n": 9400111899223197428490}}
    assert "9400111899223197428490" in text_of(role="assistant", content=[call])
    assert text_of(content="Hi", metadata={"n": 10**30}) == "User: Hi"
