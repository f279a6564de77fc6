"""The scripts of ``deploy/``: users of Redis, the bill of materials, snapshots of Qdrant."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy import sbom
from deploy.backup import backup, restore
from deploy.redis.make_users import main as make_users
from prefold.config.redis_urls import check_server_url

LOCKS = sorted((Path(__file__).parents[2] / "lock").glob("*.txt"))


def passwords_of(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((folder / "passwords.json").read_text())
    return found


def line_of(folder: Path, user: str, server: str = "sessions") -> str:
    (line,) = (one for one in (folder / f"{server}.acl").read_text().splitlines() if one.startswith(f"user {user} "))
    return line


def test_users_that_are_there_keep_their_passwords_when_a_tenant_is_added(tmp_path: Path) -> None:
    make_users([str(tmp_path), "--ingest=acme"])
    before = passwords_of(tmp_path)
    make_users([str(tmp_path), "--ingest=acme,beta"])
    after = passwords_of(tmp_path)
    assert after.keys() - before.keys() == {"ingest-beta"}
    assert before.items() <= {**after}.items()
    assert len({one[0] for one in after.values()}) == len(after)


def test_no_password_stands_in_what_a_server_reads(tmp_path: Path) -> None:
    make_users([str(tmp_path), "--ingest=acme", "--direct=acme"])
    texts = (tmp_path / "sessions.acl").read_text() + (tmp_path / "queue.acl").read_text()
    for user, (password,) in passwords_of(tmp_path).items():
        assert password not in texts
        if user != "qdrant":
            assert hashlib.sha256(password.encode()).hexdigest() in texts
    for path in tmp_path.glob("*.env"):
        assert path.stat().st_mode & 0o007 == 0
        for line in path.read_text().splitlines():
            name, _, value = line.partition("=")
            assert name.endswith("API_KEY") or check_server_url(value)


def test_a_rotated_role_has_two_passwords_until_the_older_one_is_retired(tmp_path: Path) -> None:
    make_users([str(tmp_path)])
    (old,) = passwords_of(tmp_path)["gateway"]
    make_users([str(tmp_path), "--rotate", "gateway"])
    new = passwords_of(tmp_path)["gateway"][0]
    assert [hashlib.sha256(one.encode()).hexdigest() in line_of(tmp_path, "gateway") for one in (old, new)] == [
        True,
        True,
    ]
    assert new in (tmp_path / "gateway.env").read_text()
    make_users([str(tmp_path), "--retire", "gateway"])
    assert [hashlib.sha256(one.encode()).hexdigest() in line_of(tmp_path, "gateway") for one in (old, new)] == [
        False,
        True,
    ]


@pytest.mark.parametrize("arguments", [["--ingest=a*"], ["--direct=a}:x"], ["--ingest=a b"], ["--rotate=nobody"]])
def test_a_name_that_could_reach_further_than_its_tenant_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="make_users: "):
        make_users([str(tmp_path), *arguments])
    assert not (tmp_path / "sessions.acl").exists()


def test_a_user_of_redis_gets_no_command_that_only_valkey_knows(tmp_path: Path) -> None:
    make_users([str(tmp_path)])
    assert "+commandlog|get" in line_of(tmp_path, "gateway")
    make_users([str(tmp_path), "--server", "redis"])
    assert "commandlog" not in (tmp_path / "sessions.acl").read_text()
    assert "+client|setinfo" in line_of(tmp_path, "gateway")
    make_users([str(tmp_path), "--server", "redis-7.0"])
    assert "setinfo" not in (tmp_path / "sessions.acl").read_text() + (tmp_path / "queue.acl").read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_the_bill_of_materials_names_every_package_of_the_lock_with_its_hashes(lock: Path) -> None:
    text = lock.read_text("utf-8")
    bill = sbom.bill(text)
    starts = [line.split(" ")[0].lower() for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert [f"{one['name']}=={one['version']}" for one in bill["components"]] == starts
    assert len(starts) > 40
    hashes = [one["content"] for part in bill["components"] for one in part["externalReferences"][0]["hashes"]]
    assert hashes == [line.split(":")[1].split()[0] for line in text.splitlines() if "--hash=sha256:" in line]
    assert len({one["bom-ref"] for one in bill["components"]}) == len(starts)
    assert sbom.bill(text) == bill != sbom.bill(text.replace(hashes[0], "0" * 64))


class _Snapshots(BaseHTTPRequestHandler):
    """What Qdrant's documentation says of snapshots, for collections that a test names."""

    protocol_version = "HTTP/1.1"
    server: "_Store"

    def do_GET(self) -> None:
        if self.path == "/collections":
            return self._answer({"result": {"collections": [{"name": name} for name in self.server.collections]}})
        _, _, name, _, snapshot = self.path.split("/")
        assert (name, snapshot) in self.server.snapshots
        return self._send(self.server.collections[name])

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        path, _, query = self.path.partition("?")
        name = path.split("/")[2]
        if path.endswith("/snapshots/upload"):
            assert "priority=snapshot" in query
            head, _, rest = body.partition(b"\r\n\r\n")
            assert b'name="snapshot"' in head
            self.server.collections[name] = rest.rpartition(b"\r\n--")[0]
            return self._answer({"result": True})
        self.server.snapshots.append((name, "snap-1"))
        digest = hashlib.sha256(self.server.collections[name]).hexdigest()
        return self._answer({"result": {"name": "snap-1", "checksum": self.server.checksum or digest}})

    def do_DELETE(self) -> None:
        _, _, name, _, snapshot = self.path.split("/")
        self.server.snapshots.remove((name, snapshot))
        self._answer({"result": True})

    def _answer(self, body: dict[str, object]) -> None:
        assert self.headers["api-key"] == "a-key"
        self._send(json.dumps(body).encode())

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        pass


class _Store(ThreadingHTTPServer):
    collections: dict[str, bytes]
    snapshots: list[tuple[str, str]]
    checksum = ""


@contextmanager
def vector_server(**collections: bytes) -> Iterator[tuple[_Store, str]]:
    with _Store(("127.0.0.1", 0), _Snapshots) as server:
        server.collections, server.snapshots = dict(collections), []
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_our_collections_are_fetched_as_snapshots_and_put_back_and_none_is_left_on_the_server(tmp_path: Path) -> None:
    ours = {"turns_m_4": b"turns" * 1000, "memory_m_4": b"memory"}
    with vector_server(**ours, others=b"not ours") as (server, url):
        files = list(backup.save_collections(url, "a-key", tmp_path, 0))
        assert [path.name for path in files] == ["qdrant-0-memory_m_4.snapshot", "qdrant-0-turns_m_4.snapshot"]
        assert server.snapshots == []
    with vector_server() as (server, url):
        restore.restore_collections(url, "a-key", tmp_path, 0)
        assert server.collections == ours


def test_a_snapshot_that_came_damaged_ends_the_backup(tmp_path: Path) -> None:
    with vector_server(turns_m_4=b"turns") as (server, url):
        server.checksum = "0" * 64
        with pytest.raises(SystemExit, match="damaged"):
            list(backup.save_collections(url, "a-key", tmp_path, 0))
        assert server.snapshots == []


def test_nothing_is_restored_from_a_damaged_backup_or_over_what_is_there(tmp_path: Path) -> None:
    made = tmp_path / "backup"
    made.mkdir()
    (made / "sessions-0.rdb").write_bytes(b"REDIS0011")
    digest = hashlib.sha256(b"REDIS0011").hexdigest()
    manifest = {"begun": "2026-11-30T03:00:00.000+00:00", "files": {"sessions-0.rdb": {"bytes": 9, "sha256": digest}}}
    (made / "manifest.json").write_text(json.dumps(manifest))
    data = tmp_path / "data"
    (data / "appendonlydir").mkdir(parents=True)
    with pytest.raises(SystemExit, match="not empty"):
        restore.main([str(made), "--redis-dir", str(data)])
    (made / "sessions-0.rdb").write_bytes(b"REDIS0012")
    with pytest.raises(SystemExit, match="not as it was written"):
        restore.main([str(made), "--redis-dir", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()


def test_a_backup_without_vectors_is_taken_only_where_that_was_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for vectors in ([], ["--without-vectors", "--qdrant", "http://127.0.0.1:1"]):
        with pytest.raises(SystemExit) as refused:
            backup.main([str(tmp_path / "backups"), "--sessions", "redis://127.0.0.1:1", *vectors])
        assert refused.value.code == 2
        assert "--without-vectors" in capsys.readouterr().err
    assert not (tmp_path / "backups").exists()


def saved(url: str, target: Path) -> Path:
    target.write_bytes(b"REDIS0011")
    return target


def test_a_backup_of_sessions_alone_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "save_sessions", saved)
    monkeypatch.delenv("PREFOLD_AUDIT_FILE", raising=False)
    assert backup.main([str(tmp_path), "--sessions", "redis://127.0.0.1:1", "--without-vectors"]) == 0
    (made,) = tmp_path.iterdir()
    assert sorted(path.name for path in made.iterdir()) == ["manifest.json", "sessions-0.rdb"]


def test_a_backup_that_fails_says_why_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = ["--sessions", "redis://app:secret@127.0.0.1:1"]
    with pytest.raises(SystemExit, match=r"^backup: the session store 127\.0\.0\.1:1 cannot be reached: "):
        backup.main([str(tmp_path), *sessions, "--without-vectors"])
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(backup, "save_sessions", saved)
    monkeypatch.setenv("PREFOLD_QDRANT_API_KEY", "a-key")
    with pytest.raises(SystemExit, match=r"^backup: 127\.0\.0\.1:1 cannot be reached: "):
        backup.main([str(tmp_path), *sessions, "--qdrant", "http://127.0.0.1:1"])
    with vector_server(turns_m_4=b"turns") as (server, url):
        server.checksum = "0" * 64
        with pytest.raises(SystemExit, match="damaged"):
            backup.main([str(tmp_path), *sessions, "--qdrant", url])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, b"{}", "answers GET /collections with 401 Unauthorized; its key goes into PREFOLD_QDRANT_API_KEY"),
        (500, b"{}", "answers GET /collections with 500 Internal Server Error"),
        (200, b"{}", "does not answer as Qdrant does"),
        (200, b"<html>", "does not answer as Qdrant does"),
    ],
)
def test_a_node_that_is_no_qdrant_or_refuses_is_named(
    status: int, body: bytes, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(handler: _Snapshots) -> None:
        handler.send_response(status)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    monkeypatch.setattr(_Snapshots, "do_GET", answer)
    with vector_server() as (_, url), pytest.raises(SystemExit) as ended:
        list(backup.save_collections(url, "a-key", tmp_path, 0))
    assert ended.value.code == f"backup: {url.removeprefix('http://')} {told}"
