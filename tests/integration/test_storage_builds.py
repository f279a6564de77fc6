"""Tickets, commits and swaps on a real server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from prefold.errors import NotFoundError
from prefold.storage import Sessions, connect_sessions
from prefold.storage.events import GROUP
from prefold.storage.keys import SessionKeys
from prefold.storage.types import AppendResult, BuildTicket, SessionOptions
from tests.support.storage import (
    LEASE_MS,
    SESSION,
    TENANT,
    append,
    begin,
    call,
    fragments,
    results,
    summary,
    texts_of,
    turn,
)

WORDS = "word " * 100


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


async def fill(sessions: Sessions, limit: int = 4000, upto: str = "soft") -> AppendResult:
    """A session whose status is ``upto``."""
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=limit, soft_ratio=0.7))
    number, answer = 1, await append(sessions, turn("user", f"1 {WORDS}"))
    while answer.status != upto:
        number += 1
        answer = await append(sessions, turn("assistant" if number % 2 == 0 else "user", f"{number} {WORDS}"))
    return answer


async def test_no_build_starts_below_the_soft_threshold(sessions: Sessions) -> None:
    answer = await append(sessions, turn("user", "Hello"))
    assert await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) == "not_due"


async def test_a_build_leaves_the_recent_turns_and_the_newest_user_turn_alone(sessions: Sessions) -> None:
    answer = await fill(sessions, limit=20_000)
    ticket = await begin(sessions, answer.ref)
    assert answer.turns[-1].seq - ticket.covers_to == 6


async def test_one_build_at_a_time_until_its_lease_ends(sessions: Sessions) -> None:
    answer = await fill(sessions)
    sessions.now_ms = 2_000_000_000_000
    first = await begin(sessions, answer.ref)
    assert await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) == "busy"
    sessions.now_ms += LEASE_MS + 1
    second = await begin(sessions, answer.ref)
    assert second.epoch > first.epoch
    assert (await sessions.commit_build(first, summary("late"))).outcome == "stale"
    assert not await sessions.renew_build(first)
    assert (await sessions.commit_build(second, summary())).outcome == "standby"


async def test_only_one_of_many_workers_gets_the_lease(sessions: Sessions) -> None:
    answer = await fill(sessions)
    asked = [sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) for _ in range(16)]
    given = [one for one in await asyncio.gather(*asked) if isinstance(one, BuildTicket)]
    assert len(given) == 1


async def test_a_renewed_lease_lasts(sessions: Sessions) -> None:
    answer = await fill(sessions)
    sessions.now_ms = 2_000_000_000_000
    ticket = await begin(sessions, answer.ref)
    sessions.now_ms += LEASE_MS - 1
    assert await sessions.renew_build(ticket)
    sessions.now_ms += LEASE_MS - 1
    assert await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) == "busy"


async def test_an_abandoned_build_waits_and_says_why(sessions: Sessions) -> None:
    answer = await fill(sessions)
    sessions.now_ms = 2_000_000_000_000
    await sessions.abandon_build(await begin(sessions, answer.ref), "model_down", 5000)
    assert await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) == "backoff"
    view = await sessions.view(TENANT, SESSION)
    assert (view.last_build_error, view.build) == ("model_down", None)
    sessions.now_ms += 5001
    await begin(sessions, answer.ref)


async def test_committing_twice_changes_nothing(sessions: Sessions) -> None:
    answer = await fill(sessions)
    ticket = await begin(sessions, answer.ref)
    assert (await sessions.commit_build(ticket, summary("one"))).outcome == "standby"
    before = await sessions.view(TENANT, SESSION)
    assert (await sessions.commit_build(ticket, summary("two"))).outcome == "stale"
    assert await sessions.view(TENANT, SESSION) == before


async def test_growth_after_the_cut_never_invalidates_a_build(sessions: Sessions) -> None:
    answer = await fill(sessions)
    ticket = await begin(sessions, answer.ref)
    said = [turn("assistant", "later answer"), turn("user", "later question")]
    await append(sessions, *said)
    assert (await sessions.commit_build(ticket, summary())).outcome == "standby"
    while not answer.swapped_now:
        answer = await append(sessions, turn("user", WORDS))
    texts = await texts_of(sessions)
    assert texts[:2] == ["FIRST", "SUMMARY"] and "later answer" in texts and "later question" in texts
    lines = await fragments(sessions)
    assert [line.seq for line in lines if line.seq] == list(range(ticket.covers_to + 1, answer.turns[-1].seq + 1))


async def test_a_commit_on_a_degraded_session_swaps_at_once_and_the_next_answer_says_so(sessions: Sessions) -> None:
    answer = await fill(sessions, upto="degraded")
    result = await sessions.commit_build(await begin(sessions, answer.ref), summary())
    assert result.outcome == "swapped"
    view = await sessions.view(TENANT, SESSION)
    assert (view.degraded, view.swaps, view.status) == (False, 1, "swapped")
    assert (await append(sessions, turn("user", "and now?"))).status == "swapped"
    assert (await append(sessions, turn("user", "and now?"))).status == "ok"


async def test_a_standby_is_built_again_when_its_tail_has_grown_by_the_step(sessions: Sessions) -> None:
    answer = await fill(sessions, limit=20_000)
    await sessions.commit_build(await begin(sessions, answer.ref), summary())
    assert await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, LEASE_MS) == "not_due"
    first = (await sessions.view(TENANT, SESSION)).standby
    for _ in range(20):
        await append(sessions, turn("user", WORDS))
    result = await sessions.commit_build(await begin(sessions, answer.ref), summary("fresher"))
    second = (await sessions.view(TENANT, SESSION)).standby
    assert result.outcome == "standby"
    assert first is not None and second is not None and second.covers_to > first.covers_to


async def test_a_build_that_gains_nothing_is_refused_and_keeps_its_lease(sessions: Sessions) -> None:
    answer = await fill(sessions)
    ticket = await begin(sessions, answer.ref)
    assert (await sessions.commit_build(ticket, summary(tokens=100_000))).outcome == "no_gain"
    assert await sessions.renew_build(ticket)


async def test_a_cut_never_falls_into_a_tool_round(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=4000, keep_recent_turns=2))
    answer = await append(sessions, turn("user", "Start"))
    while answer.status == "ok":
        answer = await append(sessions, call("A", q=WORDS), results("A", body=WORDS), turn("assistant", "so"))
        answer = await append(sessions, turn("user", "go on"))
    answer = await append(sessions, call("X", "Y"), results("X"))
    ticket = await begin(sessions, answer.ref)
    rounds = await sessions.read_turns(TENANT, SESSION, ticket.covers_to, 1)
    assert rounds[0].is_cut and rounds[0].kind != "r"


async def test_a_long_agent_run_may_be_covered_past_its_user_turn_when_the_head_carries_it(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=4000))
    await append(sessions, turn("user", "Hello"), turn("assistant", "Hi"))
    answer = await append(sessions, turn("user", "Fix the build"))
    task_seq = answer.turns[0].seq
    while answer.status != "degraded":
        answer = await append(sessions, call("A", q=WORDS), results("A", body=WORDS))
    ticket = await begin(sessions, answer.ref)
    assert ticket.carried_turn == task_seq and ticket.covers_to > task_seq
    assert (await sessions.commit_build(ticket, summary())).outcome == "stale"
    assert (await sessions.commit_build(ticket, summary(task=True))).outcome == "swapped"


async def test_a_swap_waits_while_a_round_with_thinking_is_open(sessions: Sessions) -> None:
    answer = await fill(sessions)
    await sessions.commit_build(await begin(sessions, answer.ref), summary())
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    tool = {"type": "tool_use", "id": "A", "name": "lookup", "input": {"q": "word " * 1200}}
    answer = await append(sessions, turn("assistant", [thinking, tool]))
    assert (answer.status, answer.swapped_now) == ("degraded", False)
    answer = await append(sessions, results("A"))
    assert answer.swapped_now


async def test_an_event_and_due_entries_tell_what_is_to_be_done(sessions: Sessions) -> None:
    await sessions.events.ensure_groups()
    answer = await fill(sessions)
    events = await sessions.events.read("one", 500, 1)
    assert [event.ref for event in events] == [answer.ref] * answer.turns[-1].seq
    assert [event.first_seq for event in events] == list(range(1, answer.turns[-1].seq + 1))
    assert [event.build_due for event in events][-1] is True and events[0].build_due is False
    assert await sessions.events.pending("one") == events
    await sessions.events.ack(events)
    assert await sessions.events.pending("one") == []
    later = 4_000_000_000_000
    due = await sessions.due_sets.due(later, 10)
    assert {(item.kind, item.ref) for item in due} == {
        ("embed", answer.ref),
        ("compact", answer.ref),
        ("remember", answer.ref),
        ("expire", answer.ref),
    }
    assert await sessions.mark_embedded(answer.ref, answer.turns[-1].seq, "turns_x_3") == "marked"
    await sessions.commit_build(await begin(sessions, answer.ref), summary())
    assert [item.kind for item in await sessions.due_sets.due(later, 10)] == ["remember", "expire"]
    assert await sessions.embedded_to(answer.ref, "turns_x_3") == answer.turns[-1].seq
    assert await sessions.embedded_to(answer.ref, "turns_other_3") == 0


async def test_hints_that_cannot_be_read_are_dropped_and_hide_no_others(sessions: Sessions) -> None:
    await sessions.events.ensure_groups()
    answer = await append(sessions, turn("user", "Hello"))
    keys = SessionKeys.of(TENANT, SESSION)
    await sessions.client.xadd(keys.events, {"other": "1"})
    await sessions.client.xadd(keys.events, {"turns": "a b"})
    await sessions.client.zadd(keys.due, {"nonsense": 1, "embed:a:b": 2})
    (event,) = await sessions.events.read("one", 10, 1)
    assert event.ref == answer.ref
    await sessions.client.xtrim(keys.events, maxlen=0, approximate=False)
    assert await sessions.events.pending("one") == []  # trimmed, so nobody can read it again
    await sessions.events.ack([event])
    assert (await sessions.client.xpending(keys.events, GROUP))["pending"] == 0
    items = await sessions.due_sets.due(4_000_000_000_000, 10)
    kinds = ("embed", "remember", "expire")
    assert [(item.kind, item.ref) for item in items] == [(kind, answer.ref) for kind in kinds]
    assert await sessions.client.zcard(keys.due) == len(kinds)


async def test_another_dispatcher_takes_over_events_that_were_left_lying(sessions: Sessions) -> None:
    await sessions.events.ensure_groups()
    await append(sessions, turn("user", "Hello"))
    (event,) = await sessions.events.read("dead", 10, 1)
    assert await sessions.events.claim("alive", min_idle_ms=0) == [event]


async def test_every_key_of_a_session_ends_with_its_retention(sessions: Sessions) -> None:
    answer = await fill(sessions)
    await sessions.commit_build(await begin(sessions, answer.ref), summary())
    keys = [key async for key in sessions.client.scan_iter("*:s:*")]
    assert len(keys) == 7
    assert all([await sessions.client.pttl(key) > 29 * 86_400_000 for key in keys])


async def test_a_build_of_an_erased_life_is_stale_also_after_the_session_began_anew(sessions: Sessions) -> None:
    answer = await fill(sessions)
    ticket = await begin(sessions, answer.ref)
    erased = await sessions.erase(TENANT, SESSION)
    assert (erased.incarnation, erased.turns, erased.keys_left) == (answer.ref.incarnation, answer.turns[-1].seq, 0)
    assert (await sessions.commit_build(ticket, summary())).outcome == "stale"
    assert await sessions.mark_embedded(answer.ref, 1, "turns_x_3") == "gone"
    (left,) = await sessions.due_sets.due(4_000_000_000_000, 10)
    assert (left.kind, left.ref) == ("expire", answer.ref)  # until the vectors are gone too
    await sessions.end_expiry(answer.ref)
    assert await sessions.due_sets.due(4_000_000_000_000, 10) == []
    await sessions.open(TENANT, SESSION, SessionOptions())
    renewed = await append(sessions, turn("user", "Hello again"))
    assert renewed.ref.incarnation != answer.ref.incarnation
    assert (await sessions.commit_build(ticket, summary())).outcome == "stale"
    assert not await sessions.renew_build(ticket)
    assert await texts_of(sessions) == ["Hello again"]


async def test_a_session_ends_by_its_age_only_when_its_time_has_come_and_an_append_begins_anew(
    sessions: Sessions,
) -> None:
    answer = await append(sessions, turn("user", "Hello"))
    assert not await sessions.expire(answer.ref)
    (due,) = [item for item in await sessions.due_sets.due(4_000_000_000_000, 10) if item.kind == "expire"]
    view = await sessions.view(TENANT, SESSION)
    assert due.due_at_ms - view.updated_at_ms == pytest.approx(30 * 86_400_000 - 3_600_000, abs=5_000)
    sessions.now_ms = due.due_at_ms + 1
    assert await sessions.expire(answer.ref)
    assert await sessions.expire(answer.ref)  # again, because the vectors may be left
    with pytest.raises(NotFoundError):
        await sessions.view(TENANT, SESSION)
    renewed = await append(sessions, turn("user", "Hello again"))
    assert renewed.ref.incarnation != answer.ref.incarnation
    assert not await sessions.expire(renewed.ref)


async def test_a_newest_user_turn_that_blocks_every_cut_is_carried_once_the_context_is_degraded(
    sessions: Sessions,
) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=8000, soft_ratio=0.85))
    await append(sessions, turn("user", "Hello"), turn("assistant", "Hi"))
    answer = await append(sessions, turn("user", "word " * 2500))
    while answer.status != "degraded":
        answer = await append(sessions, call("A", q=WORDS), results("A", body="line " * 250))
    ticket = await begin(sessions, answer.ref)
    assert ticket.carried_turn == 3
    assert (await sessions.commit_build(ticket, summary(task=True))).outcome == "swapped"
    assert not (await sessions.view(TENANT, SESSION)).degraded
