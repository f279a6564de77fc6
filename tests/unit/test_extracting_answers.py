"""What is read out of a model's answer, whatever it is."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefold.facts.known_relations import KNOWN
from prefold.facts.rows import CATEGORIES
from prefold.memory.extracting.answer import MOST_ROWS, read_answer
from prefold.memory.extracting.relations import category_of, relation_of

ROW: dict[str, Any] = {"turn": 3, "subject": "user", "relation": "lives_in", "object": "Graz", "category": "location"}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["facts", "turn", "object", "relation", "subject", "confidence", "x"]), inner)
    ),
    max_leaves=20,
)


def objects(text: str) -> list[str]:
    return [row.object for row in read_answer(text).rows]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"facts": [ROW]}),
        json.dumps([ROW]),
        json.dumps(ROW),
        json.dumps([[[ROW]]]),
        json.dumps({"data": {"items": [ROW]}}),
        f"```json\n{json.dumps({'facts': [ROW]})}\n```",
        f"Here you are [I hope]: {json.dumps(ROW)} and nothing {{else}}.",
        f"{json.dumps(ROW)}\n{json.dumps({**ROW, 'object': ''})}",
        json.dumps({"facts": [ROW]})[:-2],
        json.dumps({"facts": [{**ROW, "turn": "n=3", "object": {"type": "city", "name": "Graz"}}]}),
        json.dumps({"facts": [{**ROW, "turn": 3.0, "object": ["Graz", None, {"no": "name"}]}]}),
        json.dumps({"facts": [{**ROW, "turn": {"n": 3}, "subject": {"name": "user"}, "extra": {"a": [1]}}]}),
        '{"facts": [{"turn": 3, "relation": "lives_in", "object": "Linz", "object": "Graz", "confidence": NaN}]}',
    ],
)
def test_one_row_is_found_in_every_form_that_models_give_it(text: str) -> None:
    answered = read_answer(text)
    assert answered.is_json
    assert [(row.turn, row.relation, row.object) for row in answered.rows] == [(3, "lives_in", "Graz")]


@pytest.mark.parametrize("text", ["", "NONE", "I found no facts.", "\x00", "null", '"facts"', "12", "{", "[" * 50_000])
def test_what_holds_no_json_says_so(text: str) -> None:
    answered = read_answer(text)
    assert not answered.rows
    assert not answered.is_json


def test_an_empty_list_is_an_answer() -> None:
    assert read_answer('{"facts": []}').is_json


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"turn": None}, "no_turn"),
        ({"turn": "soon"}, "no_turn"),
        ({"turn": True}, "no_turn"),
        ({"turn": 2.5}, "no_turn"),
        ({"relation": None}, "no_relation"),
        ({"relation": ["a"]}, "no_relation"),
        ({"object": None}, "no_object"),
        ({"object": False}, "no_object"),
        ({"object": {"a": {"b": 1}}}, "no_object"),
        ({"object": "x" * 500}, "object_too_long"),
    ],
)
def test_a_row_that_is_none_is_refused_alone_and_counted(change: dict[str, Any], reason: str) -> None:
    answered = read_answer(json.dumps({"facts": [{**ROW, **change}, ROW]}))
    assert answered.refused == {reason: 1}
    assert [row.object for row in answered.rows] == ["Graz"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [(0.4, 0.4), (85, 0.85), ("90%", 0.9), ("high", 0.9), ("low", 0.3), (-3, 0.0), (1e9, 1.0), ([], 0.7), (True, 0.7)],
)
def test_confidence_is_a_share_however_it_was_put(said: object, meant: float) -> None:
    assert read_answer(json.dumps({**ROW, "confidence": said})).rows[0].confidence == pytest.approx(meant)


def test_no_answer_makes_more_than_so_many_rows() -> None:
    answered = read_answer(json.dumps([{**ROW, "object": f"town {number}"} for number in range(1_000)]))
    assert len(answered.rows) == MOST_ROWS
    assert answered.refused == {"too_many": 1_000 - MOST_ROWS}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"facts": [ROW], "padding": "x" * 10_000_000}),
        "x" * 10_000_000,
        "[" * 10_000_000,
        '{"a":' * 2_000_000,
        '["x",' * 2_000_000,
        '{"facts":[' + json.dumps(ROW) + "," * 10_000_000,
        ("[1," * 900 + "1," * 1_000) * 2_000,
        "{" + '"k":{' * 500 + '"a' * 5_000_000,
    ],
    ids=["padded", "plain", "lists", "objects", "strings", "commas", "runs", "quotes"],
)
def test_ten_megabytes_take_no_longer_than_what_is_looked_at(text: str) -> None:
    began = time.process_time()
    read_answer(text)
    assert time.process_time() - began < 5


@given(ANY_JSON)
def test_no_json_value_raises_and_every_row_has_words(value: Any) -> None:
    for row in read_answer(json.dumps(value)).rows:
        assert row.object.isprintable()
        assert row.object == " ".join(row.object.split())
        assert 0 <= row.confidence <= 1
        assert category_of(row.category, relation_of(row.relation)) in CATEGORIES


@given(st.text())
def test_no_text_raises(text: str) -> None:
    read_answer(text)


def test_half_a_surrogate_pair_in_an_answer_can_be_stored() -> None:
    rows = read_answer('{"turn": 1, "relation": "name", "object": "A\\ud83d\\u0000B"}').rows
    assert [row.object.encode() for row in rows] == [b"A? B"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Lives In", "lives_in"),
        ("residence", "lives_in"),
        ("worksFor", "works_at"),
        ("user_allergies", "allergic_to"),
        ("favorite-colour", "favorite_color"),
        ("喜欢", "likes"),
        ("123", ""),
        ("!!!", ""),
        ("x" * 60, ""),
    ],
)
def test_relations_of_a_model_become_the_ones_that_the_rules_use(said: str, meant: str) -> None:
    assert relation_of(said) == meant


def test_a_known_relation_has_its_own_category_whatever_a_model_calls_it() -> None:
    assert all(category_of("possession", known.name) == known.category for known in KNOWN)
    assert category_of("possession", "favorite_color") == "preference"
    assert category_of(["odd"], "never_heard_of") == "other"
    assert category_of("Hobbies", "never_heard_of") == "preference"
