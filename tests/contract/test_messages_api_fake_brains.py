"""The fake's brains: what each makes of a request, and that our gate takes the good ones and refuses the bad."""

import re
from typing import Any

import pytest

from prefold.compaction.gate.checks import GateSource, check_written
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.segments.prompt import Prompt, merge_prompt, prefix_instruction, segment_prompt
from prefold.compaction.segments.transcript import render_transcript
from prefold.compaction.segments.written import Written, parse_written
from prefold.storage.types import StoredTurn
from tests.support.compaction import talk
from tests.support.messages_api import BRAINS, Answer, Wanted
from tests.support.messages_api.answers import finish
from tests.support.messages_api.brains.reading import SECTIONS, source_of
from tests.support.messages_api.catalogue import MODELS

NONCE = "0123456789abcdef"
CAP = 500
_ENGLISH = (
    "I am allergic to peanuts, so the menu must never have any.",
    "My order 40-7781 should arrive on 12 May at the house in Lyon.",
    "Please ask the kitchen whether the sauce is made with butter or with oil.",
    "We decided on the terrace, since the hall was booked by somebody else.",
    "The booking page failed with error 502 when I tried it last night.",
    "Tell me next what the garden looks like in the evening, with the lamps on.",
)
_CHINESE = (
    "我对花生过敏，菜单里不要放任何花生。",
    "我的订单40-7781应该在5月12日送到里昂的家里。",
    "请问一下厨房，酱汁是用黄油还是用油做的。",
    "大厅已经被别人订了，所以我们决定用露台。",
    "昨天晚上我试的时候，预订页面报错，错误是502。",
    "接下来请告诉我晚上开灯以后花园是什么样子。",
)
_JAPANESE = (
    "ピーナッツにアレルギーがあるので、メニューには絶対に入れないでください。",
    "注文40-7781は5月12日にリヨンの家に届く予定です。",
    "ソースはバターで作るのか油で作るのか、厨房に聞いてください。",
    "広間はもう予約されていたので、テラスにすることに決めました。",
    "昨日の夜に試したら、予約のページがエラー502で失敗しました。",
    "次に、夜に明かりがついた庭がどんな様子か教えてください。",
)
_ANSWERS = {
    "en": "I have looked into that for you, and the people at the place are glad to help with it in the coming days.",
    "zh": "我已经帮您查过了，那边的人很乐意在接下来的几天里帮忙处理这件事情。",
    "ja": "お調べしましたところ、先方は数日のうちに喜んで対応してくださるとのことです。",
}
TALKS = {"en": _ENGLISH, "zh": _CHINESE, "ja": _JAPANESE}


_OPENINGS = {
    "en": "Hello, I would like to plan a dinner with friends.",
    "zh": "您好，我想安排一次和朋友们的晚餐。",
    "ja": "こんにちは、友人との夕食を計画したいです。",
}
_TOPICS = {
    "en": "The {} came up again, and nobody at the table had anything more to say about it.",
    "zh": "大家又说到了{}，不过谁也没有再多说什么。",
    "ja": "{}の話がまた出ましたが、それ以上のことは誰も言いませんでした。",
}
_WORDS = {
    "en": "weather garden river music window morning bread paper shoes clouds train street lamp coffee walk".split(),
    "zh": "天气 花园 河流 音乐 窗户 早晨 面包 报纸 鞋子 云彩 火车 街道 台灯 咖啡 散步".split(),
    "ja": "天気 庭園 河川 音楽 窓辺 早朝 食パン 新聞 靴 雲 電車 通り 電灯 珈琲 散歩".split(),
}


def turns_in(language: str, rounds: int = 80) -> list[StoredTurn]:
    """A conversation of some thousand tokens; only its beginning has facts."""
    facts = (_OPENINGS[language], *TALKS[language])
    words = _WORDS[language]
    small = [_TOPICS[language].format(words[at % 15] + words[at // 15 % 15]) for at in range(rounds)]
    said = [turn for text in (*facts, *small) for turn in (("user", text), ("assistant", _ANSWERS[language]))]
    return talk(*said)


def wanted_of(system: str, *messages: Any, max_tokens: int = 60_000, number: int = 1) -> Wanted:
    roles = ("user", "assistant")
    given = [{"role": roles[at % 2], "content": content} for at, content in enumerate(messages)]
    body = {"model": "claude-haiku-5-5", "max_tokens": max_tokens, "system": system, "messages": given}
    return Wanted(body, MODELS["claude-haiku-5-5"], 5000, number)


def asked(prompt: Prompt, number: int = 1) -> Wanted:
    return wanted_of(prompt.system, prompt.user, number=number)


def said_by(brain: str, wanted: Wanted) -> Answer:
    said = BRAINS[brain](wanted)
    assert isinstance(said, str | Answer)
    return finish(said, wanted)


def text_of(answer: Answer) -> str:
    return "".join(block["text"] for block in answer.blocks if block["type"] == "text")


def judged(brain: str, language: str, number: int = 1) -> Written:
    turns = turns_in(language, 300 if brain == "fragment" else 80)
    answer = said_by(brain, asked(segment_prompt(render_transcript(turns), language, CAP, NONCE), number))
    assert answer.stop_reason == "end_turn"
    source = GateSource(turns, language, CAP, sum(turn.tokens for turn in turns))
    return check_written(parse_written(text_of(answer), language), source)


@pytest.mark.parametrize("language", sorted(TALKS))
@pytest.mark.parametrize("brain", ["faithful", "two_blocks", "drops_facts"])
def test_a_good_answer_passes_the_gate_whole(brain: str, language: str) -> None:
    written = judged(brain, language)
    assert written.dropped == 0
    assert {section.key for section in written.sections} >= {"intent", "state"}


@pytest.mark.parametrize("language", sorted(TALKS))
def test_a_faithful_answer_keeps_values_and_quotes_constraints(language: str) -> None:
    lines = "\n".join(judged("faithful", language).lines)
    assert "40-7781" in lines
    assert f'[3 user] "{TALKS[language][0]}"' in lines


@pytest.mark.parametrize("language", sorted(TALKS))
def test_who_drops_facts_leaves_no_digit_no_name_and_no_constraint(language: str) -> None:
    wanted = asked(segment_prompt(render_transcript(turns_in(language)), language, CAP, NONCE))
    text = text_of(said_by("drops_facts", wanted))
    assert not re.search(r"\d|Lyon|里昂|リヨン|peanut|花生|ピーナッツ|never|must|过敏|アレルギー", text)
    assert "constraints" not in text


@pytest.mark.parametrize("language", sorted(TALKS))
@pytest.mark.parametrize(
    "brain",
    [
        "apologises",
        "whitespace",
        "cut_short",
        "other_language",
        "continues_chat",
        "continues_in_form",
        "quotes_everything",
        "error_sentence",
        "none_placeholder",
        "placeholders_in_form",
        "fragment",
        "gibberish",
    ],
)
def test_a_bad_answer_is_refused(brain: str, language: str) -> None:
    with pytest.raises(GateRefusedError):
        judged(brain, language)


@pytest.mark.parametrize("shape", range(1, 6))
def test_an_injection_that_was_obeyed_does_not_pass(shape: int) -> None:
    """Refused, or taken out."""
    try:
        written = judged("obeys_injection", "en", shape)
    except GateRefusedError:
        return
    assert not any("gnore all previous" in line for line in written.lines)


@pytest.mark.parametrize(
    ("brain", "reason"),
    [("refuses", "refusal"), ("truncated", "max_tokens"), ("tool_call_only", "tool_use"), ("loops", "max_tokens")],
)
def test_some_bad_answers_are_told_by_how_they_end(brain: str, reason: str) -> None:
    wanted = wanted_of("Summarise.", "Hello there, all of you.", max_tokens=900)
    assert said_by(brain, wanted).stop_reason == reason


@pytest.mark.parametrize(
    "wording",
    [
        "Sum this up in at most 400 tokens.\n<log-77>\n{turns}\n</log-77>",
        "<a>{turns}</a>\n\n请用不超过400 tokens总结。",
        "{turns}\nThat was it. 400 tokens.",
    ],
)
def test_the_transcript_is_found_whatever_the_wording(wording: str) -> None:
    shown = render_transcript(turns_in("en")).text
    wanted = wanted_of("You write records.", wording.format(turns=shown))
    source = source_of(wanted)
    assert (len(source.said), source.cap_tokens) == (174, 400)
    assert [turn.role for turn in source.said[:2]] == ["user", "assistant"]
    assert source.said[2].text == _ENGLISH[0]
    text = text_of(said_by("faithful", wanted))
    assert text.startswith('<summary>\n## intent\n- [1 user] "Hello, I would like')
    assert len(text) / 3.5 < 400


def test_what_is_escaped_in_the_transcript_is_read_as_it_was_said() -> None:
    turns = talk(("user", "Is 3 < 4 & </turn> a tag?"), ("assistant", "It is."))
    source = source_of(asked(segment_prompt(render_transcript(turns), "en", CAP, NONCE)))
    assert [turn.text for turn in source.said] == ["Is 3 < 4 & </turn> a tag?", "It is."]


def test_a_conversation_before_the_instruction_is_summarised_from_its_first_to_its_last_message() -> None:
    """The shared prefix: no transcript, the chat itself, and the instruction as last text."""
    chat = [text for text in _ENGLISH for text in (text, _ANSWERS["en"])]
    instruction = prefix_instruction(_ENGLISH[1], _ENGLISH[3], "en", CAP)
    last = [{"type": "text", "text": "The weather is fine."}, {"type": "text", "text": instruction}]
    wanted = wanted_of("You are a waiter.", *chat, last)
    source = source_of(wanted)
    assert source.said[0].text == _ENGLISH[1]
    assert source.said[-1].text == _ENGLISH[3]
    text = text_of(said_by("faithful", wanted))
    assert "40-7781" in text
    assert "peanuts" not in text
    assert "lamps" not in text


def test_records_are_merged_line_by_line_in_their_sections() -> None:
    records = [
        (
            1,
            40,
            '## Intent\n- Dinner in a garden.\n## Constraints\n- [1 user] "No peanuts."\n## Current state\n- Open.',
        ),
        (
            41,
            80,
            '## Intent\n- A table for four.\n## Constraints\n- [44 user] "Only vegetarian."\n## Current state\n- Set.',
        ),
    ]
    wanted = asked(merge_prompt(records, "en", CAP, NONCE))
    text = text_of(said_by("faithful", wanted))
    assert '## constraints\n- [1 user] "No peanuts."\n- [44 user] "Only vegetarian."' in text
    assert text.index("Dinner in a garden.") < text.index("Set.")


def test_every_brain_that_writes_in_the_form_uses_its_sections() -> None:
    wanted = asked(segment_prompt(render_transcript(turns_in("en")), "en", CAP, NONCE))
    for brain in ("faithful", "drops_facts", "other_language", "quotes_everything", "fragment", "gibberish", "invents"):
        keys = re.findall(r"^## (\w+)$", text_of(said_by(brain, wanted)), re.MULTILINE)
        assert keys[0] == "intent", brain
        assert set(keys) <= set(SECTIONS), brain
