"""What is left of real conversations, against summaries that cost nothing.

Weights and exponents were chosen on trip-90, all tau, code and memorybank conversations, beam-100k-1, 4, 6 and 13, and
locomo 0 and 2: ``FAMILIES`` are some of these, so their shares flatter the engine. ``HELD_OUT`` took no part in the
choice (its figures were looked at, not fitted); there the engine leaves less, above all at small limits. Floors
stand below what was measured. tau, trip, code and memorybank have few questions and no held-out part.
"""

import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.head import close_head, open_head
from prefold.compaction.ledger.collect import collect_ledger
from prefold.compaction.reading.turns import TurnCache, language_of
from prefold.tokens import load_counter
from tests.support.compaction import REF, data_questions, data_talk, new_cache, ticket, wanted_of
from tests.support.survival import Quiz, Survival, sentences_in_order

COUNTER = load_counter()
COLUMNS = ("answers", "evidence", "exact")
BASELINES = ("lead", "last", "random 1", "random 2", "random 3")

TAU = [f"tau-airline-{name}" for name in ("0-0", "13-0", "17-1", "2-1", "25-3", "3-0", "4-0", "9-2")]
CODE = ["code-openhands-ponyc-4593", "code-openhands-ponyc-4595", "code-sweagent-marshmallow"]
MEMORY = ["memorybank-en-emily", "memorybank-en-frank", "memorybank-zh-emily", "memorybank-zh-frank"]


@dataclass(frozen=True)
class Family:
    """Conversations of one kind, a limit, and the least that must be left: answers, evidence, exact answers."""

    names: list[str]
    limit: int
    floor: tuple[float, float, float]
    lead_over_best: float
    """By how much the share over all questions must be above the best baseline's."""


FAMILIES = {
    "trip at 8k": Family(["trip-90"], 8000, (0.65, 0.45, 0.75), 0.15),
    "tau at 8k": Family(TAU, 8000, (0.95, 0.65, 0.95), 0.0),
    "memorybank at 8k": Family(MEMORY, 8000, (0, 0.35, 0), 0.05),
    "beam at 8k": Family(["beam-100k-1"], 8000, (0.55, 0.18, 0), 0.15),
    "beam at 32k": Family(["beam-100k-1"], 32_000, (0.88, 0.65, 0), 0.20),
    "code at 8k": Family(CODE, 8000, (0.95, 0.65, 0.95), 0.0),
    "locomo at 8k": Family(["locomo-0-conv-26"], 8000, (0.50, 0.17, 0.25), 0.05),
    "locomo at 32k": Family(["locomo-0-conv-26"], 32_000, (0.85, 0.68, 0.60), 0.10),
}
HELD_OUT = {
    "beam at 8k": Family(["beam-100k-11", "beam-100k-16"], 8000, (0.50, 0.10, 0), 0.10),
    "beam at 32k": Family(["beam-100k-11", "beam-100k-16"], 32_000, (0.80, 0.55, 0), 0.15),
    "locomo at 8k": Family(["locomo-3-conv-42", "locomo-4-conv-43", "locomo-5-conv-44"], 8000, (0.35, 0.10, 0.15), 0.03),
    "locomo at 32k": Family(["locomo-3-conv-42", "locomo-4-conv-43", "locomo-5-conv-44"], 32_000, (0.70, 0.50, 0.40), 0.08),
}  # fmt: skip


def test_the_trips_constraints_are_in_the_head_at_every_limit() -> None:
    turns, _ = data_talk("trip-90")
    for limit in (1000, 2000, 8000, 32_000):
        text = head_text("trip-90", limit)
        assert "my budget is $3000 for 10 days" in text
        assert "I can only travel during the last two weeks of October because of work" in text
        if limit > 1000:
            assert "I am allergic to shellfish" in text
    assert len(turns) == 90


@pytest.mark.parametrize("name", FAMILIES)
def test_more_is_left_than_by_cheap_summaries(name: str) -> None:
    check(FAMILIES[name])


@pytest.mark.long
@pytest.mark.parametrize("name", HELD_OUT)
def test_more_is_left_of_conversations_that_played_no_part_in_the_tuning(name: str) -> None:
    check(HELD_OUT[name])


@pytest.mark.long
def test_a_refresh_pays_for_new_turns_and_memory_is_bounded(record_property: Callable[[str, object], None]) -> None:
    turns, _ = data_talk("beam-500k-1")
    tracemalloc.start()
    cache = TurnCache(COUNTER)
    first = seconds_of(cache, turns[:-8])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    refresh = seconds_of(cache, turns)
    for name, figure in {
        "first_s": first,
        "refresh_s": refresh,
        "held_mb": held / 1e6,
        "counted_mb": cache.bytes / 1e6,
    }.items():
        record_property(name, round(figure, 2))
    assert refresh < first / 4
    assert held < 2.5 * cache.bytes
    assert cache.bytes < 64e6
    small = TurnCache(COUNTER, most_bytes=2_000_000)
    small.read(REF, turns)
    assert small.bytes <= 2_000_000


def seconds_of(cache: TurnCache, turns: Iterable[object]) -> float:
    began = time.process_time()
    ExtractiveSummarizer(cache, COUNTER).summarize_now(wanted_of(list(turns), 4000, cache=cache))  # type: ignore[arg-type]
    return time.process_time() - began


def head_text(name: str, limit: int) -> str:
    """Ledger, summary and first message of the whole conversation, as the model reads them."""
    turns, _ = data_talk(name)
    cache = new_cache()
    readings = cache.read(REF, turns)
    leave = ticket(
        len(turns), limit, first_user_seq=next(turn.seq for turn in turns if turn.kind == "p" and turn.role == "user")
    )
    begun = open_head(leave, turns, collect_ledger(readings), language_of(readings), COUNTER)
    summary = ExtractiveSummarizer(cache, COUNTER).summarize_now(
        wanted_of(turns, begun.summary_cap, carried=begun.carried, cache=cache)
    )
    return "\n".join(fragment.content.decode() for fragment in close_head(leave, begun, summary.text, COUNTER))


def check(family: Family) -> None:
    ours, baselines = zip(*(measured(name, family.limit) for name in family.names), strict=True)
    for share, floor in zip(means(ours), family.floor, strict=True):
        assert share is None or share >= floor, (means(ours), family.floor)
    best = max(pooled([one[index] for one in baselines]) for index in range(len(BASELINES)))
    assert pooled(ours) >= best + family.lead_over_best, (pooled(ours), best)


def measured(name: str, limit: int) -> tuple[Survival, list[Survival]]:
    """What the head (without its first message) leaves, and what each baseline does with as many tokens."""
    turns, seqs = data_talk(name)
    cache = new_cache()
    readings = cache.read(REF, turns)
    quiz = Quiz(readings, seqs, data_questions(name))
    source = sum(turn.tokens for turn in turns if turn.kind != "y")
    limit = limit if source > limit else int(source * 0.8)
    leave = ticket(len(turns), limit, first_user_seq=0)
    begun = open_head(leave, turns, collect_ledger(readings), language_of(readings), COUNTER)
    summary = ExtractiveSummarizer(cache, COUNTER).summarize_now(
        wanted_of(turns, begun.summary_cap, carried=begun.carried, cache=cache)
    )
    budget = begun.ledger_text.tokens + begun.summary_cap
    cheap = [quiz.survival(sentences_in_order(readings, budget, order)) for order in BASELINES]
    return quiz.survival(f"{begun.ledger_text.text}\n{summary.text}"), cheap


def means(survivals: Iterable[Survival]) -> list[float | None]:
    """Each share over all questions of the conversations, None where there are none."""
    rows = list(survivals)
    return [_share([(row, column) for row in rows]) for column in range(len(COLUMNS))]


def pooled(survivals: Iterable[Survival]) -> float:
    """One share over all questions of all kinds: a kind with two questions must not weigh as much as one with fifty."""
    share = _share([(row, column) for row in survivals for column in range(len(COLUMNS))])
    assert share is not None
    return share


def _share(places: Iterable[tuple[Survival, int]]) -> float | None:
    weighed = [(getattr(row, COLUMNS[column]), row.asked[column]) for row, column in places if row.asked[column]]
    total = sum(count for _, count in weighed)
    return sum(share * count for share, count in weighed) / total if total else None
