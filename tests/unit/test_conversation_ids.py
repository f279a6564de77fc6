"""Names and ids from outside."""

import re

import pytest

from prefold.conversation import check_name, check_turn_id
from prefold.conversation.ids import check_call_id, check_tool_name
from prefold.errors import InvalidInputError


def brief(value: object) -> str:
    return repr(value)[:30]


@pytest.mark.parametrize("name", ["a", "user-17", "a@b.example", "A" * 128, "0=x|y~z+w_v.u", "9"], ids=brief)
def test_a_name_comes_back_unchanged(name: str) -> None:
    assert check_name(name, "session") == name


@pytest.mark.parametrize(
    "name",
    [
        "", "A" * 129, "x" * 10_240, "a:b", "{a}", "a}", "a*", "a/b", "..", "-a", ".a", "_a", "a b", " a", "a\n", "a\x00", "a?",
        "аdmin", "ａ", "é", "a\u200b", "\ud800", "a%2F", "a\\b", "a'b", 'a"b', "a,b", "a;b", "a[b]", "a^b", "a$b", "#a",
        None, 7, ["a"], b"a", True,
    ],
    ids=brief,
)  # fmt: skip
def test_what_could_be_mistaken_in_a_key_is_no_name(name: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_name(name, "session")
    assert caught.value.code == "invalid_name"
    assert caught.value.field == "session"
    assert len(caught.value.detail) < 400
    caught.value.detail.encode()


@pytest.mark.parametrize(
    "turn_id", ["D1:3", "a b", "{x}*", "é", "e\u0301", "会话-7", "x" * 256, "é" * 128, "𝒳"], ids=brief
)
def test_any_printable_turn_id_is_kept_exactly(turn_id: str) -> None:
    assert check_turn_id(turn_id, "turns[0].id") == turn_id


@pytest.mark.parametrize(
    "turn_id",
    ["", " ", "x" * 257, "é" * 129, "a\n", "a\x00", "\x7f", "a\u202eb", "\u200b", "\ud800", "x" * 10_240, 5, None, 1.5, ["a"], {}],
)  # fmt: skip
def test_a_turn_id_that_cannot_be_shown_or_stored_is_refused(turn_id: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_turn_id(turn_id, "turns[0].id")
    assert caught.value.code == "invalid_id"
    assert caught.value.field == "turns[0].id"


@pytest.mark.parametrize("call_id", ["toolu_01A09q90qw90lq917835lq9", "call_a-B", "x" * 64, "7"], ids=brief)
def test_a_call_id_that_providers_take_is_kept(call_id: str) -> None:
    assert check_call_id(call_id, "id") == call_id


@pytest.mark.parametrize("call_id", ["a.b", "x" * 65, "call:1", "é", " ", "functions.search:0", "a\n"], ids=brief)
def test_another_call_id_becomes_one_always_the_same(call_id: str) -> None:
    projected = check_call_id(call_id, "id")
    assert re.fullmatch(r"call_[0-9a-f]{24}", projected)
    assert check_call_id(call_id, "tool_use_id") == projected
    assert check_call_id(call_id + "x", "id") != projected


@pytest.mark.parametrize("call_id", ["", None, 3, "x" * 1_025, {}], ids=brief)
def test_what_is_no_call_id_at_all_is_refused(call_id: object) -> None:
    with pytest.raises(InvalidInputError):
        check_call_id(call_id, "id")


@pytest.mark.parametrize(
    ("name", "projected"),
    [("search", "search"), ("server.tool:x", "server_tool_x"), ("a b", "a_b"), ("n" * 200, "n" * 128)],
)
def test_a_tool_name_becomes_one_that_providers_take(name: str, projected: str) -> None:
    assert check_tool_name(name, "name") == projected


@pytest.mark.parametrize("name", ["", " ", None, 3], ids=brief)
def test_a_tool_without_a_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInputError):
        check_tool_name(name, "name")


def test_a_turn_id_with_a_character_that_could_not_be_kept_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        check_turn_id("a\ufffd", "id")
