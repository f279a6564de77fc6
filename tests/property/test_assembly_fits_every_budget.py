"""Whatever is stored and whatever is asked for: within the budget, valid, the newest turn there, always the same."""

import math
import random

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefold.assembly import ProfileInput, RecalledItem, RecallInput, ServedContext, assemble
from prefold.conversation import check_anthropic, check_openai, parse_lines
from prefold.conversation.marks import strip_injected
from prefold.pinned import decode
from prefold.storage.types import StoredContext
from prefold.tokens import load_counter
from tests.support.contexts import ContextMaker, random_context, recount, some_text
from tests.support.memory_beside import random_finds, random_profile, with_random_state

BESIDE = tuple(
    f"[Prefold: {title}" for title in ("noted from", "what is known", "facts about", "from earlier", "earlier turns")
)
BUDGETS = st.one_of(st.integers(300, 2_000), st.integers(300, 200_000), st.none())


def many(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


def served_as_checked(
    stored: StoredContext,
    budget: int | None,
    recalled: RecallInput | None = None,
    profile: ProfileInput | None = None,
) -> ServedContext:
    counter = load_counter()
    served = assemble(stored, counter, budget_tokens=budget, recalled=recalled, profile=profile)
    bound = min(budget or stored.hard_limit_tokens, stored.hard_limit_tokens)
    assert served.total_tokens <= bound
    tools = stored.tools_tokens if served.sections.get("tools") else 0
    # In thousandths, as the scripts keep it: 210 * 1.1 is more than 231 in floats.
    counted = math.ceil((recount(served.messages, served.system) + tools) * round(stored.calibration * 1000) / 1000)
    assert counted <= served.total_tokens
    assert sum(served.sections.values()) == served.total_tokens
    assert check_anthropic(orjson.loads(served.messages), served.system) == []
    openai = assemble(stored, counter, form="openai", budget_tokens=budget, recalled=recalled, profile=profile)
    assert check_openai(orjson.loads(openai.messages)) == []
    assert openai.total_tokens == served.total_tokens
    assert orjson.loads(served.to_json())["messages"] == orjson.loads(served.messages)
    assert served == assemble(stored, counter, budget_tokens=budget, recalled=recalled, profile=profile)
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


@many(150)
@given(seed=st.integers(0, 2**32), budget=BUDGETS)
def test_memory_never_breaks_the_budget_or_the_messages(seed: int, budget: int | None) -> None:
    check_memory(seed, budget)


@pytest.mark.long
@pytest.mark.timeout(1800)
@many(10_000)
@given(seed=st.integers(0, 2**32), budget=BUDGETS)
def test_ten_thousand_budgets_and_sessions_with_memory_are_kept(seed: int, budget: int | None) -> None:
    check_memory(seed, budget)


def check_memory(seed: int, budget: int | None) -> None:
    rng = random.Random(seed + 1)
    stored = with_random_state(random_context(seed), rng)
    profile, found = random_profile(rng), random_finds(rng, stored)
    served = served_as_checked(stored, budget, found, profile)
    assert stands_in(served, stored.head_seq)
    room = min(budget or stored.hard_limit_tokens, stored.hard_limit_tokens)
    assert served.sections.get("profile", 0) <= 0.1 * room + 1
    assert served.sections.get("recall", 0) <= max(0.15 * room, min(0.25 * room, 1000 * stored.calibration)) + 1
    check_nothing_is_lost_silently(served, stored, profile, found)
    check_marks(served)


def check_nothing_is_lost_silently(
    served: ServedContext, stored: StoredContext, profile: ProfileInput | None, found: RecallInput | None
) -> None:
    reasons = {one.part for one in served.left_out}
    pinned = decode(stored.state)
    assert not pinned.text or pinned.text in served.system or "state" in reasons
    assert not pinned.noted_text or "noted from this conversation" in served.messages.decode() or "proposals" in reasons
    if profile is not None and (profile.text or profile.failure):
        assert "profile" in served.sections or "profile" in reasons
    assert (profile.yielded if profile else 0) == sum(one.count or 0 for one in served.left_out)
    items = found.items if found is not None else ()
    shown = [(one.kind, one.id) for one in served.recalled]
    if "no_user_turn_at_the_end" in {one.reason for one in served.left_out if one.part == "recall"}:
        assert shown == []
        return
    named = [
        (one.kind or "turn", one.id or f"t{one.first_seq}")
        for one in served.left_out
        if one.part == "recall" and one.tokens is None and (one.id or one.first_seq)
    ]
    assert sorted(shown + named) == sorted((one.kind, one.id) for one in items)


def check_marks(served: ServedContext) -> None:
    """In what stands beside the newest turn, marks stand at the beginning of lines and in pairs, and are ours."""
    beside = orjson.loads(served.messages)[-1]["content"][-1].get("text", "") if served.messages != b"[]" else ""
    if not beside.startswith(BESIDE):
        return
    marks = [line for line in beside.splitlines() if line.startswith("[Prefold: ")]
    assert len(marks) == beside.count("[Prefold:") == 2 * sum(mark.startswith(BESIDE) for mark in marks)
    assert strip_injected(beside) == ""


@many(30)
@given(seed=st.integers(0, 2**32), budget=st.one_of(st.none(), st.integers(2_500, 6_000)), asks=st.booleans())
def test_reads_grow_only_at_the_end_and_a_window_that_yields_does_so_by_steps(
    seed: int, budget: int | None, asks: bool
) -> None:
    """Within a version: all that stands before the newest turn's own additions is the next read's beginning."""
    rng = random.Random(seed)
    maker = ContextMaker(rng, most_words=60)
    if rng.random() < 0.5:
        maker.head()
    profile = ProfileInput("likes tea\nlives in Porto")
    limit = rng.choice((2_500, 4_000, 9_000))
    before: list[str] = []
    breaks = added = 0
    room = min(budget or limit, limit)
    for _ in range(60):
        maker.plain("user")
        stored = maker.stored(limit, 1.0)
        added = sum(fragment.tokens for fragment in parse_lines(stored.body)[1])
        if added > limit:
            break  # here the scripts swap: another version
        found = RecallInput([RecalledItem(0, "", "", some_text(rng, 20), 0.5, kind="fact", id="f")]) if asks else None
        served = assemble(stored, load_counter(), budget_tokens=budget, recalled=found, profile=profile)
        now = blocks_before_memory(served)
        is_prefix = now[: len(before)] == before
        assert is_prefix or asks or budget is not None
        breaks += not is_prefix
        before = now
        maker.plain("assistant")
    assert breaks <= added / (room // 20) + 3


def blocks_before_memory(served: ServedContext) -> list[str]:
    """Role and bytes of every block but the one beside the newest turn."""
    blocks = [(message["role"], block) for message in orjson.loads(served.messages) for block in message["content"]]
    if blocks and str(blocks[-1][1].get("text", "")).startswith(BESIDE):
        blocks.pop()
    return [f"{role} {orjson.dumps(block).decode()}" for role, block in blocks]
