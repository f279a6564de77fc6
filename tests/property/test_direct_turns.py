"""A turn that the direct client prepares without JSON is prepared as its JSON would be."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from prefold.client.calls import json_body
from prefold.client.direct.turns import Limits, prepared
from prefold.conversation.accepting import prepare_body
from prefold.errors import PrefoldError
from prefold.tokens import load_counter

WORDS = st.text(max_size=40) | st.sampled_from(["", " ", "\x00", "a\ud800", "\ufffd", "x" * 3000, "é" * 900])
TURNS = st.fixed_dictionaries(
    {"id": st.text(min_size=1, max_size=8) | st.just("t1"), "role": st.sampled_from(["user", "assistant", "robot"])},
    optional={"content": WORDS | st.none() | st.integers(), "name": WORDS},
)


def outcome(prepare: Any) -> Any:
    try:
        return prepare()
    except PrefoldError as error:
        return type(error), error.code, error.field


@settings(max_examples=150)
@given(st.lists(TURNS, min_size=1, max_size=3))
def test_the_short_way_prepares_what_the_long_way_does(turns: list[dict[str, Any]]) -> None:
    counter = load_counter()
    by_json = outcome(lambda: prepare_body(json_body({"turns": turns}), counter, Limits()))
    assert outcome(lambda: prepared(turns, counter)) == by_json
