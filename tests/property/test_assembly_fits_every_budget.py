"""Whatever is stored and whatever is asked for: within the budget, valid, the newest turn there, always the same."""

import math
import random

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefold.assembly import RecalledItem, RecallInput, ServedContext, assemble
from prefold.conversation import check_anthropic, check_openai
from prefold.storage.types import StoredContext
from prefold.tokens import load_counter
from tests.support.contexts import random_context, recount, some_text

BUDGETS = st.one_of(st.integers(300, 2_000), st.integers(300, 200_000), st.none())


def many(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


def served_as_checked(stored: StoredContext, budget: int | None, recalled: RecallInput | None = None) -> ServedContext:
    counter = load_counter()
    served = assemble(stored, counter, budget_tokens=budget, recalled=recalled)
    bound = min(budget or stored.hard_limit_tokens, stored.hard_limit_tokens)
    assert served.total_tokens <= bound
    tools = stored.tools_tokens if served.sections.get("tools") else 0
    # In thousandths, as the scripts keep it: 210 * 1.1 is more than 231 in floats.
    counted = math.ceil((recount(served.messages, served.system) + tools) * round(stored.calibration * 1000) / 1000)
    assert counted <= served.total_tokens
    assert sum(served.sections.values()) == served.total_tokens
    assert check_anthropic(orjson.loads(served.messages), served.system) == []
    openai = assemble(stored, counter, form="openai", budget_tokens=budget, recalled=recalled)
    assert check_openai(orjson.loads(openai.messages)) == []
    assert openai.total_tokens == served.total_tokens
    assert orjson.loads(served.to_json())["messages"] == orjson.loads(served.messages)
    assert served == assemble(stored, counter, budget_tokens=budget, recalled=recalled)
    return served


def stands_in(served: ServedContext, seq: int) -> bool:
    """By its text, by a call of it or one that it answers, or by a marker that names a round without room.

    In the smallest rooms all that is left of a text may be how many tokens of it are gone.
    """
    marks = (f"T{seq}:", f'"c{seq}_', f'"c{seq - 1}_', f"-{seq} do not fit here")
    if any(mark.encode() in served.messages for mark in marks):
        return True
    clipped = [one for one in served.left_out if one.reason == "clipped" and one.last_seq == seq]
    return bool(clipped) and "tokens left out …]".encode() in served.messages


@many(150)
@given(seed=st.integers(0, 2**32), budgets=st.lists(BUDGETS, min_size=3, max_size=3))
def test_a_served_context_fits_is_valid_and_holds_the_newest_turn(seed: int, budgets: list[int | None]) -> None:
    check_contexts(seed, budgets)


@pytest.mark.long
@pytest.mark.timeout(600)
@many(2000)
@given(seed=st.integers(0, 2**32), budgets=st.lists(BUDGETS, min_size=3, max_size=3))
def test_two_thousand_contexts_fit_are_valid_and_hold_the_newest_turn(seed: int, budgets: list[int | None]) -> None:
    check_contexts(seed, budgets)


def check_contexts(seed: int, budgets: list[int | None]) -> None:
    stored = random_context(seed)
    for budget in budgets:
        served = served_as_checked(stored, budget)
        assert stands_in(served, stored.head_seq)


@many(100)
@given(seed=st.integers(0, 2**32), budget=BUDGETS, found=st.integers(1, 12))
def test_recall_never_breaks_the_budget_or_the_messages(seed: int, budget: int | None, found: int) -> None:
    stored = random_context(seed)
    rng = random.Random(seed + 1)
    items = [
        RecalledItem(rng.randint(1, stored.head_seq), rng.choice(("user", "assistant")), "", some_text(rng, 300), 1 / n)
        for n in range(1, found + 1)
    ]
    served = served_as_checked(stored, budget, RecallInput(items))
    in_context = {item.seq for item in items} & {recalled.seq for recalled in served.recalled}
    assert len(served.recalled) == len(in_context) or len({item.seq for item in items}) < len(items)
    assert served.sections.get("recall", 0) <= 0.15 * stored.hard_limit_tokens + 1
