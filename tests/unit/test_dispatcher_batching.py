"""Events to jobs, without time or servers."""

from hypothesis import given
from hypothesis import strategies as st

from prefold.dispatcher.asking import cut_into
from prefold.dispatcher.batching import BuildWishes, EmbedBatch
from prefold.storage.embed_types import EmbedSpan
from tests.support.dispatching import event, ref


def span(name: str, first: int, last: int) -> EmbedSpan:
    one = ref(name)
    return EmbedSpan(one.tenant, one.session, one.incarnation, first, last)


def jobs(collected: EmbedBatch, most: int = 64) -> list[list[EmbedSpan]]:
    return [
        [EmbedSpan(one.ref.tenant, one.ref.session, one.ref.incarnation, one.first_seq, one.last_seq) for one in job]
        for job in cut_into(collected.pieces(), most)
    ]


def batch(max_turns: int = 64, max_wait_ms: int = 100) -> EmbedBatch:
    return EmbedBatch(max_turns, max_wait_ms)


def test_ranges_of_one_session_become_one_span() -> None:
    collected = batch()
    for one in (event("a", 3, 4), event("b", 1), event("a", 5), event("a", 1, 2)):
        collected.add(one, 0)
    assert jobs(collected) == [[span("a", 1, 5), span("b", 1, 1)]]


def test_sessions_of_two_tenants_with_one_name_stay_apart() -> None:
    collected = batch()
    collected.add(event("a", 1), 0)
    other = event("a", 1)
    collected.add(type(other)(0, "x", ref("a", tenant="other"), 1, 1, False), 0)
    assert len(jobs(collected)[0]) == 2


def test_an_event_without_turns_adds_nothing() -> None:
    collected = batch()
    collected.add(event("a", 4, 3), 0)
    assert jobs(collected) == []
    assert collected.wait_ms(0) is None


def test_a_batch_is_ripe_when_its_first_turn_has_waited_long_enough() -> None:
    collected = batch()
    assert collected.wait_ms(0) is None
    collected.add(event("a", 1), 10)
    collected.add(event("a", 2), 90)
    assert (collected.wait_ms(50), collected.wait_ms(110), collected.wait_ms(500)) == (60, 0, 0)


def test_a_full_batch_does_not_wait() -> None:
    collected = batch(max_turns=4)
    collected.add(event("a", 1, 3), 0)
    assert collected.wait_ms(0) == 100
    collected.add(event("b", 1), 0)
    assert collected.wait_ms(0) == 0


def test_the_same_event_twice_does_not_fill_a_batch() -> None:
    collected = batch(max_turns=4)
    for _ in range(10):
        collected.add(event("a", 1), 0)
    assert collected.wait_ms(0) == 100


def test_a_cleared_batch_is_as_new() -> None:
    collected = batch()
    collected.add(event("a", 1), 0)
    collected.clear()
    assert (jobs(collected), collected.wait_ms(5)) == ([], None)


def test_a_long_span_is_a_job_of_its_own_and_is_not_cut() -> None:
    collected = batch(max_turns=4)
    for one in (event("a", 1), event("b", 1, 9), event("c", 1)):
        collected.add(one, 0)
    assert jobs(collected, 4) == [[span("a", 1, 1)], [span("b", 1, 9)], [span("c", 1, 1)]]


EVENTS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(1, 40), st.integers(0, 12)).map(
        lambda t: event(t[0], t[1], t[1] + t[2])
    ),
    max_size=40,
)


@given(EVENTS)
def test_every_turn_of_every_event_is_in_exactly_one_job(events: list) -> None:  # type: ignore[type-arg]
    collected = batch(max_turns=8)
    for one in events:
        collected.add(one, 0)
    spans = [one for job in jobs(collected, 8) for one in job]
    assert len({one.session for one in spans}) == len(spans)
    held = {(one.session, seq) for one in spans for seq in range(one.first_seq, one.last_seq + 1)}
    assert {(one.ref.session, seq) for one in events for seq in range(one.first_seq, one.last_seq + 1)} <= held


@given(EVENTS)
def test_a_job_of_several_sessions_never_has_more_turns_than_allowed(events: list) -> None:  # type: ignore[type-arg]
    collected = batch(max_turns=8)
    for one in events:
        collected.add(one, 0)
    for job in jobs(collected, 8):
        turns = sum(one.last_seq - one.first_seq + 1 for one in job)
        assert len(job) == 1 or turns <= 8


def wishes() -> BuildWishes:
    return BuildWishes(window_ms=500, max_window_ms=2_000)


def test_the_first_wish_goes_through_at_once() -> None:
    wanted = wishes()
    wanted.add(event("a", 7, build=True), 0)
    assert wanted.wait_ms(0) == 0
    assert wanted.take(0) == {ref("a"): 7}
    assert wanted.take(0) == {}


def test_wishes_within_the_window_are_asked_once_at_its_end_with_the_newest_turn() -> None:
    wanted = wishes()
    wanted.add(event("a", 7), 0)
    wanted.take(0)
    for seq, now_ms in ((8, 50), (9, 100), (10, 400)):
        wanted.add(event("a", seq), now_ms)
        assert wanted.take(now_ms) == {}
    assert wanted.wait_ms(400) == 100
    assert wanted.take(500) == {ref("a"): 10}


def test_the_windows_of_a_session_that_keeps_asking_grow_up_to_their_bound() -> None:
    wanted = wishes()
    wanted.add(event("a", 1), 0)
    asked_at = []
    for now_ms in range(0, 8_000, 50):
        wanted.add(event("a", now_ms + 2), now_ms)
        if wanted.take(now_ms):
            asked_at.append(now_ms)
    assert asked_at == [0, 500, 1500, 3500, 5500, 7500]


def test_a_session_that_was_quiet_for_a_window_is_asked_for_at_once_again() -> None:
    wanted = wishes()
    wanted.add(event("a", 1), 0)
    wanted.take(0)
    assert wanted.take(600) == {}
    wanted.add(event("a", 2), 700)
    assert wanted.take(700) == {ref("a"): 2}


def test_sessions_do_not_hold_each_other_up() -> None:
    wanted = wishes()
    wanted.add(event("a", 1), 0)
    wanted.take(0)
    wanted.add(event("b", 1), 10)
    assert wanted.take(10) == {ref("b"): 1}


def test_a_wish_that_could_not_be_enqueued_is_given_again() -> None:
    wanted = wishes()
    wanted.add(event("a", 1), 0)
    wanted.restore(wanted.take(0))
    assert wanted.wait_ms(10) == 0
    assert wanted.take(10) == {ref("a"): 1}
    assert wanted.take(10) == {}


def test_no_wish_no_wait() -> None:
    assert wishes().wait_ms(0) is None


def test_a_session_that_stopped_asking_is_asked_for_at_once_when_it_starts_again() -> None:
    wanted = wishes()
    wanted.add(event("a", 1), 0)
    wanted.take(0)
    wanted.add(event("a", 2), 10)
    wanted.forget(ref("a"))
    assert wanted.take(2_000) == {}
    wanted.add(event("a", 3), 2_010)
    assert wanted.take(2_010) == {ref("a"): 3}


def test_a_wish_that_was_not_asked_for_yet_is_not_forgotten() -> None:
    wanted = wishes()
    wanted.add(event("a", 1), 0)
    wanted.forget(ref("a"))
    assert wanted.take(0) == {ref("a"): 1}
