"""Turns that are published by ``XADD`` and nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from prefold.access import Allowance, Allowances
from prefold.conversation.accepting import prepare_body
from prefold.conversation.turns import PreparedTurn
from prefold.dispatcher import ingest as ingest_module
from prefold.dispatcher import ingesting
from prefold.errors import NotFoundError, UnavailableError
from prefold.gateway.settings import GatewaySettings
from prefold.quotas import Quotas
from prefold.storage import Sessions, connect_sessions, limits
from prefold.storage.ingest import IngestStreams
from prefold.storage.ingest_letters import IngestLetters
from prefold.storage.keys import SessionKeys, TenantKeys
from prefold.storage.quotas import QuotaCounts
from prefold.storage.types import AppendResult
from prefold.tokens import load_counter
from tests.support.publishing_turns import (
    TENANT,
    entry,
    publish,
    publish_turns,
    reading,
    settings,
    stored_ids,
    turn_json,
    until_empty,
)
from tests.support.redis import running_redis
from tests.support.waiting import wait_until_async

GOOD = turn_json(0)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def letters(redis: Redis) -> IngestLetters:
    return IngestLetters(redis)


async def test_a_published_turn_is_stored_as_one_over_http_is(redis: Redis, redis_url: str, sessions: Sessions) -> None:
    body = {
        "id": "t1",
        "role": "user",
        "content": 'Grüße, 你好 \u0001 ["x"]',
        "name": "ada",
        "ts": "2026-11-30T10:00:00Z",
    }
    raw = json.dumps(body, ensure_ascii=False).encode()
    async with reading(redis_url):
        await publish(redis, entry("by-stream", raw))
        await until_empty(redis)
    await sessions.append(TENANT, "by-http", prepare_body(raw, load_counter(), GatewaySettings()))
    published, sent = [await sessions.read_context(TENANT, one) for one in ("by-stream", "by-http")]
    assert published.body == sent.body
    (one,), (other,) = [await sessions.read_turns(TENANT, name, 0, 10) for name in ("by-stream", "by-http")]
    assert one.verbatim_json == other.verbatim_json
    result = await sessions.append(TENANT, "by-stream", prepare_body(raw, load_counter(), GatewaySettings()))
    assert result.turns[0].duplicate


async def test_each_session_has_its_turns_in_the_order_in_which_they_were_published(
    redis: Redis, redis_url: str, sessions: Sessions
) -> None:
    for start in range(0, 120, 7):  # sessions alternate, and batches end in the middle of each
        for session in ("a", "b", "c"):
            await publish_turns(redis, session, range(start, min(start + 7, 120)))
    async with reading(redis_url):
        await until_empty(redis)
    for session in ("a", "b", "c"):
        assert await stored_ids(sessions, session) == [f"t{number}" for number in range(120)]


BAD: list[tuple[str, dict[Any, Any], str]] = [
    ("no session", {"turn": GOOD, "v": "1"}, "field_missing"),
    ("no turn", {"session": "s", "v": "1"}, "field_missing"),
    ("no version", {"session": "s", "turn": GOOD}, "field_missing"),
    ("another version", {"session": "s", "turn": GOOD, "v": "2"}, "unknown_version"),
    ("an unknown field", {**entry("s", GOOD), "user": "ada"}, "unknown_field"),
    ("a session that is no name", entry("a:b", GOOD), "invalid_name"),
    ("a session that is too long", entry("a" * 129, GOOD), "invalid_name"),
    ("a session that is empty", entry("", GOOD), "invalid_name"),
    ("a session that is not UTF-8", {"session": b"\xff", "turn": GOOD, "v": "1"}, "invalid_name"),
    ("a turn that is not UTF-8", entry("s", b'{"id":"x","role":"user","content":"\xff"}'), "invalid_json"),
    ("a turn that is not JSON", entry("s", "hello"), "invalid_json"),
    ("a turn that is a list", entry("s", "[]"), "malformed_body"),
    ("several turns", entry("s", json.dumps({"id": "x", "turns": [json.loads(GOOD)]})), "unknown_member"),
    ("a turn without an id", entry("s", '{"role":"user","content":"hello"}'), "id_missing"),
    ("a role that nobody has", entry("s", '{"id":"x","role":"judge","content":"hello"}'), "invalid_input"),
    ("a turn over the limit", entry("s", json.dumps({"id": "x", "role": "user", "content": "a" * 1_100})), "too_large"),
    ("an entry far over the limit", entry("s", "a" * 100_000), "too_large"),
]


async def test_a_bad_entry_goes_to_the_dead_letters_with_its_reason_and_stops_no_other(
    redis: Redis, redis_url: str, sessions: Sessions, letters: IngestLetters
) -> None:
    wanted = []
    for number, (_, fields, reason) in enumerate(BAD):
        await publish(redis, entry("s", turn_json(number)))
        wanted.append((await publish(redis, fields), reason))
    async with reading(redis_url, turn_max_bytes=1_024):
        await until_empty(redis)
    assert await stored_ids(sessions, "s") == [f"t{number}" for number in range(len(BAD))]
    found = await letters.letters(TENANT)
    assert sorted((one.entry_id, one.refusal.reason) for one in found) == sorted(wanted)
    assert all(one.has_text for one in found)
    assert {one.session for one in found} == {"", "s"}


async def test_of_a_huge_entry_only_the_reason_is_kept_and_it_is_never_fetched(
    redis: Redis, redis_url: str, sessions: Sessions, letters: IngestLetters
) -> None:
    huge = await publish(redis, entry("s", b"a" * (9 * 1024 * 1024)))
    await publish(redis, entry("s", turn_json(1)))
    taken = await IngestStreams(redis).take(
        TENANT, "me", count=9, most_bytes=9, most_entry_bytes=1_000, lease=timedelta(milliseconds=1)
    )
    assert isinstance(taken, list)
    assert (taken[0].id, taken[0].session, taken[0].fields) == (huge, b"s", ())
    async with reading(redis_url):
        await until_empty(redis)
    (letter,) = await letters.letters(TENANT, "s")
    assert (letter.refusal.reason, letter.has_text) == ("too_large", False)
    assert await stored_ids(sessions, "s") == ["t1"]


async def test_a_store_that_is_less_durable_than_promised_gets_no_turns_and_loses_none(queue_url: str) -> None:
    stop = asyncio.Event()
    with running_redis() as server:
        async with Redis.from_url(server.url) as redis, connect_sessions(server.url) as sessions:
            await publish_turns(redis, "s", range(5))
            with capture_logs() as logs:
                chosen = settings(server.url, queue_url=queue_url, durability="durable", store_check_ms=50)
                running = asyncio.create_task(ingesting.ingest_streams(chosen, stop))
                await wait_until_async("it says so", partial(has_said, logs, "dispatcher_unavailable"))
                assert await waits(redis, 5)
                await redis.config_set("appendfsync", "always")
                await redis.config_set("appendonly", "yes")
                await until_empty(redis)
            stop.set()
            await running
            assert await stored_ids(sessions, "s") == [f"t{number}" for number in range(5)]


async def has_said(logs: Sequence[MutableMapping[str, Any]], event: str) -> bool:
    return any(one["event"] == event for one in logs)


async def test_another_turn_under_a_known_id_is_set_aside_and_those_beside_it_are_stored(
    redis: Redis, redis_url: str, sessions: Sessions, letters: IngestLetters
) -> None:
    await publish_turns(redis, "s", range(5))
    changed = await publish(redis, entry("s", json.dumps({"id": "t2", "role": "user", "content": "not what it was"})))
    await publish_turns(redis, "s", range(9))  # the first five again
    async with reading(redis_url):
        await until_empty(redis)
    assert await stored_ids(sessions, "s") == [f"t{number}" for number in range(9)]
    (letter,) = await letters.letters(TENANT)
    assert (letter.entry_id, letter.refusal.reason, letter.has_text) == (changed, "turn_conflict", True)


async def test_an_entry_on_which_our_own_code_breaks_stops_no_other_and_is_set_aside_in_the_end(
    redis: Redis, redis_url: str, sessions: Sessions, letters: IngestLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Sessions.append

    async def broken(self: Sessions, tenant: str, session: str, turns: Sequence[PreparedTurn]) -> AppendResult:
        if any(turn.id == "t3" and session == "poisoned" for turn in turns):
            raise ZeroDivisionError
        return await append(self, tenant, session, turns)

    monkeypatch.setattr(Sessions, "append", broken)
    await publish_turns(redis, "poisoned", range(300))  # a batch and more of it stands before the others
    await publish_turns(redis, "s", range(3))
    async with reading(redis_url):

        async def others_are_stored() -> bool:
            return await redis.exists(SessionKeys.of(TENANT, "s").meta) > 0

        await wait_until_async("the other session is stored", others_are_stored)
        assert await stored_ids(sessions, "poisoned") == ["t0", "t1", "t2"], "what follows waits for it"
        for number in range(3, 40):  # while others go on it is its own fault
            if not await redis.exists(TenantKeys.of(TENANT).ingest):
                break
            await publish_turns(redis, "s", range(number, number + 1))
            await wait_until_async("it is stored", partial(has_stored, sessions, f"t{number}"))
        await until_empty(redis)
    (letter,) = await letters.letters(TENANT)
    assert (letter.refusal.reason, letter.has_text) == ("unexpected", True)
    assert letter.refusal.field.startswith("ZeroDivisionError in ")
    assert await stored_ids(sessions, "poisoned") == [f"t{number}" for number in range(300) if number != 3]


async def has_stored(sessions: Sessions, turn_id: str) -> bool:
    return turn_id in await stored_ids(sessions, "s")


async def test_what_is_published_for_an_erased_session_is_not_kept(
    redis: Redis, redis_url: str, sessions: Sessions, letters: IngestLetters
) -> None:
    await publish_turns(redis, "s", range(1))
    async with reading(redis_url):
        await until_empty(redis)
        await sessions.erase(TENANT, "s")
        await publish_turns(redis, "s", range(1, 2))
        await until_empty(redis)
    (letter,) = await letters.letters(TENANT)
    assert (letter.refusal.reason, letter.has_text) == ("session_erased", False)
    assert not await letters.replay(letter)


async def test_a_crash_between_storing_and_taking_out_repeats_and_doubles_nothing(
    redis: Redis, redis_url: str, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish_turns(redis, "s", range(20))
    drop, crashes = IngestStreams.drop, 2

    async def crash(self: IngestStreams, tenant: str, entry_ids: Sequence[str]) -> None:
        nonlocal crashes
        crashes -= 1
        if crashes >= 0:
            raise UnavailableError("killed here")
        await drop(self, tenant, entry_ids)

    monkeypatch.setattr(IngestStreams, "drop", crash)
    async with reading(redis_url):
        await until_empty(redis)
    assert crashes < 0
    assert await stored_ids(sessions, "s") == [f"t{number}" for number in range(20)]


async def test_a_full_store_makes_published_turns_wait_and_loses_none(
    redis: Redis, redis_url: str, sessions: Sessions, letters: IngestLetters
) -> None:
    await publish_turns(redis, "s", range(20))
    await redis.config_set("maxmemory", 1)
    try:
        async with reading(redis_url, store_high_percent=100, store_low_percent=100) as ingest:

            async def has_tried() -> bool:
                return await redis.exists(TenantKeys.of(TENANT).ingest_lease) > 0

            await wait_until_async("it has tried", has_tried)
            assert ingest.entries_applied == 0
            await redis.config_set("maxmemory", 0)
            await until_empty(redis)
    finally:
        await redis.config_set("maxmemory", 0)
    assert await stored_ids(sessions, "s") == [f"t{number}" for number in range(20)]
    assert await letters.letters(TENANT) == []


async def test_two_readers_store_each_turn_once_and_one_goes_on_where_the_other_died(
    redis: Redis, redis_url: str, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = TenantKeys.of(TENANT)
    await redis.set(keys.ingest_lease, "one that was killed", px=300)
    async with reading(redis_url, dispatcher_name="a") as a, reading(redis_url, dispatcher_name="b") as b:
        for start in range(0, 200, 10):
            await publish_turns(redis, "s", range(start, start + 10))
        await until_empty(redis)
        holder = str(await redis.get(keys.ingest_lease))
        assert sorted([a.entries_applied, b.entries_applied]) == [0, 200]
        assert ("a:" if a.entries_applied else "b:") in holder
    assert not await redis.exists(keys.ingest_lease), "it is given back at the end"
    assert await stored_ids(sessions, "s") == [f"t{number}" for number in range(200)]


async def test_a_reader_that_lost_its_lease_leaves_the_rest_of_its_batch_and_begins_anew(
    redis: Redis, redis_url: str, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clock tells it: it does not have to ask."""
    append, times = Sessions.append, [0.0]

    async def slow(self: Sessions, tenant: str, session: str, turns: Sequence[PreparedTurn]) -> AppendResult:
        times[0] += 11.0  # as if the process had been stopped for so long
        return await append(self, tenant, session, turns)

    monkeypatch.setattr(Sessions, "append", slow)
    for number in range(3):
        await publish_turns(redis, f"s{number}", range(150))
    async with reading(redis_url) as ingest:
        ingest._clock = lambda: times[0]
        await until_empty(redis)
    for number in range(3):
        assert await stored_ids(sessions, f"s{number}") == [f"t{one}" for one in range(150)], "also in their order"


async def test_letters_are_bounded_in_number_in_bytes_and_in_age(
    redis: Redis, redis_url: str, letters: IngestLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INGEST_LETTERS", 5)
    monkeypatch.setattr(limits, "INGEST_LETTER_BYTES", 3_000)
    async with reading(redis_url):
        for number in range(8):
            await publish(redis, entry("s", f"bad {number}"))
        await until_empty(redis)
        assert len(await letters.letters(TENANT)) == 5
        await publish(redis, entry("s", "x" * 2_900))
        await until_empty(redis)
    found = await letters.letters(TENANT)
    texts = TenantKeys.of(TENANT).letter_keys()[3]
    kept = await redis.hgetall(texts)
    assert int(kept.pop(b"bytes")) == sum(map(len, kept.values())) <= 3_000
    assert found[-1].refusal.size_bytes > 2_900
    monkeypatch.setattr(limits, "LETTERS_KEPT", limits.LETTERS_KEPT * 0)
    await wait_until_async("their time is over", lambda: _gone(letters))
    assert await redis.exists(*TenantKeys.of(TENANT).letter_keys()) == 0


async def _gone(letters: IngestLetters) -> bool:
    await letters.end_old(TENANT)
    return not await letters.letters(TENANT)


async def test_a_tenant_that_is_not_named_is_not_read_and_cannot_write_for_another(
    redis: Redis, redis_url: str, sessions: Sessions
) -> None:
    await publish(redis, entry("s", turn_json(0)), tenant="other")
    async with reading(redis_url):
        await publish_turns(redis, "s", range(2))
        await until_empty(redis)
    assert await redis.xlen(TenantKeys.of("other").ingest) == 1
    with pytest.raises(NotFoundError):
        await sessions.view("other", "s")
    await redis.delete(TenantKeys.of("other").ingest)


async def test_the_store_away_is_waited_for(redis: Redis, redis_url: str, sessions: Sessions) -> None:
    """The reader is there first, on connections that break."""
    async with reading(redis_url):
        for start in range(0, 60, 20):
            await publish_turns(redis, "s", range(start, start + 20))
            await redis.client_kill_filter(_type="normal", skipme=True)
        await until_empty(redis)
    assert await stored_ids(sessions, "s") == [f"t{number}" for number in range(60)]


async def test_a_quota_makes_published_turns_wait_and_loses_none(
    redis: Redis, redis_url: str, sessions: Sessions, letters: IngestLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = [Allowance(tokens_per_day=1)]
    allowances = lambda: Allowances(of_tenants={TENANT: granted[0]})  # noqa: E731
    monkeypatch.setattr(ingesting, "_quotas", lambda opened, _: Quotas(QuotaCounts(opened.client), allowances))
    monkeypatch.setattr(ingest_module, "_MOST_SECONDS", 0.1)
    await publish_turns(redis, "first", range(250))
    async with reading(redis_url):
        await wait_until_async("the day's tokens are used up", partial(waits, redis, 150))
        granted[0] = Allowance(sessions=1)
        await until_empty(redis)
        await publish_turns(redis, "second", range(3))
        await publish_turns(redis, "first", range(250, 260))
        await wait_until_async("all of the session that is there is stored", partial(waits, redis, 3))
        assert await stored_ids(sessions, "second") == []
        granted[0] = Allowance(sessions=2)
        await until_empty(redis)
    assert await stored_ids(sessions, "first") == [f"t{number}" for number in range(260)]
    assert await stored_ids(sessions, "second") == ["t0", "t1", "t2"]
    assert await letters.letters(TENANT) == []


async def waits(redis: Redis, entries: int) -> bool:
    return await redis.xlen(TenantKeys.of(TENANT).ingest) == entries


async def test_on_a_cluster_the_stream_and_the_sessions_may_lie_on_different_servers(cluster_url: str) -> None:
    async with connect_sessions(cluster_url) as sessions:
        redis = sessions.client
        for number in range(3):
            for session in ("a", "b", "c", "d", "e"):
                await publish(redis, entry(session, turn_json(number, session)))
        await publish(redis, entry("a", "no turn"))
        async with reading(cluster_url):
            await until_empty(redis)
        for session in ("a", "b", "c", "d", "e"):
            assert await stored_ids(sessions, session) == ["t0", "t1", "t2"]
        letters = IngestLetters(redis)
        assert [one.refusal.reason for one in await letters.letters()] == ["invalid_json"]
        await publish(redis, entry("a", turn_json(9)))
        assert await IngestStreams(redis).forget(TENANT, "a") == 1
        assert (await IngestStreams(redis).waiting([TENANT, "other"]))[0].entries == 0
        assert await letters.erase(TENANT, "a") == 1
