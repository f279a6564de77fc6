"""Texts of segments side by side: never more tokens than was reckoned with, and what binds goes last."""

import random
from dataclasses import replace

import pytest

from prefold.compaction.engine import SummarySection
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.segments.texts import JOINT_TOKENS, fitted, joined, sections_together
from prefold.compaction.segments.titles import REQUIRED_KEYS, SECTION_KEYS, title_of
from prefold.compaction.segments.written import parse_written, render
from prefold.tokens import load_counter
from tests.support.seeds import seed_of_run

COUNTER = load_counter()
WORDS = {
    "en": "harbour crane 3,000 LF-4827 ferry! naïve  [12 user] <turn> ## … « “x” 👩‍👩‍👧 - * 2024-05-21 /etc/hosts".split(),
    "zh": "港口 起重机 预算5000元 渡轮。 第12条 不要 《合同》 “引用” A-17 3月8日".split(),
    "ja": "港 クレーン 予算は3000円 フェリー、 12番 やめて 「引用」 A-17 3月8日".split(),
}


def sections(chance: random.Random, language: str, lines: int = 4) -> tuple[SummarySection, ...]:
    keys = {"intent", "state", *chance.sample(SECTION_KEYS, chance.randint(0, 7))}
    return tuple(
        SummarySection(key, title_of(key, language), tuple(_lines(chance, language, lines)))
        for key in SECTION_KEYS
        if key in keys
    )


def _lines(chance: random.Random, language: str, most: int) -> list[str]:
    return [
        "L" + " ".join(chance.choices(WORDS[language], k=chance.randint(1, 20))) for _ in range(chance.randint(1, most))
    ]


@pytest.mark.parametrize("language", WORDS)
def test_joined_texts_have_no_more_tokens_than_each_alone_with_its_joint(language: str) -> None:
    chance = random.Random(seed_of_run("the texts"))
    for _ in range(80):
        parts, first = [], 1
        for _ in range(chance.randint(1, 12)):
            last = first + chance.choice((0, 9, 12_345, 999_999))
            parts.append((first, last, sections(chance, language)))
            first = last + 1
        text = joined(parts, language)
        alone = sum(COUNTER.count(render(one, language)) + JOINT_TOKENS for _, _, one in parts)
        assert COUNTER.count(text) <= alone
        assert all(line in text for _, _, several in parts for section in several for line in section.lines)


def test_a_text_over_its_cap_loses_lines_but_what_binds_last() -> None:
    chance = random.Random(seed_of_run("the texts"))
    for _ in range(80):
        whole = sections(chance, "en", 6)
        tokens = COUNTER.count(render(whole, "en"))
        cap = chance.randint(tokens // 3, tokens)
        required = render(tuple(replace(one, lines=one.lines[:1]) for one in whole if one.key in REQUIRED_KEYS), "en")
        if COUNTER.count(required) > cap:
            with pytest.raises(GateRefusedError, match="allowed"):
                fitted(whole, "en", cap, COUNTER)
            continue
        left = fitted(whole, "en", cap, COUNTER)
        assert COUNTER.count(render(left, "en")) <= cap
        parse_written(render(left, "en"))
        kept = {section.key: section.lines for section in left}
        for section in whole:
            assert section.lines[: len(kept.get(section.key, ()))] == kept.get(section.key, ())
        if any(len(kept.get(one.key, ())) < len(one.lines) for one in whole if one.key == "constraints"):
            assert "done" not in kept


def test_sections_of_several_texts_are_joined_by_key_without_repeats() -> None:
    one = (SummarySection("intent", "Intent", ("a", "b")), SummarySection("state", "State", ("c",)))
    two = (SummarySection("intent", "Intent", ("b", "d")), SummarySection("values", "Values", ("e",)))
    together = {section.key: section.lines for section in sections_together([one, two])}
    assert together == {"intent": ("a", "b", "d"), "values": ("e",), "state": ("c",)}
