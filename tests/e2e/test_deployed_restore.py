"""A backup of what ``deploy/`` ships, restored: what was erased since is erased again, in every store."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deploy.backup import backup, restore
from prefold.cli.main import main as prefold
from tests.support import canaries
from tests.support.deployed import Deployed, deployed
from tests.support.embedding_server import embedding_server
from tests.support.made_keys import MadeKeys
from tests.support.talking import is_clean, seen, talk
from tests.support.waiting import wait_until
from tests.support.worker_jobs import COMMAND, environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

AUDIT = "audit.jsonl"
BACKGROUND = ("dispatcher", "worker embed", "worker memory")


@pytest.fixture
def keys(tmp_path: Path) -> MadeKeys:
    return MadeKeys(tmp_path)


@pytest.fixture
def backend(keys: MadeKeys) -> dict[str, str]:
    return keys.header("acme", "append,read,erase")


@pytest.fixture
def stack(keys: MadeKeys, backend: dict[str, str]) -> Iterator[Deployed]:
    with embedding_server() as embeddings, deployed(embeddings, **keys.settings) as running:
        running.settings["audit_file"] = str(running.folder / AUDIT)
        with running.sessions.watcher() as redis:
            canaries.uncompressed(redis)
        running.start("gateway", *BACKGROUND)
        yield running


@pytest.fixture
def api(stack: Deployed, backend: dict[str, str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.gateway_url(), timeout=30, headers=backend) as client:
        yield client


def test_what_was_erased_after_a_backup_is_erased_again_in_what_is_restored_from_it(
    stack: Deployed,
    api: httpx.Client,
    backend: dict[str, str],
    keys: MadeKeys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    talk(api, "gone", "The heron password is CANARY-gone.")
    talk(api, "hers", "I live in CANARYtown, says CANARY-hers.", user="nina")
    talk(api, "kept", "The parcel is at CANARY-turn.", "The ferry leaves on Monday, kept.", turns=2)
    for session, turns in (("gone", 2), ("hers", 2), ("kept", 4)):
        wait_until("it is embedded", lambda one=session, to=turns: seen(api, one)["embedded_to"] == to, timeout=30)  # type: ignore[misc]
    words = [b"CANARY-gone", b"CANARY-hers", b"CANARY-turn"]

    stack.end(*BACKGROUND)
    stack.vectors.stop()
    made = take_backup(stack, tmp_path / "backups", monkeypatch)
    stack.vectors.start()
    for path in ("sessions/gone", "users/nina", "sessions/kept/turns/u0"):
        assert is_clean({"not_checked": [], **api.delete(f"/v1/{path}").raise_for_status().json()})
    talk(api, "lost", "This was said after the backup.")

    stack.end("gateway")
    call = put_back(stack, made, capsys)
    with stack.sessions.watcher() as redis:
        canaries.uncompressed(redis)
        assert canaries.in_keys(redis, words).keys() == set(words)  # the restore brings everything back
    (tmp_path / "erase-keys").write_text(f"acme {keys.new('acme', 'erase')}\n")
    stack.start("gateway")
    with httpx.Client(base_url=stack.gateway_url(), timeout=30, headers=backend) as again:
        assert again.get("/v1/sessions/lost").status_code == 404
        call += [str(stack.folder / AUDIT), "--url", stack.gateway_url(), "--json"]
        call += ["--keys", str(tmp_path / "erase-keys")]
        done = subprocess.run([*COMMAND, *call], env=environment("", ""), capture_output=True, check=False, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        outcome = outcome_of(done.stdout.decode())
        assert (outcome["erased"], outcome["failed"]) == (4, 0), done.stdout
        for session, status in (("gone", 410), ("hers", 410), ("kept", 200)):
            assert again.get(f"/v1/sessions/{session}/context").status_code == status
        assert "ferry leaves on Monday, kept" in again.get("/v1/sessions/kept/context").text
        assert again.get("/v1/users/nina/facts").json()["facts"] == []
        hits = again.post("/v1/search", json={"query": "heron ferry parcel password"}).raise_for_status().json()
        assert {hit["session"] for hit in hits["results"]} == {"kept"}
        with stack.sessions.watcher() as redis:
            assert canaries.in_keys(redis, words) == {}
        wait_until("the file holds no word of it", lambda: canaries.in_files(stack.sessions.data, words) == {}, 20)

        talk(again, "gone", "A new beginning.")
        talk(again, "hers", "Nina is back.", user="nina")
        monkeypatch.setattr("prefold.reapplying.main.configure_logging", lambda *_: None)
        assert prefold(call) == 0
        repeated = outcome_of(capsys.readouterr().out)
        assert (repeated["spared"], repeated["failed"]) == (3, 0), repeated
        assert {seen(again, one)["head_seq"] for one in ("gone", "hers")} == {2}
    assert (stack.folder / AUDIT).read_text().count("erasures_reapplied") == 1  # the process had no file


def take_backup(stack: Deployed, target: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Under the backup's own user."""
    monkeypatch.setenv("PREFOLD_AUDIT_FILE", str(stack.folder / AUDIT))
    monkeypatch.setenv("PREFOLD_REDIS_URL", stack.address("backup")["PREFOLD_REDIS_URL"])
    assert backup.main([str(target), "--vectors-dir", str(stack.vectors.data_dir / "vectors")]) == 0
    (made,) = target.iterdir()
    return made


def put_back(stack: Deployed, made: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The stores as they were; what is to be called then."""
    stack.vectors.stop()
    stack.sessions.stop()
    stack.queue.stop()
    places = {"--redis-dir": stack.sessions.data, "--vectors-dir": stack.vectors.data_dir / "vectors"}
    for folder in places.values():
        shutil.rmtree(folder)
    capsys.readouterr()
    assert restore.main([str(made), *(str(word) for place in places.items() for word in place)]) == 0
    stack.sessions.start()
    stack.queue.start()
    stack.vectors.start()
    return capsys.readouterr().out.removeprefix("prefold ").partition("AUDITFILE")[0].split()


def outcome_of(output: str) -> dict[str, int]:
    last: dict[str, int] = json.loads(output.splitlines()[-1])
    return {"erased": 0, "spared": 0, "failed": 0, **last}
