"""Texts cut to a number of tokens, never inside a character."""

import pytest
import regex  # type: ignore[import-untyped]

from prefold.conversation.clipping import clip, grapheme_start
from prefold.tokens import load_counter


def _clip(text: str, budget: int) -> tuple[str, int]:
    count = load_counter().count
    return clip(text, count(text), budget, count)


def test_a_text_within_the_budget_is_not_touched() -> None:
    assert _clip("one two three", 3) == ("one two three", 3)


def test_head_and_tail_stand_around_the_number_of_tokens_left_out() -> None:
    text, tokens = _clip("BEGIN " + "word " * 4_000 + "END", 100)
    assert tokens == load_counter().count(text) <= 100
    head, marker, tail = regex.split(r"(\[… [\d,]+ tokens left out …\])", text)
    assert head.startswith("BEGIN word word")
    assert tail.endswith("word END")
    left_out = int(regex.sub(r"\D", "", marker))
    kept = load_counter().count(head) + load_counter().count(tail)
    assert abs(left_out + kept - 4_002) < 40


def test_words_are_kept_whole_where_there_are_spaces() -> None:
    text, _ = _clip("parcel " * 500, 60)
    assert set(text.split()) - {"[…", "tokens", "left", "out", "…]"} == {
        "parcel",
        *[w for w in text.split() if w.isdigit()],
    }


@pytest.mark.parametrize("budget", [0, 1, 5, 9])
def test_nothing_is_shorter_than_the_bare_marker(budget: int) -> None:
    text, tokens = _clip("word " * 1_000, budget)
    assert text == "[… 1,001 tokens left out …]"
    assert tokens == load_counter().count(text)


def test_a_text_shorter_than_the_marker_is_kept() -> None:
    assert _clip("one two three", 1) == ("one two three", 3)


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_000_000,
        "a" * 300_000,
        "中" * 100_000,
        "👩\u200d👩\u200d👧" * 10_000,
        "\n" * 50_000,
        "e\u0301" * 20_000,
        "a" + "\u0301" * 20_000,
        "x" * 100_000 + "中文" * 1_000,
        "中文" * 1_000 + "x" * 100_000,
    ],
    ids=[
        "spaces",
        "one letter",
        "one ideograph",
        "joined emoji",
        "line ends",
        "accents",
        "one long cluster",
        "sparse head",
        "dense head",
    ],
)
def test_any_text_is_cut_to_the_budget_and_to_few_bytes(text: str) -> None:
    clipped, tokens = _clip(text, 193)
    assert tokens == load_counter().count(clipped) <= 193
    assert len(clipped) < 2_000
    assert "tokens left out" in clipped


@pytest.mark.parametrize(
    "cluster",
    [
        "👩\u200d👩\u200d👧\u200d👦", "👍🏽", "🇩🇪", "e\u0301", "\r\n", "각", "ก็", "नि", "❤\ufe0f", "1\ufe0f\u20e3",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "カ\u3099", "か\u3099",
    ],
)  # fmt: skip
def test_a_cut_never_falls_inside_a_cluster(cluster: str) -> None:
    text = "ab" + cluster * 3 + "cd"
    starts = {0, len(text)} | {found.start() for found in regex.finditer(r"\X", text)}
    for at in range(len(text) + 1):
        assert grapheme_start(text, at) == max(start for start in starts if start <= at)


def test_a_cut_outside_the_text_is_moved_to_its_end() -> None:
    assert grapheme_start("abc", -5) == 0
    assert grapheme_start("abc", 9) == 3
