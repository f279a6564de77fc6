"""The wording of a sentence tells what it is for."""

import pytest

from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.cues import find_cues

BINDING = [
    "I can only travel during the last two weeks of October because of work",
    "I am allergic to shellfish, is eating out hard?",
    "I do not want to change hotels more than three times.",
    "My budget is $3000 for 10 days.",
    "Please never call me before 9 am.",
    "Don't share my address with anyone.",
    "Always include version numbers when I ask about libraries.",
    "The deadline is Friday.",
    "I can't eat gluten.",
    "It must be delivered by March 3.",
    "我对花生过敏。",
    "预算不超过5000元",
    "请不要给我打电话。",
    "我只能周末去。",
    "エビのアレルギーがあります。",
]
LOOSE = [
    "That must have been tough for you.",
    "They always make us smile.",
    "I couldn't have done it without them.",
    "I can't find the button.",
    "What are the must-see temples in Kyoto?",
    "Can you suggest some vegetarian ramen places?",
    "It works when you don't use the tuple syntax.",
    "你喜欢听音乐吗？",
]
CORRECTIONS = [
    "No, I meant the 14th.",
    "Sorry, it's ann@example.org.",
    "Actually, make it two rooms.",
    "I was wrong about the date.",
    "Berlin, not Bern.",
    "Not Monday but Tuesday.",
    "Change it to the 5th.",
    "I no longer live there.",
    "不是3月5日，是3月8日",
    "改成下周五",
    "東京ではなく大阪です",
]
NOT_CORRECTIONS = [
    "Nope, never been to something like that.",
    "Actually, I just took my family camping.",
    "Pottery is a huge part of my life, not just a hobby.",
    "Sorry that happened to you.",
    "No problem!",
    "其实最近我也想学习一些新的技能。",
]


@pytest.mark.parametrize("sentence", BINDING)
def test_what_binds_is_a_constraint(sentence: str) -> None:
    assert Cue.CONSTRAINT in find_cues(sentence)


@pytest.mark.parametrize("sentence", LOOSE)
def test_what_only_sounds_like_it_is_none(sentence: str) -> None:
    assert Cue.CONSTRAINT not in find_cues(sentence)


@pytest.mark.parametrize("sentence", CORRECTIONS)
def test_a_correction_is_seen(sentence: str) -> None:
    assert Cue.CORRECTION in find_cues(sentence)


@pytest.mark.parametrize("sentence", NOT_CORRECTIONS)
def test_contradicting_words_alone_correct_nothing(sentence: str) -> None:
    assert Cue.CORRECTION not in find_cues(sentence)


@pytest.mark.parametrize(
    ("sentence", "cue"),
    [
        ("My name is Craig.", Cue.IDENTITY),
        ("I’m Craig and I build things.", Cue.IDENTITY),
        ("我叫张曼婷。", Cue.IDENTITY),
        ("My sister may come along, she likes art museums.", Cue.IDENTITY),
        ("I prefer short answers.", Cue.PREFERENCE),
        ("我喜欢徒步。", Cue.PREFERENCE),
        ("Let's go with the blue one.", Cue.DECISION),
        ("The dashboard has recently improved to 250ms.", Cue.UPDATE),
        ("I am still waiting for the refund.", Cue.OPEN),
        ("Could you send it again?", Cue.REQUEST),
        ("The reservation has been cancelled.", Cue.OUTCOME),
        ("Thanks a lot!", Cue.FILLER),
        ("谢谢你！", Cue.FILLER),
        ("Let me look that up.", Cue.NARRATION),
    ],
)
def test_other_cues_are_seen(sentence: str, cue: Cue) -> None:
    assert cue in find_cues(sentence)


@pytest.mark.parametrize(
    "sentence", ["The deadline is Friday.", "She needs it by friday the 18th at the latest.", "No later than noon."]
)
def test_a_last_moment_is_a_limit(sentence: str) -> None:
    assert Cue.LIMIT in find_cues(sentence)
