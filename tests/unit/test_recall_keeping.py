"""What is not embedded, and what is never left out."""

import json
import tomllib
from importlib.resources import files
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prefold.recall.keeping import Reason, keeps_all, packaged_rules, why_not
from prefold.recall.keeping.phrases import tokens_of
from prefold.recall.keeping.rules import SMALL_TALK

TABLES = tomllib.loads(files("prefold.recall.keeping").joinpath("rules.toml").read_text("utf-8"))
LONG = "\n".join(f"{line:>5}  result = compute(result, step_{line})  # see the note above" for line in range(60))
CONCLUSION = "The file has a loop that overflows, so I will change its bound to the length of the list."


def turn(role: str, content: object, **members: object) -> bytes:
    return json.dumps({"id": "t", "role": role, "content": content, **members}).encode()


def result(text: str) -> bytes:
    return turn("user", [{"type": "tool_result", "tool_use_id": "c1", "content": text}])


def judged(*turns: bytes | None) -> list[Reason | None]:
    """Each turn with its neighbours."""
    row = [None, *turns, None]
    return [why_not(one, row[at - 1], row[at + 1]) for at, one in enumerate(row) if one]


STATEMENT = turn("assistant", "The parcel has left the warehouse in Leipzig.")
QUESTION = turn("assistant", "Shall I book the earlier train for you?")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Hi there!", "greeting"),
        ("Hello again, how are you doing today?", "greeting"),
        ("HEY", "greeting"),
        ("你好，最近怎么样？", "greeting"),
        ("Bye, take care!", "farewell"),
        ("明天见，晚安！", "farewell"),
        ("Thanks so much, I really appreciate it!!", "acknowledgement"),
        ("ok thanks 👍🏽", "acknowledgement"),
        ("Got it.", "acknowledgement"),
        ("好的，谢谢！", "acknowledgement"),
        ("谢谢 bye", "acknowledgement"),
    ],
)
def test_a_turn_of_small_talk_alone_is_not_embedded(said: str, reason: Reason) -> None:
    assert why_not(turn("user", said), STATEMENT, STATEMENT) == reason


@pytest.mark.parametrize(
    "said",
    [
        "Hi, I moved to Berlin.",
        "Thanks, it is for my daughter",
        "Thanks, Oslo",
        "ok 42",
        "Good morning from Kyoto!",
        "Bye, see you on Friday!",
        "I see Anna.",
        "你好，我搬到柏林了。",
        "谢谢，我对花生过敏",
        "Hi 🤰",
        "hi $500",
        "There.",
        "John!",
        "",
        "...",
        "hello " * 40,
    ],
)
def test_a_turn_with_anything_beside_small_talk_is_embedded(said: str) -> None:
    assert why_not(turn("user", said), STATEMENT, STATEMENT) is None


@pytest.mark.parametrize("said", ["Yes", "ok", "No!", "Sure, thanks.", "好的", "Sounds good"])
@pytest.mark.parametrize(
    "before",
    [
        None,
        QUESTION,
        turn("assistant", "Let me know whether that suits you."),
        turn("assistant", "请确认您的地址。"),
        turn("user", "Hm, wait."),
        turn("assistant", [{"type": "tool_use", "id": "c1", "name": "book", "input": {}}]),
    ],
)
def test_what_may_be_an_answer_is_embedded(said: str, before: bytes | None) -> None:
    assert why_not(turn("user", said), before, None) is None
    assert why_not(turn("user", said), STATEMENT, None) == "acknowledgement"


@pytest.mark.parametrize(("name", "reason"), [("Mel", "greeting"), ("Melanie Stone", "greeting"), ("Anna", None)])
def test_the_name_of_whoever_is_spoken_to_belongs_to_a_greeting_and_no_other_name_does(
    name: str, reason: Reason | None
) -> None:
    said = turn("user", f"Hey {name.split(maxsplit=1)[0]}, good to see you!", name="Caroline")
    other = turn("assistant", "The parcel is here.", name="Mel" if reason is None else name)
    assert why_not(said, other, None) == why_not(said, None, other) == reason


def test_a_picture_a_call_and_an_unknown_block_are_never_small_talk() -> None:
    greeting = {"type": "text", "text": "hi"}
    more: list[Any] = [
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a"}},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
        {"type": "mystery"},
        7,
    ]
    assert why_not(turn("user", [greeting]), STATEMENT, None) == "greeting"
    assert [why_not(turn("user", [greeting, block]), STATEMENT, None) for block in more] == [None] * len(more)
    assert why_not(turn("assistant", "hi", tool_calls=[{"id": "c1"}]), STATEMENT, None) is None


def test_a_clarification_is_left_out_once_its_reply_is_a_plain_pick_and_the_reply_once_it_is_said_again() -> None:
    asked = turn("assistant", "Do you mean the red bicycle or the blue one?")
    picked = turn("user", "the blue one")
    assert judged(asked, picked, turn("assistant", "I have put it on the list.")) == ["settled_question", None, None]
    assert judged(asked, picked, turn("assistant", "The blue one is on the list.")) == [
        "settled_question",
        "settled_reply",
        None,
    ]
    assert judged(turn("assistant", "你是说红色的还是蓝色的？"), turn("user", "蓝色的"), None)[0] == "settled_question"


@pytest.mark.parametrize(
    ("asked", "replied", "then"),
    [
        ("Do you mean the red bicycle or the blue one?", None, None),
        ("Do you mean the red bicycle or the blue one?", "not the blue one", "Then not the blue one."),
        ("Do you mean the red bicycle or the blue one?", "both", "Both are on the list."),
        ("Do you mean the red bicycle or the blue one?", "the blue one, for my son", "The blue one, for your son."),
        ("Do you mean the red bicycle or the blue one?", "blue?", "The blue one."),
        ("Do you mean left or right?", "Right", "Right!"),
        ("We ship on Monday. Do you mean red or blue?", "blue", "I have noted it."),
        ("Would you like the red bicycle or the blue one?", "the blue one", "The blue one is on the list."),
    ],
)
def test_a_clarification_that_is_not_plainly_settled_is_embedded(
    asked: str, replied: str | None, then: str | None
) -> None:
    rest = [turn(role, text) for role, text in (("user", replied), ("assistant", then)) if text]
    assert judged(turn("assistant", asked), *rest)[0] is None
    assert judged(turn("assistant", asked), *rest)[1:2] in ([], [None])


CHAIN = st.sampled_from(
    [
        "Do you mean red or blue?",
        "You mean red?",
        "red",
        "blue",
        "Red.",
        "right",
        "ok",
        "not red",
        "The red one is on its way.",
    ]
)


@given(st.lists(CHAIN, min_size=2, max_size=8))
@example(["Do you mean red or blue?", "red", "Red.", "Do you mean red or blue?", "red"])
def test_whatever_is_called_settled_a_turn_beside_it_that_says_it_is_embedded(texts: list[str]) -> None:
    turns = [turn("assistant" if at % 2 == 0 else "user", text) for at, text in enumerate(texts)]
    reasons = judged(*turns)
    for at, reason in enumerate(reasons):
        if reason == "settled_question":
            assert reasons[at + 1] in (None, "settled_reply"), texts
        if reason == "settled_reply":
            assert reasons[at + 1] is None, texts


def test_output_of_a_tool_is_left_out_when_the_text_that_follows_says_all_of_it() -> None:
    told = turn("assistant", "The compiler stands in /opt/tools/pony, so I call it from there.")
    assert why_not(result("/opt/tools/pony"), None, told) == "known_output"
    assert why_not(turn("tool", "/opt/tools/pony", tool_call_id="c1"), None, told) == "known_output"
    assert why_not(result("/opt/tools/pony version 0.58"), None, told) is None


@pytest.mark.parametrize(
    ("output", "then", "reason"),
    [
        (LONG, CONCLUSION, "raw_output"),
        (LONG, "Thank you very much, that makes sense, got it.", None),
        (LONG, "Done.", None),
        (LONG, None, None),
        (json.dumps([{"flight": f"HAT{number}", "price": number} for number in range(300)]), CONCLUSION, None),
        ("\n<rows>" + LONG, CONCLUSION, None),
        (LONG[:400], CONCLUSION, None),
        ("[]", "There is no direct flight on that day, as it seems.", None),
    ],
)
def test_long_output_is_left_out_only_when_a_text_follows_and_never_when_it_is_structured(
    output: str, then: str | None, reason: Reason | None
) -> None:
    assert why_not(result(output), None, turn("assistant", then) if then else None) == reason


def test_output_before_another_call_without_a_word_is_embedded() -> None:
    next_call = turn("assistant", [{"type": "tool_use", "id": "c2", "name": "look", "input": {"path": "a"}}])
    assert why_not(result(LONG), None, next_call) is None
    assert why_not(result(LONG), None, result(LONG)) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "role", "name"]) | st.text(max_size=3), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=50)
@given(*(st.dictionaries(st.sampled_from(["role", "content", "name", "tool_calls"]), JSON) for _ in range(3)))
def test_no_turn_whatever_it_holds_makes_it_fail(one: object, before: object, after: object) -> None:
    said, earlier, later = (json.dumps(turn).encode() for turn in (one, before, after))
    assert why_not(said, earlier, later) in {None, *get_args(Reason)}


@pytest.mark.parametrize("kind", SMALL_TALK)
def test_every_phrase_of_the_table_is_known_as_what_the_table_says_and_stands_in_it_once(kind: str) -> None:
    talk = packaged_rules().small_talk
    phrases = [tokens_of(phrase) for table in TABLES[kind].values() for phrase in table]
    assert [talk.kinds_in(phrase) for phrase in phrases] == [[kind]] * len(phrases)
    others = [tokens_of(one) for name in SMALL_TALK for table in TABLES[name].values() for one in table]
    assert sorted(one for one in phrases if others.count(one) > 1) == []


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        ("none", False),
        ("acme", True),
        ("zeta, acme", True),
        ("*", True),
        ("ACME", False),
        ("acme2", False),
        ("zeta", False),
    ],
)
def test_a_tenant_keeps_all_when_the_setting_names_it_or_everyone(setting: str, kept: bool) -> None:
    assert keeps_all("acme", setting) is kept


def test_a_tenant_by_the_name_none_is_not_switched_off_by_the_default() -> None:
    assert not keeps_all("none", "none")
