"""Names in Redis: spread, isolation, shape."""

from collections import Counter
from dataclasses import fields

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prefold.errors import InvalidInputError
from prefold.storage.keys import (
    PARTITIONS,
    PartitionKeys,
    SessionKeys,
    mark_beside,
    never_beside,
    partition_of,
    partition_tag,
    slot_of,
    slot_of_key,
)


def test_partitions_spread_evenly_over_the_slots_of_a_cluster() -> None:
    slots = [slot_of(partition_tag(partition)) for partition in range(PARTITIONS)]
    assert [slot // 64 for slot in slots] == list(range(PARTITIONS))
    assert len(set(slots)) == PARTITIONS
    for primaries in (2, 3, 5, 8, 16):
        held = Counter(slot * primaries // 16384 for slot in slots)
        assert len(held) == primaries
        assert max(held.values()) - min(held.values()) <= 1


def test_a_slot_is_what_redis_says_it_is() -> None:
    assert slot_of("123456789") == 0x31C3 % 16384


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        ("plain", "plain"),
        ("a:{tag}:b", "tag"),
        ("{tag}{other}", "tag"),
        ("a{}b", "a{}b"),
        ("a{open", "a{open"),
        ("a}b{c}", "c"),
        ("{{deep}}", "{deep"),
    ],
)
def test_a_keys_slot_is_that_of_its_first_braces(key: str, hashed: str) -> None:
    assert slot_of_key(key) == slot_of_key(key.encode()) == slot_of(hashed)


names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=40)


@given(tenant=names, session=names)
@example("{", "}")
@example("a{b}c", "{}")
@example("x" * 400, "ünï:{p000aoa}*")
def test_every_key_of_any_session_lies_in_its_partitions_slot(tenant: str, session: str) -> None:
    keys = SessionKeys.of(tenant, session)
    shared = PartitionKeys.of(keys.partition)
    given_to_scripts = {*keys.script_keys(), *keys.change_keys(), *keys.erasable()}
    of_partition = {getattr(shared, field.name) for field in fields(shared)}
    beside = {mark_beside(keys.meta), never_beside(keys.meta)}
    slots = {slot_of_key(key) for key in given_to_scripts | of_partition | beside}
    assert slots == {slot_of(partition_tag(partition_of(tenant, session)))}
    assert never_beside(keys.meta) not in given_to_scripts | of_partition


def test_sessions_spread_over_the_partitions() -> None:
    held = Counter(partition_of("acme", f"session-{i}") for i in range(25_600))
    assert len(held) == PARTITIONS
    assert max(held.values()) < 160


def test_all_keys_of_a_session_share_one_hash_tag() -> None:
    keys = SessionKeys.of("acme", "s1").script_keys()
    assert len({key[key.index("{") : key.index("}") + 1] for key in keys}) == 1
    assert len(set(keys)) == len(keys) == 11


@pytest.mark.parametrize(
    "other", [("ac", "me:s1"), ("acme", "s1:meta"), ("acme:s1", "x"), ("acme", "s1}"), ("acme", "S1")]
)
def test_no_two_sessions_share_a_key(other: tuple[str, str]) -> None:
    assert not set(SessionKeys.of("acme", "s1").script_keys()[:8]) & set(SessionKeys.of(*other).script_keys()[:8])


def test_text_that_a_key_gives_meaning_to_is_encoded() -> None:
    assert SessionKeys.of("a:b", "{x}*").label == "a%3Ab:%7Bx%7D%2A"


@pytest.mark.parametrize("names", [("", "s"), ("t", "")])
def test_a_name_is_never_empty(names: tuple[str, str]) -> None:
    with pytest.raises(InvalidInputError):
        SessionKeys.of(*names)
