"""Spacing of repeated work."""

from prefold.dispatcher.attempts import Attempts
from prefold.storage.types import DueItem
from tests.support.dispatching import event, ref

ITEM = DueItem(0, "embed", ref("a"), 0)


def attempts() -> Attempts:
    return Attempts(base_ms=5_000, max_ms=20_000)


def test_work_that_nobody_asked_for_may_go_out() -> None:
    assert attempts().may(ITEM, 0)


def test_the_same_entry_waits_five_seconds_then_ten_then_twenty_and_no_longer() -> None:
    asked = attempts()
    times = []
    for now_ms in range(0, 100_000, 1_000):
        if asked.may(ITEM, now_ms):
            asked.repeated(ITEM, now_ms)
            times.append(now_ms // 1_000)
    assert times == [0, 5, 15, 35, 55, 75, 95]


def test_an_entry_follows_its_event_only_after_five_seconds() -> None:
    asked = attempts()
    asked.asked("embed", event("a", 1), 0)
    assert not asked.may(ITEM, 4_999)
    assert asked.may(ITEM, 5_000)


def test_an_event_does_not_make_the_reconciler_wait_twice_as_long() -> None:
    asked = attempts()
    asked.asked("embed", event("a", 1), 0)
    asked.repeated(ITEM, 5_000)
    assert asked.may(ITEM, 10_000)


def test_the_two_kinds_of_one_session_do_not_hold_each_other_up() -> None:
    asked = attempts()
    asked.asked("embed", event("a", 1), 0)
    assert asked.may(DueItem(0, "compact", ref("a"), 0), 0)


def test_another_life_of_the_session_is_other_work() -> None:
    asked = attempts()
    asked.repeated(ITEM, 0)
    assert asked.may(DueItem(0, "embed", type(ITEM.ref)("acme", "a", "other"), 0), 0)


def test_what_waits_is_counted_by_partition() -> None:
    asked = attempts()
    asked.repeated(ITEM, 0)
    asked.repeated(ITEM, 5_000)
    asked.asked("embed", event("b", 1, partition=3), 0)
    assert [asked.waiting(0), asked.waiting(3), asked.waiting(4)] == [1, 1, 0]


def test_memory_of_what_is_done_goes_away() -> None:
    asked = attempts()
    asked.repeated(ITEM, 0)
    asked.asked("compact", event("b", 1), 0)
    asked.forget_old(9_999)
    assert len(asked) == 2
    asked.forget_old(10_000)
    assert (len(asked), asked.waiting(0)) == (0, 0)


def test_looking_for_what_was_asked_costs_no_memory() -> None:
    asked = attempts()
    asked.may(ITEM, 0)
    asked.waiting(7)
    assert len(asked) == 0


def test_an_entry_that_has_moved_shows_progress_and_waits_no_longer_than_at_first() -> None:
    asked = attempts()
    for now_ms in (0, 5_000, 15_000):
        asked.repeated(ITEM, now_ms)
    moved = DueItem(0, "embed", ref("a"), 18_000)
    assert not asked.may(ITEM, 20_000)
    assert asked.may(moved, 20_000)
    asked.repeated(moved, 20_000)
    assert not asked.may(moved, 24_999)
    assert asked.may(moved, 25_000)


def test_the_end_of_a_session_is_other_work_than_its_embedding() -> None:
    asked = attempts()
    asked.repeated(ITEM, 0)
    assert asked.may(DueItem(0, "expire", ref("a"), 0), 0)
