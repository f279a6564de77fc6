"""What becomes of a user's facts when turns are taken back, the user is erased, or what is stored or stated is broken."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from prefold.errors import GoneError
from prefold.facts import FactBook, NewFact
from prefold.storage.keys import UserKeys
from prefold.storage.memory_types import TurnSpan
from prefold.storage.users import StoredUser, Users
from prefold.tokens import load_counter
from tests.support.canaries import in_keys, uncompressed
from tests.support.facts import NOW_MS, START_MS, TENANT, USER, everything, learn, live, objects, said, source


@pytest.fixture
def users(redis: Redis) -> Users:
    return Users(redis)


@pytest.fixture
def book(users: Users) -> FactBook:
    return FactBook(users, load_counter())


async def test_withdrawn_turns_leave_no_trace_and_what_they_replaced_holds_again(
    book: FactBook, redis_url: str
) -> None:
    await learn(book, said("lives_in", "Berlin", 1), said("lives_in", "Atlantis", 2, said="We moved to Shangrila."))
    assert "Atlantis" in (await book.profile(TENANT, USER, now_ms=NOW_MS)).text
    gone = next(fact.id for fact in await live(book))
    withdrawn = await book.withdraw(TENANT, USER, session="s1", spans=[TurnSpan(2, 2)], now_ms=NOW_MS)
    assert withdrawn.dropped == [gone]
    assert [fact.object for fact in await live(book)] == ["Berlin"]
    assert withdrawn.restored == [fact.id for fact in await live(book)]
    assert "Berlin" in (await book.profile(TENANT, USER, now_ms=NOW_MS)).text
    with BlockingRedis.from_url(redis_url) as server:
        uncompressed(server)
        assert in_keys(server, [b"Atlantis", b"Shangrila"]) == {}
        assert list(in_keys(server, [b"Berlin"])) == [b"Berlin"]


async def test_withdrawn_turns_go_out_of_history_too(book: FactBook) -> None:
    await learn(book, said("lives_in", "Berlin", 1), said("lives_in", "Lisbon", 2), said("lives_in", "Rome", 3))
    await book.withdraw(TENANT, USER, session="s1", spans=[TurnSpan(2, 2)])
    history = {fact.object: fact for fact in await everything(book)}
    assert set(history) == {"Berlin", "Rome"}
    assert history["Berlin"].superseded_by == history["Rome"].id


async def test_a_row_that_another_turn_speaks_for_stays_without_the_withdrawn_one(book: FactBook) -> None:
    await learn(book, said("likes", "tea", 1), said("likes", "tea", 2, session="s2"))
    withdrawn = await book.withdraw(TENANT, USER, session="s2")
    (fact,) = await live(book)
    assert withdrawn.weakened == [fact.id]
    assert (fact.sources, fact.last_confirmed_ms) == ((source(1),), START_MS + 1)


async def test_a_withdrawn_retraction_lets_the_row_hold_again(book: FactBook) -> None:
    await learn(book, said("eats", "meat", 1), said("eats", "meat", 2, retracts=True))
    assert await live(book) == []
    await book.withdraw(TENANT, USER, session="s1", spans=[TurnSpan(2, 2)])
    assert objects(await live(book), "eats") == ["meat"]


async def test_only_earlier_revisions_and_only_that_life_are_withdrawn_where_asked(book: FactBook) -> None:
    edited = said("likes", "green tea", 1, source=source(1, revision=1))
    other_life = said("likes", "coffee", 1, source=source(1, incarnation="life2"))
    await learn(book, said("likes", "tea", 1), edited, other_life)
    await book.withdraw(
        TENANT, USER, session="s1", incarnation="life1", spans=[TurnSpan(1, 1)], below_revision=1, now_ms=NOW_MS
    )
    assert objects(await live(book), "likes") == ["coffee", "green tea"]


async def test_a_backends_row_goes_with_the_turns_that_it_names_only(book: FactBook) -> None:
    await book.add(TENANT, USER, NewFact("user", "likes", "shown", sources=[source(4)]), now_ms=NOW_MS)
    await book.add(TENANT, USER, NewFact("user", "likes", "told"), now_ms=NOW_MS)
    await book.withdraw(TENANT, USER, session="s1")
    assert objects(await live(book), "likes") == ["told"]


async def test_a_corrected_row_holds_again_when_the_correction_goes_with_its_turns(book: FactBook) -> None:
    await learn(book, said("likes", "tee", 1))
    (old,) = await live(book)
    new = NewFact("user", "likes", "tea", sources=[source(1, "s2")])
    await book.correct(TENANT, USER, old.id, new, now_ms=NOW_MS)
    await book.withdraw(TENANT, USER, session="s2")
    assert objects(await live(book), "likes") == ["tee"]


class _Interrupted(Users):
    """Erases the user between the first look and the first write."""

    async def snapshot(self, tenant: str, user: str) -> StoredUser:
        stored = await super().snapshot(tenant, user)
        if not getattr(self, "done", False):
            self.done = True
            await self.write(
                tenant, user, expected_version=stored.version, epoch=stored.epoch, put={}, drop=(), profile=b""
            )
            await self.erase(tenant, user)
        return stored


async def test_a_writer_under_way_when_the_user_is_erased_is_refused(redis: Redis) -> None:
    interrupted = FactBook(_Interrupted(redis), load_counter())
    with pytest.raises(GoneError) as refused:
        await interrupted.learn(TENANT, USER, [said("likes", "tea", 1)], now_ms=NOW_MS)
    assert refused.value.code == "user_erased"
    assert await live(interrupted) == []


async def test_who_read_the_turns_before_an_erasure_learns_nothing_after_it(book: FactBook, users: Users) -> None:
    epoch = await users.epoch(TENANT, USER)
    await users.erase(TENANT, USER)
    with pytest.raises(GoneError):
        await book.learn(TENANT, USER, [said("likes", "tea", 1)], now_ms=NOW_MS, epoch=epoch)
    assert await live(book) == []


async def test_an_erasure_leaves_nothing_to_show(book: FactBook, users: Users, redis_url: str) -> None:
    await learn(book, said("likes", "Quokkas", 1))
    (fact,) = await live(book)
    await book.delete(TENANT, USER, fact.id)
    await learn(book, said("likes", "Axolotls", 2))
    await users.erase(TENANT, USER)
    assert (await live(book), (await book.profile(TENANT, USER)).text) == ([], "")
    with BlockingRedis.from_url(redis_url) as server:
        uncompressed(server)
        assert in_keys(server, [b"Quokkas", b"Axolotls"]) == {}


BROKEN: Sequence[bytes] = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"7",
    b'"x"',
    b"\xff\xfe",
    b'{"id":"x"}',
    b'{"id":"bad","key":{"subject":{},"relation":[],"object":1},"evidence":[]}',
    b"[" * 100_000,
    b"x" * 10_000_000,
]


async def test_stored_rows_that_are_none_are_passed_over_counted_and_left(book: FactBook, redis: Redis) -> None:
    await learn(book, said("likes", "tea", 1))
    key = UserKeys.of(TENANT, USER).facts
    for at, stored in enumerate(BROKEN):
        await redis.hset(key, f"bad{at}" if at else b"\xff", stored)
    assert await book.unreadable(TENANT, USER) == len(BROKEN)
    assert objects(await live(book), "likes") == ["tea"]
    learnt = await learn(book, said("likes", "coffee", 2))
    assert (len(learnt.added), learnt.unreadable) == (1, len(BROKEN))
    withdrawn = await book.withdraw(TENANT, USER, session="s1")
    assert (len(withdrawn.dropped), withdrawn.unreadable) == (2, len(BROKEN))
    assert await redis.hlen(key) == len(BROKEN)


async def test_a_broken_row_that_names_a_withdrawn_session_goes_with_it(book: FactBook, redis: Redis) -> None:
    await learn(book, said("likes", "tea", 1, session="s2"))
    key = UserKeys.of(TENANT, USER).facts
    await redis.hset(key, "bad", b'{"session":"s\xc3\xa4"')
    await book.withdraw(TENANT, USER, session="s3")
    assert await redis.hexists(key, "bad")
    await book.withdraw(TENANT, USER, session="sä")
    assert not await redis.hexists(key, "bad")


async def test_malformed_statements_are_refused_one_by_one_and_wipe_nothing(book: FactBook) -> None:
    await learn(book, said("likes", "tea", 1))
    odd: list[Any] = [
        said("likes", "x" * 10_000_000, 2),
        said("likes", " ", 3),
        said("", "x", 3),
        replace(said("likes", "x", 4), object={"name": "x"}),  # type: ignore[arg-type]
        replace(said("likes", "x", 4), confidence="high"),  # type: ignore[arg-type]
        said("likes", "x", 5, confidence=float("nan")),
        said("likes", "x", 5, confidence=0.2),
        said("likes", "x", 5, confidence=7.0),
        said("likes", "x", 6, category="nonsense"),
        said("likes", "x", 6, source=None),
        said("likes", "good", 7),
    ]
    learnt = await learn(book, *odd)
    assert [fact.object for fact in learnt.added] == ["good"]
    assert sum(learnt.refused.values()) == len(odd) - 1
    assert objects(await live(book), "likes") == ["good", "tea"]


async def test_rows_that_change_what_they_say_or_go_are_left_to_the_indexers(book: FactBook, users: Users) -> None:
    await learn(book, said("lives_in", "Berlin", 1), said("lives_in", "Rome", 2), said("likes", "tea", 3))
    known = {fact.object: fact.id for fact in await everything(book)}
    seen = await users.take_unindexed(TENANT, USER)
    assert set(seen.ids) == {known["Rome"], known["tea"]}
    await users.mark_indexed(TENANT, USER, seen.ids, seen.version)
    await book.withdraw(TENANT, USER, session="s1", spans=[TurnSpan(2, 2)])
    assert set((await users.take_unindexed(TENANT, USER)).ids) == {known["Rome"], known["Berlin"]}


async def test_nothing_is_left_of_a_corrected_row_that_no_turn_speaks_for_any_more(
    book: FactBook, redis_url: str
) -> None:
    await learn(book, said("likes", "Wombats", 1))
    (old,) = await live(book)
    await book.correct(TENANT, USER, old.id, NewFact("user", "likes", "numbats"), now_ms=NOW_MS)
    withdrawn = await book.withdraw(TENANT, USER, session="s1")
    assert withdrawn.dropped == [old.id]
    with BlockingRedis.from_url(redis_url) as server:
        uncompressed(server)
        assert in_keys(server, [b"Wombats", b"wombats"]) == {}
