"""Recall takes any text and any turn that JSON can hold."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from prefold.recall import document_words, index_turn, query_words, turn_point_id
from prefold.recall.words import words_of
from prefold.storage.types import SessionRef

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
kinds = st.sampled_from(["text", "image", "tool_use", "tool_result", "thinking", "image_url", "function_call", ""])
names = st.sampled_from(["text", "caption", "content", "name", "input", "output", "arguments", "source"])
blocks = st.builds(lambda kind, rest: {**rest, "type": kind}, kinds, st.dictionaries(names, anything, max_size=4))
turns = st.fixed_dictionaries(
    {},
    optional={
        "role": anything,
        "name": anything,
        "ts": anything,
        "content": anything | st.lists(blocks, max_size=4),
        "tool_calls": anything | st.lists(st.fixed_dictionaries({"function": anything}), max_size=2),
    },
)


@given(st.text())
def test_any_text_has_words_and_each_is_one_run_of_characters(text: str) -> None:
    for word in words_of(text):
        assert word
        assert not any(character.isspace() for character in word)


@given(st.text(), st.text())
def test_a_stored_vector_is_what_a_store_takes(first: str, second: str) -> None:
    for words in (document_words(f"{first} {second}"), query_words(first)):
        assert len(set(words.indices)) == len(words.indices) == len(words.values)
        assert all(0 <= index < 2**32 for index in words.indices)
        assert all(0 < value < 1.9 for value in words.values)


@given(st.text(min_size=1))
def test_a_text_is_found_by_itself(text: str) -> None:
    stored = set(document_words(text).indices)
    assert set(query_words(text).indices) <= stored


@given(turns)
def test_any_turn_can_be_indexed(turn: dict[str, object]) -> None:
    indexed = index_turn(orjson.dumps(turn, option=orjson.OPT_NON_STR_KEYS))
    assert isinstance(indexed.text, str)
    indexed.text.encode("utf-8")


identity = st.tuples(st.text(), st.text(), st.text(), st.integers(0, 2**40), st.integers(0, 2**20))


@given(identity, identity)
def test_two_turns_share_an_id_only_if_they_are_the_same(
    left: tuple[str, str, str, int, int], right: tuple[str, str, str, int, int]
) -> None:
    ids = [turn_point_id(SessionRef(*fields[:3]), *fields[3:]) for fields in (left, right)]
    assert (ids[0] == ids[1]) == (left == right)
