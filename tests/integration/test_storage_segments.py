"""Segments: kept under a ticket, and gone with the turns that they speak of."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from prefold.errors import GoneError
from prefold.storage import Sessions, connect_sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import BuildTicket, SessionOptions, SessionRef, StoredSegment
from tests.support.storage import LEASE_MS, SESSION, TENANT, append, begin, summary, turn

WORDS = "word " * 93
KEYS = SessionKeys.of(TENANT, SESSION)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
async def ticket(sessions: Sessions) -> BuildTicket:
    """Covers some sixty turns."""
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=10_000, soft_ratio=0.4))
    turns = [turn("user" if number % 2 else "assistant", WORDS, id=f"t{number}") for number in range(1, 71)]
    answer = await append(sessions, *turns)
    return await begin(sessions, answer.ref)


def segment(first: int, last: int, level: int = 0) -> StoredSegment:
    return StoredSegment(
        level, first, last, "5eed", "1 haiku", f"Turns {first} to {last}: Grüße 你好.", 9, 900, '{"a":1}'
    )


async def keep(sessions: Sessions, ticket: BuildTicket, *segments: StoredSegment) -> list[bool]:
    return [await sessions.keep_segment(ticket, one) for one in segments]


async def test_segments_come_back_in_the_order_of_their_turns(sessions: Sessions, ticket: BuildTicket) -> None:
    kept = [segment(1, 20), segment(1, 40, level=1), segment(21, 40), segment(41, ticket.covers_to)]
    assert await keep(sessions, ticket, *reversed(kept), kept[0]) == [True] * 5
    assert await sessions.read_segments(ticket.ref) == kept


async def test_they_end_with_the_session(sessions: Sessions, ticket: BuildTicket) -> None:
    await keep(sessions, ticket, segment(1, 20))
    ends = await sessions.client.pexpiretime(KEYS.meta)
    assert await sessions.client.pexpiretime(KEYS.segments) == ends > 0


async def test_a_ticket_that_is_void_keeps_nothing(sessions: Sessions, ticket: BuildTicket) -> None:
    assert not await sessions.keep_segment(replace(ticket, epoch=ticket.epoch + 1), segment(1, 20))
    other_life = replace(ticket, ref=replace(ticket.ref, incarnation="0" * 12))
    assert not await sessions.keep_segment(other_life, segment(1, 20))
    assert not await sessions.keep_segment(ticket, segment(1, ticket.covers_to + 1)), "beyond what it covers"
    await sessions.edit_turn(TENANT, SESSION, "t3", turn("user", "Something else", id="t3"))
    assert not await sessions.keep_segment(ticket, segment(1, 20))
    assert await sessions.read_segments(ticket.ref) == []


async def test_an_edit_drops_the_segments_of_its_turn_and_what_was_merged_of_them(
    sessions: Sessions, ticket: BuildTicket
) -> None:
    await keep(sessions, ticket, segment(1, 20), segment(21, 40), segment(41, 60), segment(1, 40, level=1))
    await sessions.edit_turn(TENANT, SESSION, "t25", turn("user", "Something else", id="t25"))
    assert await sessions.read_segments(ticket.ref) == [segment(1, 20)]


async def test_a_rewind_drops_the_segments_that_reach_beyond_its_point(sessions: Sessions, ticket: BuildTicket) -> None:
    await keep(sessions, ticket, segment(1, 20), segment(21, 40))
    await sessions.rewind(TENANT, SESSION, 39)
    assert await sessions.read_segments(ticket.ref) == [segment(1, 20)]


async def test_a_change_after_the_segments_leaves_them(sessions: Sessions, ticket: BuildTicket) -> None:
    await keep(sessions, ticket, segment(1, 20))
    await sessions.edit_turn(TENANT, SESSION, "t21", turn("user", "Something else", id="t21"))
    assert await sessions.read_segments(ticket.ref) == [segment(1, 20)]


async def test_an_erasure_takes_them_and_a_late_builder_brings_none_back(
    sessions: Sessions, ticket: BuildTicket
) -> None:
    await keep(sessions, ticket, segment(1, 20))
    assert (await sessions.erase(TENANT, SESSION)).keys_left == 0
    assert not await sessions.keep_segment(ticket, segment(1, 20))
    assert await sessions.client.exists(KEYS.segments) == 0
    with pytest.raises(GoneError):
        await sessions.view(TENANT, SESSION)


async def test_a_fork_has_the_segments_up_to_its_point_and_they_are_its_own(
    sessions: Sessions, ticket: BuildTicket
) -> None:
    await keep(sessions, ticket, segment(1, 20), segment(21, 40), segment(1, 40, level=1))
    fork = await sessions.fork(TENANT, SESSION, "branch", 35)
    assert await sessions.read_segments(fork.ref) == [segment(1, 20)]
    ends = await sessions.client.pexpiretime(SessionKeys.of(TENANT, "branch").segments)
    assert ends == await sessions.client.pexpiretime(SessionKeys.of(TENANT, "branch").meta) > 0
    await sessions.edit_turn(TENANT, "branch", "t3", turn("user", "Something else", id="t3"))
    assert await sessions.read_segments(fork.ref) == []
    assert len(await sessions.read_segments(ticket.ref)) == 3
    assert (await sessions.erase(TENANT, "branch")).keys_left == 0


async def test_another_life_of_the_session_sees_none(sessions: Sessions, ticket: BuildTicket) -> None:
    await keep(sessions, ticket, segment(1, 20))
    assert await sessions.read_segments(SessionRef(TENANT, SESSION, "0" * 12)) == []


async def test_a_later_build_makes_an_earlier_ticket_void(sessions: Sessions, ticket: BuildTicket) -> None:
    await keep(sessions, ticket, segment(1, 20))
    await sessions.abandon_build(ticket, "failed", 0)
    assert not await sessions.keep_segment(ticket, segment(21, 40))
    later = await begin(sessions, ticket.ref)
    assert await sessions.keep_segment(later, segment(21, 40))
    assert (await sessions.commit_build(later, summary())).outcome == "standby"
    view = await sessions.view(TENANT, SESSION)
    assert view.standby is not None and view.standby.record == '{"engine":"test"}' and view.active is None
    assert await sessions.begin_build(TENANT, SESSION, ticket.ref.incarnation, LEASE_MS) == "not_due"


async def test_the_record_of_the_active_summary_is_shown(sessions: Sessions, ticket: BuildTicket) -> None:
    await sessions.commit_build(ticket, summary())
    for _ in range(40):
        answer = await append(sessions, turn("user", WORDS), turn("assistant", WORDS))
        if answer.swaps:
            break
    view = await sessions.view(TENANT, SESSION)
    assert view.active is not None
    assert (view.active.covers_to, view.active.record) == (ticket.covers_to, '{"engine":"test"}')
