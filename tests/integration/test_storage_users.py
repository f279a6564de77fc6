"""What is known of users, in Redis: compare and set, erasure, the list of sessions, isolation by key."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from prefold.errors import GoneError, UnavailableError
from prefold.storage.keys import UserKeys
from prefold.storage.limits import MOST_SUPPRESSED
from prefold.storage.users import Profile, Users
from tests.support.redis import RunningRedis, running_redis

TENANT, USER = "acme", "ada"


@pytest.fixture
def users(redis: Redis) -> Users:
    return Users(redis)


async def put(users: Users, version: int, **rows: bytes) -> bool:
    """One write by who read that version before any erasure."""
    return await users.write(
        TENANT, USER, expected_version=version, epoch=0, put=rows, drop=(), profile=b"", unindexed=tuple(rows)
    )


async def test_a_user_of_whom_nothing_was_written_is_an_empty_one(users: Users) -> None:
    stored = await users.snapshot(TENANT, USER)
    assert (stored.version, stored.epoch, stored.rows, stored.suppressed) == (0, 0, {}, frozenset())
    assert await users.read_profile(TENANT, USER) == Profile(0, "")
    assert await users.sessions(TENANT, USER) == []
    assert (await users.take_unindexed(TENANT, USER)).ids == ()
    assert await users.epoch(TENANT, USER) == 0


async def test_rows_profile_and_what_is_suppressed_change_together(users: Users) -> None:
    assert await put(users, 0, a=b"1", b=b"2")
    assert await users.write(
        TENANT,
        USER,
        expected_version=1,
        epoch=0,
        put={"c": b"3"},
        drop=["a"],
        profile=Profile(3, "one\ntwo words", 17).encode(),
        suppress=["d1", "d2"],
    )
    stored = await users.snapshot(TENANT, USER)
    assert (stored.version, stored.rows, stored.suppressed) == (
        2,
        {"b": b"2", "c": b"3"},
        frozenset({"d1", "d2"}),
    )
    assert await users.read_profile(TENANT, USER) == Profile(3, "one\ntwo words", 17)
    assert await users.write(TENANT, USER, expected_version=2, epoch=0, put={}, drop=(), profile=b"", lift=["d1"])
    assert (await users.snapshot(TENANT, USER)).suppressed == {"d2"}
    assert await users.read_profile(TENANT, USER) == Profile(0, "")


async def test_only_the_newest_deletions_are_remembered(users: Users) -> None:
    deleted = [[f"{version}-{number}" for number in range(MOST_SUPPRESSED - 1)] for version in range(2)]
    for version, digests in enumerate(deleted):
        assert await users.write(
            TENANT, USER, expected_version=version, epoch=0, put={}, drop=(), profile=b"", suppress=digests
        )
    kept = (await users.snapshot(TENANT, USER)).suppressed
    assert len(kept) == MOST_SUPPRESSED
    assert kept >= set(deleted[1])


async def test_who_read_before_another_wrote_writes_nothing(users: Users) -> None:
    assert await put(users, 0, a=b"1")
    assert not await put(users, 0, a=b"2", b=b"2")
    assert (await users.snapshot(TENANT, USER)).rows == {"a": b"1"}
    assert (await users.take_unindexed(TENANT, USER)).ids == ("a",)


async def test_of_writers_at_the_same_time_one_wins(users: Users) -> None:
    won = await asyncio.gather(*(put(users, 0, **{f"row{number}": b"x"}) for number in range(20)))
    assert sum(won) == 1
    assert len((await users.snapshot(TENANT, USER)).rows) == 1


async def test_an_erasure_refuses_who_began_before_it_and_leaves_no_key_but_the_epoch(
    users: Users, redis: Redis
) -> None:
    await users.note_session(TENANT, USER, "s1")
    await users.note_session(TENANT, USER, "s2")
    assert await put(users, 0, a=b"1", b=b"2")
    assert await users.write(
        TENANT, USER, expected_version=1, epoch=0, put={}, drop=(), profile=b"1 0 x", suppress=["d"]
    )
    assert {key async for key in redis.scan_iter("*")} == {
        key.encode() for key in UserKeys.of(TENANT, USER).script_keys()
    }
    erased = await users.erase(TENANT, USER)
    assert (erased.facts, erased.sessions, erased.keys_left) == (2, ("s1", "s2"), 0)
    assert [key async for key in redis.scan_iter("*")] == [UserKeys.of(TENANT, USER).meta.encode()]
    for version in range(4):
        with pytest.raises(GoneError, match="erased") as refused:
            await put(users, version, a=b"1")
        assert refused.value.code == "user_erased"
    assert (await users.snapshot(TENANT, USER)).rows == {}
    again = await users.erase(TENANT, USER)
    assert (again.facts, again.sessions, again.keys_left) == (0, (), 0)
    assert await users.epoch(TENANT, USER) == 2


async def test_an_erased_user_may_come_back(users: Users) -> None:
    await put(users, 0, a=b"1")
    await users.erase(TENANT, USER)
    now = await users.snapshot(TENANT, USER)
    row = {"z": b"9"}
    assert await users.write(TENANT, USER, expected_version=now.version, epoch=now.epoch, put=row, drop=(), profile=b"")
    assert (await users.snapshot(TENANT, USER)).rows == {"z": b"9"}


async def test_a_vector_that_was_made_of_an_older_row_stays_to_be_made(users: Users) -> None:
    await put(users, 0, a=b"1", b=b"1")
    seen = await users.take_unindexed(TENANT, USER)
    assert set(seen.ids) == {"a", "b"}
    await put(users, 1, a=b"2")
    assert await users.mark_indexed(TENANT, USER, seen.ids, seen.version) == 1
    assert (await users.take_unindexed(TENANT, USER)).ids == ("a",)
    seen = await users.take_unindexed(TENANT, USER)
    assert await users.mark_indexed(TENANT, USER, seen.ids, seen.version) == 1
    assert await users.mark_indexed(TENANT, USER, seen.ids, seen.version) == 0
    assert (await users.take_unindexed(TENANT, USER)).ids == ()


async def test_sessions_are_listed_in_the_order_of_their_first_note(users: Users) -> None:
    for name in ("z", "a", "m", "z", "a"):
        await users.note_session(TENANT, USER, name)
    assert set(await users.sessions(TENANT, USER)) == {"z", "a", "m"}
    await users.drop_session(TENANT, USER, "a")
    assert set(await users.sessions(TENANT, USER)) == {"z", "m"}


async def test_a_snapshot_reads_the_version_first_and_a_profile_is_one_get(users: Users, redis: Redis) -> None:
    assert await put(users, 0, a=b"1")
    sent = await _commands(redis, users.snapshot(TENANT, USER))
    assert sent == ["HMGET", "HGETALL", "ZRANGE"]
    assert await _commands(redis, users.read_profile(TENANT, USER)) == ["GET"]


async def _commands(redis: Redis, call: Awaitable[object]) -> list[str]:
    async with redis.monitor() as monitor:
        await call
        await redis.echo("end")
        sent = []
        while not (command := (await monitor.next_command())["command"]).startswith("ECHO"):
            sent.append(command.split()[0])
    return [command for command in sent if command not in ("HELLO", "CLIENT", "SELECT")]  # of a new connection


async def test_every_key_of_a_user_ends_with_the_last_write(users: Users, redis: Redis) -> None:
    await users.note_session(TENANT, USER, "s1")
    await redis.pexpire(UserKeys.of(TENANT, USER).sessions, 100_000)
    await users.write(
        TENANT,
        USER,
        expected_version=0,
        epoch=0,
        put={"a": b"1"},
        drop=(),
        profile=b"1 0 x",
        suppress=["d"],
        unindexed=["a"],
    )
    lives = [await redis.pttl(key) for key in UserKeys.of(TENANT, USER).script_keys()]
    assert all(399 * 86_400_000 < life <= 400 * 86_400_000 for life in lives), lives


async def test_a_full_store_takes_what_takes_something_away() -> None:
    with running_redis() as server:
        async with _client(server) as redis:
            users = Users(redis)
            await put(users, 0, a=b"1", b=b"2")
            await redis.config_set("maxmemory", "1")
            with pytest.raises(UnavailableError) as full:
                await put(users, 1, c=b"3")
            assert full.value.code == "store_full"
            assert await users.write(
                TENANT, USER, expected_version=1, epoch=0, put={}, drop=["a"], profile=b"", forgets=True
            )
            assert (await users.snapshot(TENANT, USER)).rows == {"b": b"2"}
            assert (await users.erase(TENANT, USER)).facts == 1


@asynccontextmanager
async def _client(server: RunningRedis) -> AsyncIterator[Redis]:
    async with Redis.from_url(server.url) as client:
        yield client


NAMES = st.text(st.sampled_from("a:{}*?[]%/\\ .é用\n\x00|u") | st.characters(codec="utf-8"), min_size=1, max_size=6)


@given(one=st.tuples(NAMES, NAMES), other=st.tuples(NAMES, NAMES))
@settings(max_examples=100)
def test_two_users_never_share_a_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    keys = set(UserKeys.of(*one).script_keys()) & set(UserKeys.of(*other).script_keys())
    assert bool(keys) == (one == other)


ODD = [
    "a:b",
    "a",
    "b:c",
    "{a}",
    "a}",
    "*",
    "?",
    "a*",
    "meta",
    "a:facts",
    "%3A",
    "a%3Ab",
    " ",
    "u:a",
    "甲",
    "\u00e9",
    "e\u0301",
]


async def test_no_name_reaches_the_rows_of_another_user(users: Users) -> None:
    everybody = [(tenant, user) for tenant in ODD for user in ODD]
    for at, (tenant, user) in enumerate(everybody):
        row = f"row of {at}".encode()
        assert await users.write(tenant, user, expected_version=0, epoch=0, put={"x": row}, drop=(), profile=row)
        await users.note_session(tenant, user, f"session {at}")
    for at, (tenant, user) in enumerate(everybody):
        assert (await users.snapshot(tenant, user)).rows == {"x": f"row of {at}".encode()}
        assert await users.sessions(tenant, user) == [f"session {at}"]
    erased = everybody[::2]
    for tenant, user in erased:
        assert (await users.erase(tenant, user)).keys_left == 0
    left = [at for at, (tenant, user) in enumerate(everybody) if (await users.snapshot(tenant, user)).rows]
    assert left == [at for at in range(len(everybody)) if at % 2]


@pytest.mark.parametrize(
    "stored", [b"", b"x", b"1", b"1 2", b"-1 0 x", b"1 x y", b"\xff\xfe", b"9" * 30, b"1 2 \xff", b"1+ 0 x", b"+1 0 x"]
)
def test_a_profile_that_is_none_is_an_empty_one_or_its_text(stored: bytes) -> None:
    assert isinstance(Profile.decode(stored).text, str)


@given(
    text=st.text(), tokens=st.integers(0, 400), until=st.none() | st.integers(1, 2**52), yielded=st.integers(0, 2_000)
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_a_profile_is_read_as_it_was_written(text: str, tokens: int, until: int | None, yielded: int) -> None:
    written = Profile(tokens, text.encode("utf-8", "replace").decode(), until, yielded)
    assert Profile.decode(written.encode()) == (written if text or yielded else Profile(0, ""))
