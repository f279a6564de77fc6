"""Request bodies: one reading, no surprises, bounded time."""

import json

import pytest

from prefold.conversation import parse_json, parse_json_text
from prefold.conversation.strict_json import MAX_DEPTH, storable
from prefold.errors import InvalidInputError, TooLargeError


def _refusal(body: bytes, max_bytes: int = 20_000_000) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        parse_json(body, max_bytes=max_bytes)
    assert caught.value.code == "invalid_json"
    return caught.value


def test_a_body_comes_back_as_it_was_meant() -> None:
    body = '{"a":[1,-2.5e3,true,null,"é😀\\n\\u00e9\\ud83d\\ude00"],"b":{}}'.encode()
    assert parse_json(body) == {"a": [1, -2500.0, True, None, "é😀\né😀"], "b": {}}


def test_integers_keep_all_their_digits() -> None:
    assert parse_json(b"[123456789012345678901234567890]") == [123456789012345678901234567890]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "at character 0"),
        (b'{"a":1,}', "at character 7"),
        (b'{"a":1} {"b":2}', "at character 8"),
        (b"[NaN]", "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e400]", "1e400"),
        (b"[-1e400]", "-1e400"),
        (b"9" * 5_000, "too many digits"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8 at byte 6"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b"\xef\xbb\xbf{}", "at character 0"),
        (b'{"a":"\n"}', "at character 6"),
        (b'{"a":"\x00"}', "at character 6"),
        (b"{'a':1}", "at character 1"),
        (b'["\\ud8"]', "at character"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_not_strict_json_is_refused_with_its_place(body: bytes, detail: str) -> None:
    refusal = _refusal(body)
    assert detail in refusal.detail
    assert refusal.field == "body"


@pytest.mark.parametrize(
    "body", [b'{"k":1,"k":1}', b'{"turns":[{"k":1,"x":{},"k":2}]}', b'{"\\u006b":1,"k":2}', b'[[{"a":{"k":1,"k":[]}}]]']
)
def test_a_duplicate_key_is_refused_by_name(body: bytes) -> None:
    refusal = _refusal(body)
    assert refusal.field == "k"
    assert "'k'" in refusal.detail


def test_keys_that_become_one_by_cleaning_are_duplicates() -> None:
    assert _refusal(b'{"\\u0000":1,"\\ud800":2}').field == "\ufffd"


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 1_000, 100_000])
def test_deep_nesting_is_refused(opening: bytes, closing: bytes, levels: int) -> None:
    assert "levels deep" in _refusal(opening * levels + b"1" + closing * levels).detail


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_deepest_nesting_allowed_is_read(opening: bytes, closing: bytes) -> None:
    parse_json(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert len(parse_json(b"[" + b",".join([b"[]"] * 1_000) + b"]")) == 1_000


def test_ten_megabytes_of_brackets_are_refused() -> None:
    assert "levels deep" in _refusal(b"[" * 10_000_000).detail
    assert "levels deep" in _refusal(b'{"":' * 2_500_000).detail


def test_a_body_over_the_limit_is_not_read() -> None:
    with pytest.raises(TooLargeError) as caught:
        parse_json(b"x" * 101, max_bytes=100)
    assert caught.value.field == "body"
    assert parse_json(b"1" + b" " * 99, max_bytes=100) == 1


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (rb'"a\ud800b"', "a\ufffdb"),
        (rb'"\uDFFF"', "\ufffd"),
        (rb'"\udc00\ud800"', "\ufffd\ufffd"),
        (rb'"a\u0000b"', "a\ufffdb"),
        (rb'{"\u0000k":["\ud800"]}', {"\ufffdk": ["\ufffd"]}),
        (rb'"\\ud800"', "\\ud800"),
        (rb'"\ud83d\ude00"', "😀"),
    ],
)
def test_what_no_store_takes_becomes_a_replacement_character(body: bytes, value: object) -> None:
    assert parse_json(body) == value


def test_text_is_read_by_the_same_rules() -> None:
    assert parse_json_text('{"a":"\\ud800"}') == {"a": "\ufffd"}
    with pytest.raises(InvalidInputError):
        parse_json_text('{"a":1,"a":2}')


def test_a_value_from_elsewhere_is_made_storable() -> None:
    assert storable({"a\x00": ["\ud800", 1, None, {"b": "c"}]}) == {"a\ufffd": ["\ufffd", 1, None, {"b": "c"}]}


def test_every_value_that_json_writes_is_read_back() -> None:
    value = {"": [0, -1, 1.5, 1e-300, True, False, None, '\u2028\t"\\'], "nested": {"a": {"b": [[]]}}}
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=2).encode()) == value


@pytest.mark.parametrize("digits", ["1" + "0" * 309, "9" * 400, "-" + "9" * 400])
def test_an_integer_beyond_a_double_is_refused(digits: str) -> None:
    with pytest.raises(InvalidInputError, match="out of range"):
        parse_json(b'{"n":' + digits.encode() + b"}")


def test_an_integer_within_a_double_keeps_all_its_digits() -> None:
    assert parse_json(b'{"n":' + b"9" * 308 + b"}") == {"n": int("9" * 308)}
