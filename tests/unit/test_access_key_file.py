"""The file of keys and quotas: what it may say, and what is refused."""

import hashlib
import json
from typing import Any

import pytest

from prefold.access import (
    ALL_SCOPES,
    UNLIMITED,
    Allowance,
    KeyFile,
    id_in,
    keyed_hash,
    mark_of,
    new_key,
    parse_key_file,
    scopes_of,
)
from prefold.errors import ConfigurationError, InvalidInputError

HASH = "a" * 64
KEY = {"id": "one", "tenant": "ann", "scopes": ["read"], "hash": HASH, "created": "2026-11-30T10:00:00Z"}


def file_of(*keys: dict[str, Any], quotas: Any = None, **members: Any) -> bytes:
    return json.dumps({"version": 2, "keys": list(keys), "quotas": quotas or {}, **members}).encode()


def test_a_record_tells_tenant_scopes_and_end() -> None:
    [record] = parse_key_file(file_of(KEY | {"expires": "2027-01-31T01:00:00+01:00", "note": "chat"})).keys
    assert (record.id, record.tenant, list(record.scopes), record.note) == ("one", "ann", ["read"], "chat")
    assert record.expires is not None and record.expires.isoformat() == "2027-01-31T00:00:00+00:00"


def test_admin_implies_all_scopes() -> None:
    assert scopes_of(["admin"]) == ALL_SCOPES
    assert scopes_of(["append", "erase"]) == {"append", "erase"}


@pytest.mark.parametrize("names", [[], ["write"], ["read", "write"], ["read", 7], ["READ"]])
def test_scopes_that_do_not_exist_are_refused(names: list[object]) -> None:
    with pytest.raises(InvalidInputError):
        scopes_of(names)


def test_the_older_forms_may_do_everything_and_are_kept_when_the_file_is_rewritten() -> None:
    digest = hashlib.sha256(b"key-of-ann").hexdigest()
    old = parse_key_file(f"ann {digest} # hers\n".encode())
    assert [(one.tenant, one.scopes, one.expires) for one in old.keys] == [("ann", ALL_SCOPES, None)]
    again = parse_key_file(old.to_bytes())
    assert (again.keys, again.is_old) == (old.keys, False)


def test_what_is_written_reads_as_it_was() -> None:
    quotas = {"ann": {"sessions": 5, "turns_per_second": None}, "*": {"turns_per_second": 0.5}}
    file = parse_key_file(
        file_of(KEY, KEY | {"id": "two", "scopes": ["admin"], "hash": f"sha256:{HASH}"}, quotas=quotas)
    )
    assert parse_key_file(file.to_bytes()) == file


@pytest.mark.parametrize(
    "broken",
    [
        KEY | {"id": ""},
        KEY | {"id": "A"},
        KEY | {"tenant": "a:b"},
        KEY | {"scopes": []},
        KEY | {"scopes": "read"},
        KEY | {"scopes": ["write"]},
        KEY | {"hash": HASH.upper()},
        KEY | {"hash": "md5:" + HASH},
        KEY | {"expires": "soon"},
        KEY | {"expires": "2027-01-31T00:00:00"},
        KEY | {"expiry": "2027-01-31T00:00:00Z"},
        KEY | {"note": 7},
        {"id": "one"},
    ],
)
def test_a_record_that_cannot_be_meant_is_refused_without_showing_a_hash(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_key_file(file_of(broken))
    assert HASH not in str(refused.value).lower()


@pytest.mark.parametrize(
    "text",
    [
        file_of(KEY, KEY),
        file_of(KEY | {"hash": f"sha256:{HASH}"}, KEY | {"hash": f"sha256:{HASH}", "id": "b", "tenant": "bob"}),
        file_of(KEY)[:-20],
        file_of(KEY, version=3),
        file_of(KEY, more=1),
        f'{{"ann": "{HASH}", "ann": "{HASH}"}}'.encode(),
        f'{{"{HASH}": 1, "{HASH}": 2}}'.encode(),
        b"{" + b" " * (17 << 20) + b"}",
        b"\xff",
    ],
    ids=["same id", "same key", "half-written", "version", "member", "tenant twice", "hash as name", "huge", "bytes"],
)
def test_a_file_that_cannot_be_meant_is_refused(text: bytes) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_key_file(text)
    assert HASH not in str(refused.value)


def test_a_tenant_has_what_is_granted_to_everybody_but_for_what_its_own_entry_says() -> None:
    quotas = {
        "*": {"turns_per_second": 10, "sessions": 100},
        "ann": {"sessions": 5, "turns_per_second": None},
        "bob": {},
    }
    allowances = parse_key_file(file_of(KEY, quotas=quotas)).allowances
    assert allowances.of("ann") == Allowance(sessions=5)
    assert allowances.of("bob") == allowances.of("carl") == Allowance(turns_per_second=10, sessions=100)


@pytest.mark.parametrize("quotas", [{}, {"ann": {}}, {"ann": {"sessions": None}}])
def test_whoever_has_no_quota_is_known_by_a_look(quotas: dict[str, Any]) -> None:
    assert parse_key_file(file_of(KEY, quotas=quotas)).allowances.of("ann") is UNLIMITED


@pytest.mark.parametrize(
    "quotas",
    [
        '{"ann": {"turns": 1}}',
        '{"ann": {"turns_per_second": -1}}',
        '{"ann": {"turns_per_second": NaN}}',
        '{"ann": {"turns_per_second": 1e400}}',
        '{"ann": {"turns_per_second": 1e7}}',
        '{"ann": {"turns_per_second": true}}',
        '{"ann": {"turns_per_second": "10"}}',
        '{"ann": {"sessions": 1.5}}',
        '{"ann": {"sessions": -0.0001}}',
        '{"ann": {"tokens_per_day": 10000000000000000}}',
        '{"ann": {"builds_per_hour": [1]}}',
        '{"ann": 7}',
        '{"a:b": {}}',
        "[]",
        '{"ann": {"sessions": 1, "sessions": 2}}',
    ],
)
def test_a_quota_that_is_unknown_negative_or_no_number_is_refused(quotas: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_key_file(f'{{"version": 2, "keys": [], "quotas": {quotas}}}'.encode())


def test_a_key_names_its_record_and_is_never_the_same_twice() -> None:
    (first_id, first), (second_id, second) = new_key(), new_key()
    assert (id_in(first), id_in(second)) == (first_id, second_id)
    assert first_id != second_id
    assert len(first.rpartition(first_id)[2]) >= 43  # 256 bits in base64


@pytest.mark.parametrize("text", ["", "pf_", "pf_abc", "pf_abc_", "xx_abc_def", "abc"])
def test_what_is_no_key_names_nothing(text: str) -> None:
    assert id_in(text) == ""


def test_a_hash_and_a_mark_are_the_secret_s_own() -> None:
    assert keyed_hash(b"one", b"key") != keyed_hash(b"two", b"key")
    assert mark_of(b"one") != mark_of(b"two")
    assert mark_of(b"one") not in keyed_hash(b"one", b"").hex()


def test_an_empty_file_has_neither_keys_nor_limits() -> None:
    assert KeyFile().allowances.of("ann") is UNLIMITED


@pytest.mark.parametrize("when", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"])
def test_a_time_that_is_none_in_utc_is_refused_as_any_other_mistake(when: str) -> None:
    with pytest.raises(ConfigurationError, match="expires is a time"):
        parse_key_file(file_of(KEY | {"expires": when}))
