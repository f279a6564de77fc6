"""What is proposed for the pinned state, out of what users state."""

import pytest

from prefold.memory.extracting import propose
from prefold.pinned import proposals
from tests.support.compaction import talk, users
from tests.support.statements import UNSTATED


def proposed(*texts: str) -> list[tuple[str, str]]:
    return [(one.field, one.value) for one in propose(users(*texts))]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (
            "I can only travel in the last two weeks of October because of work.",
            "constraints",
            "I can only travel in the last two weeks of October",
        ),
        ("Hi! My budget is $3000 for 10 days.", "constraints", "My budget is $3000 for 10 days."),
        ("By the way, I'm allergic to shellfish.", "constraints", "I'm allergic to shellfish."),
        ("I don't eat pork.", "constraints", "I don't eat pork."),
        ("Never use emojis in your answers.", "constraints", "Never use emojis in your answers."),
        ("We decided to use Postgres for the orders.", "decisions", "We decided to use Postgres for the orders."),
        ("OK, let's go with the blue design.", "decisions", "let's go with the blue design."),
        ("I've chosen the hotel at the station.", "decisions", "I've chosen the hotel at the station."),
        ("My goal is to run a marathon in May.", "goal", "My goal is to run a marathon in May."),
        ("I want to plan a trip to Japan.", "goal", "I want to plan a trip to Japan."),
        ("I'm trying to build a budget tracker.", "goal", "I'm trying to build a budget tracker."),
        ("我的预算是5000元。", "constraints", "我的预算是5000元。"),
        ("我对花生过敏。", "constraints", "我对花生过敏。"),
        ("我们决定用第二个方案。", "decisions", "我们决定用第二个方案。"),
        ("我想计划一次日本旅行。", "goal", "我想计划一次日本旅行。"),
    ],
)
def test_what_binds_was_decided_or_is_wanted_is_proposed_in_the_users_words(text: str, field: str, value: str) -> None:
    found = proposed(text)
    assert [(one[0], one[1].rstrip(".。")) for one in found] == [(field, value.rstrip(".。"))]


@pytest.mark.parametrize("kind", ["hedged", "conditional", "asked", "of others", "reported", "joked", "secret"])
def test_nothing_is_proposed_that_nobody_stated(kind: str) -> None:
    assert not {text: found for text in UNSTATED[kind] if (found := proposed(text))}


def test_an_entry_names_its_turn_and_comes_once() -> None:
    found = propose(users("I can only meet on Mondays.", "Hello.", "I can only meet on Mondays."))
    assert [(one.seq, one.turn_id) for one in found] == [(1, "t1")]


def test_the_goal_that_was_stated_first_is_the_one_that_is_proposed() -> None:
    assert proposed("I want to plan a trip to Japan.", "I want to learn Dutch.") == [
        ("goal", "I want to plan a trip to Japan.")
    ]


def test_an_assistant_proposes_nothing() -> None:
    assert not propose(talk(("assistant", "My goal is to help. I can only travel in May. We decided to use Postgres.")))


def test_every_proposal_can_be_an_entry_of_a_pinned_state() -> None:
    for one in propose(
        users("I can only " + "travel far and wide " * 40, "We decided to use Postgres.", "我的预算是5000元。")
    ):
        assert proposals.proposal_of(one) is not None
