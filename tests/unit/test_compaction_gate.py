"""What the gate refuses, and why."""

from dataclasses import replace

import pytest

from prefold.compaction.engine import Summary, SummarySection
from prefold.compaction.gate.checks import GateRefusedError, NoGainError, check_gain, check_summary
from prefold.storage.types import HeadFragment
from tests.support.compaction import small_talk, ticket, users, wanted_of

TURNS = [*users("I want to go to Rome."), *small_talk(3, 30)]
LINES = ("[1 user] I want to go to Rome.", "[3 user] The weather seemed quiet today, and the garden looked fine.")


def a_summary(*lines: str, **changes: object) -> Summary:
    given = lines or LINES
    section = SummarySection("events", "What happened", given)
    return replace(Summary((section,), "\n".join(given), 40, (1, 32)), **changes)  # type: ignore[arg-type]


def refusal(summary: Summary, turns: object = None) -> str:
    with pytest.raises(GateRefusedError) as caught:
        check_summary(summary, wanted_of(TURNS, 100))
    return caught.value.code


def test_a_sound_summary_passes() -> None:
    check_summary(a_summary(), wanted_of(TURNS, 100))


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        (a_summary(text="", tokens=0), "summary_empty"),
        (a_summary(text="  \n "), "summary_empty"),
        (a_summary(tokens=101), "summary_over_cap"),
        (a_summary(covered=(1, 31)), "summary_not_covering"),
        (a_summary(covered=(2, 32)), "summary_not_covering"),
        (a_summary(sections=()), "summary_sections"),
        (a_summary(sections=(SummarySection("events", "What happened", ("",)),)), "summary_sections"),
        (a_summary(sections=(SummarySection("chatter", "Well", ("x",)),)), "summary_sections"),
        (a_summary("用户想去罗马旅行，预算有限，最近天气很安静，花园看起来很好，河边的音乐也不错，窗户旁边的面包很香。" * 2), "summary_language"),
    ],
)  # fmt: skip
def test_a_bad_summary_is_refused_with_its_reason(summary: Summary, code: str) -> None:
    assert refusal(summary) == code


def test_an_english_summary_of_a_chinese_conversation_is_refused() -> None:
    wanted = wanted_of(users(*["我想去罗马旅行，请帮我安排酒店和火车。"] * 6), 100)
    summary = a_summary(covered=(wanted.first_seq, wanted.last_seq))
    with pytest.raises(GateRefusedError, match="language"):
        check_summary(summary, replace(wanted, language="zh"))


def test_quotes_of_a_conversation_in_two_languages_pass_whatever_the_smaller_part_says() -> None:
    """What is quoted may be all in the language that fewer words of the conversation are in."""
    chinese = "我的预算是三千欧元，我对花生过敏，请不要预订任何带坚果的晚餐，谢谢。"
    turns = [*users(chinese, chinese.replace("三千", "四千")), *small_talk(5, 60)]
    wanted = wanted_of(turns, 60)
    assert wanted.language == "en"
    summary = replace(a_summary(chinese * 2, covered=(wanted.first_seq, wanted.last_seq)), tokens=60)
    with pytest.raises(GateRefusedError, match="language"):
        check_summary(summary, wanted)
    check_summary(replace(summary, quoted=(1, 3)), wanted)


def fragment(tokens: int) -> HeadFragment:
    return HeadFragment("summary", b"", tokens)


def test_a_head_must_be_smaller_than_its_turns_by_the_margin() -> None:
    tokens = sum(turn.tokens for turn in TURNS)
    check_gain(ticket(32, 2000), TURNS, [fragment(int(tokens * 0.9))])
    with pytest.raises(NoGainError):
        check_gain(ticket(32, 2000), TURNS, [fragment(int(tokens * 0.9) + 2)])


def test_a_refresh_must_cover_enough_new_turns() -> None:
    newly = TURNS[-1].tokens
    check_gain(ticket(32, 2000, base_covers_to=31), TURNS, [fragment(newly * 8)])
    with pytest.raises(NoGainError):
        check_gain(ticket(32, 2000, base_covers_to=31), TURNS, [fragment(newly * 10)])
