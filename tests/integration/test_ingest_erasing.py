"""An erasure reaches what waits in an ingest stream and what could not be stored from there."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from prefold.audit import AuditEntry, read_audit
from prefold.deadletters.main import main
from prefold.dispatcher.ingesting import opened_ingest
from prefold.errors import GoneError
from prefold.storage.ingest import IngestStreams
from prefold.storage.ingest_letters import IngestLetters, Refusal
from prefold.storage.keys import TenantKeys
from prefold.tokens import load_counter
from tests.support.gateway import Served, served_gateway
from tests.support.publishing_turns import entry, publish, reading, settings, stored_ids, turn_json, until_empty

TENANT = "default"
SECRET = "CANARY-7731"
WORDS = f'{{"id":"w","role":"user","content":"{SECRET}"}}'
BROKEN = f'{{"role":"user","content":"{SECRET}"}}'


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of this process are not the command's to set up."""
    monkeypatch.setattr("prefold.deadletters.main.configure_logging", lambda *_: None)


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def publish_both(redis: Redis, redis_url: str, session: str) -> None:
    """A letter with the session's words, and an entry that waits."""
    await publish(redis, entry(session, BROKEN), TENANT)
    async with reading(redis_url, ingest_tenants=TENANT):
        await until_empty(redis, TENANT)
    await publish(redis, entry(session, WORDS), TENANT)


async def has_words(redis: Redis) -> bool:
    return any([SECRET.encode() in (await redis.dump(key) or b"") async for key in redis.scan_iter("*")])


async def test_a_sessions_entries_and_letters_go_and_those_of_others_stay(
    served: Served, redis: Redis, redis_url: str
) -> None:
    await served.client.put("/v1/sessions/s1", json={})
    await publish_both(redis, redis_url, "s1")
    other = await publish(redis, entry("s2", turn_json(1)), TENANT)
    assert await has_words(redis)
    receipt = (await served.client.delete("/v1/sessions/s1")).json()
    assert (receipt["events_left"], receipt["dead_letters_left"]) == (0, 0)
    waiting: Any = await redis.xrange(TenantKeys.of(TENANT).ingest)
    assert [entry_id.decode() for entry_id, _ in waiting] == [other]
    assert await IngestLetters(redis).letters(TENANT) == []
    async with reading(redis_url, ingest_tenants=TENANT):
        await until_empty(redis, TENANT)
    assert not await has_words(redis)
    assert await IngestStreams(redis).was_used(TENANT), "the server's file may still hold them"
    with pytest.raises(GoneError):
        await served.sessions.view(TENANT, "s1")


async def test_those_of_a_users_sessions_go_with_the_user(served: Served, redis: Redis, redis_url: str) -> None:
    await served.client.put("/v1/sessions/s1", json={"user": "ada"})
    await publish_both(redis, redis_url, "s1")
    receipt = (await served.client.delete("/v1/users/ada")).json()
    assert (receipt["events_left"], receipt["dead_letters_left"]) == (0, 0)
    assert not await redis.exists(*TenantKeys.of(TENANT).letter_keys())


async def test_a_session_of_which_all_turns_still_wait_is_erased_with_them(
    served: Served, redis: Redis, redis_url: str
) -> None:
    await publish(redis, entry("s1", WORDS), TENANT)
    async with opened_ingest(settings(redis_url, ingest_tenants=TENANT)) as ingest:
        in_hand = await ingest._take(TENANT, "")
        assert isinstance(in_hand, list)
        answer = await served.client.delete("/v1/sessions/s1")
        assert (answer.status_code, answer.json()["turns"]) == (200, 0)
        assert not await redis.exists(TenantKeys.of(TENANT).ingest)
        await ingest._batches.apply(TENANT, in_hand, load_counter())
    assert not await has_words(redis)
    with pytest.raises(GoneError):
        await served.sessions.view(TENANT, "s1")


async def test_a_full_store_gives_up_what_waits_as_well(served: Served, redis: Redis) -> None:
    await publish(redis, entry("s1", WORDS), TENANT)
    await redis.config_set("maxmemory", 1)
    try:
        answer = await served.client.delete("/v1/sessions/s1")
    finally:
        await redis.config_set("maxmemory", 0)
    assert (answer.status_code, answer.json()["turns"]) == (200, 0)
    assert not await has_words(redis)


async def test_after_a_restore_what_was_published_before_it_goes_and_what_comes_later_stays(
    served: Served, redis: Redis, redis_url: str
) -> None:
    stream = TenantKeys.of(TENANT).ingest
    await redis.xadd(stream, entry("s1", WORDS), id="1000-7")
    later = await publish(redis, entry("s1", turn_json(1)), TENANT)
    answer = await served.client.delete("/v1/sessions/s1", params={"before": "1970-01-01T00:00:01+00:00"})
    assert answer.json()["code"] == "session_not_found"
    waiting: Any = await redis.xrange(stream)
    assert [entry_id.decode() for entry_id, _ in waiting] == [later]
    await redis.delete(stream)


@pytest.mark.parametrize("turn", ["small", "a" * 3_000])
async def test_an_entry_that_names_two_sessions_is_never_kept(redis: Redis, redis_url: str, turn: str) -> None:
    """The erasure of one of them would not find it."""
    fields = ("session", "s1", "session", "s2", "turn", turn, "v", "1", "more", "x")
    await redis.execute_command("XADD", TenantKeys.of(TENANT).ingest, "*", *fields)  # type: ignore[no-untyped-call]
    async with reading(redis_url, ingest_tenants=TENANT, turn_max_bytes=1_024):
        await until_empty(redis, TENANT)
    (letter,) = await IngestLetters(redis).letters(TENANT)
    assert not letter.has_text


async def test_an_erasure_looks_through_a_long_stream_in_steps_and_leaves_what_comes_meanwhile(redis: Redis) -> None:
    for start in range(0, 1_300, 100):
        async with redis.pipeline(transaction=False) as pipe:
            for number in range(start, start + 100):
                pipe.xadd(TenantKeys.of(TENANT).ingest, entry(f"s{number % 3}", turn_json(number)))
            await pipe.execute()
    streams = IngestStreams(redis)
    assert await streams.forget(TENANT, "s1") == 433
    assert (await streams.count(TENANT, "s1"), await streams.count(TENANT, "s2")) == (0, 433)
    await redis.delete(TenantKeys.of(TENANT).ingest)


async def test_an_entry_that_an_erasure_took_away_leaves_no_letter(redis: Redis) -> None:
    """The reader had read it before, and hears of the erasure when it stores the turn."""
    entry_id = await publish(redis, entry("s1", WORDS), TENANT)
    await IngestStreams(redis).forget(TENANT, "s1")
    letters = IngestLetters(redis)
    assert await letters.set_aside(TENANT, entry_id, "s1", Refusal("any", "", 1, "1"), keep_text=True) is None
    assert await letters.letters(TENANT) == []


async def run(redis_url: str, *given: str) -> int:
    return await asyncio.to_thread(main, [*given, "--redis-url", redis_url, "--queue-url", "redis://127.0.0.1:1/0"])


async def test_the_command_shows_letters_without_their_words_and_replays_and_erases_them(
    served: Served, redis: Redis, redis_url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for session in ("s1", "s2", "s3"):
        await publish(redis, entry(session, WORDS), TENANT)
    async with reading(redis_url, ingest_tenants=TENANT, turn_max_bytes=1_024):
        await until_empty(redis, TENANT)
        await publish(redis, entry("s1", WORDS.replace(SECRET, SECRET * 200)), TENANT)
        await publish(redis, entry("s2", BROKEN), TENANT)
        await until_empty(redis, TENANT)
    capsys.readouterr()
    assert await run(redis_url, "list") == 0
    shown = capsys.readouterr().out
    first, second, last = shown.splitlines()
    assert "default/s1" in first and "too_large at turn" in first and "ingest" in first
    assert "default/s2" in second and "id_missing at id" in second
    assert last == "2 pieces of work set aside"
    await run(redis_url, "show", "--kind", "ingest")
    await run(redis_url, "list", "--json", "--tenant", TENANT, "--session", "s1")
    shown += capsys.readouterr().out
    assert "kept         whole" in shown and '"reason": "too_large"' in shown
    assert SECRET not in shown
    assert await run(redis_url, "replay", "--tenant", TENANT, "--session", "s1", "--audit-file", os.devnull) == 0
    async with reading(redis_url, ingest_tenants=TENANT):
        await until_empty(redis, TENANT)
    assert await stored_ids(served.sessions, "s1", TENANT) == ["w"], "the same id as before: a duplicate, or a conflict"
    await run(redis_url, "erase", "--kind", "ingest", "--audit-file", str(tmp_path / "audit"))
    assert await IngestLetters(redis).letters() == []
    noted = [one for one in read_audit(tmp_path / "audit") if isinstance(one, AuditEntry)]
    assert [(one.action, one.tenant, one.subject["session"]) for one in noted] == [
        ("dead_letter_erased", TENANT, "s2"),
        ("dead_letter_erased", TENANT, "s1"),
    ]
