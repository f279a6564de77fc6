"""Vectors follow turns that change at any moment: every step of a pass against every change, by seed.

`PREFOLD_SEED=… ./run test tests/property/test_embedding_interleavings.py` repeats a run.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from prefold.embedding import Matrix
from prefold.recall import TurnRange
from prefold.storage.embed_types import MarkOutcome
from prefold.storage.types import SessionRef, StoredTurn
from prefold.worker import embed_page, embed_pass
from prefold.worker.embed_page import Work
from prefold.worker.turn_vectors import TurnVectors
from tests.property.embedding_world import Stepped, World, step
from tests.support.embedding import FakeTurnLog
from tests.support.seeds import seed_of_run

DEEDS = 250


@pytest.fixture(autouse=True)
def embedder_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def embed(self: Any, texts: Sequence[str]) -> Matrix:
        await step()
        return self._embedder.embed_documents(texts)  # type: ignore[no-any-return]

    monkeypatch.setattr(TurnVectors, "_embed", embed)


def play(seed: str) -> None:
    world = World(seed)
    try:
        world.run(DEEDS)
        world.settle()
    except AssertionError as error:
        raise AssertionError(f"{error} (history {seed})\n" + "\n".join(world.story[-60:])) from error
    finally:
        for one in world.running:
            one.work.close()


def play_many(seed: str, histories: int) -> None:
    for number in range(histories):
        play(f"{seed}-{number}")


def test_whatever_changes_and_whoever_dies_the_points_end_as_the_turns_that_stand() -> None:
    play_many(str(seed_of_run("these histories")), 200)


def _marks_despite_changes(patch: pytest.MonkeyPatch) -> None:
    mark = FakeTurnLog.mark_embedded

    async def marks(self: FakeTurnLog, ref: SessionRef, upto_seq: int, collection: str, **done: Any) -> MarkOutcome:
        return await mark(self, ref, upto_seq, collection, **{**done, "changes": None})

    patch.setattr(FakeTurnLog, "mark_embedded", marks)


def _calls_every_purge_done(patch: pytest.MonkeyPatch) -> None:
    def has_purged(work: Work) -> None:
        work.purged, work.to_purge = list(work.to_purge), ()

    patch.setattr(Work, "has_purged", has_purged)


def _purges_nothing(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> list[TurnRange]:
        return []

    patch.setattr(embed_pass, "outdated_by", nothing)


def _takes_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(embed_pass, "outdated_points", lambda *_: [])


def _deletes_newer_revisions_too(patch: pytest.MonkeyPatch) -> None:
    delete = Stepped.delete_turns

    async def deletes(self: Stepped, ref: SessionRef, turns: Sequence[TurnRange]) -> None:
        await delete(self, ref, [TurnRange(one.first_seq, one.last_seq) for one in turns])

    patch.setattr(Stepped, "delete_turns", deletes)


def _redoes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Work, "redo_also", lambda *_: None)


def _reads_the_head_after_the_log(patch: pytest.MonkeyPatch) -> None:
    async def tail(log: Stepped, work: Work, room: int) -> list[StoredTurn]:
        turns = await log.read_turns(work.ref.tenant, work.ref.session, work.done_to, room) if room else []
        debt = await log.embed_debt(work.ref, log.collection)
        if debt is not None and len(turns) < room:
            work.done_to = debt.head_seq
        elif turns:
            work.done_to = turns[-1].seq
        return turns

    patch.setattr(embed_page, "_tail", tail)


def _leaves_other_marks_where_they_are(patch: pytest.MonkeyPatch) -> None:
    mark = FakeTurnLog.mark_embedded

    async def marks(self: FakeTurnLog, ref: SessionRef, upto_seq: int, collection: str, **done: Any) -> MarkOutcome:
        before = dict(self.lives[ref].marks) if ref in self.lives else {}
        outcome = await mark(self, ref, upto_seq, collection, **done)
        if outcome == "marked":
            kept = self.lives[ref].marks
            kept.update({name: before[name] for name in kept if name != collection})
        return outcome

    patch.setattr(FakeTurnLog, "mark_embedded", marks)


GUARDS = {
    _marks_despite_changes: 5,
    _calls_every_purge_done: 5,
    _purges_nothing: 5,
    _takes_nothing_back: 2,
    _deletes_newer_revisions_too: 5,
    _redoes_nothing: 5,
    _reads_the_head_after_the_log: 5,
    _leaves_other_marks_where_they_are: 0,
}
"""With a seed among whose first histories one fails."""


@pytest.mark.parametrize(("without", "seed"), GUARDS.items())
def test_without_any_one_guard_some_history_ends_wrong(
    without: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch)
    with pytest.raises(AssertionError, match="history guard"):
        play_many(f"guard {seed}", 1_000)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_whatever_changes_and_whoever_dies_the_points_end_as_the_turns_that_stand_at_length() -> None:
    play_many(str(seed_of_run("these histories")), 30_000)
