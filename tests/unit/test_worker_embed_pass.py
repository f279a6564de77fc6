"""Embedding without servers: order, batches, marks and faults."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from prefold.errors import ConfigurationError, InvalidInputError, OverloadedError, UnavailableError
from prefold.recall import IndexedTurn, TurnPoint, index_turn
from prefold.storage.types import SessionRef
from prefold.worker import embed_items
from tests.support.embedding import EmbedBench as Bench
from tests.support.embedding import span

A = SessionRef("acme", "a", "a1")
B = SessionRef("acme", "b", "b1")


def poisoned(word: str) -> Callable[[Sequence[str]], None]:
    def fails(texts: Sequence[str]) -> None:
        if any(word in text for text in texts):
            raise InvalidInputError("the embedding server answered 400", code="embedding_refused")

    return fails


async def test_all_turns_are_stored_marked_and_no_longer_due() -> None:
    bench = Bench()
    bench.turns.add(A, "one", "two", "three")
    report = await bench.run(span(A))
    assert bench.store.seqs(A) == [1, 2, 3]
    assert (bench.mark(A), bench.turns.due, report.embedded) == (3, set(), 3)


async def test_turns_of_many_sessions_share_one_call_of_the_embedder() -> None:
    bench = Bench()
    refs = [bench.turns.add(SessionRef("acme", f"s{n}", "x"), "parcel", "bread") for n in range(8)]
    await bench.run(*map(span, refs))
    assert [len(batch) for batch in bench.embedder.batches] == [16]
    assert bench.store.calls == 1


async def test_a_call_never_has_more_turns_than_allowed() -> None:
    bench = Bench(call_turns=4)
    bench.turns.add(A, *"abcdef")
    bench.turns.add(B, *"abc")
    await bench.run(span(A), span(B))
    sizes = [len(batch) for batch in bench.embedder.batches]
    assert (max(sizes), sum(sizes), len(sizes)) == (4, 9, 3)
    assert (bench.mark(A), bench.mark(B)) == (6, 3)


async def test_a_point_carries_whose_turn_it_is() -> None:
    bench = Bench()
    bench.turns.add(A, "hello world")
    bench.turns.set_user(A, "user-7")
    await bench.run(span(A))
    (point,) = bench.store.points.values()
    assert (point.ref, point.user, point.seq, point.revision, point.role) == (A, "user-7", 1, 0, "user")
    assert point.words
    assert bench.embedder.batches == [["User: hello world"]]


async def test_running_it_twice_embeds_nothing_twice() -> None:
    bench = Bench()
    bench.turns.add(A, "one", "two")
    await bench.run(span(A, 1, 2))
    await bench.run(span(A, 1, 2))
    assert len(bench.embedder.batches) == 1


async def test_a_span_ends_where_it_says() -> None:
    bench = Bench()
    bench.turns.add(A, *"abcdef")
    await bench.run(span(A, 1, 4))
    assert (bench.mark(A), bench.turns.due) == (4, {A})


async def test_a_later_span_that_runs_first_also_takes_what_comes_before_it() -> None:
    bench = Bench()
    bench.turns.add(A, *"abcdef")
    await bench.run(span(A, 5, 6))
    assert (bench.store.seqs(A), bench.mark(A)) == ([1, 2, 3, 4, 5, 6], 6)


async def test_spans_of_one_session_are_taken_as_one() -> None:
    bench = Bench()
    bench.turns.add(A, *"abcdef")
    await bench.run(span(A, 5, 6), span(A, 1, 2))
    assert len(bench.embedder.batches) == 1


async def test_another_collection_starts_from_the_first_turn() -> None:
    bench = Bench()
    bench.turns.add(A, "one", "two")
    await bench.run(span(A))
    bench.store.collection = "turns_other_4"
    await bench.run(span(A))
    assert len(bench.embedder.batches) == 2


async def test_a_turn_with_nothing_to_find_it_by_is_passed_and_not_stored() -> None:
    bench = Bench()
    bench.turns.add(A, "one", " ", "three")
    report = await bench.run(span(A))
    assert (bench.store.seqs(A), bench.mark(A), report.without_text) == ([1, 3], 3, 1)


async def test_a_due_entry_that_outlived_its_work_ends() -> None:
    bench = Bench()
    bench.turns.add(A, "one")
    await bench.run(span(A))
    bench.turns.due_at[A] = 0
    await bench.run(span(A))
    assert bench.turns.due == set()


async def test_a_stop_ends_the_pass_after_the_call_that_runs_and_leaves_the_rest_due() -> None:
    bench = Bench(call_turns=2)
    bench.turns.add(A, *"abcdef")
    bench.is_stopped = lambda: len(bench.embedder.batches) >= 2
    report = await bench.run(span(A))
    assert (bench.mark(A), bench.store.seqs(A), report.left, bench.turns.due) == (4, [1, 2, 3, 4], 1, {A})


async def test_a_long_log_is_left_to_later_jobs_piece_by_piece() -> None:
    bench = Bench(call_turns=4, job_turns=10)
    bench.turns.add(A, *map(str, range(25)))
    marks = []
    while A in bench.turns.due:
        await bench.run(span(A))
        marks.append(bench.mark(A))
    assert marks == [10, 20, 25]


@pytest.mark.parametrize("error", [UnavailableError("away"), OverloadedError("429")])
async def test_an_embedder_that_is_away_fails_the_job_and_nothing_is_marked(error: Exception) -> None:
    def fails(_texts: Sequence[str]) -> None:
        raise error

    bench = Bench()
    bench.turns.add(A, "one")
    bench.embedder.fails = fails
    with pytest.raises(type(error)):
        await bench.run(span(A))
    assert (bench.mark(A), bench.store.points, bench.turns.due, len(bench.embedder.batches)) == (0, {}, {A}, 1)


async def test_a_misconfigured_embedder_is_an_outage_and_not_a_bad_turn() -> None:
    def fails(_texts: Sequence[str]) -> None:
        raise ConfigurationError("401: check its key")

    bench = Bench()
    bench.turns.add(A, "one", "two")
    bench.embedder.fails = fails
    with pytest.raises(UnavailableError):
        await bench.run(span(A))
    assert (bench.mark(A), len(bench.embedder.batches)) == (0, 1)


async def test_a_vector_store_that_is_away_fails_the_job_and_nothing_is_marked() -> None:
    bench = Bench()
    bench.turns.add(A, "one")
    bench.store.is_away = True
    with pytest.raises(UnavailableError):
        await bench.run(span(A))
    assert (bench.mark(A), bench.turns.due) == (0, {A})
    bench.store.is_away = False
    await bench.run(span(A))
    assert (bench.mark(A), bench.store.seqs(A)) == (1, [1])


async def test_what_was_stored_before_a_fault_stays_marked() -> None:
    bench = Bench(call_turns=2)
    bench.turns.add(A, *"abcd")

    def fails(_texts: Sequence[str]) -> None:
        if len(bench.embedder.batches) == 2:
            raise UnavailableError("away")

    bench.embedder.fails = fails
    with pytest.raises(UnavailableError):
        await bench.run(span(A))
    assert bench.mark(A) == 2


@pytest.mark.parametrize("place", range(7))
async def test_one_turn_that_the_embedder_refuses_does_not_block_its_batch(place: int) -> None:
    texts = [f"turn {n}" for n in range(7)]
    texts[place] = "poison"
    bench = Bench()
    bench.turns.add(A, *texts)
    bench.turns.add(B, "innocent")
    bench.embedder.fails = poisoned("poison")
    with capture_logs() as logs:
        report = await bench.run(span(A), span(B))
    assert bench.store.seqs(A) == [seq for seq in range(1, 8) if seq != place + 1]
    assert (bench.mark(A), bench.mark(B), bench.store.seqs(B), report.refused) == (7, 1, [1], 1)
    (entry,) = logs
    assert (entry["event"], entry["session"], entry["seq"]) == ("turn_refused_by_embedder", "a", place + 1)
    assert "poison" not in str(entry)


async def test_a_turn_on_which_the_embedder_breaks_is_passed_like_a_refused_one() -> None:
    def fails(texts: Sequence[str]) -> None:
        if any("poison" in text for text in texts):
            raise RuntimeError("segment fault in the tokenizer")

    bench = Bench()
    bench.turns.add(A, "one", "poison", "three")
    bench.embedder.fails = fails
    report = await bench.run(span(A))
    assert (bench.store.seqs(A), bench.mark(A), report.refused) == ([1, 3], 3, 1)


async def test_a_broken_embedder_that_refuses_everything_marks_nothing() -> None:
    def fails(_texts: Sequence[str]) -> None:
        raise RuntimeError("the model is damaged")

    bench = Bench()
    bench.turns.add(A, "one", "two", "three")
    bench.embedder.fails = fails
    with pytest.raises(UnavailableError, match="refuses every text"):
        await bench.run(span(A))
    assert (bench.mark(A), bench.store.points, bench.turns.due) == (0, {}, {A})


async def test_a_session_that_was_deleted_while_its_turns_were_embedded_leaves_no_point() -> None:
    bench = Bench()
    bench.turns.add(A, "one")
    bench.turns.add(B, "two")
    bench.turns.before_mark = lambda: bench.turns.erase(A)
    report = await bench.run(span(A), span(B))
    assert (bench.store.seqs(A), bench.store.seqs(B)) == ([], [1])
    assert (bench.turns.due, report.sessions_gone) == (set(), 1)


async def test_a_session_that_was_deleted_and_made_anew_gets_no_point_of_its_old_life() -> None:
    bench = Bench()
    bench.turns.add(A, "one")
    again = SessionRef(A.tenant, A.session, "a2")

    def recreate() -> None:
        if A in bench.turns.lives:
            bench.turns.erase(A)
            bench.turns.add(again, "other")

    bench.turns.before_mark = recreate
    await bench.run(span(A))
    assert (bench.store.points, bench.turns.due) == ({}, {again})


async def test_a_job_of_a_life_that_is_over_removes_what_a_crash_left_behind() -> None:
    bench = Bench()
    bench.turns.add(A, "one")
    await bench.run(span(A))
    bench.turns.erase(A)
    bench.turns.due_at[A] = 0
    report = await bench.run(span(A))
    assert (bench.store.points, bench.turns.due, report.sessions_gone) == ({}, set(), 1)


async def test_a_due_entry_of_a_life_that_is_over_stays_until_its_points_are_gone() -> None:
    bench = Bench()
    bench.turns.due_at[A] = 0
    bench.store.is_away = True
    with pytest.raises(UnavailableError):
        await bench.run(span(A))
    assert bench.turns.due == {A}


@pytest.mark.parametrize("place", range(1, 7))
async def test_one_turn_that_the_store_refuses_holds_up_nothing(place: int) -> None:
    bench = Bench(call_turns=4)
    bench.turns.add(A, *"abcdef")
    bench.turns.add(B, "one", "two")
    bench.store.refuses = lambda point: point.ref == A and point.seq == place
    with capture_logs() as logs:
        report = await bench.run(span(A), span(B))
    assert bench.store.seqs(A) == [seq for seq in range(1, 7) if seq != place]
    assert (bench.mark(A), bench.mark(B), bench.turns.due) == (6, 2, set())
    assert (report.embedded, report.refused) == (7, 1)
    assert [(entry["event"], entry["session"], entry["seq"]) for entry in logs] == [
        ("turn_refused_by_store", "a", place)
    ]


async def test_a_misconfigured_store_is_an_outage() -> None:
    bench = Bench()
    bench.turns.add(A, "one")

    async def upsert(_points: Sequence[object]) -> None:
        raise ConfigurationError("the collection has another form")

    bench.store.upsert = upsert  # type: ignore[method-assign, assignment]
    with pytest.raises(UnavailableError):
        await bench.run(span(A))
    assert bench.mark(A) == 0


LOGS = st.lists(st.integers(0, 9), min_size=1, max_size=6)
SPANS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.integers(0, 9)), max_size=12)


@given(LOGS, SPANS, st.integers(1, 5), st.integers(1, 12))
async def test_whatever_the_jobs_and_their_order_a_mark_never_passes_a_turn_that_is_not_stored(
    lengths: list[int], spans: list[tuple[int, int, int]], call_turns: int, job_turns: int
) -> None:
    bench = Bench(call_turns=call_turns, job_turns=job_turns)
    refs = [SessionRef("acme", f"s{n}", "x") for n in range(len(lengths))]
    for ref, length in zip(refs, lengths, strict=True):
        bench.turns.add(ref, *(f"turn {n}" for n in range(length)))
    for which, first, more in spans:
        await bench.run(span(refs[which % len(refs)], first, first + more))
        for ref in refs:
            assert bench.store.seqs(ref) == list(range(1, bench.mark(ref) + 1))
    for _ in range(60 // job_turns + 1 + len(refs)):
        await bench.run(*map(span, refs))
    assert [bench.mark(ref) for ref in refs] == lengths


async def test_a_store_that_turns_out_misconfigured_while_a_refused_turn_is_looked_for_is_an_outage() -> None:
    bench = Bench()
    bench.turns.add(A, "one", "two")
    errors = iter([InvalidInputError("a point is not acceptable"), ConfigurationError("401: check its key")])

    async def upsert(_points: Sequence[object]) -> None:
        raise next(errors)

    bench.store.upsert = upsert  # type: ignore[method-assign, assignment]
    with pytest.raises(UnavailableError):
        await bench.run(span(A))
    assert (bench.mark(A), bench.turns.due) == (0, {A})


async def test_a_turn_that_cannot_be_read_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(verbatim_json: bytes) -> IndexedTurn:
        if b"poison" in verbatim_json:
            raise ValueError("number is infinity when parsed as double")
        return index_turn(verbatim_json)

    monkeypatch.setattr(embed_items, "index_turn", reads)
    bench = Bench()
    bench.turns.add(A, "one", "poison", "three")
    bench.turns.add(B, "other")
    with capture_logs() as logs:
        await bench.run(span(A), span(B))
    assert (bench.store.seqs(A), bench.store.seqs(B)) == ([1, 3], [1])
    assert (bench.mark(A), bench.turns.due) == (3, set())
    assert [entry["seq"] for entry in logs if entry["event"] == "turn_unreadable"] == [2]


async def test_the_embedder_works_on_while_what_it_made_is_stored() -> None:
    bench = Bench(call_turns=2)
    bench.turns.add(A, "one", "two")
    bench.turns.add(B, "three", "four")
    asked_again = threading.Event()
    upsert, waits = bench.store.upsert, []

    def note(_texts: Sequence[str]) -> None:
        if len(bench.embedder.batches) == 2:
            asked_again.set()

    async def upsert_once_asked_again(points: Sequence[TurnPoint]) -> None:
        waits.append(await asyncio.to_thread(asked_again.wait, 20))
        await upsert(points)

    bench.embedder.fails = note
    bench.store.upsert = upsert_once_asked_again  # type: ignore[method-assign]
    await bench.run(span(A), span(B))
    assert waits == [True, True]
    assert (bench.store.seqs(A), bench.store.seqs(B)) == ([1, 2], [1, 2])


async def test_when_one_call_fails_nothing_goes_on_behind_the_job() -> None:
    bench = Bench(call_turns=2)
    bench.turns.add(A, "one", "two")
    bench.turns.add(B, "three", "four")
    ended: list[str] = []

    async def upsert(points: Sequence[TurnPoint]) -> None:
        if points[0].ref == B:
            raise UnavailableError("the vector store does not answer")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("a")

    bench.store.upsert = upsert  # type: ignore[method-assign]
    with pytest.raises(UnavailableError):
        await bench.run(span(A), span(B))
    assert ended == ["a"]
    assert bench.turns.due == {A, B}
