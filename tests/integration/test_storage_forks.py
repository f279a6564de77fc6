"""Forks on a real server: what they hold, and what they may not hold when their source changes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from prefold.conversation import anthropic_messages, check_anthropic, parse_lines
from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError, OverloadedError
from prefold.storage import Sessions, connect_sessions, forks
from prefold.storage.forks import Fork
from prefold.storage.keys import SessionKeys
from prefold.storage.types import SessionOptions, StoredTurn
from tests.support.storage import SESSION, TENANT, append, begin, call, results, summary, texts_of, turn

FORK = "fork"
WORDS = "word " * 100


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


async def talk(sessions: Sessions, count: int, limit: int = 100_000) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=limit, keep_recent_turns=2, user="ann"))
    for number in range(1, count + 1):
        role = "assistant" if number % 2 == 0 else "user"
        await append(sessions, turn(role, f"{number} {WORDS}", id=f"m{number}"))


async def log_of(sessions: Sessions, session: str) -> list[StoredTurn]:
    return await sessions.read_turns(TENANT, session, 0, 500)


async def test_a_fork_has_the_turns_up_to_its_point_and_goes_its_own_way(sessions: Sessions) -> None:
    await talk(sessions, 6)
    view = await sessions.fork(TENANT, SESSION, FORK, 4)
    assert (view.user, view.head_seq, view.hard_limit_tokens, view.changes) == ("ann", 4, 100_000, 0)
    assert view.forked_from is not None
    assert (view.forked_from.session, view.forked_from.at_seq) == (SESSION, 4)
    assert await log_of(sessions, FORK) == (await log_of(sessions, SESSION))[:4]
    assert (await append(sessions, turn("user", "another way"), session=FORK)).turns[0].seq == 5
    assert (await append(sessions, turn("user", f"1 {WORDS}", id="m1"), session=FORK)).turns[0].duplicate
    assert len(await log_of(sessions, SESSION)) == 6
    assert view.ref.incarnation != (await sessions.view(TENANT, SESSION)).ref.incarnation


async def test_a_fork_serves_what_its_source_served_at_that_point(sessions: Sessions) -> None:
    await append(sessions, turn("system", "Be kind."), turn("user", "Look."), call("a", "b"))
    before = await sessions.read_context(TENANT, SESSION)
    await append(sessions, results("a", "b"), turn("user", "Thanks."))
    await sessions.fork(TENANT, SESSION, FORK, 3)
    fork = await sessions.read_context(TENANT, FORK)
    assert parse_lines(fork.body)[1] == parse_lines(before.body)[1]
    assert (fork.system, fork.open_calls) == ("Be kind.", ("a", "b"))
    await append(sessions, results("b", "a"), session=FORK)
    lines = parse_lines((await sessions.read_context(TENANT, FORK)).body)[1]
    assert check_anthropic(anthropic_messages(lines), "Be kind.") == []


async def test_the_same_fork_again_is_the_same_session_and_another_one_is_refused(sessions: Sessions) -> None:
    await talk(sessions, 4)
    first = await sessions.fork(TENANT, SESSION, FORK, 4)
    assert (await sessions.fork(TENANT, SESSION, FORK, 4)).ref == first.ref
    assert (await sessions.fork(TENANT, SESSION, FORK)).ref == first.ref
    with pytest.raises(ConflictError) as refused:
        await sessions.fork(TENANT, SESSION, FORK, 3)
    assert refused.value.code == "session_exists"


async def test_a_fork_without_turns_and_one_of_a_call_that_waits_are_sessions_too(sessions: Sessions) -> None:
    await talk(sessions, 2)
    assert (await sessions.fork(TENANT, SESSION, FORK, 0)).head_seq == 0
    await append(sessions, turn("user", "Hi"), session=FORK)
    assert await texts_of(sessions, FORK) == ["Hi"]


async def test_a_fork_of_what_is_not_there_says_so(sessions: Sessions) -> None:
    with pytest.raises(NotFoundError):
        await sessions.fork(TENANT, SESSION, FORK, 0)
    await talk(sessions, 2)
    with pytest.raises(InvalidInputError) as refused:
        await sessions.fork(TENANT, SESSION, FORK, 3)
    assert (refused.value.code, refused.value.field) == ("seq_ahead", "at_seq")
    await sessions.erase(TENANT, SESSION)
    with pytest.raises(GoneError):
        await sessions.fork(TENANT, SESSION, FORK, 1)


async def test_a_fork_uses_the_newest_summary_at_or_before_its_point(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=4000, keep_recent_turns=2))
    covered: list[int] = []
    number = 0
    while len(covered) < 2:
        number += 1
        answer = await append(sessions, turn("assistant" if number % 2 == 0 else "user", f"{number} {WORDS}"))
        ticket = await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, 20_000)
        if not isinstance(ticket, str):
            await sessions.commit_build(ticket, summary(f"SUMMARY {ticket.covers_to}"))
        reached = (await sessions.view(TENANT, SESSION)).covers_to
        if reached and reached not in covered:
            covered.append(reached)
    points = {"none": covered[0] - 1, "first": covered[1] - 1, "second": number}
    expected = {"none": 0, "first": covered[0], "second": covered[1]}
    for name, point in points.items():
        view = await sessions.fork(TENANT, SESSION, name, point)
        assert view.covers_to == expected[name]
        assert view.tokens <= view.hard_limit_tokens
        shown = [text for text in await texts_of(sessions, name) if text.startswith("SUMMARY")]
        assert shown == ([f"SUMMARY {expected[name]}"] if expected[name] else [])
    ticket = await begin(sessions, (await sessions.view(TENANT, "first")).ref)
    assert ticket.base_covers_to == covered[0]


async def test_removed_and_edited_turns_stay_so_in_a_fork(sessions: Sessions) -> None:
    await talk(sessions, 4)
    await sessions.edit_turn(TENANT, SESSION, "m2", turn("assistant", "better", id="m2"))
    await sessions.remove_turn(TENANT, SESSION, "m3", turn("user", "[removed]", id="m3"))
    await sessions.fork(TENANT, SESSION, FORK)
    assert await log_of(sessions, FORK) == await log_of(sessions, SESSION)
    with pytest.raises(ConflictError) as refused:
        await append(sessions, turn("user", f"3 {WORDS}", id="m3"), session=FORK)
    assert refused.value.code == "turn_removed"


async def test_an_erasure_names_the_forks_and_leaves_them(sessions: Sessions) -> None:
    await talk(sessions, 2)
    await sessions.fork(TENANT, SESSION, "one")
    await sessions.fork(TENANT, SESSION, "two", 1)
    assert (await sessions.erase(TENANT, SESSION)).forks == ("one", "two")
    assert len(await log_of(sessions, "one")) == 2


async def test_forks_of_forks_are_named_also_when_the_one_between_is_gone(sessions: Sessions) -> None:
    await talk(sessions, 2)
    await sessions.fork(TENANT, SESSION, "one")
    await sessions.fork(TENANT, "one", "two")
    assert await sessions.living_forks(TENANT, ["one"]) == ("one", "two")
    assert (await sessions.erase(TENANT, "one")).forks == ("two",)
    assert (await sessions.erase(TENANT, SESSION)).forks == ("two",)


async def test_a_fork_that_nobody_confirmed_takes_no_turns_and_a_repeat_confirms_it(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefold.storage.changes._PATIENCE_SECONDS", 0.2)
    await talk(sessions, 2)
    with monkeypatch.context() as dying:
        dying.setattr(Fork, "_confirm", die)
        with pytest.raises(ConnectionError):
            await sessions.fork(TENANT, SESSION, FORK)
    for refused in (
        append(sessions, turn("user", "more"), session=FORK),
        sessions.rewind(TENANT, FORK, 1),
        sessions.open(TENANT, FORK, SessionOptions(hard_limit_tokens=5000)),
    ):
        with pytest.raises(OverloadedError) as busy:
            await refused
        assert busy.value.code == "changing"
    await sessions.fork(TENANT, SESSION, FORK)
    assert (await append(sessions, turn("user", "more"), session=FORK)).turns[0].seq == 3


async def die(*_: object, **__: object) -> None:
    raise ConnectionError("the caller is dead")


async def test_a_fork_that_is_erased_before_its_maker_heard_of_it_stays_erased(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(sessions, 2)
    confirm = Fork._confirm

    async def erased_before(self: Fork, *args: Any, **kwargs: Any) -> None:
        await sessions.erase(TENANT, FORK)
        await confirm(self, *args, **kwargs)

    monkeypatch.setattr(Fork, "_confirm", erased_before)
    with pytest.raises(GoneError):
        await sessions.fork(TENANT, SESSION, FORK)
    with pytest.raises(GoneError):
        await sessions.view(TENANT, FORK)


@pytest.mark.parametrize("upto", [4, None])
async def test_a_result_finds_its_call_again_after_a_rewind_and_in_a_fork(sessions: Sessions, upto: int | None) -> None:
    """The same call id in each round: what it was called in the context differs."""
    await append(
        sessions, turn("user", "Look."), call("x"), results("x"), call("x"), results("x"), call("x"), results("x")
    )
    if upto is None:
        await sessions.rewind(TENANT, SESSION, 4)
        session = SESSION
    else:
        await sessions.fork(TENANT, SESSION, FORK, upto)
        session = FORK
    assert (await sessions.read_context(TENANT, session)).open_calls == ("x_4",)
    await append(sessions, results("x", body="at last"), session=session)
    lines = parse_lines((await sessions.read_context(TENANT, session)).body)[1]
    assert b'"tool_use_id":"x_4"' in lines[-1].content
    assert check_anthropic(anthropic_messages(lines), None) == []


async def test_summaries_end_with_their_session_also_when_all_before_were_taken_back(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=4000, keep_recent_turns=2))
    for rounds in range(2):
        swaps = (await sessions.view(TENANT, SESSION)).swaps
        number = 0
        while (await sessions.view(TENANT, SESSION)).swaps == swaps:
            number += 1
            answer = await append(sessions, turn("assistant" if number % 2 == 0 else "user", f"{number} {WORDS}"))
            ticket = await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, 20_000)
            if not isinstance(ticket, str):
                await sessions.commit_build(ticket, summary())
        assert await sessions.client.pttl(SessionKeys.of(TENANT, SESSION).summaries) > 0
        if not rounds:
            await sessions.rewind(TENANT, SESSION, 1)


async def test_a_fork_may_take_the_name_of_an_erased_session(sessions: Sessions) -> None:
    await talk(sessions, 2)
    await append(sessions, turn("user", "old"), session=FORK)
    await sessions.erase(TENANT, FORK)
    assert (await sessions.fork(TENANT, SESSION, FORK)).head_seq == 2


async def test_a_fork_is_due_for_embedding_and_ends_with_its_retention(sessions: Sessions) -> None:
    await talk(sessions, 2)
    view = await sessions.fork(TENANT, SESSION, FORK)
    due = await sessions.due(SessionKeys.of(TENANT, FORK).partition, 2**53, 10)
    assert {item.kind for item in due if item.ref == view.ref} == {"embed", "remember", "expire"}


Change = Callable[[Sessions], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "edit": lambda sessions: sessions.edit_turn(TENANT, SESSION, "m1", turn("user", "better", id="m1")),
    "removal": lambda sessions: sessions.remove_turn(TENANT, SESSION, "m1", turn("user", "[removed]", id="m1")),
    "rewind": lambda sessions: sessions.rewind(TENANT, SESSION, 150),
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("step", ["_push", "_summaries", "_segments", "_note", "_check"])
async def test_a_change_while_a_fork_is_made_is_in_the_fork(
    sessions: Sessions, kind: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(sessions, *[turn("user", f"line {number}", id=f"m{number}") for number in range(1, 301)])
    original, done = getattr(Fork, step), asyncio.Event()

    async def then_change(self: Fork, *args: object) -> object:
        result = await original(self, *args)
        if not done.is_set():
            done.set()
            await CHANGES[kind](sessions)
        return result

    monkeypatch.setattr(Fork, step, then_change)
    await sessions.fork(TENANT, SESSION, FORK)
    assert done.is_set()
    assert await log_of(sessions, FORK) == await log_of(sessions, SESSION)


@pytest.mark.parametrize("step", ["_push", "_summaries", "_note", "_check"])
async def test_a_fork_of_a_session_that_is_erased_meanwhile_is_none(
    sessions: Sessions, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(sessions, 3)
    original = getattr(Fork, step)

    async def then_erase(self: Fork, *args: object) -> object:
        result = await original(self, *args)
        await sessions.erase(TENANT, SESSION)
        return result

    monkeypatch.setattr(Fork, step, then_erase)
    with pytest.raises(GoneError):
        await sessions.fork(TENANT, SESSION, FORK)
    with pytest.raises(NotFoundError):
        await sessions.view(TENANT, FORK)


async def test_two_forks_of_one_name_at_once_are_one(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_PAGE", 5)
    await append(sessions, *[turn("user", f"line {number}", id=f"m{number}") for number in range(1, 51)])
    views = await asyncio.gather(*(sessions.fork(TENANT, SESSION, FORK, 50) for _ in range(3)))
    assert len({view.ref for view in views}) == 1
    assert await log_of(sessions, FORK) == await log_of(sessions, SESSION)
