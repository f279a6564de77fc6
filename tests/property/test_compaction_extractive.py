"""The extractive engine and the ledger on any input: no exception, no cap broken, no invented quote, in linear time."""

import gc
import re
import time
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.ledger.text import render_ledger
from prefold.compaction.reading.sentences import split_sentences
from prefold.compaction.reading.source import clean, read_source
from prefold.compaction.reading.turns import fold, read_turn
from prefold.storage.types import StoredTurn
from prefold.tokens import load_counter
from tests.support.compaction import ledger_of, new_cache, small_talk, stored, summarize, wanted_of

COUNTER = load_counter()
WORDS = st.sampled_from(
    """I my budget is $3000 never must only allergic to peanuts no, actually it's not the 14th but ann@example.org order
    LF-4827-19306 2024-05-21 /etc/hosts v2.3.1 ValueError: window Thanks! 你好。 预算不超过5000元 不是3月5日，是3月8日 もしもし。
    [Prefold: end of summary] [12 user] ``` # - 1. > | \n \t … 👩‍👩‍👧 <|endoftext|> « » " ' ( ) { } [ ] , ; : — ?!""".split(
        " "
    )
)
PROSE = st.lists(WORDS, max_size=60).map(" ".join)
JUNK = st.text(st.characters(codec="utf-8"), max_size=300)
TEXT = st.one_of(PROSE, JUNK)
JSON_LEAF = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXT)
JSON = st.recursive(
    JSON_LEAF,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(JUNK, inner, max_size=4)),
    max_leaves=12,
)
BLOCK = st.one_of(
    TEXT.map(lambda text: {"type": "text", "text": text}),
    st.builds(lambda name, given, one: {"type": "tool_use", "id": f"c{one}", "name": name, "input": given}, JUNK, JSON, st.integers(0, 3)),
    st.builds(
        lambda out, bad, one: {"type": "tool_result", "tool_use_id": f"c{one}", "content": out, "is_error": bad},
        st.one_of(TEXT, JSON.map(lambda value: orjson.dumps(value).decode())), st.booleans(), st.integers(0, 3),
    ),
    TEXT.map(lambda caption: {"type": "image", "source": {"type": "url", "url": "https://example.org/i"}, "caption": caption}),
)  # fmt: skip
TURN = st.tuples(st.sampled_from(["user", "assistant", "system"]), st.lists(BLOCK, max_size=3), JUNK)


def made(turns: list[tuple[str, list[dict[str, Any]], str]]) -> list[StoredTurn]:
    return [stored(seq, role, blocks, name=name) for seq, (role, blocks, name) in enumerate(turns, start=1)]


CONVERSATION = st.lists(TURN, max_size=25).map(made)
ROUGH = settings(deadline=None, max_examples=45, suppress_health_check=[HealthCheck.too_slow])


@ROUGH
@given(CONVERSATION, st.integers(60, 1500))
def test_a_summary_is_within_its_cap_and_the_same_again(turns: list[StoredTurn], cap: int) -> None:
    summary = summarize(turns, cap)
    assert COUNTER.count(summary.text) == summary.tokens <= cap
    assert summary == summarize(turns, cap)
    assert "[Prefold" not in summary.text


@ROUGH
@given(CONVERSATION, st.integers(0, 600))
def test_a_ledger_is_within_its_room_and_the_same_again(turns: list[StoredTurn], room: int) -> None:
    rendered = render_ledger(ledger_of(turns), room, COUNTER, "en")
    assert COUNTER.count(rendered.text) == rendered.tokens <= room
    assert rendered == render_ledger(ledger_of(turns), room, COUNTER, "en")
    assert "[Prefold" not in rendered.text


@ROUGH
@given(st.lists(PROSE.filter(str.strip), min_size=4, max_size=20))
def test_every_quote_is_a_span_of_its_turn(texts: list[str]) -> None:
    turns = [stored(seq, "user", text) for seq, text in enumerate(texts, start=1)]
    sources = {turn.seq: fold(" ".join(part.text for part in read_source(turn).parts)) for turn in turns}
    for section in summarize(turns, 300).sections:
        for line in section.lines:
            found = re.match(r"\[(\d+) user(?: quoting)?\] (.*)$", line)
            assert found is not None
            said = re.sub(r""" \(×\d+\)| \("[^"]*": → \[\d+\]\)""", "", found[2])
            for quote in re.split(r" … | …$|^… ", said):
                assert quote.strip(" …") in sources[int(found[1])]


@ROUGH
@given(TEXT)
def test_spans_are_in_order_and_hold_all_that_is_said(text: str) -> None:
    spans = split_sentences(text)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(text[span.start : span.end].strip() == text[span.start : span.end] != "" for span in spans)
    if "```" in text or "~~~" in text:
        return  # what stands beside a fence is the name of a language
    held = {at for span in spans for at in range(span.start, span.end)}
    assert all(set(range(*word.span())) <= held for word in re.finditer(r"\w{4,}", text))


@ROUGH
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_bytes_that_no_script_of_ours_writes_are_text(content: bytes, verbatim: bytes) -> None:
    turn = StoredTurn(1, "t1", "user", "p", content, b"", 9, 9, True, 0, verbatim)
    assert read_turn(turn, COUNTER).seq == 1


@ROUGH
@given(TEXT)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


HOSTILE = [
    "a" * 30_000,
    " " * 30_000,
    "\n" * 30_000,
    "[Prefold: x]" * 3_000,
    "not but " * 4_500,
    "my a is 1, " * 3_000,
    "( " * 15_000,
    '"a' * 15_000,
    "1,2" * 9_000,
    "a.b" * 9_000,
    "-----BEGIN PRIVATE KEY-----" * 750,
    "password is " * 3_000,
    "No, not AX-1 but AX-2. " * 3_000,
    "预算是，" * 7_500,
    "不是" * 9_000,
    "a_1-" * 7_500,
    "/a" * 12_000,
    "Error: " * 4_500,
    "`" * 15_000,
    "{" * 15_000,
    "👩‍👩‍👧‍👦" * 3_000,
    "\u0301" * 15_000,
]


def seconds_for(text: str) -> float:
    turns = [stored(1, "user", text), *small_talk(2, 4)]
    gc.collect()
    began = time.process_time()
    summarize(turns, 300)
    return time.process_time() - began


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_time_is_linear_in_hostile_text(text: str) -> None:
    small = min(seconds_for(text[: len(text) // 4]) for _ in range(2))
    large = seconds_for(text)
    assert large < 8 * small + 0.1, (small, large)


def seconds_to_refresh(sentences: int) -> tuple[float, float]:
    """CPU seconds of a first summary and of one with everything read before."""
    words = "weather garden river music window morning bread paper shoes clouds train street".split()
    text = [
        f"The {words[n % 12]} number {n} was near {words[n * 5 % 12]} {n * 7 % 91} on day {n % 31}."
        for n in range(sentences)
    ]
    turns = [
        stored(seq, "user", " ".join(text[at : at + 10])) for seq, at in enumerate(range(0, sentences, 10), start=1)
    ]
    cache = new_cache()
    engine = ExtractiveSummarizer(cache, COUNTER)
    began = time.process_time()
    wanted = wanted_of(turns, 2000, cache=cache)
    engine.summarize_now(wanted)
    read = time.process_time()
    engine.summarize_now(wanted)
    return read - began, time.process_time() - read


def test_time_is_linear_in_the_number_of_sentences() -> None:
    seconds_to_refresh(500)
    first_small, again_small = (min(pair) for pair in zip(*(seconds_to_refresh(1500) for _ in range(2)), strict=True))
    first_large, again_large = (min(pair) for pair in zip(*(seconds_to_refresh(6000) for _ in range(1)), strict=True))
    assert first_large < 7 * first_small
    assert again_large < 7 * again_small + 0.05
    assert again_large < 0.5 * first_large
