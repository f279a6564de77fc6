"""``DELETE /v1/sessions/{session}`` on a real Redis."""

import time
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest
from redis.asyncio import Redis

from prefold.facts import FactBook, Source, Stated
from prefold.gateway.answers import Remains
from prefold.gateway.finding import Hit
from prefold.gateway.rewriting import opened_rewrites
from prefold.jobs import JobQueue, queue_connection
from prefold.jobs.dead_letters import DeadLetter, DeadLetters
from prefold.stack.redis_server import with_options
from prefold.storage import Sessions
from prefold.storage.events import GROUP, TurnEvents
from prefold.storage.keys import SessionKeys, TenantKeys, UserKeys, partition_of, partition_tag, slot_of, slot_of_key
from prefold.storage.store_files import FileKind, KeptFiles, Started, StoreFiles
from prefold.storage.types import ErasedSession, SessionRef
from tests.support.gateway import Served, served_gateway
from tests.support.redis import IN_MEMORY, RunningRedis, running_redis
from tests.support.waiting import wait_until_async

SESSION = "/v1/sessions/s1"
STARTED = "the rewrite that was started now"
OWED = "the rewrite that follows within seconds of the one before it"
TURN = {"id": "m1", "role": "user", "content": "CANARY-7731 is my secret"}


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


async def embedded(served: Served) -> tuple[str, Hit]:
    """The vector of the first turn of the session as it lives now."""
    life = (await served.sessions.view("default", "s1")).ref.incarnation
    return "default", Hit("s1", life, 1, 0, 1.0)


OF_THE_SAME_PARTITION = next(
    name for name in map(str, range(10_000)) if partition_of("default", name) == partition_of("default", "s1")
)


async def events_naming(served: Served, session: str) -> list[object]:
    keys = SessionKeys.of("default", session)
    entries: Any = await served.sessions.client.xrange(keys.events)
    return [entry for entry in entries if entry[1][b"turns"].startswith(f"{keys.label}:".encode())]


async def due_naming(served: Served, session: str) -> list[str]:
    keys = SessionKeys.of("default", session)
    raw: list[Any] = await served.sessions.client.zrange(keys.due, 0, -1)
    members = [member.decode() for member in raw]
    return sorted(member for member in members if member.split(":", 1)[1].startswith(f"{keys.label}:"))


def of_primary(number: int) -> str:
    """A session that the primary of that third of the slots has."""
    slots = {name: slot_of(partition_tag(partition_of("default", name))) for name in map(str, range(100))}
    return next(name for name, slot in slots.items() if slot * 3 // 16384 == number)


def user_of_primary(number: int) -> str:
    slots = {name: slot_of_key(UserKeys.of("default", name).meta) for name in map(str, range(100))}
    return next(name for name, slot in slots.items() if slot * 3 // 16384 == number)


def letter_of(ref: SessionRef) -> DeadLetter:
    now_ms = time.time_ns() // 1_000_000
    return DeadLetter(
        at_ms=now_ms,
        kind="compact",
        tenant=ref.tenant,
        session=ref.session,
        incarnation=ref.incarnation,
        reason="worker_died",
        starts=3,
        first_ms=now_ms,
        from_seq=1,
        to_seq=1,
        version="1",
        state="",
    )


async def slow_log(client: Redis) -> bytes:
    return repr(await client.execute_command("SLOWLOG", "GET", -1)).encode()  # type: ignore[no-untyped-call]


def files_with(server: RunningRedis, text: bytes) -> set[str]:
    found = [path for path in server.server.directory.rglob("*") if path.is_file() and text in path.read_bytes()]
    return {path.name for path in found}


def untils(remains: list[Remains]) -> list[str]:
    return [one.until for one in remains]


async def test_an_erased_session_is_gone_and_the_receipt_says_what_was_looked_at(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(await embedded(served))
    answer = await served.client.delete(SESSION)
    receipt = answer.json()
    assert answer.status_code == 200
    assert (receipt["turns"], receipt["keys_left"], receipt["vectors_left"]) == (1, 0, 0)
    assert (receipt["events_left"], receipt["due_left"], receipt["dead_letters_left"]) == (0, 0, 0)
    assert (receipt["opened_anew"], receipt["forks"], receipt["not_checked"]) == (False, [], ["jobs"])
    assert served.index.hits == []
    keys = [key async for key in served.sessions.client.scan_iter("*")]
    dumps = [await served.sessions.client.dump(key) or b"" for key in keys]
    assert not any(b"CANARY" in dump for dump in dumps)
    assert sorted(key.decode().rpartition(":")[2] for key in keys if b"s1" in key) == ["tomb"]


@pytest.mark.parametrize("path", ["", "/context", "/turns"])
async def test_what_was_erased_reads_as_erased(served: Served, path: str) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    answer = await served.client.get(SESSION + path)
    assert (answer.status_code, answer.json()["code"]) == (410, "session_erased")


async def test_an_append_is_refused_until_the_session_is_put_anew(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    refused = await served.client.post(f"{SESSION}/turns", json=TURN)
    assert (refused.status_code, refused.json()["code"]) == (410, "session_erased")
    assert (await served.client.put(SESSION, json={})).status_code == 200
    again = await served.client.post(f"{SESSION}/turns", json=TURN)
    assert again.json()["turns"] == [
        {"id": "m1", "seq": 1, "tokens": again.json()["turns"][0]["tokens"], "duplicate": False}
    ]


async def test_erasing_twice_is_safe_and_an_unknown_session_is_not_found(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    again = await served.client.delete(SESSION)
    assert (again.status_code, again.json()["turns"]) == (200, 0)
    unknown = await served.client.delete("/v1/sessions/never")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "session_not_found")


async def test_vectors_that_cannot_be_deleted_now_are_named_and_deleted_by_the_repeat(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(await embedded(served))
    served.index.is_down = True
    answer = await served.client.delete(SESSION)
    receipt = answer.json()
    assert (answer.status_code, receipt["turns"], receipt["vectors_left"]) == (200, 1, None)
    assert "vectors" in receipt["not_checked"]
    assert "vectors" in [one["where"] for one in receipt["remains"]]
    served.index.is_down = False
    repeated = (await served.client.delete(SESSION)).json()
    assert (repeated["vectors_left"], served.index.hits) == (0, [])
    assert "vectors" not in repeated["not_checked"]


async def test_only_the_erased_life_loses_its_vectors(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits += [await embedded(served), ("default", Hit("s1", "another-life", 1, 0, 1.0))]
    await served.client.delete(SESSION)
    assert [hit.incarnation for _, hit in served.index.hits] == ["another-life"]


async def test_a_repeat_that_meets_a_new_life_spares_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(await embedded(served))
    served.index.is_down = True
    await served.client.delete(SESSION)
    served.index.is_down = False
    await served.client.put(SESSION, json={})
    await served.client.post(f"{SESSION}/turns", json=TURN)
    served.index.hits.append(await embedded(served))
    living = served.index.hits[1]

    async def erased_before(_sessions: Sessions, _tenant: str, session: str, **_given: str) -> ErasedSession:
        return ErasedSession(session, "", 0, 0)  # the new life began after the script of the repeat

    monkeypatch.setattr(Sessions, "erase", erased_before)
    receipt = (await served.client.delete(SESSION)).json()
    assert served.index.hits == [living]
    assert (receipt["opened_anew"], receipt["keys_left"], receipt["events_left"], receipt["due_left"]) == (
        True,
        0,
        0,
        0,
    )
    assert (await served.client.get(f"{SESSION}/turns")).json()["turns"][0]["content"] == TURN["content"]
    assert len(await events_naming(served, "s1")) == 1
    assert [entry.split(":")[0] for entry in await due_naming(served, "s1")] == [
        "embed",
        "expire",
        "expire",
        "remember",
    ]


async def test_an_erasure_stays_due_for_the_worker_to_look_again(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    await served.client.delete(SESSION)
    assert [entry.split(":")[0] for entry in await due_naming(served, "s1")] == ["expire"]


async def test_events_that_name_the_session_go_though_a_dispatcher_has_them_in_hand(served: Served) -> None:
    for session in ("s1", OF_THE_SAME_PARTITION):
        for number in range(3):
            await served.client.post(f"/v1/sessions/{session}/turns", json={**TURN, "id": f"m{number}"})
    events = TurnEvents(served.sessions.client)
    await events.ensure_groups()
    assert len(await events.read("d1", 5, 0)) == 5
    receipt = (await served.client.delete(SESSION)).json()
    assert receipt["events_left"] == 0
    assert await events_naming(served, "s1") == []
    assert len(await events_naming(served, OF_THE_SAME_PARTITION)) == 3
    assert {event.ref.session for event in await events.pending("d1")} == {OF_THE_SAME_PARTITION}
    stream = SessionKeys.of("default", "s1").events
    assert (await served.sessions.client.xpending(stream, GROUP))["pending"] == 2


async def test_jobs_and_dead_letters_that_name_the_session_go_and_those_of_others_stay(
    redis_url: str, queue_url: str
) -> None:
    async with served_gateway(redis_url, queue_url=queue_url) as served:
        for session in ("s1", "other"):
            await served.client.post(f"/v1/sessions/{session}/turns", json=TURN)
        refs = [(await served.sessions.view("default", name)).ref for name in ("s1", "other")]
        letters = DeadLetters(served.sessions.client)
        for ref in refs:
            assert await letters.set_aside(letter_of(ref))
        with closing(JobQueue(queue_connection(queue_url))) as jobs:
            jobs.compact(refs, occasion="both")
            receipt = (await served.client.delete(SESSION)).json()
            assert (receipt["jobs_left"], receipt["dead_letters_left"], receipt["not_checked"]) == (0, 0, [])
            assert [jobs.jobs_of("default", name) for name in ("s1", "other")] == [0, 1]
        assert [await letters.count("default", name) for name in ("s1", "other")] == [0, 1]


@pytest.mark.parametrize("queue_url_of_nobody", [None, "unix:///nowhere/queue.sock"])
async def test_a_queue_that_cannot_be_looked_at_is_named_as_not_checked(
    redis_url: str, queue_url_of_nobody: str | None
) -> None:
    async with served_gateway(redis_url, queue_url=queue_url_of_nobody) as served:
        await served.client.post(f"{SESSION}/turns", json=TURN)
        answer = await served.client.delete(SESSION)
    receipt = answer.json()
    assert (answer.status_code, receipt["jobs_left"], receipt["not_checked"]) == (200, None, ["jobs"])
    assert any(one["where"].startswith("job queue") for one in receipt["remains"])


async def test_words_in_the_servers_log_of_slow_commands_go_too(served: Served) -> None:
    client = served.sessions.client
    await client.config_set("slowlog-log-slower-than", 0)
    try:
        await served.client.post(f"{SESSION}/turns", json=TURN)
        assert b"CANARY" in await slow_log(client)
        receipt = (await served.client.delete(SESSION)).json()
        assert receipt["commands_left"] is not None
        assert b"CANARY" not in await slow_log(client)
    finally:
        await client.config_set("slowlog-log-slower-than", 10_000)


async def test_words_of_a_removed_turn_go_from_the_log_of_slow_commands(served: Served) -> None:
    client = served.sessions.client
    await client.config_set("slowlog-log-slower-than", 0)
    try:
        await served.client.post(f"{SESSION}/turns", json=TURN)
        assert b"CANARY" in await slow_log(client)
        assert (await served.client.delete(f"{SESSION}/turns/m1")).status_code == 200
        assert b"CANARY" not in await slow_log(client)
    finally:
        await client.config_set("slowlog-log-slower-than", 10_000)


@pytest.mark.parametrize("erased", [SESSION, f"{SESSION}/turns/m1"], ids=["session", "turn"])
async def test_words_of_its_users_facts_go_from_the_log_of_slow_commands(served: Served, erased: str) -> None:
    client = served.sessions.client
    await served.client.put(SESSION, json={"user": "ada"})
    await served.client.post(f"{SESSION}/turns", json=TURN)
    life = (await served.sessions.view("default", "s1")).ref
    await client.execute_command("SLOWLOG", "RESET")  # type: ignore[no-untyped-call]
    await client.config_set("slowlog-log-slower-than", 0)
    try:
        await know_of(served, life, "ada")
    finally:
        await client.config_set("slowlog-log-slower-than", 10_000)
    assert b"CANARY" in await slow_log(client)
    assert (await served.client.delete(erased)).json()["facts_withdrawn"] == 1
    assert b"CANARY" not in await slow_log(client)


async def know_of(served: Served, life: SessionRef, user: str) -> None:
    """A fact that the turn states, as a memory worker learns it."""
    now_ms = time.time_ns() // 1_000_000
    said = Stated(
        "user",
        "secret",
        "CANARY-7731",
        "other",
        0.9,
        TURN["content"],
        Source(life.session, life.incarnation, "m1", 1, 0),
        now_ms,
    )
    await FactBook(served.sessions.users).learn("default", user, [said], now_ms=now_ms)


async def test_what_the_server_does_not_let_us_do_is_named() -> None:
    with running_redis(with_options(IN_MEMORY, appendonly="yes")) as server:
        async with Redis.from_url(server.url) as admin:
            refused = ("-slowlog", "-commandlog", "-bgrewriteaof", "-config", "-info")
            await admin.execute_command("ACL", "SETUSER", "default", *refused)  # type: ignore[no-untyped-call]
        async with served_gateway(server.url) as served:
            await served.client.post(f"{SESSION}/turns", json=TURN)
            answer = await served.client.delete(SESSION)
    receipt = answer.json()
    assert (answer.status_code, receipt["keys_left"], receipt["commands_left"]) == (200, 0, None)
    assert receipt["not_checked"] == ["jobs", "slow_commands"]
    until = {one["where"]: one["until"] for one in receipt["remains"]}
    assert until["redis append-only file"] == "the server's next rewrite, which it does not let us start"
    assert "log of slow commands" in until


async def test_on_a_cluster_the_server_of_the_session_is_the_one_that_is_asked(cluster_url: str) -> None:
    async with served_gateway(cluster_url) as served:
        for session in (of_primary(number) for number in range(3)):
            await served.client.post(f"/v1/sessions/{session}/turns", json=TURN)
            receipt = (await served.client.delete(f"/v1/sessions/{session}")).json()
            assert (receipt["turns"], receipt["keys_left"], receipt["events_left"]) == (1, 0, 0)
            assert (receipt["due_left"], receipt["commands_left"]) == (0, 0)
            until = {one["where"]: one["until"] for one in receipt["remains"]}
            assert until["redis append-only file"] in (STARTED, OWED)
            assert "files of its replicas" in until


@pytest.mark.parametrize(("erased", "is_published"), [("", False), ("", True), ("/turns/m1", False)])
async def test_on_a_cluster_the_servers_of_its_user_and_of_its_ingest_stream_are_asked_too(
    cluster_url: str, monkeypatch: pytest.MonkeyPatch, erased: str, is_published: bool
) -> None:
    asked: list[str] = []
    write_anew = StoreFiles.write_anew

    async def noted(files: StoreFiles, kind: FileKind, key: str) -> Started:
        asked.append(files.place(key))
        return await write_anew(files, kind, key)

    monkeypatch.setattr(StoreFiles, "write_anew", noted)
    session, user = of_primary(0), user_of_primary(1)
    async with served_gateway(cluster_url) as served:
        await served.client.put(f"/v1/sessions/{session}", json={"user": user})
        await served.client.post(f"/v1/sessions/{session}/turns", json=TURN)
        await know_of(served, (await served.sessions.view("default", session)).ref, user)
        if is_published:
            await served.sessions.client.set(TenantKeys.of("default").ingest_used, "", px=60_000)
        assert (await served.client.delete(f"/v1/sessions/{session}{erased}")).json()["facts_withdrawn"] == 1
        held = [SessionKeys.of("default", session).meta, UserKeys.of("default", user).meta]
        held += [TenantKeys.of("default").ingest] if is_published else []
        assert set(asked) == set(map(StoreFiles(served.sessions.client).place, held))
        assert len(set(asked)) >= 2
        await served.client.delete(f"/v1/sessions/{session}")


async def test_sessions_that_were_forked_from_it_are_named_and_stay(served: Served) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    assert (await served.client.post(f"{SESSION}/fork", json={"session": "branch"})).status_code == 201
    receipt = (await served.client.delete(SESSION)).json()
    assert receipt["forks"] == ["branch"]
    assert (await served.client.get("/v1/sessions/branch/turns")).json()["turns"][0]["content"] == TURN["content"]


async def test_a_server_without_files_is_not_made_to_write_one(served: Served, redis_server: RunningRedis) -> None:
    await served.client.post(f"{SESSION}/turns", json=TURN)
    receipt = (await served.client.delete(SESSION)).json()
    assert not [one for one in receipt["remains"] if one["where"].startswith("redis")]
    assert not (await served.sessions.client.info("persistence"))["aof_rewrites"]
    assert list(redis_server.server.directory.rglob("*.aof*")) == []


async def test_log_and_snapshot_are_both_written_anew_where_both_are_kept() -> None:
    with running_redis(with_options(IN_MEMORY, appendonly="yes", save="3600 1", rdbcompression="no")) as server:
        async with served_gateway(server.url) as served:
            await served.client.post(f"{SESSION}/turns", json=TURN)
            await served.sessions.client.save()
            assert files_with(server, b"CANARY") == {"appendonly.aof.1.incr.aof", "dump.rdb"}
            receipt = (await served.client.delete(SESSION)).json()
            files = [one["where"] for one in receipt["remains"] if one["where"].startswith("redis")]
            assert files == ["redis append-only file", "redis snapshot file"]

            async def are_clean() -> bool:
                return not files_with(server, b"CANARY")

            await wait_until_async("no file has it", are_clean)


async def test_a_rewrite_under_way_is_followed_by_the_one_that_the_receipt_names(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Started] = ["under_way", "under_way", "started"]

    async def kept(_files: StoreFiles, _key: str) -> KeptFiles:
        return KeptFiles(log=True, snapshot=False, replicas=0)

    async def write_anew(_files: StoreFiles, _kind: FileKind, _key: str) -> Started:
        return answers.pop(0)

    monkeypatch.setattr(StoreFiles, "kept", kept)
    monkeypatch.setattr(StoreFiles, "write_anew", write_anew)

    async def has_started() -> bool:
        return not answers

    async with opened_rewrites(served.sessions.client, pause_seconds=0.01) as rewrites:
        assert untils(await rewrites.ask()) == [OWED]
        await wait_until_async("the rewrite has been started", has_started)


async def test_the_server_says_what_a_rewrite_under_way_looks_like() -> None:
    slow = with_options(IN_MEMORY, appendonly="yes", rdb_key_save_delay="20000")
    with running_redis(slow) as server:
        async with Redis.from_url(server.url) as redis, opened_rewrites(redis) as rewrites:
            await wait_until_async("no first rewrite is under way", lambda: _is_idle(redis))
            await redis.mset({f"k{number}": "v" for number in range(200)})
            assert untils(await rewrites.ask()) == [STARTED]
            assert untils(await rewrites.ask()) == [OWED]
            assert await StoreFiles(redis).write_anew("log", "") == "under_way"


async def _is_idle(redis: Redis) -> bool:
    return not (await redis.info("persistence"))["aof_rewrite_in_progress"]


async def test_a_full_store_takes_no_turns_and_goes_on_with_erasures_behind_a_gateway_that_stays_ready() -> None:
    with running_redis(with_options(IN_MEMORY, maxmemory="3mb")) as server:
        async with served_gateway(server.url) as served:
            assert (await served.client.get("/readyz")).status_code == 200
            text = "word " * 20_000
            answer = await served.client.get("/livez")
            for number in range(100):
                turn = {"id": f"m{number}", "role": "user", "content": text}
                answer = await served.client.post(f"/v1/sessions/s{number}/turns", json=turn)
                if answer.status_code != 201:
                    break
            assert (answer.status_code, answer.json()["code"]) == (503, "store_full")
            assert int(answer.headers["retry-after"]) >= 1
            ready = await served.client.get("/readyz")
            assert (ready.status_code, ready.json()["checks"]["sessions"]) == (200, "is full")
            receipt = await served.client.delete("/v1/sessions/s0")
            assert (receipt.status_code, receipt.json()["keys_left"], receipt.json()["events_left"]) == (200, 0, 0)
