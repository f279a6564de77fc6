"""What a session keeps beside its log: pinned state, marks of the memory workers, its end, records of contexts."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError, UnavailableError
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import CLOSE_AFTER, CONTEXTS_KEPT, ERASE_GRACE
from prefold.storage.memory_types import MemoryTicket, SessionDigest, TurnSpan
from prefold.storage.restoring import restore_due
from prefold.storage.types import SessionOptions, SessionRef
from tests.support.redis import running_redis
from tests.support.storage import SESSION, TENANT, append, begin, summary, turn

LEASE_MS = 20_000
IDLE_MS = int(CLOSE_AFTER.total_seconds() * 1000)
WORDS = "word " * 100
NOW = 2_000_000_000_000


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        opened.now_ms = NOW
        yield opened


async def talk(sessions: Sessions, count: int = 4, first: int = 1) -> SessionRef:
    turns = [turn("user" if n % 2 else "assistant", f"{n} {WORDS}", id=f"t{n}") for n in range(first, first + count)]
    return (await append(sessions, *turns)).ref


async def ticket_of(sessions: Sessions, ref: SessionRef) -> MemoryTicket:
    ticket = await sessions.begin_memory(ref, lease_ms=LEASE_MS)
    assert isinstance(ticket, MemoryTicket), ticket
    return ticket


async def due_at(sessions: Sessions, ref: SessionRef) -> int | None:
    keys = SessionKeys.of(ref.tenant, ref.session)
    score = await sessions.client.zscore(keys.due, f"remember:{keys.label}:{ref.incarnation}")
    return None if score is None else int(score)


def digest_of(upto: int) -> SessionDigest:
    return SessionDigest(upto, "They talked.", 4, "abc", NOW)


async def test_an_idle_session_is_due_for_its_end_and_a_turn_puts_that_off(sessions: Sessions) -> None:
    ref = await talk(sessions)
    assert await due_at(sessions, ref) == NOW + IDLE_MS
    sessions.now_ms = NOW + IDLE_MS - 1
    await talk(sessions, 1, 5)
    sessions.now_ms = NOW + IDLE_MS
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "later"
    assert await due_at(sessions, ref) == NOW + 2 * IDLE_MS - 1


async def test_an_idle_session_closes_and_a_turn_opens_it_again(sessions: Sessions) -> None:
    ref = await talk(sessions)
    sessions.now_ms = NOW + IDLE_MS
    ticket = await ticket_of(sessions, ref)
    assert (ticket.closing, ticket.remembered_to, ticket.upto, ticket.head_seq) == (True, 0, 4, 4)
    assert await sessions.keep_digest(ticket, digest_of(4))
    assert await sessions.end_memory(ticket, upto=4, closed=True) == "ended"
    view = await sessions.view(TENANT, SESSION)
    assert (view.closed_at_ms, view.remembered_to) == (sessions.now_ms, 4)
    assert await due_at(sessions, ref) is None
    await talk(sessions, 1, 5)
    assert (await sessions.view(TENANT, SESSION)).closed_at_ms == 0
    assert await due_at(sessions, ref) == sessions.now_ms + IDLE_MS
    assert await sessions.read_digest(TENANT, SESSION) == digest_of(4)  # still true of the turns up to its own


async def test_a_session_that_is_asked_to_close_is_due_at_once_and_twice_is_one(sessions: Sessions) -> None:
    ref = await talk(sessions)
    for _ in range(2):
        assert (await sessions.ask_close(TENANT, SESSION)).closed_at_ms == 0
        assert await due_at(sessions, ref) == NOW
    ticket = await ticket_of(sessions, ref)
    assert await sessions.end_memory(ticket, upto=4, closed=True) == "ended"
    assert (await sessions.ask_close(TENANT, SESSION)).closed_at_ms == NOW
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "none"


async def test_a_turn_that_comes_while_the_session_is_closed_keeps_it_open(sessions: Sessions) -> None:
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    ticket = await ticket_of(sessions, ref)
    await talk(sessions, 1, 5)
    assert await sessions.end_memory(ticket, upto=4, closed=True) == "ended"
    view = await sessions.view(TENANT, SESSION)
    assert (view.closed_at_ms, view.remembered_to) == (0, 4)
    assert await due_at(sessions, ref) == NOW + IDLE_MS


async def test_a_session_that_is_asked_to_close_again_after_a_turn_came_is_due_at_once(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(close_after_seconds=0))
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    ticket = await ticket_of(sessions, ref)
    await talk(sessions, 1, 5)
    await sessions.ask_close(TENANT, SESSION)
    assert await sessions.end_memory(ticket, upto=4, closed=True) == "ended"
    assert await due_at(sessions, ref) == NOW
    again = await ticket_of(sessions, ref)
    assert (again.closing, again.upto) == (True, 5)
    assert await sessions.end_memory(again, upto=5, closed=True) == "ended"
    assert (await sessions.view(TENANT, SESSION)).closed_at_ms == NOW
    assert await due_at(sessions, ref) is None


async def test_a_worker_that_comes_late_takes_nothing_back_that_another_has_done(sessions: Sessions) -> None:
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    late = await ticket_of(sessions, ref)
    sessions.now_ms = NOW + LEASE_MS
    await talk(sessions, 2, 5)
    ticket = await ticket_of(sessions, ref)
    assert await sessions.keep_digest(ticket, digest_of(6))
    assert await sessions.end_memory(ticket, upto=6, closed=True) == "ended"
    assert not await sessions.keep_digest(late, digest_of(4))
    assert await sessions.end_memory(late, upto=4, closed=True) == "ended"
    view = await sessions.view(TENANT, SESSION)
    assert (view.remembered_to, view.closed_at_ms) == (6, sessions.now_ms)
    assert await sessions.read_digest(TENANT, SESSION) == digest_of(6)


async def test_a_session_without_idle_time_closes_only_when_asked(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(close_after_seconds=0))
    ref = await talk(sessions)
    assert await due_at(sessions, ref) is None
    sessions.now_ms = NOW + 100 * IDLE_MS
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "none"
    await sessions.ask_close(TENANT, SESSION)
    assert (await ticket_of(sessions, ref)).closing


async def test_a_shorter_idle_time_counts_from_now_on(sessions: Sessions) -> None:
    ref = await talk(sessions)
    view = await sessions.open(TENANT, SESSION, SessionOptions(close_after_seconds=60))
    assert view.close_after_seconds == 60
    assert await due_at(sessions, ref) == NOW + 60_000


async def test_a_full_store_takes_what_takes_something_away() -> None:
    with running_redis() as server:
        async with connect_sessions(server.url) as sessions:
            ref = await talk(sessions)
            await sessions.put_state(TENANT, SESSION, expected_version=0, body=b"long", tokens=5)
            await sessions.client.config_set("maxmemory", "1")
            await sessions.edit_turn(TENANT, SESSION, "t3", turn("user", "Another", id="t3"))
            with pytest.raises(UnavailableError) as full:
                await sessions.put_state(TENANT, SESSION, expected_version=1, body=b"longer", tokens=5)
            assert full.value.code == "store_full"
            cut = await sessions.put_state(TENANT, SESSION, expected_version=1, body=b"", tokens=0, forgets=True)
            assert (cut.version, cut.body, cut.tokens) == (2, b"", 0)
            assert (await ticket_of(sessions, ref)).forget == (TurnSpan(3, 3),)


async def test_only_one_of_two_workers_gets_a_lease_and_a_dead_ones_ends(sessions: Sessions) -> None:
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    ticket = await ticket_of(sessions, ref)
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "busy"
    sessions.now_ms = NOW + LEASE_MS - 1
    assert await sessions.renew_memory(ticket) == "ended"
    sessions.now_ms = NOW + 2 * LEASE_MS - 2
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "busy"
    assert await due_at(sessions, ref) == NOW + 2 * LEASE_MS - 1
    sessions.now_ms = NOW + 2 * LEASE_MS - 1
    assert (await ticket_of(sessions, ref)).closing


async def test_work_that_failed_is_due_again_after_its_pause(sessions: Sessions) -> None:
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    ticket = await ticket_of(sessions, ref)
    assert await sessions.end_memory(ticket, upto=0, closed=False, retry_after_ms=5_000) == "ended"
    assert await due_at(sessions, ref) == NOW + 5_000
    assert (await ticket_of(sessions, ref)).closing


async def test_turns_that_a_summary_covers_are_due_as_soon_as_it_is_there(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=4000, soft_ratio=0.7))
    ref = await talk(sessions, 30)
    ticket = await begin(sessions, ref)
    await sessions.commit_build(ticket, summary())
    assert await due_at(sessions, ref) == NOW
    found = await ticket_of(sessions, ref)
    assert (found.closing, found.upto) == (False, ticket.covers_to)
    assert await sessions.end_memory(found, upto=found.upto, closed=False) == "ended"
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "later"


async def test_a_changed_turn_is_to_be_forgotten_and_read_again(sessions: Sessions) -> None:
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    ticket = await ticket_of(sessions, ref)
    await sessions.keep_digest(ticket, digest_of(4))
    await sessions.end_memory(ticket, upto=4, closed=True)
    await sessions.edit_turn(TENANT, SESSION, "t3", turn("user", "Another", id="t3"))
    view = await sessions.view(TENANT, SESSION)
    assert (view.remembered_to, view.closed_at_ms) == (2, 0)
    assert await sessions.read_digest(TENANT, SESSION) is None
    assert await due_at(sessions, ref) == NOW
    again = await ticket_of(sessions, ref)
    assert again.forget == (TurnSpan(3, 3),)
    assert await sessions.end_memory(again, upto=2, closed=False) == "ended"
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "later"


async def test_a_change_while_a_worker_reads_is_noticed_and_owed(sessions: Sessions) -> None:
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    ticket = await ticket_of(sessions, ref)
    await sessions.rewind(TENANT, SESSION, 2)
    assert not await sessions.keep_digest(ticket, digest_of(4))
    assert await sessions.end_memory(ticket, upto=4, closed=True) == "changed"
    assert (await ticket_of(sessions, ref)).forget == (TurnSpan(3, 4),)


async def test_only_turns_put_off_the_end_of_a_session_and_tell_when_it_was_spoken(sessions: Sessions) -> None:
    ref = await talk(sessions)
    sessions.now_ms = NOW + IDLE_MS - 1
    await sessions.open(TENANT, SESSION, SessionOptions(metadata="{}"))
    await sessions.put_state(TENANT, SESSION, expected_version=0, body=b"{}", tokens=9)
    assert (await sessions.view(TENANT, SESSION)).updated_at_ms == sessions.now_ms
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "later"
    assert await due_at(sessions, ref) == NOW + IDLE_MS
    await sessions.client.delete(SessionKeys.of(TENANT, SESSION).due)
    await restore_due(sessions.client, TENANT, SESSION, version="1")
    assert await due_at(sessions, ref) == NOW + IDLE_MS
    sessions.now_ms = NOW + IDLE_MS
    ticket = await ticket_of(sessions, ref)
    assert (ticket.closing, ticket.spoken_at_ms) == (True, NOW)
    assert await sessions.end_memory(ticket, upto=4, closed=False) == "ended"
    assert await due_at(sessions, ref) == sessions.now_ms, "it is idle still"
    sessions.now_ms += 1
    await sessions.edit_turn(TENANT, SESSION, "t1", turn("user", "Another word.", id="t1"))
    assert (await ticket_of(sessions, ref)).spoken_at_ms == sessions.now_ms


async def test_work_for_an_erased_life_is_gone_and_its_user_is_known_until_the_end(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(user="ann"))
    ref = await talk(sessions)
    await sessions.ask_close(TENANT, SESSION)
    ticket = await ticket_of(sessions, ref)
    await sessions.erase(TENANT, SESSION)
    assert await sessions.end_memory(ticket, upto=4, closed=True) == "gone"
    assert not await sessions.keep_digest(ticket, digest_of(4))
    assert await sessions.begin_memory(ref, lease_ms=LEASE_MS) == "gone"
    assert await sessions.erased_user(ref) == "ann"
    assert not await sessions.has_aged(ref)
    with pytest.raises(GoneError):
        await sessions.ask_close(TENANT, SESSION)
    sessions.now_ms = NOW + int(ERASE_GRACE.total_seconds() * 1000)
    await sessions.end_expiry(ref)
    assert await sessions.erased_user(ref) is None


async def test_a_lost_due_entry_comes_back_from_the_sessions_own_state(sessions: Sessions) -> None:
    sessions.now_ms = None
    ref = await talk(sessions)
    keys = SessionKeys.of(TENANT, SESSION)
    at = await due_at(sessions, ref)
    for wish in (False, True):
        if wish:
            await sessions.ask_close(TENANT, SESSION)
        await sessions.client.delete(keys.due)
        await restore_due(sessions.client, TENANT, SESSION, version="1")
        found = await due_at(sessions, ref)
        assert found is not None and at is not None
        assert found < at - IDLE_MS // 2 if wish else found == at


async def test_the_pinned_state_is_replaced_only_by_who_knows_its_version(sessions: Sessions) -> None:
    await talk(sessions)
    before = await sessions.read_context(TENANT, SESSION)
    first = await sessions.put_state(TENANT, SESSION, expected_version=0, body=b'{"a":1}', tokens=30)
    assert (first.version, first.body, first.tokens, first.cap_tokens) == (1, b'{"a":1}', 30, 250)
    stored = await sessions.read_context(TENANT, SESSION)
    assert (stored.state, stored.state_tokens, stored.version) == (b'{"a":1}', 30, before.version + 1)
    assert (await sessions.view(TENANT, SESSION)).fixed_tokens == 30
    with pytest.raises(ConflictError) as refused:
        await sessions.put_state(TENANT, SESSION, expected_version=0, body=b"{}", tokens=1)
    assert refused.value.code == "version_conflict"
    emptied = await sessions.put_state(TENANT, SESSION, expected_version=1, body=b"", tokens=0)
    assert (emptied.version, emptied.body) == (2, b"")
    with pytest.raises(NotFoundError):
        await sessions.put_state(TENANT, "other", expected_version=0, body=b"{}", tokens=1)


async def test_the_pinned_state_counts_within_the_limit_and_leaves_room_to_talk(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=2000))
    await talk(sessions, 16)
    stored = await sessions.put_state(TENANT, SESSION, expected_version=0, body=b"{}", tokens=900)
    view = await sessions.view(TENANT, SESSION)
    assert view.tokens <= 2000 and view.fixed_tokens == 900 and view.status == "degraded"
    with pytest.raises(InvalidInputError) as refused:
        await sessions.put_state(TENANT, SESSION, expected_version=stored.version, body=b"{}", tokens=1500)
    assert refused.value.code == "no_room"
    await sessions.open(TENANT, SESSION, SessionOptions(system="Be brief", system_tokens=10))
    assert (await sessions.view(TENANT, SESSION)).fixed_tokens == 910


async def test_a_fork_has_its_sources_pinned_state_and_an_erasure_takes_it(sessions: Sessions) -> None:
    await talk(sessions)
    await sessions.put_state(TENANT, SESSION, expected_version=0, body=b'{"a":1}', tokens=30)
    await sessions.fork(TENANT, SESSION, "fork")
    found = await sessions.read_state(TENANT, "fork")
    assert (found.version, found.body, found.tokens) == (1, b'{"a":1}', 30)
    assert (await sessions.view(TENANT, "fork")).fixed_tokens == 30
    assert (await sessions.erase(TENANT, SESSION)).keys_left == 0
    with pytest.raises(GoneError):
        await sessions.read_state(TENANT, SESSION)


async def test_sessions_of_a_user_are_known_before_they_are_there_and_forks_too(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(user="ann"))
    await talk(sessions)
    await sessions.fork(TENANT, SESSION, "fork")
    assert sorted(await sessions.users.sessions(TENANT, "ann")) == ["fork", SESSION]


async def test_records_that_go_together_are_kept_in_their_order_whatever_the_server_has_forgotten(
    sessions: Sessions,
) -> None:
    ref = await talk(sessions)
    await sessions.note_contexts([(ref, b"1"), (ref, b"2")])
    await sessions.client.script_flush()
    over = replace(ref, incarnation="another life")
    await sessions.note_contexts([(ref, b"3"), (over, b"late"), (ref, b"4")])
    assert await sessions.read_contexts(TENANT, SESSION, 100) == [b"4", b"3", b"2", b"1"]


async def test_only_the_last_records_of_contexts_are_kept_and_none_of_an_erased_life(sessions: Sessions) -> None:
    ref = await talk(sessions)
    for number in range(CONTEXTS_KEPT + 3):
        await sessions.note_context(ref, b"%d" % number)
    records = await sessions.read_contexts(TENANT, SESSION, 100)
    assert records == [b"%d" % number for number in reversed(range(3, CONTEXTS_KEPT + 3))]
    assert await sessions.read_contexts(TENANT, SESSION, 2) == records[:2]
    await sessions.erase(TENANT, SESSION)
    await sessions.note_context(ref, b"late")
    with pytest.raises(GoneError):
        await sessions.read_contexts(TENANT, SESSION, 2)
    assert await sessions.client.exists(SessionKeys.of(TENANT, SESSION).contexts) == 0
