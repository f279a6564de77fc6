"""Sessions erased at random moments, with turns, embeddings, summaries and facts of them under way: nothing stays.

Then one of the users is erased with all that is left of theirs, while they still talk.

PREFOLD_SEED=7 ./run test tests/chaos/test_erasures.py      the same moments once more
./run test-long tests/chaos/test_erasures.py                500 erasures, and the grace in real time
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from prefold.recall.names import COLLECTION_PREFIX
from prefold.stack.embedded import EmbeddedStack, temporary_stack
from prefold.stack.redis_server import session_options, with_options
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import ERASE_GRACE
from tests.support.canaries import in_command_logs, in_files, in_keys, in_readable_values, uncompressed
from tests.support.embedding_server import embedding_server
from tests.support.erased_lives import Run, Scale, erase_user_who_talks
from tests.support.logged_roles import embedding_with
from tests.support.quiet import Stores, opened_stores
from tests.support.redis import RunningRedis, running_redis
from tests.support.seeds import seed_of_run, tell
from tests.support.waiting import wait_until

TURNS_OF_A_DIGEST = 8
"""A session with fewer may have said too little for one."""

SHORT = Scale(erasures=10, at_once=7, waits_for_grace=False, users=2)
LONG = Scale(erasures=500, at_once=24, waits_for_grace=True, users=40)


@pytest.fixture
def server() -> Iterator[RunningRedis]:
    """A session server with a log, whose files show what they hold."""
    with running_redis(with_options(session_options("fast"), rdbcompression="no")) as running:
        yield running


@pytest.fixture
def stack(server: RunningRedis, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedStack]:
    """All roles as processes; the vector store tidies up within seconds."""
    monkeypatch.setenv("PREFOLD_VECTORS_FLUSH_SECONDS", "0.5")
    monkeypatch.setenv("PREFOLD_VECTORS_VACUUM_IDLE_SECONDS", "0.5")
    with embedding_server() as url:
        embedding: dict[str, Any] = embedding_with(url)
        with temporary_stack(redis_url=server.url, **embedding) as running:
            yield running


@pytest.fixture
def stores(stack: EmbeddedStack) -> Iterator[Stores]:
    with opened_stores(stack.redis_url, stack.queue_url, stack.qdrant_url, stack.qdrant_api_key) as opened:
        uncompressed(opened.queue)
        yield opened


@pytest.mark.parametrize(
    "scale",
    [
        pytest.param(SHORT, id="10", marks=pytest.mark.timeout(180)),
        pytest.param(LONG, id="500", marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_nothing_of_an_erased_life_is_left_in_any_store(
    server: RunningRedis, stack: EmbeddedStack, stores: Stores, scale: Scale
) -> None:
    run = Run(stack.gateway_url, stores, scale, random.Random(seed_of_run("these erasures")))
    asyncio.run(run.all())
    erased, living = run.canaries(erased=True), run.canaries(erased=False)
    assert len(erased) == scale.erasures
    check_receipts(run)

    # What the receipts promise of the files of the session store, before any worker looks again.
    files = server.server.directory
    wait_until("the rewrites have followed", lambda: not in_files(files, erased), timeout=12)
    wait_until("all work is done", stores.is_quiet, timeout=120)
    over = run.incarnations(erased=True)
    assert len(over) == scale.erasures
    follow_up(stores, run, at_once=not scale.waits_for_grace)
    close_all(run)
    check_memory(stores, run)

    # Everything that is stored, with what lives as the proof that one would find it.
    found = in_keys(stores.sessions, [*erased, *living])
    assert not set(found) & set(erased), found
    assert set(found) == set(living)
    assert not in_keys(stores.queue, erased)
    for redis in (stores.sessions, stores.queue):
        assert not in_command_logs(redis, erased)
    assert set(in_files(files, [*erased, *living])) == set(living)
    assert not in_files(stack.settings.data_dir, [*erased, *living])  # vectors without words, logs without text
    check_lives(stores, run)
    check_answers(run)

    # Not even the names of those lives, but in the log of the vector store, as the receipts say.
    assert not in_readable_values(stores.stored("*"), over)
    names = [name.encode() for name in over]
    assert not in_keys(stores.queue, names)
    vectors = stack.settings.data_dir / "vectors"
    wait_until("the vector store has tidied up", lambda: not outside_of_logs(in_files(vectors, names)), timeout=60)
    tell_of_work_in_flight(stack)

    user = run.users[0]
    theirs = [life.canary.encode() for life in run.living(user)]
    assert theirs
    asyncio.run(erase_user_who_talks(run, user))
    wait_until("all work is done", stores.is_quiet, timeout=120)
    follow_up(stores, run, at_once=not scale.waits_for_grace)
    assert in_keys(stores.sessions, run.canaries(erased=True)) == {}
    assert in_keys(stores.queue, run.canaries(erased=True)) == {}
    wait_until("the rewrites have followed", lambda: not in_files(files, theirs), timeout=12)
    check_memory(stores, run)
    check_lives(stores, run)
    check_answers(run)


def close_all(run: Run) -> None:
    """Every living session has its digest and its facts, too."""
    with httpx.Client(base_url=run.url, timeout=20) as client:
        for life in run.living():
            address = f"/v1/sessions/{life.session}/close"
            wait_until("it is closed", lambda: client.post(address, json={}).status_code == 200, timeout=60)  # noqa: B023


def check_memory(stores: Stores, run: Run) -> None:
    """Facts and vectors are those of the living sessions; each of them has some."""
    points = [point["payload"] for point in stores.points().values()]
    assert not [payload for payload in points if "CANARY" in repr(payload)]
    derived = [payload for payload in points if "kind" in payload]
    texts = {payload["incarnation"] for payload in derived if payload["kind"] != "fact"}
    talkative = {life.incarnation for life in run.living() if len(life.acked) >= TURNS_OF_A_DIGEST}
    assert talkative <= texts <= run.incarnations(erased=False)
    with httpx.Client(base_url=run.url, timeout=20) as client:
        for user in run.users:
            rows = client.get(f"/v1/users/{user}/facts", params={"history": True}).raise_for_status().json()["facts"]
            sessions = {source["session"] for row in rows for source in row["sources"]}
            assert sessions == {life.session for life in run.living(user)}
            keys = {payload["key"] for payload in derived if (payload["kind"], payload["user"]) == ("fact", user)}
            assert keys == {row["id"] for row in rows if row.get("superseded_by") is None}


def check_answers(run: Run) -> None:
    """Nothing that can be read, of anybody, has a word of what was erased."""
    with httpx.Client(base_url=run.url, timeout=20) as client:
        read = [client.get(f"/v1/users/{user}/{what}").text for user in run.users for what in ("facts", "graph")]
        read += [client.post("/v1/search", json={"query": life.canary, "limit": 50}).text for life in run.lives]
        for life in run.living():
            address = f"/v1/sessions/{life.session}"
            asked = {"query": "What is my dog called, and what am I allergic to?"}
            read += [client.get(f"{address}/context", params=asked).raise_for_status().text]
            read += [client.get(f"{address}/{what}").raise_for_status().text for what in ("state", "contexts", "turns")]
    everything = "\n".join(read)
    assert [one for one in run.canaries(erased=True) if one.decode() in everything] == []
    assert [one for one in run.canaries(erased=False) if one.decode() not in everything] == []


def outside_of_logs(found: dict[bytes, list[str]]) -> list[str]:
    return [file for files in found.values() for file in files if "/wal/" not in file]


def tell_of_work_in_flight(stack: EmbeddedStack) -> None:
    """How often an erasure met workers at work, by their own word."""
    lines = [line for path in stack.folder.logs.glob("worker*") for line in path.read_text("utf-8").splitlines()]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    embedding = sum(event["sessions_gone"] for event in events if event["event"] == "turns_embedded")
    building = Counter(
        event["event"] for event in events if event["event"] in ("build_gone", "build_lost", "build_stale")
    )
    tell(f"erased while being embedded: {embedding}; while a summary was written: {dict(building)}")


def check_receipts(run: Run) -> None:
    """They are honest: what a store could not be asked is not called gone."""
    for receipt in run.receipts:
        assert (receipt["keys_left"], receipt["events_left"], receipt["due_left"]) == (0, 0, 0), receipt
        assert receipt["dead_letters_left"] == 0
    unsure = sum(bool(receipt["not_checked"]) for receipt in run.receipts)
    assert unsure < len(run.receipts) / 2  # a store may be slow now and then
    busy = sum(bool(receipt["jobs_left"] or receipt["vectors_left"]) for receipt in run.receipts)
    turns = sum(receipt["turns"] for receipt in run.receipts)
    tell(
        f"{len(run.receipts)} receipts for {turns} turns; {busy} found work or vectors that had come in meanwhile, "
        f"{unsure} name a store that did not answer, {run.late_receipts} calls were made again"
    )


def ended_lives(stores: Stores, run: Run) -> set[str]:
    """Incarnations whose end no worker has followed up."""
    ended = set()
    for session in {life.session for life in run.lives}:
        fields = stores.sessions.hgetall(SessionKeys.of("default", session).tomb)
        ended |= {name.decode().removeprefix("end:") for name in fields if name.startswith(b"end:")}
    return ended


def follow_up(stores: Stores, run: Run, *, at_once: bool) -> None:
    """Waits until workers have looked again, after the grace or, to save the time, as if it had passed."""
    if at_once:
        due = [entry for entry in stores.due("expire") if entry.rpartition(":")[2] in ended_lives(stores, run)]
        for entry in due:
            key = SessionKeys.of("default", entry.split(":")[2]).due
            stores.sessions.zadd(key, {entry: 1}, xx=True)
    wait_until(
        "workers have looked at every life that is over",
        lambda: not ended_lives(stores, run),
        timeout=60 + ERASE_GRACE.total_seconds(),
    )
    wait_until("all work is done", stores.is_quiet, timeout=60)


def check_lives(stores: Stores, run: Run) -> None:
    """What lives is whole, and nobody else has vectors or anything due."""
    living = {life.incarnation: len(life.acked) for life in run.lives if not life.is_erased}
    for life in run.lives:
        if not life.is_erased:
            assert stores.sessions.xlen(SessionKeys.of("default", life.session).turns) == len(life.acked)
    turns = [point for point in stores.points().values() if point["collection"].startswith(COLLECTION_PREFIX)]
    points = [point["payload"]["incarnation"] for point in turns]
    assert {name: points.count(name) for name in set(points)} == living
    assert sorted(entry.split(":")[0] for entry in stores.due("embed", "compact", "expire")) == ["expire"] * len(living)
