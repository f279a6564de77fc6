import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest

from prefold.errors import ConfigurationError, UnauthenticatedError
from prefold.gateway.credentials import KeyRing, parse_keys


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
    assert keys.tenant_of("Bearer key-of-ann") == "ann"
    assert keys.tenant_of("bearer  key-of-bob ") == "bob"


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
        ring(key_file).tenant_of(header)


def test_a_hash_is_no_key(key_file: Path) -> None:
    with pytest.raises(UnauthenticatedError):
        ring(key_file).tenant_of(f"Bearer {digest_of('key-of-ann')}")


def test_json_takes_one_hash_or_several() -> None:
    text = f'{{"ann": ["{digest_of("a")}", "{digest_of("b")}"], "bob": "{digest_of("c")}"}}'
    assert sorted(parse_keys(text.encode()).values()) == ["ann", "ann", "bob"]


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
        parse_keys(text.encode())
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
    assert keys.tenant_of("Bearer key-of-ann") == "ann"
    change(key_file, f"carl {digest_of('key-of-carl')}\n")
    assert keys.tenant_of("Bearer key-of-ann") == "ann"
    now[0] = 5.0
    assert keys.tenant_of("Bearer key-of-carl") == "carl"
    with pytest.raises(UnauthenticatedError):
        keys.tenant_of("Bearer key-of-ann")


def test_a_broken_or_missing_file_changes_nothing(key_file: Path) -> None:
    now = [0.0]
    keys = ring(key_file, now)
    change(key_file, "ann half-writ")
    now[0] = 5.0
    assert keys.tenant_of("Bearer key-of-ann") == "ann"
    key_file.unlink()
    now[0] = 10.0
    assert keys.tenant_of("Bearer key-of-bob") == "bob"


def test_an_emptied_file_revokes_every_key(key_file: Path) -> None:
    now = [0.0]
    keys = ring(key_file, now)
    change(key_file, "")
    now[0] = 5.0
    with pytest.raises(UnauthenticatedError):
        keys.tenant_of("Bearer key-of-ann")
