"""What stands in for packages that the base installation lacks gives what they give."""

import importlib.util
import json
import struct
import sys
from functools import cache
from typing import Any

import hiredis
import msgspec
import orjson
import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from prefold.conversation import plain_json, plain_structs, shapes
from prefold.conversation.plain_graphemes import GRAPHEME
from prefold.pinned.state import PinnedState
from prefold.storage import plain_resp
from prefold.storage.session_options import SessionBody

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
DOUBLES = st.binary(min_size=8, max_size=8).map(lambda raw: struct.unpack(">d", raw)[0])


def _bytes_or_refusal(dumps: Any, value: Any, option: int) -> bytes | None:
    try:
        found: bytes = dumps(value, option=option)
    except TypeError:
        return None
    return found


@settings(max_examples=80)
@given(value=VALUES, option=st.sampled_from([0, orjson.OPT_SORT_KEYS]))
def test_json_has_the_bytes_of_orjson(value: Any, option: int) -> None:
    expected = _bytes_or_refusal(orjson.dumps, value, option)
    assert _bytes_or_refusal(plain_json.dumps, value, 1 if option else 0) == expected


@settings(max_examples=200)
@given(DOUBLES)
def test_any_double_is_written_as_orjson_writes_it(number: float) -> None:
    assert plain_json.dumps(number) == orjson.dumps(number)


@settings(max_examples=60)
@given(st.lists(st.text() | st.binary() | st.integers(min_value=0), min_size=1, max_size=6))
def test_a_command_has_the_bytes_of_hiredis(command: list[Any]) -> None:
    try:
        expected = hiredis.pack_command(tuple(command))
    except UnicodeEncodeError:
        return
    assert plain_resp.pack_command(command) == expected


STREAM = (
    b"+OK\r\n$5\r\nhe\r\nl\r\n:-7\r\n$-1\r\n*3\r\n*0\r\n*-1\r\n$0\r\n\r\n-NOSCRIPT none\r\n*2\r\n:1\r\n$3\r\nabc\r\n"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_replies_are_read_as_hiredis_reads_them_however_they_arrive(size: int) -> None:
    readers: list[Any] = [hiredis.Reader(replyError=ValueError), plain_resp.Reader(replyError=ValueError)]
    found: list[list[Any]] = [[], []]
    for start in range(0, len(STREAM), size):
        for reader, replies in zip(readers, found, strict=True):
            reader.feed(STREAM[start : start + size])
            while (reply := reader.gets()) is not False:
                replies.append(repr(reply))
    assert found[0] == found[1]
    assert len(found[0]) == 7


STATES: list[Any] = [
    {"goal": "Ship", "constraints": ["a"], "entities": {"x": "y"}, "plan": [{"step": "s", "done": True}]},
    {"goal": None},
    {"goal": 7},
    {"goal": ""},
    {"goal": " "},
    {"goal": "x" * 4001},
    {"constraints": "no list"},
    {"constraints": ["ok", 3]},
    {"constraints": ["x"] * 201},
    {"entities": {"": "x"}},
    {"entities": {"x": None}},
    {"entities": ["x"]},
    {"plan": [{"done": True}]},
    {"plan": [{"step": "s", "done": "yes"}]},
    {"plan": [{"step": "s", "more": 1}]},
    {"mood": "good"},
    [],
]
BODIES: list[Any] = [
    {"user": "ann", "hard_limit_tokens": 5000, "soft_ratio": 0.5, "tools": [{"a": [1]}], "metadata": {"b": None}},
    {"soft_ratio": None, "shared_prefix": None},
    {"soft_ratio": 2},
    {"soft_ratio": "half"},
    {"hard_limit_tokens": 999},
    {"hard_limit_tokens": 5.5},
    {"hard_limit_tokens": 10**9},
    {"hard_limit_tokens": True},
    {"user": 5},
    {"proposals": "maybe"},
    {"tools": [1]},
    {"tools": {}},
    {"shared_prefix": {"enabled": "yes"}},
    {"shared_prefix": {"cache": "2h"}},
    {"shared_prefix": {"colour": 1}},
]


@pytest.mark.parametrize(
    ("kind", "value"), [*((PinnedState, one) for one in STATES), *((SessionBody, one) for one in BODIES)]
)
def test_records_are_taken_and_refused_as_msgspec_does(kind: type[msgspec.Struct], value: Any) -> None:
    assert _converted(plain_structs, _plain_twin(kind), value) == _converted(msgspec, kind, value)


def _converted(library: Any, kind: Any, value: Any) -> tuple[str, Any]:
    try:
        return "taken", json.loads(library.json.encode(library.convert(value, kind)))
    except library.ValidationError as error:
        return "refused", str(error)


@cache
def _plain_twin(kind: type[msgspec.Struct]) -> Any:
    """The same record, made again by a module that finds no msgspec."""
    name = f"{kind.__module__}_plain"
    spec = importlib.util.spec_from_file_location(name, sys.modules[kind.__module__].__file__)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where its types are looked up
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "msgspec", plain_structs)
        spec.loader.exec_module(module)
    return getattr(module, kind.__name__)


CLUSTERS = ["e\u0301", "👩‍👩‍👧", "🇩🇪🇫🇷", "👍🏽", "각", "क्षि", "\r\n", "a", "中", "ก็", "✍️", "\u200d"]


@settings(max_examples=100)
@given(st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=8).map("".join))
def test_a_character_is_never_cut_where_the_regex_package_keeps_it_whole(text: str) -> None:
    whole = {found.end() for found in regex.finditer(r"\X", text)}
    assert {found.end() for found in GRAPHEME.finditer(text)} <= whole
