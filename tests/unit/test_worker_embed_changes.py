"""Embedding turns that are edited, removed and taken back, without servers."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from prefold.recall import TurnRange
from prefold.storage.embed_types import Purge
from prefold.storage.limits import ERASE_GRACE, milliseconds
from prefold.storage.types import SessionRef, StoredTurn
from prefold.worker.outdated import outdated_by
from tests.support.embedding import EmbedBench as Bench
from tests.support.embedding import FakeTurnLog, span

A = SessionRef("acme", "a", "a1")
GRACE_MS = milliseconds(ERASE_GRACE)


async def test_a_changed_turn_below_the_mark_is_embedded_again_and_no_other() -> None:
    bench = Bench()
    bench.turns.add(A, "one", "two", "three")
    await bench.run(span(A))
    bench.turns.edit(A, 2, "other")
    await bench.run(span(A, 2, 2))
    assert bench.store.revisions(A) == {(1, 0), (2, 1), (3, 0)}
    assert bench.embedder.batches[1:] == [["User: other"]]


async def test_changed_turns_and_new_ones_share_a_call_and_keep_its_bound() -> None:
    bench = Bench(call_turns=3)
    bench.turns.add(A, *"abcd")
    await bench.run(span(A))
    for seq in (1, 2, 3, 4):
        bench.turns.edit(A, seq, f"new {seq}")
    bench.turns.add(A, "e", "f", "g")
    await bench.run(span(A))
    assert [len(batch) for batch in bench.embedder.batches[2:]] == [3, 3, 1]
    assert bench.store.revisions(A) == {(1, 1), (2, 1), (3, 1), (4, 1), (5, 0), (6, 0), (7, 0)}
    assert bench.mark(A) == 7


async def test_removed_turns_lose_their_point_and_get_no_other() -> None:
    bench = Bench()
    bench.turns.add(A, "one", "two")
    await bench.run(span(A))
    bench.turns.remove(A, 1)
    bench.turns.add(A, "three")
    bench.turns.remove(A, 3)
    await bench.run(span(A))
    assert (bench.store.revisions(A), bench.mark(A)) == ({(2, 0)}, 3)


async def test_the_mark_reaches_the_head_also_where_its_turns_were_taken_back() -> None:
    bench = Bench()
    bench.turns.add(A, *"abcd")
    bench.turns.rewind(A, 2)
    await bench.run(span(A))
    assert (bench.store.seqs(A), bench.mark(A)) == ([1, 2], 4)
    bench.turns.add(A, "e")
    await bench.run(span(A, 5, 5))
    assert (bench.store.seqs(A), bench.mark(A)) == ([1, 2, 5], 5)


async def test_a_turn_that_comes_while_the_log_is_read_is_not_passed_over() -> None:
    bench = Bench()
    bench.turns.add(A, *"ab")
    bench.turns.rewind(A, 1)
    read = bench.turns.read_turns

    async def read_and_append(tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        turns = await read(tenant, session, after_seq, limit)
        if len(bench.turns.lives[A].turns) == 1:
            bench.turns.add(A, "c")
        return turns

    bench.turns.read_turns = read_and_append  # type: ignore[method-assign]
    await bench.run(span(A))
    await bench.run(span(A))
    assert (bench.store.seqs(A), bench.mark(A)) == ([1, 3], 3)


async def test_a_purge_stays_until_a_pass_that_began_after_the_grace() -> None:
    bench = Bench()
    bench.turns.add(A, "one")
    await bench.run(span(A))
    bench.turns.edit(A, 1, "other")
    asked_at_ms = bench.turns.now_ms
    await bench.run(span(A))
    assert (bench.store.revisions(A), bench.turns.due_at) == ({(1, 1)}, {A: asked_at_ms + GRACE_MS})
    bench.turns.now_ms += GRACE_MS - 1
    await bench.run(span(A))
    assert bench.turns.due == {A}
    bench.turns.now_ms += 1
    await bench.run(span(A))
    assert bench.turns.due == set()


async def test_a_change_of_another_turn_costs_a_look_and_no_second_embedding() -> None:
    bench = Bench(call_turns=2)
    bench.turns.add(A, *"abcd")
    edits = iter([1])

    def edit_once() -> None:
        if bench.mark(A) == 2 and next(edits, 0):
            bench.turns.edit(A, 1, "other")

    bench.turns.before_mark = edit_once
    await bench.run(span(A))
    assert bench.embedder.batches == [["User: a", "User: b"], ["User: c", "User: d"], ["User: other"]]
    assert bench.store.revisions(A) == {(1, 1), (2, 0), (3, 0), (4, 0)}


async def test_a_turn_that_changes_while_it_is_embedded_is_never_stored_under_its_old_words() -> None:
    bench = Bench()
    bench.turns.add(A, "one", "two")
    stored: list[set[tuple[int, int]]] = []

    def edit(texts: Sequence[str]) -> None:
        stored.append(bench.store.revisions(A))
        if "User: one" in texts:
            bench.turns.edit(A, 1, "other")

    bench.embedder.fails = edit
    await bench.run(span(A))
    assert stored == [set(), set()]
    assert bench.store.revisions(A) == {(1, 1), (2, 0)}


async def test_a_session_that_changes_all_the_time_ends_no_pass_late_and_stays_due() -> None:
    bench = Bench(call_turns=2, job_turns=20)
    bench.turns.add(A, "one", "two")
    bench.turns.before_mark = lambda: bench.turns.edit(A, 1, f"version {bench.turns.lives[A].changes}")
    report = await bench.run(span(A))
    assert (report.left, bench.turns.due) == (1, {A})
    bench.turns.before_mark = lambda: None
    bench.turns.now_ms += GRACE_MS
    await bench.run(span(A))
    assert bench.store.revisions(A) == {(1, bench.turns.lives[A].turns[1].revision), (2, 0)}
    assert bench.turns.due == set()


async def test_a_user_that_is_set_while_turns_are_embedded_is_on_every_point() -> None:
    bench = Bench(call_turns=2)
    bench.turns.add(A, *"abc")

    def set_once() -> None:
        if not bench.turns.lives[A].user:
            bench.turns.set_user(A, "ann")

    bench.turns.before_mark = set_once
    await bench.run(span(A))
    assert {point.user for point in bench.store.points.values()} == {"ann"}
    assert bench.mark(A) == 3


async def test_workers_of_two_embedders_that_take_turns_embed_each_turn_once_each() -> None:
    bench = Bench()
    for text in "abcdef":
        bench.turns.add(A, text)
        for collection in ("turns_x_4", "turns_y_4"):
            bench.store.collection = collection
            await bench.run(span(A))
    assert bench.embedder.batches == [[f"User: {text}"] for text in "abcdef" for _ in range(2)]


RANGES = st.lists(st.tuples(st.integers(1, 90), st.integers(0, 90)), min_size=1, max_size=5)
FATES = st.lists(st.sampled_from(["kept", "edited", "removed", "gone"]), min_size=80, max_size=80)


@settings(max_examples=40)
@given(RANGES, FATES)
async def test_a_purge_names_all_points_of_its_ranges_but_those_of_present_revisions(
    ranges: list[tuple[int, int]], fates: list[str]
) -> None:
    log = FakeTurnLog()
    log.add(A, *map(str, range(1, 81)))
    for seq, fate in enumerate(fates, 1):
        if fate == "gone":
            del log.lives[A].turns[seq]
        elif fate == "edited":
            log.edit(A, seq, "other")
        elif fate == "removed":
            log.remove(A, seq)
    purges = [Purge(first, first + more, 0) for first, more in ranges]
    void = await outdated_by(log, A, purges)
    named = {seq for first, more in ranges for seq in range(first, first + more + 1)}
    for seq in range(1, 190):
        fate = fates[seq - 1] if seq <= 80 else "gone"
        present = {"kept": 0, "edited": 1}.get(fate)
        for revision in range(3):
            is_void = any(_admits(one, seq, revision) for one in void)
            assert is_void == (seq in named and (present is None or revision < present)), (seq, revision, fate)


def _admits(turns: TurnRange, seq: int, revision: int) -> bool:
    is_older = turns.below_revision is None or revision < turns.below_revision
    return turns.first_seq <= seq <= turns.last_seq and is_older
