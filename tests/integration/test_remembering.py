"""What is remembered of a session on a real Redis, and what becomes of it while turns, sessions and users go."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from prefold.conversation.redacted import redacted_turn
from prefold.errors import RefusedError, UnavailableError
from prefold.memory.forgetting import Forgetting
from prefold.recall.derived import DerivedKind
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import SessionOptions, SessionRef, StoredSegment
from prefold.tokens import load_counter
from tests.support.remembering import USER, FakeDerivedStore, Memory, Then, nothing_of, talk
from tests.support.storage import TENANT, append, begin, turn

GERMANY = "I live in Germany and I work as a nurse in a small hospital."
PORTUGAL = "I live in Portugal now, close to the sea."
ALLERGY = "I am allergic to peanuts, so please never suggest anything with them."
DECISION = "We decided to use Kumquatdb for billing."
SECRET = "sk-" + "ant-api03-" + "a1B2" * 20
CHAT = "The trip that we plan for the autumn should take about ten days, with some walking in it and a few museums."


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def memory(sessions: Sessions) -> Memory:
    return Memory(sessions)


async def test_a_session_that_is_closed_leaves_its_facts_its_digest_and_their_vectors(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, ALLERGY, CHAT)
    with capture_logs() as logs:
        assert await memory.close(ref) == "ended"
    known = await memory.known()
    assert (known["lives_in"], known["allergic_to"]) == ("Germany", "peanuts")
    view = await memory.sessions.view(TENANT, "s1")
    assert view.closed_at_ms and view.remembered_to == 6
    digest = await memory.sessions.read_digest(TENANT, "s1")
    assert digest is not None and digest.tokens <= 400 and digest.upto == 6
    assert set(memory.store.kinds()) == {"fact", "summary"}
    assert {point.user for point in memory.store.points.values()} == {USER}
    assert memory.store.kinds().count("fact") == len(known)
    assert await memory.due() == []
    assert not any(word in str(logs) for word in ("Germany", "peanut", "autumn"))


async def test_a_pass_that_is_repeated_changes_nothing_and_one_with_nothing_to_do_costs_one_script(
    memory: Memory,
) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, CHAT)
    await memory.close(ref)
    facts = await memory.book.list(TENANT, USER, history=True, now_ms=0)
    points = dict(memory.store.points)
    assert await memory.remember(ref) == "none"
    await append(memory.sessions, turn("user", "Thanks!"), session="s1")
    assert (await memory.sessions.view(TENANT, "s1")).closed_at_ms == 0
    assert await memory.close(ref) == "ended"
    assert await memory.book.list(TENANT, USER, history=True, now_ms=0) == facts
    assert {name: points[name].digest for name in points if points[name].kind == "fact"} == {
        name: one.digest for name, one in memory.store.points.items() if one.kind == "fact"
    }
    assert memory.store.kinds().count("summary") == 1


async def test_an_idle_session_is_closed_when_its_time_has_come_and_not_before(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, CHAT, close_after_seconds=60)
    assert await memory.remember(ref) == "later"
    memory.sessions.now_ms = (await memory.sessions.view(TENANT, "s1")).updated_at_ms + 60_000
    assert await memory.remember(ref) == "ended"
    assert (await memory.known())["lives_in"] == "Germany"
    assert (await memory.sessions.view(TENANT, "s1")).closed_at_ms


async def test_nearly_nothing_said_gets_no_digest_and_is_closed_all_the_same(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", "Hi there!")
    assert await memory.close(ref) == "ended"
    assert await memory.sessions.read_digest(TENANT, "s1") is None
    assert (await memory.sessions.view(TENANT, "s1")).closed_at_ms
    assert (memory.store.points, memory.opened) == ({}, 0)


async def test_a_session_that_said_little_has_its_own_words_as_its_digest(memory: Memory) -> None:
    await memory.sessions.open(TENANT, "s1", SessionOptions(user=USER))
    said = [
        ("user", "Hi there!"),
        ("assistant", "Hello!"),
        ("user", DECISION),
        ("assistant", "Noted."),
        ("user", "Ok."),
    ]
    ref = (await append(memory.sessions, *(turn(role, text) for role, text in said), session="s1")).ref
    assert await memory.close(ref) == "ended"
    digest = await memory.sessions.read_digest(TENANT, "s1")
    assert digest is not None and digest.text == f"[3 user] {DECISION}"
    assert (digest.upto, json.loads(digest.record)["engine"]) == (5, "verbatim")
    assert [(one.kind, one.user, one.digest) for one in memory.store.points.values()] == [
        ("summary", USER, digest.digest)
    ]


async def test_what_little_was_said_loses_its_digest_with_its_turns(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", DECISION, f"The key is {SECRET}.")
    assert await memory.close(ref) == "ended"
    digest = await memory.sessions.read_digest(TENANT, "s1")
    assert digest is not None and DECISION in digest.text and "a1B2" not in digest.text
    await memory.sessions.rewind(TENANT, "s1", 0)
    assert await memory.close(ref) == "ended"
    assert await memory.sessions.read_digest(TENANT, "s1") is None
    assert (memory.store.points, await memory.traces("Kumquatdb")) == ({}, [])


async def test_one_turn_that_is_long_is_summed_up(memory: Memory) -> None:
    await memory.sessions.open(TENANT, "s1", SessionOptions(user=USER))
    told = " ".join(f"On day {day} we walked from hut {day} to hut {day + 1} and it rained." for day in range(60))
    ref = (await append(memory.sessions, turn("user", f"{DECISION} {told}"), session="s1")).ref
    assert await memory.close(ref) == "ended"
    digest = await memory.sessions.read_digest(TENANT, "s1")
    assert digest is not None and digest.tokens <= 400
    assert json.loads(digest.record)["engine"] == "extractive"


async def test_a_session_of_nobody_has_a_digest_and_no_facts_until_its_user_is_told(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, CHAT, user=None)
    assert await memory.close(ref) == "ended"
    assert memory.store.kinds() == ["summary"]
    await memory.sessions.open(TENANT, "s1", SessionOptions(user=USER))
    assert await memory.close(ref) == "ended"
    assert (await memory.known())["lives_in"] == "Germany"
    assert {(one.kind, one.user) for one in memory.store.points.values()} == {("summary", USER), ("fact", USER)}


async def test_the_newest_word_holds_whatever_order_sessions_are_closed_in(memory: Memory) -> None:
    older = await talk(memory.sessions, "s1", GERMANY)
    memory.sessions.now_ms = (await memory.sessions.view(TENANT, "s1")).updated_at_ms + 5_000
    newer = await talk(memory.sessions, "s2", PORTUGAL)
    assert [await memory.close(ref) for ref in (newer, older)] == ["ended", "ended"]
    assert (await memory.known())["lives_in"].startswith("Portugal")


async def test_a_word_is_no_newer_because_its_session_got_a_pinned_state(memory: Memory) -> None:
    sessions = memory.sessions
    older = await talk(sessions, "s1", GERMANY)
    began = (await sessions.view(TENANT, "s1")).updated_at_ms
    sessions.now_ms = began + 5_000
    newer = await talk(sessions, "s2", PORTUGAL)
    sessions.now_ms = began + 10_000
    await sessions.put_state(TENANT, "s1", expected_version=0, body=b'{"state":{"goal":"a trip"}}', tokens=9)
    await sessions.open(TENANT, "s1", SessionOptions(user=USER))
    assert [await memory.close(ref) for ref in (newer, older)] == ["ended", "ended"]
    assert (await memory.known())["lives_in"].startswith("Portugal")


async def test_a_part_that_was_begun_in_turns_that_are_done_goes_on(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", "Let's role-play: you are the waiter.", CHAT)
    assert await memory.close(ref) == "ended"
    await append(memory.sessions, turn("user", "I live in Graz and I'm allergic to lobster."), session="s1")
    assert await memory.close(ref) == "ended"
    assert await memory.known() == {}


async def test_facts_stay_when_their_session_ends_by_its_age_during_a_pass(memory: Memory) -> None:
    sessions = memory.sessions
    ref = await talk(sessions, "s1", GERMANY, CHAT)
    assert await memory.close(ref) == "ended"
    await append(sessions, turn("user", ALLERGY, id="more"), session="s1")

    async def grows_old() -> None:
        sessions.now_ms = time.time_ns() // 1_000_000 + 40 * 86_400_000
        assert await sessions.expire(ref)

    memory.extractor.then = grows_old
    assert await memory.close(ref) == "gone"
    assert (await memory.known())["lives_in"] == "Germany"
    assert set(memory.store.kinds()) == {"fact"}


async def test_the_end_of_a_session_takes_segments_that_came_behind_the_mark(memory: Memory) -> None:
    sessions, words = memory.sessions, "word " * 93
    await sessions.open(TENANT, "s1", SessionOptions(user=USER, hard_limit_tokens=10_000, soft_ratio=0.4))
    turns = [turn("user" if number % 2 else "assistant", words) for number in range(70)]
    ref = (await append(sessions, *turns, session="s1")).ref
    ticket = await begin(sessions, ref)
    assert await memory.close(ref) == "ended"
    segment = StoredSegment(0, 1, 20, "5eed", "1 haiku", "They said words.", 4, 2_000)
    assert await sessions.keep_segment(ticket, segment)
    await append(sessions, turn("user", "ok then"), session="s1")
    assert await memory.close(ref) == "ended"
    assert memory.store.kinds() == ["segment", "summary"]


async def test_a_pass_that_is_repeated_leaves_what_the_present_revision_said(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, CHAT)
    await memory.close(ref)
    await memory.sessions.edit_turn(TENANT, "s1", "s1-0", turn("user", PORTUGAL, id="s1-0"))
    memory.store.is_away = True
    assert await memory.close(ref) == "unavailable"
    rows = await memory.book.list(TENANT, USER, history=True, now_ms=0)
    assert [one.object.split()[0] for one in rows] == ["Portugal"]
    memory.store.is_away = False
    assert await memory.remember(ref) == "ended"
    assert await memory.book.list(TENANT, USER, history=True, now_ms=0) == rows, "under the same ids"


async def test_many_turns_are_taken_page_by_page(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY)
    for _ in range(6):
        await append(memory.sessions, *(turn("user", "ok then") for _ in range(100)), session="s1")
    await append(memory.sessions, turn("user", ALLERGY), session="s1")
    assert await memory.close(ref) == "ended"
    assert {"lives_in", "allergic_to"} <= set(await memory.known())
    assert memory.extractor.calls == 2
    view = await memory.sessions.view(TENANT, "s1")
    assert view.remembered_to == view.head_seq and view.closed_at_ms
    digest = await memory.sessions.read_digest(TENANT, "s1")
    assert digest is not None and view.log_tokens > 3_000 and digest.tokens <= 400


async def test_facts_are_learnt_while_the_vectors_are_away_and_their_vectors_follow(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, CHAT)
    memory.store.is_away = True
    assert await memory.close(ref) == "unavailable"
    facts = await memory.book.list(TENANT, USER, now_ms=0)
    assert {one.relation for one in facts} >= {"lives_in"}
    assert (await memory.sessions.view(TENANT, "s1")).closed_at_ms == 0
    (due,) = [one for one in await memory.sessions.due_sets.due(2**52, 9) if one.kind == "remember"]
    assert due.due_at_ms > (await memory.sessions.view(TENANT, "s1")).updated_at_ms + 1_000
    memory.store.is_away = False
    assert await memory.remember(ref) == "ended"
    assert await memory.book.list(TENANT, USER, now_ms=0) == facts
    assert memory.extractor.calls == 1, "what was extracted is not extracted again for want of vectors"
    assert set(memory.store.kinds()) == {"fact", "summary"}


async def test_a_vector_store_that_lost_all_is_made_anew_and_a_text_that_no_embedder_takes_is_passed_over(
    memory: Memory,
) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, ALLERGY, CHAT)

    def refuses(texts: Sequence[str]) -> None:
        if any("peanuts" in text and "allergic" in text for text in texts):
            raise RefusedError("not this one")

    async def is_lost(_kind: DerivedKind) -> None:
        memory.store.before_upsert = nothing_of
        raise UnavailableError("what collection?", code="collection_missing")

    memory.embedder.fails, memory.store.before_upsert = refuses, is_lost
    assert await memory.close(ref) == "collection_missing"
    assert await memory.remember(ref) == "ended"
    assert memory.opened == 2
    rows = await memory.book.list(TENANT, USER, now_ms=0)
    stored = {one.key for one in memory.store.points.values() if one.kind == "fact"}
    assert {one.relation for one in rows if one.id not in stored} == {"allergic_to"}


async def test_one_turn_that_cannot_be_read_holds_up_no_other(memory: Memory) -> None:
    ref = await talk(memory.sessions, "s1", GERMANY, "POISON " + CHAT, ALLERGY)
    memory.extractor.fails_on = "POISON"
    with capture_logs() as logs:
        assert await memory.close(ref) == "ended"
    assert {"lives_in", "allergic_to"} <= set(await memory.known())
    assert [one["seq"] for one in logs if one["event"] == "turn_not_extracted"] == [3]
    assert "POISON" not in str(logs)


async def test_two_workers_over_one_session_do_its_work_once(memory: Memory) -> None:
    other = Memory(memory.sessions, store=memory.store)
    ref = await talk(memory.sessions, "s1", GERMANY, ALLERGY, CHAT)
    await memory.sessions.ask_close(TENANT, "s1")
    assert sorted(await asyncio.gather(memory.remember(ref), other.remember(ref))) == ["busy", "ended"]
    assert memory.extractor.calls + other.extractor.calls == 1


async def edit(sessions: Sessions, _ref: SessionRef) -> None:
    content = turn("user", PORTUGAL, id="s1-0")
    await sessions.edit_turn(TENANT, "s1", "s1-0", content)


async def remove(sessions: Sessions, _ref: SessionRef) -> None:
    (first, *_) = await sessions.read_turns(TENANT, "s1", 0, 1)
    await sessions.remove_turn(TENANT, "s1", "s1-0", redacted_turn(first, load_counter()))


async def rewind(sessions: Sessions, _ref: SessionRef) -> None:
    await sessions.rewind(TENANT, "s1", 0)


async def erase_session(sessions: Sessions, _ref: SessionRef) -> None:
    await sessions.erase(TENANT, "s1")


async def erase_user(sessions: Sessions, _ref: SessionRef) -> None:
    await sessions.users.erase(TENANT, USER)
    await sessions.erase(TENANT, "s1")


async def open_anew(sessions: Sessions, _ref: SessionRef) -> None:
    await sessions.erase(TENANT, "s1")
    await talk(sessions, "s1", CHAT)


CHANGES = {
    "edit": edit,
    "remove": remove,
    "rewind": rewind,
    "erase": erase_session,
    "erase user": erase_user,
    "open anew": open_anew,
}


OVER = ("erase", "erase user", "open anew")
"""Changes that end that life of the session."""
MOMENTS = (
    "while extracting",
    "once learnt",
    "before a summary is stored",
    "before a fact is stored",
    "when all is done",
)


def at(moment: str, memory: Memory, happens: Then) -> None:
    """Has ``happens`` run at that moment of the next pass."""
    learn = memory.book.learn

    async def learn_first(*given: Any, **named: Any) -> Any:
        learnt = await learn(*given, **named)
        await happens()
        return learnt

    async def upsert(kind: DerivedKind) -> None:
        if moment == f"before a {kind} is stored":
            await happens()

    memory.store.before_upsert = upsert
    if moment == "while extracting":
        memory.extractor.then = happens
    if moment == "once learnt":
        setattr(memory.book, "learn", learn_first)  # noqa: B010


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("change", CHANGES)
async def test_nothing_that_was_derived_of_a_turn_outlives_it(memory: Memory, change: str, moment: str) -> None:
    sessions = memory.sessions
    ref = await talk(sessions, "s1", GERMANY, CHAT)
    pending = [CHANGES[change]]

    async def happens() -> None:
        if pending:
            await pending.pop()(sessions, ref)

    at(moment, memory, happens)
    outcome = await memory.close(ref)
    if moment == MOMENTS[-1]:
        assert await memory.traces("Germany") != []
        await happens()
        outcome = await memory.close(ref) if change == "edit" else await memory.remember(ref)
        if change in OVER:
            await forgetting(memory, ref)
    assert not pending
    assert outcome == ("gone" if change in OVER else "ended")
    assert await memory.traces("Germany") == []
    facts = {one.id for one in await memory.book.list(TENANT, USER, history=True, now_ms=0)}
    left = list(memory.store.points.values())
    assert {one.key for one in left if one.kind == "fact"} <= facts
    assert not [one for one in left if one.incarnation == ref.incarnation and change in OVER]
    if change == "edit":
        assert (await memory.known())["lives_in"].startswith("Portugal")
        digest = await sessions.read_digest(TENANT, "s1")
        assert digest is not None
        assert [one.digest for one in left if one.kind == "summary"] == [digest.digest]


async def forgetting(memory: Memory, ref: SessionRef) -> None:
    """What follows up an erasure."""
    await memory.vectors.forget_life(ref)
    await Forgetting(memory.book, memory.vectors).forget(ref, USER)


class KilledError(BaseException):
    """Ends a pass as a kill does: nobody hears of it, and its lease stays."""


@pytest.mark.parametrize("moment", MOMENTS[:-1])
async def test_a_pass_that_is_killed_is_done_again_by_another_to_the_same_end(sessions: Sessions, moment: str) -> None:
    killed = Memory(sessions)
    ref = await talk(sessions, "s1", GERMANY, ALLERGY, CHAT)

    async def dies() -> None:
        raise KilledError

    at(moment, killed, dies)
    with pytest.raises(KilledError):
        await killed.close(ref)
    other = Memory(sessions, store=killed.store)
    other.store.before_upsert = nothing_of
    assert await other.remember(ref) == "busy"
    sessions.now_ms = (await sessions.view(TENANT, "s1")).updated_at_ms + 11_000
    assert await other.remember(ref) == "ended"
    rows = await other.book.list(TENANT, USER, history=True, now_ms=0)
    assert sorted(one.relation for one in rows) == sorted({one.relation for one in rows})
    assert {"lives_in", "allergic_to"} <= {one.relation for one in rows}
    assert sorted(one.key for one in other.store.points.values()) == sorted(["digest", *(one.id for one in rows)])


async def test_a_worker_that_lost_its_lease_to_another_writes_nothing_over_it(sessions: Sessions) -> None:
    memory = Memory(sessions, lease=timedelta(milliseconds=100))
    other = Memory(sessions, store=memory.store)
    ref = await talk(sessions, "s1", GERMANY, CHAT)

    async def the_other_takes_over() -> None:
        await sessions.client.hdel(SessionKeys.of(TENANT, "s1").meta, "memory_lease")
        assert await other.close(ref) == "ended"

    memory.extractor.then = the_other_takes_over
    await memory.close(ref)
    assert (await memory.known())["lives_in"] == "Germany"
    assert memory.store.kinds().count("summary") == 1
    assert (await sessions.view(TENANT, "s1")).closed_at_ms


async def test_a_fork_does_not_say_again_today_what_was_said_long_ago(memory: Memory) -> None:
    sessions, began = memory.sessions, time.time_ns() // 1_000_000 - 10_000_000
    sessions.now_ms = began
    await talk(sessions, "s1", GERMANY, CHAT)
    sessions.now_ms = began + 1_000_000
    assert await memory.close(await talk(sessions, "s2", PORTUGAL)) == "ended"
    sessions.now_ms = began + 2_000_000
    fork = await sessions.fork(TENANT, "s1", "fork")
    again = await sessions.fork(TENANT, "fork", "again", 2)
    await append(sessions, turn("user", "I am allergic to sesame.", id="later"), session="fork")
    assert await memory.close(fork.ref) == "ended"
    assert await memory.close(again.ref) == "ended"
    known = await memory.known()
    assert (known["lives_in"].split()[0], known["allergic_to"]) == ("Portugal", "sesame")
    rows = await memory.book.list(TENANT, USER, history=True, now_ms=0)
    said = {one.object.split()[0]: one.last_confirmed_ms - began for one in rows}
    assert (said["Germany"], said["Portugal"], said["sesame"]) == (0, 1_000_000, 2_000_000)


async def test_a_vector_that_arrives_after_its_fact_was_deleted_and_followed_elsewhere_goes_again(
    sessions: Sessions,
) -> None:
    memory = Memory(sessions)
    other = Memory(sessions, store=FakeDerivedStore(memory.store.points))
    ref = await talk(sessions, "s1", GERMANY, ALLERGY, CHAT)
    deleted: list[str] = []

    async def the_other_deletes() -> None:
        if not deleted:
            (fact,) = [one for one in await memory.book.list(TENANT, USER, now_ms=0) if one.relation == "lives_in"]
            deleted.append((await other.book.delete(TENANT, USER, fact.id)).id)
            await other.vectors.of_user(TENANT, USER)
            assert (await sessions.users.take_unindexed(TENANT, USER)).ids == ()

    at("before a fact is stored", memory, the_other_deletes)
    assert await memory.close(ref) == "ended"
    facts = [one.key for one in memory.store.points.values() if one.kind == "fact"]
    assert deleted
    assert facts == [one.id for one in await memory.book.list(TENANT, USER, now_ms=0)]
