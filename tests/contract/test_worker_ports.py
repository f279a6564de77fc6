"""What the embed job relies on, of the fakes as of the real servers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from prefold.errors import RefusedError
from prefold.recall import CollectionSpec, TurnPoint, TurnRange, connect_vectors, document_words
from prefold.storage import connect_sessions
from prefold.storage.embed_types import EmbedDebt, MarkOutcome, Purge
from prefold.storage.limits import ERASE_GRACE, milliseconds
from prefold.storage.types import SessionRef
from prefold.worker.ports import TurnLog, TurnStore
from prefold.worker.turn_store import MadeIndex
from tests.support.embedding import FakeTurnLog, FakeTurnStore
from tests.support.turn_changes import Changes, FakeChanges, RealChanges
from tests.support.vectors import RunningVectors, running_vectors

OTHER = SessionRef("acme", "s", "another")
X, Y, Z = "turns_x_4", "turns_y_4", "turns_z_4"
GRACE_MS = milliseconds(ERASE_GRACE)


@dataclass
class LogBench:
    log: TurnLog
    changes: Changes
    set_clock: Callable[[int], None]
    now_ms: int = 4_000_000_000_000

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.set_clock(self.now_ms)

    async def debt(self, ref: SessionRef) -> EmbedDebt:
        debt = await self.log.embed_debt(ref, X)
        assert debt is not None
        return debt

    async def mark_in(self, ref: SessionRef, collection: str) -> int:
        debt = await self.log.embed_debt(ref, collection)
        return debt.embedded_to if debt else 0

    async def mark(self, ref: SessionRef, upto: int, **done: Any) -> MarkOutcome:
        return await self.log.mark_embedded(ref, upto, X, **done)


@pytest.fixture(params=["fake", "redis"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[LogBench]:
    if request.param == "fake":
        fake = FakeTurnLog()
        yield LogBench(fake, FakeChanges(fake), partial(setattr, fake, "now_ms"))
        return
    async with connect_sessions(request.getfixturevalue("redis_url")) as sessions:
        made = LogBench(sessions, RealChanges(sessions), partial(setattr, sessions, "now_ms"))
        made.wait(0)
        yield made


async def embedded(bench: LogBench, *texts: str) -> SessionRef:
    """A session all of whose turns are embedded."""
    ref = await bench.changes.add(*texts)
    await bench.mark(ref, len(texts))
    return ref


async def test_a_session_that_does_not_exist_owes_nothing(bench: LogBench) -> None:
    assert await bench.log.embed_debt(OTHER, X) is None


async def test_a_look_tells_how_many_turns_there_are_and_whose(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two")
    debt = await bench.debt(ref)
    assert (debt.head_seq, debt.embedded_to, debt.user, debt.changes) == (2, 0, "", 0)
    await bench.changes.set_user(ref, "ann")
    assert (await bench.debt(ref)).user == "ann"


async def test_turns_are_read_in_order_after_a_seq_up_to_a_limit(bench: LogBench) -> None:
    await bench.changes.add("one", "two", "three", "four")
    read = partial(bench.log.read_turns, "acme", "s")
    assert [turn.seq for turn in await read(0, 3)] == [1, 2, 3]
    assert [turn.seq for turn in await read(3, 3)] == [4]
    assert await read(4, 3) == []


async def test_a_mark_is_kept_for_its_collection_only_and_never_moves_back(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two", "three")
    assert await bench.mark(ref, 2) == "marked"
    assert await bench.mark(ref, 1) == "marked"
    assert (await bench.debt(ref)).embedded_to == 2
    assert await bench.mark_in(ref, Y) == 0


async def test_marks_of_two_collections_are_kept_beside_each_other(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two", "three")
    for upto, collection in ((3, X), (2, Y), (1, Z)):
        await bench.log.mark_embedded(ref, upto, collection)
    assert [await bench.mark_in(ref, one) for one in (X, Y, Z)] == [0, 2, 1]


async def test_what_is_redone_in_one_collection_moves_the_mark_of_the_other_back(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two", "three", "four")
    for collection in (X, Y):
        await bench.log.mark_embedded(ref, 4, collection)
    for seq in (2, 3):
        await bench.changes.edit(ref, seq, "other")
    await bench.log.mark_embedded(ref, 4, Y, redone=[2, 3])
    assert [await bench.mark_in(ref, one) for one in (X, Y)] == [1, 4]


async def test_an_edit_below_either_mark_is_owed_again(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two", "three")
    await bench.mark(ref, 3)
    await bench.log.mark_embedded(ref, 1, Y)
    await bench.changes.edit(ref, 3, "other")
    assert (await bench.debt(ref)).redo == (3,)


async def test_a_session_is_due_until_its_last_turn_is_marked(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two")
    await bench.mark(ref, 1)
    assert await bench.changes.due_at() is not None
    await bench.mark(ref, 2)
    assert await bench.changes.due_at() is None


async def test_another_life_of_the_session_cannot_be_marked(bench: LogBench) -> None:
    await bench.changes.add("one")
    assert await bench.mark(OTHER, 1) == "gone"
    assert await bench.log.embed_debt(OTHER, X) is None
    assert await bench.changes.due_at() is not None


async def test_a_life_that_was_erased_owes_nothing_and_cannot_be_marked(bench: LogBench) -> None:
    ref = await bench.changes.add("one")
    await bench.changes.erase(ref)
    assert await bench.log.embed_debt(ref, X) is None
    assert await bench.mark(ref, 1) == "gone"
    assert await bench.changes.due_at() is None


async def test_an_edited_turn_is_owed_again_under_its_new_revision_and_at_once(bench: LogBench) -> None:
    ref = await embedded(bench, "one", "two", "three")
    bench.wait(5)
    await bench.changes.edit(ref, 2, "other")
    debt = await bench.debt(ref)
    assert (debt.redo, debt.changes, debt.embedded_to) == ((2,), 1, 3)
    assert debt.purges == (Purge(2, 2, bench.now_ms),)
    assert debt.read_at_ms == bench.now_ms
    assert await bench.changes.due_at() == bench.now_ms
    [turn] = await bench.log.read_turns("acme", "s", 1, 1)
    assert (turn.revision, turn.removed, b"other" in turn.verbatim_json) == (1, False, True)


async def test_an_edit_of_what_is_not_embedded_yet_owes_only_the_purge(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two")
    await bench.mark(ref, 1)
    await bench.changes.edit(ref, 2, "other")
    debt = await bench.debt(ref)
    assert (debt.redo, len(debt.purges)) == ((), 1)


async def test_a_removed_turn_stands_as_removed(bench: LogBench) -> None:
    ref = await embedded(bench, "one", "two")
    await bench.changes.remove(ref, 1)
    [turn] = await bench.log.read_turns("acme", "s", 0, 1)
    assert (turn.seq, turn.removed, b"one" in turn.verbatim_json) == (1, True, False)
    assert len((await bench.debt(ref)).purges) == 1


async def test_what_a_rewind_took_back_is_to_be_purged_and_leaves_a_hole(bench: LogBench) -> None:
    ref = await embedded(bench, "one", "two", "three", "four")
    await bench.changes.edit(ref, 1, "other")
    await bench.changes.edit(ref, 4, "other")
    await bench.changes.rewind(ref, 2)
    debt = await bench.debt(ref)
    assert (debt.head_seq, debt.redo) == (4, (1,))
    assert debt.purges[-1] == Purge(3, 4, bench.now_ms)
    await bench.changes.add("five")
    assert [turn.seq for turn in await bench.log.read_turns("acme", "s", 0, 9)] == [1, 2, 5]


async def test_a_mark_is_refused_when_turns_changed_since_the_look(bench: LogBench) -> None:
    ref = await bench.changes.add("one", "two")
    seen = await bench.debt(ref)
    await bench.changes.edit(ref, 1, "other")
    assert await bench.mark(ref, 2, changes=seen.changes) == "changed"
    assert (await bench.debt(ref)).embedded_to == 0
    assert await bench.mark(ref, 2, changes=seen.changes + 1) == "marked"


async def test_setting_the_user_counts_as_a_change_because_points_name_him(bench: LogBench) -> None:
    ref = await embedded(bench, "one")
    seen = await bench.debt(ref)
    await bench.changes.set_user(ref, "ann")
    assert await bench.mark(ref, 1, changes=seen.changes) == "changed"
    assert (await bench.debt(ref)).embedded_to == 0
    assert await bench.changes.due_at() is not None


async def test_what_was_redone_is_owed_no_more_and_the_rest_is_due_later(bench: LogBench) -> None:
    ref = await embedded(bench, "one", "two", "three")
    for seq in (1, 3):
        await bench.changes.edit(ref, seq, "other")
    bench.wait(GRACE_MS)
    purges = (await bench.debt(ref)).purges
    await bench.mark(ref, 3, redone=[3, 2], purged=purges)
    debt = await bench.debt(ref)
    assert (debt.redo, debt.purges) == ((1,), ())
    due_at = await bench.changes.due_at()
    assert due_at is not None
    assert due_at > bench.now_ms
    await bench.mark(ref, 3, redone=[1])
    assert await bench.changes.due_at() is None


async def test_a_purge_that_is_too_young_to_be_called_done_is_due_when_it_is_ripe(bench: LogBench) -> None:
    ref = await embedded(bench, "one", "two")
    await bench.changes.edit(ref, 1, "other")
    asked_at_ms = bench.now_ms
    bench.wait(7)
    await bench.changes.remove(ref, 2)
    await bench.mark(ref, 2, redone=[1, 2])
    assert await bench.changes.due_at() == asked_at_ms + GRACE_MS
    bench.wait(GRACE_MS)
    await bench.mark(ref, 2, purged=[Purge(1, 1, asked_at_ms)])
    assert (await bench.debt(ref)).purges == (Purge(2, 2, asked_at_ms + 7),)
    assert await bench.changes.due_at() == asked_at_ms + 7 + GRACE_MS
    await bench.mark(ref, 2, purged=[Purge(2, 2, asked_at_ms + 7)])
    assert await bench.changes.due_at() is None


async def test_a_purge_that_waits_does_not_hold_up_a_new_turn(bench: LogBench) -> None:
    ref = await embedded(bench, "one")
    await bench.changes.edit(ref, 1, "other")
    await bench.mark(ref, 1, redone=[1])
    bench.wait(10)
    await bench.changes.add("two")
    due_at = await bench.changes.due_at()
    assert due_at is not None
    assert due_at < bench.now_ms + GRACE_MS / 2


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVectors]:
    with running_vectors(tmp_path_factory.mktemp("vectors")) as server:
        yield server


@dataclass
class StoreBench:
    store: TurnStore
    count: Callable[[], Awaitable[int]]


@pytest.fixture(params=["fake", "vectors"])
async def stored(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    if request.param == "fake":
        fake = FakeTurnStore(refuses=lambda point: not np.isfinite(point.vector).all())

        async def count_fake() -> int:
            return len(fake.points)

        yield StoreBench(fake, count_fake)
        return
    server: RunningVectors = request.getfixturevalue("vectors")
    async with connect_vectors(server.url, CollectionSpec(request.node.name, 4)) as index:
        yield StoreBench(MadeIndex(index), partial(index.count, "acme"))


A1 = SessionRef("acme", "s", "a1")


def point(
    seq: int, incarnation: str = "a1", vector: tuple[float, ...] = (0.6, 0.8, 0, 0), *, revision: int = 0
) -> TurnPoint:
    return TurnPoint(
        ref=SessionRef("acme", "s", incarnation),
        user="",
        seq=seq,
        revision=revision,
        role="user",
        ts_ms=None,
        vector=np.array(vector, dtype=np.float32),
        words=document_words("one two"),
    )


async def test_a_point_written_twice_is_there_once(stored: StoreBench) -> None:
    await stored.store.upsert([point(1), point(2)])
    await stored.store.upsert([point(2), point(3)])
    assert await stored.count() == 3


async def test_writing_nothing_is_legal(stored: StoreBench) -> None:
    await stored.store.upsert([])


async def test_a_vector_that_is_none_is_refused(stored: StoreBench) -> None:
    with pytest.raises(RefusedError):
        await stored.store.upsert([point(1, vector=(float("nan"), 0, 0, 0))])


async def test_one_life_of_a_session_is_deleted_and_the_other_kept(stored: StoreBench) -> None:
    await stored.store.upsert([point(1), point(2), point(1, "a2")])
    await stored.store.delete("acme", session="s", incarnation="a1")
    assert await stored.count() == 1


async def test_turns_are_deleted_by_ranges_up_to_a_revision_and_in_one_life(stored: StoreBench) -> None:
    turns = [point(seq, revision=revision) for seq in range(1, 6) for revision in (0, 1)]
    await stored.store.upsert([*turns, point(2, "a2")])
    await stored.store.delete_turns(A1, [TurnRange(2, 3, below_revision=1), TurnRange(5, 9)])
    assert await stored.count() == 11 - 2 - 2


async def test_deleting_no_turns_deletes_nothing(stored: StoreBench) -> None:
    await stored.store.upsert([point(1)])
    await stored.store.delete_turns(A1, [])
    assert await stored.count() == 1


async def test_deleting_many_ranges_at_once_takes_them_all(stored: StoreBench) -> None:
    await stored.store.upsert([point(seq) for seq in range(1, 200)])
    await stored.store.delete_turns(A1, [TurnRange(seq, seq, below_revision=1) for seq in range(2, 200, 2)])
    assert await stored.count() == 100


async def test_deleting_what_is_not_there_is_legal(stored: StoreBench) -> None:
    await stored.store.delete("acme", session="s", incarnation="a1")
