"""``prefold keys``: from the first secret to the last revocation."""

import io
import json
import os
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from prefold.audit import AuditEntry, read_audit
from prefold.cli.main import main as prefold
from prefold.gateway.credentials import KeyRing
from prefold.keys.arguments import read_span
from prefold.keys.editing import read_key_file

Capture = pytest.CaptureFixture[str]


class Folder:
    """Where a test's keys are."""

    def __init__(self, path: Path, capsys: Capture) -> None:
        self.keys, self.secret, self.audit = path / "keys.json", path / "keys.secret", path / "audit"
        self._capsys = capsys

    def flags(self) -> list[str]:
        files = {"--api-keys-file": self.keys, "--api-keys-secret-file": self.secret, "--audit-file": self.audit}
        return [word for flag, path in files.items() for word in (flag, str(path))]

    def run(self, *words: str, code: int = 0) -> str:
        """Standard output."""
        self._capsys.readouterr()
        assert prefold(["keys", *words, *self.flags()]) == code
        return self._capsys.readouterr().out.strip()

    def create(self, *words: str) -> str:
        return self.run("create", "--tenant", "acme", "--scopes", "append,read", *words)

    def ring(self) -> KeyRing:
        keys = KeyRing(self.keys, secret=self.secret.read_bytes().strip())
        keys.load()
        return keys


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of this process are not the command's to set up."""
    monkeypatch.setattr("prefold.keys.main.configure_logging", lambda *_: None)


@pytest.fixture
def folder(tmp_path: Path, capsys: Capture) -> Folder:
    made = Folder(tmp_path, capsys)
    made.run("init")
    return made


def id_of(key: str) -> str:
    return key.split("_")[1]


def test_a_key_that_was_made_lets_its_tenant_in_and_only_its_hash_is_kept(folder: Folder) -> None:
    key = folder.create("--note", "chat")
    caller = folder.ring().caller_of(f"Bearer {key}")
    assert (caller.tenant, sorted(caller.scopes), caller.key_id) == ("acme", ["append", "read"], id_of(key))
    kept = folder.keys.read_text() + folder.audit.read_text()
    assert key.split("_", 2)[2] not in kept
    assert folder.secret.read_text().strip() not in kept


def test_secret_and_keys_are_their_owner_s_and_are_never_made_over_others(folder: Folder) -> None:
    folder.create()
    for path in (folder.keys, folder.secret):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = folder.keys.read_bytes(), folder.secret.read_bytes()
    folder.run("init", code=2)
    assert (folder.keys.read_bytes(), folder.secret.read_bytes()) == before


def test_a_rotation_leaves_two_live_keys_of_which_the_old_one_has_an_end(folder: Folder) -> None:
    old = folder.create("--note", "chat")
    new = folder.run("rotate", id_of(old), "--keep", "12h")
    ring = folder.ring()
    for key in (old, new):
        assert ring.caller_of(f"Bearer {key}").tenant == "acme"
    rows = {row["id"]: row for row in map(json.loads, folder.run("list", "--json").splitlines())}
    assert rows[id_of(old)]["expires"] > rows[id_of(old)]["created"]
    assert "expires" not in rows[id_of(new)]
    assert rows[id_of(new)]["scopes"] == rows[id_of(old)]["scopes"] and rows[id_of(new)]["note"] == "chat"


def test_a_rotation_never_gives_an_old_key_more_time(folder: Folder) -> None:
    old = folder.create("--expires", "2h")
    end = read_key_file(folder.keys).keys[0].expires
    folder.run("rotate", id_of(old), "--keep", "30d")
    assert read_key_file(folder.keys).keys[0].expires == end


def test_a_revoked_key_is_gone_and_one_that_is_not_there_revokes_nothing(folder: Folder) -> None:
    first, second = folder.create(), folder.create()
    folder.run("revoke", id_of(first), "nobody", code=1)
    assert len(read_key_file(folder.keys).keys) == 2
    folder.run("revoke", first)  # by its text, as it was found in a log
    assert [one.id for one in read_key_file(folder.keys).keys] == [id_of(second)]


def test_all_of_it_is_noted_without_a_key(folder: Folder) -> None:
    old = folder.create()
    new = folder.run("rotate", id_of(old))
    folder.run("revoke", id_of(old))
    entries = [one for one in read_audit(folder.audit) if isinstance(one, AuditEntry)]
    assert [(one.action, one.tenant, one.subject["key"]) for one in entries] == [
        ("key_created", "acme", id_of(old)),
        ("key_rotated", "acme", id_of(old)),
        ("key_revoked", "acme", id_of(old)),
    ]
    assert entries[1].subject["successor"] == id_of(new)


def test_an_older_file_keeps_its_keys_when_one_is_added(folder: Folder) -> None:
    folder.keys.write_text("ann 2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683\n")  # of "key"
    key = folder.create()
    ring = folder.ring()
    assert [ring.caller_of(f"Bearer {one}").tenant for one in ("key", key)] == ["ann", "acme"]


def test_quotas_and_a_link_survive_an_edit(folder: Folder, tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text(json.dumps({"version": 2, "keys": [], "quotas": {"acme": {"sessions": 7}}}))
    real.chmod(0o640)
    folder.keys.unlink()
    folder.keys.symlink_to(real)
    folder.create()
    assert folder.keys.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    assert read_key_file(real).allowances.of("acme").sessions == 7
    assert [
        path.name for path in tmp_path.iterdir() if path.name.startswith(".real.json.") and "lock" not in path.name
    ] == []


def test_edits_at_the_same_time_lose_no_key(folder: Folder) -> None:
    words = ["keys", "create", "--tenant", "acme", "--scopes", "read", *folder.flags()]
    threads = [threading.Thread(target=prefold, args=(words,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.id for one in read_key_file(folder.keys).keys}) == 8
    assert len(list(read_audit(folder.audit))) == 8


def test_check_says_what_is_wrong(folder: Folder) -> None:
    assert "there is no key" in folder.run("check", code=1)
    folder.create("--expires", "3d")
    assert "expires within" in folder.run("check")
    folder.keys.chmod(0o666)
    folder.secret.chmod(0o644)
    said = folder.run("check", code=1)
    assert "can be written by others" in said and "can be read by everybody" in said
    folder.secret.write_text("another secret, as long as it has to be\n")
    assert "another one" in folder.run("check", code=1)


def test_check_tells_whose_a_key_is(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    key = folder.create()
    for text, code, said in ((f"{key}\n", 0, "acme"), (f"{key[:-1]}\n", 1, "not known")):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert said in folder.run("check", "--stdin", code=code)


@pytest.mark.parametrize(
    "words",
    [
        ["create", "--tenant", "acme"],
        ["create", "--scopes", "read"],
        ["create", "--tenant", "acme", "--scopes", "write"],
        ["create", "--tenant", "a:b", "--scopes", "read"],
        ["create", "--tenant", "acme", "--scopes", "read", "--expires", "2020-01-01"],
        ["rotate"],
        ["rotate", "one", "two"],
        ["revoke"],
        ["revoke", "one", "--tenant", "acme"],
        ["list", "one"],
        ["destroy"],
    ],
)
def test_wrong_usage_is_refused_before_anything_changes(folder: Folder, words: list[str]) -> None:
    before = folder.keys.read_bytes()
    with pytest.raises(SystemExit) as left:
        prefold(["keys", *words, *folder.flags()])
    assert left.value.code == 2
    assert folder.keys.read_bytes() == before


def test_without_a_file_or_a_secret_it_says_which_variable(folder: Folder, capsys: Capture) -> None:
    assert prefold(["keys", "list", "--audit-file", str(folder.audit)]) == 2
    assert "PREFOLD_API_KEYS_FILE" in capsys.readouterr().err
    files = ["--api-keys-file", str(folder.keys), "--audit-file", str(folder.audit)]
    words = ["keys", "create", "--tenant", "a", "--scopes", "read", *files]
    assert prefold(words) == 2
    assert "PREFOLD_API_KEYS_SECRET_FILE" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "12", "1y", "-1d", "1.5h", "999999d"])
def test_what_is_no_span_is_refused(text: str) -> None:
    from prefold.errors import InvalidInputError

    with pytest.raises(InvalidInputError):
        read_span(text)


def test_a_file_of_another_user_is_left_as_it_is_where_it_could_not_stay_theirs(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    before, mine = folder.keys.read_bytes(), folder.keys.stat()

    def refuse(*_: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda _: SimpleNamespace(st_uid=mine.st_uid + 1, st_gid=mine.st_gid))
        patched.setattr(os, "fchown", refuse)
        code = prefold(["keys", "create", "--tenant", "acme", "--scopes", "read", *folder.flags()])
    assert code == 2
    assert "run this as that user" in capsys.readouterr().err
    assert folder.keys.read_bytes() == before
    assert not [
        path for path in folder.keys.parent.iterdir() if path.name.startswith(".keys.json.") and "lock" not in path.name
    ]
