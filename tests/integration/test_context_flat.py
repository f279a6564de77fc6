"""A context of one budget does not grow with its conversation: real Redis, summaries without a model."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench.paced.words import turns_of
from prefold.assembly import ProfileInput, RecalledItem, RecallInput, assemble
from prefold.compaction.build import SessionBuilder
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.reading.turns import TurnCache
from prefold.conversation import prepare_turn
from prefold.storage import connect_sessions
from prefold.storage.types import SessionOptions, StoredContext
from prefold.tokens import load_counter
from tests.support.seeds import seed_of_run, tell

DATA = Path(os.environ.get("PREFOLD_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
LOCOMO = range(6)
EARLY, LATE = 50, 500
BUDGETS = (700, 1000)
"""Both are filled by the first fifty turns, their pictures as placeholders, and a turn is less than a tenth of them."""
LIMIT = 8_000
PROFILE = ProfileInput("\n".join(f"likes thing number {number}" for number in range(8)))
FOUND = RecallInput(
    [RecalledItem(0, "", "", f"something said of matter {n} " * 8, 1 / n, kind="fact", id=str(n)) for n in range(1, 13)]
)


def recorded(number: int) -> list[dict[str, Any]]:
    found = sorted(DATA.glob(f"locomo-{number}-*[0-9].jsonl"))
    if not found:
        pytest.skip(f"no recorded conversations in {DATA} (set PREFOLD_DATA)")
    lines = (json.loads(line) for line in found[0].read_text("utf-8").splitlines())
    return [{name: line[name] for name in ("id", "role", "content", "ts", "name") if name in line} for line in lines]


async def looks_at(
    redis_url: str, turns: Iterable[dict[str, Any]], limit: int, numbers: Iterable[int]
) -> list[StoredContext]:
    """The stored context after so many turns each; every summary is there at once."""
    counter, wanted, seen = load_counter(), set(numbers), []
    async with connect_sessions(redis_url) as sessions:
        cache = TurnCache(counter)
        builder = SessionBuilder(sessions, ExtractiveSummarizer(cache, counter), cache, counter)
        await sessions.open("t", "s", SessionOptions(hard_limit_tokens=limit))
        for number, turn in enumerate(turns, 1):
            result = await sessions.append("t", "s", [prepare_turn(turn, 0, counter, lambda: "")])
            if result.status in ("soft", "degraded"):
                await builder.build(result.ref)
            if number in wanted:
                seen.append(await sessions.read_context("t", "s"))
    return seen


def totals(stored: StoredContext, budgets: Sequence[int] = BUDGETS) -> Iterator[tuple[tuple[int, bool], int]]:
    for budget in budgets:
        for recalled in (None, FOUND):
            served = assemble(stored, load_counter(), budget_tokens=budget, profile=PROFILE, recalled=recalled)
            assert served.total_tokens <= budget
            yield (budget, recalled is not None), served.total_tokens


def check_flat(early: Mapping[tuple[int, bool], int], late: Mapping[tuple[int, bool], int]) -> float:
    """The greatest difference, as a share."""
    differences = {case: late[case] / early[case] - 1 for case in early}
    assert all(abs(one) <= 0.1 for one in differences.values()), (early, late)
    return max(differences.values(), key=abs)


async def test_a_context_has_the_same_size_at_turn_fifty_and_much_later(redis_url: str) -> None:
    seed = seed_of_run("this talk")
    turns = list(islice(turns_of(str(seed), (30, 60)), 151))
    early, late = await looks_at(redis_url, turns, LIMIT, (EARLY + 1, len(turns)))
    budgets = (1_400, 2_000)
    tell(f"greatest difference {check_flat(dict(totals(early, budgets)), dict(totals(late, budgets))):+.1%}")


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", LOCOMO)
async def test_the_context_of_a_recorded_conversation_is_flat(redis_url: str, number: int) -> None:
    turns = recorded(number)[:LATE]
    early, late = await looks_at(redis_url, turns, LIMIT, (EARLY, len(turns)))
    greatest = check_flat(dict(totals(early)), dict(totals(late)))
    tell(f"conversation {number}: turn {EARLY} against {len(turns)}: greatest difference {greatest:+.1%}")
