"""The short ways that most turns take give what the general ones give."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefold.conversation import clipping, prepare, strict_json
from prefold.conversation.clipping import count_clipped
from prefold.conversation.prepare import prepare_turn
from prefold.errors import InvalidInputError
from prefold.tokens import TokenCounter, load_counter, load_reference

TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet='ab "\\\n\u0000é中\U0001f600{}[]:,', max_size=30),
    st.builds(
        lambda word, times: word * times,
        st.sampled_from(["hello there, ", "一二三 ", "\n", "x1 "]),
        st.integers(1, 400),
    ),
)
KEYS = st.sampled_from(["id", "role", "content", "name", "ts", "é", 'a"b', "a\\b"])
VALUES = st.one_of(
    TEXTS,
    st.sampled_from(["user", "assistant", "system"]),
    st.none(),
    st.integers(),
    st.booleans(),
    st.lists(TEXTS, max_size=2),
)
TURNS = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "content": TEXTS},
        optional={"id": TEXTS, "name": TEXTS, "ts": VALUES},
    ),
    st.dictionaries(KEYS, VALUES, max_size=5),
)  # fmt: skip


def read(body: bytes) -> Any:
    try:
        return strict_json.parse_json(body)
    except InvalidInputError as error:
        return (error.code, error.detail, error.field)


def prepared(raw: Any) -> Any:
    try:
        return prepare_turn(raw, 0, load_counter(), lambda: "made")
    except InvalidInputError as error:
        return (error.code, error.detail, error.field)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A flat object, as clients write it or with something in it that no reader may take."""
    members = draw(st.lists(st.tuples(KEYS, VALUES), max_size=5))
    ascii_only, space = draw(st.booleans()), draw(st.sampled_from(["", " ", "\n\t"]))
    text = ",".join(
        f"{json.dumps(key, ensure_ascii=ascii_only)}{space}:{json.dumps(value, ensure_ascii=ascii_only)}"
        for key, value in members
    )
    body = ("{" + text + space + "}").encode("utf-8", "surrogatepass")
    odd = draw(st.sampled_from([b"", b"", b"\\ud800", b"\\u0000", b'"', b"\\", b"\xff", b"\x01", b"}", b"NaN"]))
    at = draw(st.integers(0, len(body)))
    return body[:at] + odd + body[at:]


@settings(max_examples=300, deadline=None)
@given(body=bodies())
def test_a_flat_body_is_read_as_the_strict_reader_reads_it(body: bytes) -> None:
    fast = read(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict_json, "_flat_object", lambda _: None)
        assert fast == read(body)


@settings(max_examples=150, deadline=None)
@given(raw=TURNS)
def test_a_turn_of_words_is_prepared_as_any_turn_is(raw: dict[str, Any]) -> None:
    short = prepared(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "_said", lambda *_: None)
        assert short == prepared(raw)


PIECES = st.one_of(
    st.sampled_from(
        ["parcel", "I'll", "don't", "GmbH", "4711", "1,299.95", "中文", "é", "Ελ", "…", "]", "/", "'s", "👩\u200d👧"]
    ),
    st.sampled_from(["internationalization", "incomprehensibilities"]),
    st.text(alphabet="aZ é中1\n\t.'/[]…\u0301", min_size=1, max_size=6),
)


@settings(max_examples=300, deadline=None)
@given(
    pieces=st.lists(PIECES, min_size=1, max_size=12),
    gaps=st.lists(st.sampled_from([" ", " ", " ", "", "  ", "\n", ". "]), min_size=1, max_size=5),
    times=st.integers(1, 60),
    budget=st.integers(12, 250),
)
@pytest.mark.parametrize("counter", [load_counter(), load_reference()], ids=["fast", "reference"])
def test_a_text_counted_by_its_pieces_and_clipped_measures_what_counting_it_says(
    counter: TokenCounter, pieces: list[str], gaps: list[str], times: int, budget: int
) -> None:
    text = "".join(piece + gaps[number % len(gaps)] for number, piece in enumerate(pieces * times))

    tokens, shorter, shorter_tokens = count_clipped(text, budget, counter)

    assert (tokens, shorter_tokens) == (counter.count(text), counter.count(shorter))
    assert shorter == text if tokens <= budget else shorter_tokens <= max(budget, 10) or shorter == text


def test_most_long_texts_are_counted_by_their_pieces() -> None:
    """Without this the test above could see the closer look only."""
    text = "I looked at the order again and the parcel left the warehouse in Leipzig on Tuesday. " * 20

    _, shorter, shorter_tokens = count_clipped(text, 193, load_counter())

    ends = clipping._guessed_ends(text, 193)
    assert ends is not None
    assert shorter.startswith(text[: ends[0]] + " […")
    assert shorter.endswith("…]" + text[ends[1] :])
    assert 0.6 * 193 <= shorter_tokens <= 193


def test_the_short_ways_are_taken_by_what_most_clients_send() -> None:
    """Without this the tests above could compare the general ways with themselves."""
    body = json.dumps({"id": "t1", "role": "user", "content": 'It says "no".\n'}).encode()
    assert strict_json._flat_object(body) == json.loads(body)
    assert prepare._said(json.loads(body), 0, load_counter(), lambda: "") is not None


@pytest.mark.parametrize("body", [b'{"a":"x","a":"y"}', b'{"a":1,"a":"y"}', b'{"a":"\\"","a":"b"}', b'{"a":"x","a":2}'])
def test_a_key_that_stands_twice_is_refused_by_the_short_way_too(body: bytes) -> None:
    with pytest.raises(InvalidInputError, match="stands twice"):
        strict_json.parse_json(body)
