"""Names in Redis: spread, isolation, shape."""

from collections import Counter

import pytest

from prefold.errors import InvalidInputError
from prefold.storage.keys import PARTITIONS, SessionKeys, partition_of, partition_tag, slot_of


def test_partitions_spread_evenly_over_the_slots_of_a_cluster() -> None:
    slots = [slot_of(partition_tag(partition)) for partition in range(PARTITIONS)]
    assert [slot // 64 for slot in slots] == list(range(PARTITIONS))
    for primaries in (2, 3, 5, 8):
        held = Counter(slot * primaries // 16384 for slot in slots)
        assert max(held.values()) - min(held.values()) <= 1


def test_a_slot_is_what_redis_says_it_is() -> None:
    assert slot_of("123456789") == 0x31C3 % 16384


def test_sessions_spread_over_the_partitions() -> None:
    held = Counter(partition_of("acme", f"session-{i}") for i in range(25_600))
    assert len(held) == PARTITIONS
    assert max(held.values()) < 160


def test_all_keys_of_a_session_share_one_hash_tag() -> None:
    keys = SessionKeys.of("acme", "s1").script_keys()
    assert len({key[key.index("{") : key.index("}") + 1] for key in keys}) == 1
    assert len(set(keys)) == len(keys) == 10


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
