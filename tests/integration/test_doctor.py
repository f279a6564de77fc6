"""``prefold doctor`` on real stores: well, ill, mute and away."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis
from rq import SimpleWorker

from prefold.cli.main import main as prefold
from prefold.config.addresses import Addresses
from prefold.jobs import QUEUES, DeadLetter, DeadLetters, hint_queue
from prefold.stack.embedded import EmbeddedStack
from prefold.stack.redis_server import queue_options, session_options
from prefold.stack.settings import StackSettings
from prefold.storage import connect_sessions
from prefold.storage.events import GROUP
from prefold.storage.keys import LAYOUT_KEY, PartitionKeys, SessionKeys
from prefold.storage.layout import LAYOUT
from tests.support.redis import RunningRedis, running_redis
from tests.support.replicas import replicated_pair
from tests.support.storage import SESSION, TENANT, append, turn
from tests.support.vectors import RunningVectors, python_environment, running_vectors

NOWHERE = "redis://127.0.0.1:1/0"


@dataclass
class Deployment:
    """Stores that are as they should be, until a test changes them."""

    sessions: RunningRedis
    queue: RunningRedis
    vectors: RunningVectors
    folder: Path

    def flags(self) -> list[str]:
        urls = ["--redis-url", self.sessions.url, "--queue-url", self.queue.url, "--qdrant-url", self.vectors.url]
        return [*urls, "--data-dir", str(self.folder), "--api-keys-file", str(self.folder / "keys")]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("data")
    (folder / "keys").write_text(f"acme {'0' * 64}\n")
    (folder / "keys").chmod(0o600)
    with (
        running_redis(session_options("durable")) as sessions,
        running_redis(queue_options()) as queue,
        running_vectors(folder / "vectors") as vectors,
        Redis.from_url(queue.url) as client,
    ):
        for name in QUEUES:
            SimpleWorker([hint_queue(name, client)], connection=client).register_birth()  # type: ignore[no-untyped-call]
        yield Deployment(sessions, queue, vectors, folder)


@pytest.fixture(autouse=True)
def no_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process's logging would stay for the tests after this one."""
    monkeypatch.setattr("prefold.doctor.main.configure_logging", lambda *_: None)


@pytest.fixture
def deployment(running: Deployment, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    for name in [name for name in os.environ if name.startswith("PREFOLD_")]:
        monkeypatch.delenv(name)
    running.sessions.flush()
    return running


@contextmanager
def changed(server: RunningRedis, **settings: str) -> Iterator[None]:
    """Other settings of a server for a while."""
    with Redis.from_url(server.url, decode_responses=True) as client:
        names = [name.replace("_", "-") for name in settings]
        before: Any = client.config_get(*names)
        for name, value in zip(names, settings.values(), strict=True):
            client.config_set(name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                client.config_set(name, value)


def examine(capsys: pytest.CaptureFixture[str], flags: list[str]) -> tuple[int, dict[tuple[str, str], dict[str, str]]]:
    """Exit code, and the findings by part and name."""
    code = prefold(["doctor", "--json", *flags])
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is (code == 0)
    return code, {(one["part"], one["name"]): one for one in report["findings"]}


def ill(findings: dict[tuple[str, str], dict[str, str]]) -> dict[tuple[str, str], str]:
    """What is not as promised or not known, with its state."""
    return {key: one["state"] for key, one in findings.items() if one["state"] in ("wrong", "unknown")}


def test_a_deployment_that_is_as_promised_is_called_so(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    code, findings = examine(capsys, deployment.flags())
    assert (code, ill(findings)) == (0, {})
    assert findings["sessions", "appendfsync"] == {
        "part": "sessions",
        "name": "appendfsync",
        "state": "ok",
        "found": "always",
        "mend": "",
    }
    assert {part for part, _ in findings} == {"sessions", "queue", "vectors", "model", "machine", "work"}
    assert prefold(["doctor", *deployment.flags()]) == 0
    text = capsys.readouterr().out
    assert text.rstrip().endswith("are as promised.")
    assert "WRONG" not in text


@pytest.mark.parametrize(
    ("settings", "name", "mend"),
    [
        ({"appendonly": "no"}, "appendonly", "CONFIG SET appendonly yes"),
        ({"appendfsync": "everysec"}, "appendfsync", "CONFIG SET appendfsync always"),
        ({"no_appendfsync_on_rewrite": "yes"}, "no-appendfsync-on-rewrite", "CONFIG SET no-appendfsync-on-rewrite no"),
        ({"maxmemory": "1gb", "maxmemory_policy": "allkeys-lru"}, "maxmemory-policy", "noeviction"),
        ({"maxmemory": "1mb"}, "memory", "raise maxmemory"),
        ({"stream_node_max_bytes": "32768"}, "stream-node-max-bytes", "CONFIG SET stream-node-max-bytes 8192"),
    ],
)
def test_each_setting_that_breaks_a_promise_is_named_with_what_mends_it(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], settings: dict[str, str], name: str, mend: str
) -> None:
    with changed(deployment.sessions, **settings):
        code, findings = examine(capsys, deployment.flags())
        assert (code, ill(findings)) == (1, {("sessions", name): "wrong"})
        assert mend in findings["sessions", name]["mend"]
        assert prefold(["doctor", *deployment.flags()]) == 1
        assert "1 are not as promised" in capsys.readouterr().out


def test_a_store_of_another_layout_is_named(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    with Redis.from_url(deployment.sessions.url) as client:
        client.set(LAYOUT_KEY, LAYOUT + 1)
        try:
            code, findings = examine(capsys, deployment.flags())
        finally:
            client.delete(LAYOUT_KEY)
    assert (code, ill(findings)) == (1, {("sessions", "layout"): "wrong"})
    assert f"holds layout {LAYOUT + 1}" in findings["sessions", "layout"]["found"]


def test_a_fast_deployment_needs_no_log(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    with changed(deployment.sessions, appendonly="no"):
        code, findings = examine(capsys, [*deployment.flags(), "--durability", "fast"])
    assert (code, findings["sessions", "appendonly"]["state"]) == (0, "note")


def test_what_the_server_does_not_let_us_read_is_unknown_and_so_not_well(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    with Redis.from_url(deployment.sessions.url) as admin:
        admin.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-config")
    url = f"{deployment.sessions.url}?username=app&password=pw"
    code, findings = examine(capsys, [*deployment.flags(), "--redis-url", url])
    settings = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite")
    assert (code, ill(findings)) == (1, {("sessions", name): "unknown" for name in settings})
    assert "+config|get" in findings["sessions", "appendfsync"]["mend"]


def test_a_replica_in_the_place_of_the_primary_and_a_replica_that_is_missing(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    with replicated_pair() as pair:
        code, findings = examine(capsys, [*deployment.flags(), "--redis-url", pair.primary.url])
        assert (code, findings["sessions", "replicas"]["found"]) == (0, "1 connected, 1 to confirm each write")
        code, findings = examine(capsys, [*deployment.flags(), "--redis-url", pair.primary.url, "--replicas", "2"])
        assert (code, ill(findings)) == (1, {("sessions", "replicas"): "wrong"})
        _, findings = examine(capsys, [*deployment.flags(), "--redis-url", pair.replica.url])
        assert findings["sessions", "role"]["state"] == "wrong"


def test_the_queue_is_asked_for_little_and_for_workers(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    with changed(deployment.queue, maxmemory="1gb", maxmemory_policy="volatile-lru"), running_redis() as idle:
        _, findings = examine(capsys, deployment.flags())
        assert ill(findings) == {("queue", "maxmemory-policy"): "wrong"}
        _, findings = examine(capsys, [*deployment.flags(), "--queue-url", idle.url])
        assert ill(findings) == {("queue", name): "wrong" for name in QUEUES}
        assert findings["queue", "embed"]["mend"] == "start `prefold worker embed`"


def test_a_collection_that_does_not_fit_the_embedder_is_found(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    embedder = ("--embedder", "http", "--embedder-url", "http://127.0.0.1:1", "--embedder-model", "m")
    named = f"{deployment.vectors.url}/collections/turns_m_8"
    layout = {"vectors": {"dense": {"size": 4, "distance": "Cosine"}}, "sparse_vectors": {"words": {"modifier": "idf"}}}
    httpx.put(named, json=layout).raise_for_status()
    try:
        _, findings = examine(capsys, [*deployment.flags(), *embedder, "--embedder-dimension", "8"])
        assert ill(findings) == {("vectors", "collection"): "wrong"}
        assert "4 dimensions" in findings["vectors", "collection"]["found"]
        _, findings = examine(capsys, [*deployment.flags(), *embedder])
        assert ill(findings) == {("vectors", "embedder"): "unknown"}, "a server that is away cannot be asked"
    finally:
        httpx.delete(named).raise_for_status()


async def test_work_that_nobody_does_is_found(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    hour_ago_ms = (time.time_ns() // 1_000_000) - 3_600_000
    async with connect_sessions(deployment.sessions.url) as sessions:
        ref = (await append(sessions, turn("user", "Hello"))).ref
        keys = SessionKeys.of(TENANT, SESSION)
        events = PartitionKeys.of(keys.partition).events
        fields = (await sessions.client.xrange(events))[0][1]  # type: ignore[index]
        await sessions.client.delete(events)
        await sessions.client.xadd(events, fields, id=f"{hour_ago_ms}-0")  # type: ignore[arg-type]
        await sessions.client.xgroup_create(events, GROUP, id="0")
        member = f"embed:{keys.label}:{ref.incarnation}"
        await sessions.client.zadd(keys.due, {member: hour_ago_ms})
        letter = DeadLetter(hour_ago_ms, "compact", TENANT, SESSION, ref.incarnation, "fault", 3, 1, 1, 1, "1", "0 1 1")
        assert await DeadLetters(sessions.client).set_aside(letter)
        code, findings = await asyncio.to_thread(examine, capsys, deployment.flags())
        assert code == 1
        assert ill(findings) == {("work", "due"): "wrong", ("work", "events"): "wrong", ("work", "set aside"): "wrong"}
        assert re.search("the oldest for 36[0-9]{2} s", findings["work", "due"]["found"])
        assert re.match("1 unread, 0 unacknowledged, the oldest for 36[0-9]{2} s", findings["work", "events"]["found"])
        await sessions.client.xreadgroup(GROUP, "somebody", {events: ">"})
        _, findings = await asyncio.to_thread(examine, capsys, deployment.flags())
        assert re.match("0 unread, 1 unacknowledged, the oldest for 36[0-9]{2} s", findings["work", "events"]["found"])


@pytest.mark.parametrize(
    ("mode", "text", "state"),
    [
        (0o640, f"acme {'0' * 64}\n", "ok"),
        (0o644, f"acme {'0' * 64}\n", "note"),
        (0o660, f"acme {'0' * 64}\n", "wrong"),
        (0o602, f"acme {'0' * 64}\n", "wrong"),
        (0o600, "# none\n", "wrong"),
        (None, "", "wrong"),
    ],
)
def test_the_file_of_keys_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int | None, text: str, state: str
) -> None:
    keys = tmp_path / "keys"
    if mode is not None:
        keys.write_text(text)
        keys.chmod(mode)
    _, findings = examine(capsys, [*nowhere(tmp_path), "--api-keys-file", str(keys)])
    assert findings["machine", "keys"]["state"] == state


def nowhere(folder: Path) -> list[str]:
    urls = ["--redis-url", NOWHERE, "--queue-url", NOWHERE, "--qdrant-url", "http://127.0.0.1:1"]
    return [*urls, "--data-dir", str(folder)]


def test_stores_that_are_away_or_mute_are_said_to_be_so_in_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {("sessions", "reachable"): "wrong", ("queue", "reachable"): "wrong", ("vectors", "reachable"): "wrong"}
    code, findings = examine(capsys, nowhere(tmp_path))
    assert (code, ill(findings)) == (1, parts)
    with running_redis() as mute:
        mute.freeze()
        started = time.monotonic()
        flags = [*nowhere(tmp_path), "--redis-url", mute.url, "--queue-url", mute.url]
        assert ill(examine(capsys, flags)[1]) == parts
        assert time.monotonic() - started < 15
        mute.thaw()


def test_passwords_and_keys_are_never_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "redis://user:secret-word@127.0.0.1:1/0"
    for form in ([], ["--json"]):
        prefold(["doctor", *form, *nowhere(tmp_path), "--redis-url", url, "--queue-url", url])
        printed = capsys.readouterr()
        assert "secret-word" not in printed.out + printed.err


def test_as_a_process_it_prints_one_object_and_leaves_with_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "prefold.cli.main", "doctor", "--json", *nowhere(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=python_environment())
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["ok"] is False


def test_wrong_usage_is_told_apart_from_wrong_stores(capsys: pytest.CaptureFixture[str]) -> None:
    assert prefold(["doctor", "--replicas", "-1"]) == 2
    with pytest.raises(SystemExit) as left:
        prefold(["doctor", "--no-such-flag"])
    assert left.value.code == 2


def test_a_stack_on_this_machine_is_found_by_its_data_folder(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Addresses(deployment.sessions.url, deployment.queue.url, deployment.vectors.url, "some-key").write(tmp_path)
    code, findings = examine(capsys, ["--data-dir", str(tmp_path)])
    assert (code, findings["sessions", "reachable"]["found"]) == (0, deployment.sessions.url)
    _, findings = examine(capsys, ["--data-dir", str(tmp_path), "--queue-url", NOWHERE])
    assert ill(findings) == {("queue", "reachable"): "wrong"}, "what is set wins"


def test_a_stack_leaves_its_addresses_to_its_user_alone_and_takes_them_back(tmp_path: Path) -> None:
    stack = EmbeddedStack(StackSettings(data_dir=tmp_path, port=0), report=lambda _: None)
    try:
        assert Addresses.read(tmp_path) == Addresses(
            stack.redis_url,
            stack.queue_url,
            stack.qdrant_url,
            stack.qdrant_api_key,
            stack.gateway_url,
            stack.probe_url,
        )
        assert (tmp_path / "addresses.json").stat().st_mode & 0o777 == 0o600
    finally:
        stack.stop()
    assert Addresses.read(tmp_path) is None
