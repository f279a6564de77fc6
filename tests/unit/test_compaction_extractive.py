"""The extractive engine: what it picks, how it says it, and that it keeps to its cap."""

import asyncio
import re
import threading

import pytest

from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.tokens import load_counter
from tests.support.compaction import (
    data_talk,
    new_cache,
    small_talk,
    stored,
    summarize,
    talk,
    users,
    wanted_of,
)


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("[")]


def test_lines_stand_in_the_conversations_order_under_their_sections() -> None:
    turns = [
        stored(1, "user", "I want to plan a trip to Japan in the autumn with my sister."),
        stored(2, "assistant", "Kyoto has the Jidai Matsuri on 22 October."),
        *small_talk(3, 30),
        stored(33, "user", "I am allergic to shellfish."),
        stored(34, "assistant", "A card for your allergy costs 5 dollars at the airport."),
        *small_talk(35, 30),
        stored(65, "user", "Could you remind me of the ferry to Naoshima?"),
    ]
    summary = summarize(turns, 400)
    assert [section.key for section in summary.sections] == ["binding", "events", "open"]
    for section in summary.sections:
        seqs = [int(line.split(maxsplit=1)[0][1:]) for line in section.lines]
        assert seqs == sorted(seqs)
    assert "[33 user] I am allergic to shellfish." in summary.sections[0].lines
    assert "[65 user] Could you remind me of the ferry to Naoshima?" in summary.sections[2].lines
    assert summary.covered == (1, 65)
    assert set(summary.quoted) >= {2, 33, 65}


def test_what_is_asked_again_and_again_is_said_once_with_its_count() -> None:
    turns = users(*["Should I get travel insurance?", "Which temples are open on Monday?"] * 4)
    text = summarize([*turns, *small_talk(len(turns) + 1, 20)], 200).text
    assert text.count("travel insurance") == 1
    assert "Should I get travel insurance? (×4)" in text


def test_a_value_that_was_replaced_is_not_told_as_current() -> None:
    turns = users("My email is old@example.org.", "Sorry, my email is new@example.org.")
    text = summarize([*turns, *small_talk(5, 40)], 300).text
    assert "new@example.org" in text
    assert "old@example.org" not in text


def test_what_stands_beside_the_summary_yields_to_what_does_not() -> None:
    known = "I want to take the night train to Lisbon with two bicycles."
    other = "I want to see the old trams of Porto on a rainy afternoon."
    turns = [*users(known, other), *small_talk(5, 20)]
    cap = 70
    assert "Porto" in summarize(turns, cap, carried=(known,)).text
    assert "Lisbon" not in summarize(turns, cap, carried=(known,)).text


def test_an_image_is_quoted_by_its_caption() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/i"}, "caption": "a blue lighthouse"}
    turns = [stored(1, "user", [image]), *small_talk(2, 30)]
    assert "[1 user] [Image: a blue lighthouse]" in summarize(turns, 300).text


def test_dates_are_said_where_they_change() -> None:
    turns = [
        stored(1, "user", "I moved to Rome last week.", ts="2023-05-08T10:00:00"),
        stored(2, "user", "My flat has a view of the river.", ts="2023-05-08T10:01:00"),
        stored(3, "user", "I passed the exam yesterday.", ts="2023-06-01"),
        *small_talk(4, 20),
    ]
    assert lines_of(summarize(turns, 250).text)[:3] == [
        "[1 user 2023-05-08] I moved to Rome last week.",
        "[2 user] My flat has a view of the river.",
        "[3 user 2023-06-01] I passed the exam yesterday.",
    ]


def test_a_chinese_conversation_gets_chinese_headings() -> None:
    turns = users(
        "我叫张曼婷，在上海工作。", "我对花生过敏，预算不超过5000元。", "我喜欢绘画和弹钢琴。", "帮我推荐一家餐厅好吗？"
    )
    written = summarize([*turns, *users("今天天气很好，公园里有很多花。" * 6)[:1]] * 2, 200).text
    assert "## 愿望、限制与更正" in written
    assert "我对花生过敏，预算不超过5000元。" in written


def test_a_turn_may_not_take_the_whole_summary() -> None:
    long = " ".join(f"I need the part number AX-{number} by Friday." for number in range(200))
    turns = [stored(1, "user", long), *small_talk(2, 20), stored(22, "user", "I am allergic to dust.")]
    summary = summarize(turns, 500)
    assert "allergic to dust" in summary.text
    first = next(line for line in lines_of(summary.text) if line.startswith("[1 user]"))
    assert load_counter().count(first) < 250


def test_a_leading_system_prompt_is_not_quoted() -> None:
    turns = [stored(1, "system", "You must never mention price AX-77."), *users("I want it for $20.")]
    assert "AX-77" not in summarize([*turns, *small_talk(4, 20)], 300).text


@pytest.mark.parametrize("cap", [60, 61, 80, 119, 120, 121, 200, 500, 1000, 4000])
@pytest.mark.parametrize("name", ["trip-90", "tau-airline-2-1", "memorybank-zh-frank"])
def test_the_cap_holds_on_real_conversations(name: str, cap: int) -> None:
    turns, _ = data_talk(name)
    summary = summarize(turns, cap)
    assert 0 < summary.tokens <= cap
    assert summary.tokens == load_counter().count(summary.text)
    assert summary.tokens > 0.3 * min(cap, sum(turn.tokens for turn in turns) // 2)


def test_a_conversation_without_words_still_gets_a_line() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/i"}}
    assert summarize([stored(seq, "user", [image]) for seq in range(1, 9)], 100).text
    assert summarize(talk(("system", "Be kind.")), 100).text
    assert summarize([], 100).covered == (0, 0)


def test_the_same_input_gives_the_same_bytes_from_a_new_engine() -> None:
    turns, _ = data_talk("tau-airline-9-2")
    assert summarize(turns, 500) == summarize(turns, 500)


async def test_the_loop_goes_on_while_the_engine_works() -> None:
    cache = new_cache()
    seen: list[str] = []
    engine = ExtractiveSummarizer(cache, load_counter())
    original = engine.summarize_now
    released = threading.Event()

    def slow(wanted: object) -> object:
        assert released.wait(10)
        return original(wanted)  # type: ignore[arg-type]

    engine.summarize_now = slow  # type: ignore[method-assign, assignment]
    work = asyncio.create_task(engine.summarize(wanted_of(small_talk(1, 20), 100, cache=cache)))
    await asyncio.sleep(0)
    seen.append("the loop went on")
    released.set()
    assert (await work).text
    assert seen


def test_every_quote_is_a_span_of_its_turn() -> None:
    turns, _ = data_talk("memorybank-en-emily")
    for line in lines_of(summarize(turns, 600).text):
        seq = int(re.match(r"\[(\d+) ", line)[1])  # type: ignore[index]
        quotes = line.split("] ", 1)[1].split(" … ")
        source = " ".join(part["text"] for part in _blocks(turns[seq - 1]))
        assert all(quote.strip("… ") in " ".join(source.split()) for quote in quotes)


def _blocks(turn: object) -> list[dict[str, str]]:
    import orjson

    decoded: list[dict[str, str]] = orjson.loads(b"[" + turn.content + b"]")  # type: ignore[attr-defined]
    return decoded


def test_a_sentence_of_which_one_value_was_replaced_says_so() -> None:
    turns = users("I want two rooms at the Hotel Astoria for $3,000 and 10 days.", "No, I meant 12 days.")
    text = summarize([*turns, *small_talk(5, 40)], 300).text
    assert '[1 user] I want two rooms at the Hotel Astoria for $3,000 and 10 days. ("10 days": → [3])' in text
