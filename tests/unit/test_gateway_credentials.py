import hashlib
import hmac
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from prefold.access import mark_of, parse_key_file
from prefold.errors import ConfigurationError, UnauthenticatedError
from prefold.gateway.callers import Caller
from prefold.gateway.credentials import KeyRing
from prefold.telemetry.metrics import exposition
from tests.support.metrics import Scrape


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text(f"# our keys\nann {digest_of('key-of-ann')}\n\nbob {digest_of('key-of-bob')} # new\n")
    return path


def ring(path: Path, now: list[float] | None = None) -> KeyRing:
    clock = now if now is not None else [0.0]
    keys = KeyRing(path, check_every=timedelta(seconds=5), clock=lambda: clock[0])
    keys.load()
    return keys


def test_a_key_names_its_tenant(key_file: Path) -> None:
    keys = ring(key_file)
    assert keys.caller_of("Bearer key-of-ann").tenant == "ann"
    assert keys.caller_of("bearer  key-of-bob ").tenant == "bob"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic key-of-ann",
        "key-of-ann",
        "Bearer other",
        "Bearer key-of-ann x",
        "Bearer " + "x" * 600,
    ],
)
def test_anything_else_is_refused(key_file: Path, header: str | None) -> None:
    with pytest.raises(UnauthenticatedError):
        ring(key_file).caller_of(header)


def test_a_hash_is_no_key(key_file: Path) -> None:
    with pytest.raises(UnauthenticatedError):
        ring(key_file).caller_of(f"Bearer {digest_of('key-of-ann')}")


def test_json_takes_one_hash_or_several() -> None:
    text = f'{{"ann": ["{digest_of("a")}", "{digest_of("b")}"], "bob": "{digest_of("c")}"}}'
    assert sorted(record.tenant for record in parse_key_file(text.encode()).keys) == ["ann", "ann", "bob"]


@pytest.mark.parametrize(
    "text",
    [
        "ann",
        "ann xyz",
        f"ann {digest_of('a')} more",
        f"a:b {digest_of('a')}",
        f"ann {digest_of('a').upper()}",
        f"ann {digest_of('a')}\nbob {digest_of('a')}",
        "{",
        '{"ann": 7}',
        '{"ann": ["x"]}',
        '{"ann": null}',
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_without_showing_a_hash(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_key_file(text.encode())
    assert digest_of("a") not in str(refused.value)


def test_a_file_without_keys_or_no_file_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        KeyRing(tmp_path / "missing").load()
    (tmp_path / "empty").write_text("# nothing yet\n")
    with pytest.raises(ConfigurationError):
        KeyRing(tmp_path / "empty").load()


def change(path: Path, text: str) -> None:
    stamp = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(stamp + 1_000_000, stamp + 1_000_000))


def test_a_changed_file_counts_after_the_next_look(key_file: Path) -> None:
    now = [0.0]
    keys = ring(key_file, now)
    assert keys.caller_of("Bearer key-of-ann").tenant == "ann"
    change(key_file, f"carl {digest_of('key-of-carl')}\n")
    assert keys.caller_of("Bearer key-of-ann").tenant == "ann"
    now[0] = 5.0
    assert keys.caller_of("Bearer key-of-carl").tenant == "carl"
    with pytest.raises(UnauthenticatedError):
        keys.caller_of("Bearer key-of-ann")


def test_a_broken_or_missing_file_changes_nothing(key_file: Path) -> None:
    now = [0.0]
    keys = ring(key_file, now)
    change(key_file, "ann half-writ")
    now[0] = 5.0
    assert keys.caller_of("Bearer key-of-ann").tenant == "ann"
    key_file.unlink()
    now[0] = 10.0
    assert keys.caller_of("Bearer key-of-bob").tenant == "bob"


def test_an_emptied_file_revokes_every_key(key_file: Path) -> None:
    now = [0.0]
    keys = ring(key_file, now)
    change(key_file, "")
    now[0] = 5.0
    with pytest.raises(UnauthenticatedError):
        keys.caller_of("Bearer key-of-ann")


SECRET = b"a secret of thirty-two bytes, say"
NOON = 1_796_040_000.0


def keyed(path: Path, *keys: dict[str, Any]) -> None:
    change_or_make(path, json.dumps({"version": 2, "keys": keys, "quotas": {}}))


def change_or_make(path: Path, text: str) -> None:
    if path.exists():
        change(path, text)
    else:
        path.write_text(text)


def record_of(key: str, tenant: str = "ann", scopes: tuple[str, ...] = ("read",), **more: str) -> dict[str, Any]:
    digest = hmac.digest(SECRET, key.encode(), "sha256").hex()
    return {"id": key.split("_")[1], "tenant": tenant, "scopes": scopes, "hash": digest, "created": "", **more}


FIRST, SECOND = "pf_first_" + "x" * 43, "pf_second_" + "y" * 43


class Clocks:
    def __init__(self) -> None:
        self.monotonic, self.wall = 0.0, NOON

    def ring(self, path: Path, secret: bytes | None = SECRET) -> KeyRing:
        keys = KeyRing(path, secret=secret, clock=lambda: self.monotonic, wall=lambda: self.wall)
        keys.load()
        return keys

    def pass_seconds(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


def test_a_key_is_found_by_its_id_and_tells_what_it_may_do(tmp_path: Path) -> None:
    keyed(tmp_path / "keys", record_of(FIRST), record_of(SECOND, "bob", ("append", "erase")))
    keys = Clocks().ring(tmp_path / "keys")
    assert keys.caller_of(f"Bearer {FIRST}") == Caller("ann", frozenset({"read"}), "first")
    assert keys.caller_of(f"Bearer {SECOND}") == Caller("bob", frozenset({"append", "erase"}), "second")


@pytest.mark.parametrize(
    "key",
    [FIRST[:-1], FIRST + "x", "pf_other_" + "x" * 43, "pf_second_" + "x" * 43, "pf_first_", "first", "pf__" + "x" * 43],
)
def test_an_id_without_its_secret_is_no_key(tmp_path: Path, key: str) -> None:
    keyed(tmp_path / "keys", record_of(FIRST), record_of(SECOND))
    with pytest.raises(UnauthenticatedError) as refused:
        Clocks().ring(tmp_path / "keys").caller_of(f"Bearer {key}")
    assert (refused.value.code, refused.value.detail) == ("unauthenticated", "the key is not known")


def test_an_unknown_id_is_hashed_and_compared_as_a_wrong_secret_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed(tmp_path / "keys", record_of(FIRST))
    keys, compared = Clocks().ring(tmp_path / "keys"), list[tuple[int, int]]()
    compare = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for key in (FIRST[:-1] + "z", "pf_other_" + "x" * 43):
        with pytest.raises(UnauthenticatedError):
            keys.caller_of(f"Bearer {key}")
    assert compared == [(32, 32), (32, 32)]


def test_the_digest_that_stands_for_unknown_ids_lets_nobody_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed(tmp_path / "keys", record_of(FIRST))
    keys = Clocks().ring(tmp_path / "keys")
    monkeypatch.setattr("prefold.gateway.credentials.keyed_hash", lambda secret, key: bytes(32))
    with pytest.raises(UnauthenticatedError):
        keys.caller_of("Bearer pf_other_" + "x" * 43)


def test_two_keys_of_a_tenant_live_beside_one_another_and_each_ends_by_itself(tmp_path: Path) -> None:
    path, clocks = tmp_path / "keys", Clocks()
    keyed(path, record_of(FIRST), record_of(SECOND))
    keys = clocks.ring(path)
    assert [keys.caller_of(f"Bearer {key}").tenant for key in (FIRST, SECOND)] == ["ann", "ann"]
    keyed(path, record_of(SECOND))
    clocks.pass_seconds(5)
    assert keys.caller_of(f"Bearer {SECOND}").key_id == "second"
    with pytest.raises(UnauthenticatedError):
        keys.caller_of(f"Bearer {FIRST}")


def test_a_key_ends_at_its_time(tmp_path: Path) -> None:
    path, clocks = tmp_path / "keys", Clocks()
    keyed(path, record_of(FIRST, expires=datetime.fromtimestamp(NOON + 60, UTC).isoformat()))
    keys = clocks.ring(path)
    clocks.pass_seconds(59)
    caller = keys.caller_of(f"Bearer {FIRST}")
    assert keys.holds(caller)
    clocks.pass_seconds(1)
    with pytest.raises(UnauthenticatedError) as refused:
        keys.caller_of(f"Bearer {FIRST}")
    assert refused.value.code == "key_expired"
    assert not keys.holds(caller)


def test_a_clock_that_is_set_back_revives_no_key(tmp_path: Path) -> None:
    path, clocks = tmp_path / "keys", Clocks()
    keyed(path, record_of(FIRST, expires=datetime.fromtimestamp(NOON + 60, UTC).isoformat()))
    keys = clocks.ring(path)
    clocks.pass_seconds(61)
    clocks.wall -= 3600
    with pytest.raises(UnauthenticatedError):
        keys.caller_of(f"Bearer {FIRST}")


def test_what_goes_on_ends_when_its_key_is_revoked_or_may_do_less(tmp_path: Path) -> None:
    path, clocks = tmp_path / "keys", Clocks()
    keyed(path, record_of(FIRST, scopes=("append", "read")), record_of(SECOND))
    keys = clocks.ring(path)
    first, second = keys.caller_of(f"Bearer {FIRST}"), keys.caller_of(f"Bearer {SECOND}")
    keyed(path, record_of(FIRST))
    clocks.pass_seconds(5)
    assert (keys.holds(first), keys.holds(second)) == (False, False)


@pytest.mark.parametrize("secret", [None, b"another secret of thirty-two bytes"])
def test_keys_without_their_secret_do_not_start(tmp_path: Path, secret: bytes | None) -> None:
    text = {"version": 2, "secret": mark_of(SECRET), "keys": [record_of(FIRST)], "quotas": {}}
    (tmp_path / "keys").write_text(json.dumps(text))
    with pytest.raises(ConfigurationError, match="secret"):
        Clocks().ring(tmp_path / "keys", secret)


def test_a_half_written_or_foreign_file_changes_nothing(tmp_path: Path) -> None:
    path, clocks = tmp_path / "keys", Clocks()
    keyed(path, record_of(FIRST))
    keys, whole = clocks.ring(path), path.read_text()
    foreign = json.dumps({"version": 2, "secret": "of another", "keys": [record_of(SECOND)], "quotas": {}})
    for text in (whole[: len(whole) // 2], foreign, ""):
        change(path, text)
        clocks.pass_seconds(5)
        if text:
            assert keys.caller_of(f"Bearer {FIRST}").tenant == "ann"
    with pytest.raises(UnauthenticatedError):  # an empty file is whole: it has no keys
        keys.caller_of(f"Bearer {FIRST}")


def test_it_is_told_how_long_a_revocation_may_not_be_in_force(tmp_path: Path) -> None:
    path, clocks = tmp_path / "keys", Clocks()
    keyed(path, record_of(FIRST))
    keys, whole = clocks.ring(path), path.read_text()
    stamp = path.stat().st_mtime_ns

    def is_unusable() -> float:
        clocks.pass_seconds(5)
        keys.refresh()
        return Scrape(exposition().decode()).value("prefold_key_file_unusable")

    foreign = json.dumps({"version": 2, "secret": "of another", "keys": [record_of(SECOND)], "quotas": {}})
    assert is_unusable() == 0
    for text in (whole[: len(whole) // 2], foreign):
        change(path, text)
        assert [is_unusable(), is_unusable()] == [1, 1]
        change(path, whole)
        assert is_unusable() == 0
    path.rename(tmp_path / "away")
    assert is_unusable() == 1
    (tmp_path / "away").rename(path)  # as it was read before, to the stamp
    assert path.stat().st_mtime_ns > stamp
    assert is_unusable() == 0


def test_one_among_thousands_of_a_tenant_is_found_like_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    keyed(path, *(record_of(f"pf_k{number}_" + "x" * 43) for number in range(3_000)), record_of(FIRST))
    keys = Clocks().ring(path)
    assert keys.caller_of(f"Bearer {FIRST}").key_id == "first"
    with pytest.raises(UnauthenticatedError):
        keys.caller_of("Bearer pf_k7_" + "y" * 43)
