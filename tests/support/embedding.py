"""Fakes of what the embed job talks to. They keep the promises of ``prefold.worker.ports``."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from prefold.embedding import CosineScale, Matrix, Vector
from prefold.errors import InvalidInputError, UnavailableError
from prefold.jobs import TO_HEAD
from prefold.recall import TurnPoint, TurnRange
from prefold.recall.scope import Scope
from prefold.storage.embed_types import EmbedDebt, EmbedSpan, MarkOutcome, Purge
from prefold.storage.limits import ERASE_GRACE, milliseconds
from prefold.storage.types import SessionRef, StoredTurn
from prefold.worker.embed_pass import EmbedOptions, EmbedPass, EmbedReport


def stored_turn(seq: int, text: str, *, revision: int = 0, removed: bool = False) -> StoredTurn:
    content = json.dumps({"type": "text", "text": text}).encode()
    verbatim = json.dumps({"seq": seq, "id": f"t{seq}", "role": "user", "content": text}).encode()
    return StoredTurn(seq, f"t{seq}", "user", "p", content, b"", 5, 5, True, revision, verbatim, removed)


@dataclass
class FakeSession:
    """One life of a session."""

    turns: dict[int, StoredTurn] = field(default_factory=dict)
    head: int = 0
    user: str = ""
    changes: int = 0
    marks: dict[str, int] = field(default_factory=dict)
    """By collection, the last marked one last."""
    redo: list[int] = field(default_factory=list)
    purges: list[Purge] = field(default_factory=list)


@dataclass
class FakeTurnLog:
    """Sessions in memory, and what changes them. ``before_mark`` runs before each mark, as what happens beside it."""

    lives: dict[SessionRef, FakeSession] = field(default_factory=dict)
    due_at: dict[SessionRef, int] = field(default_factory=dict)
    before_mark: Callable[[], object] = lambda: None
    now_ms: int = 4_000_000_000_000
    most_redone: int = 1_000
    retry_ms: int = 3_000

    @property
    def due(self) -> set[SessionRef]:
        return set(self.due_at)

    def add(self, ref: SessionRef, *texts: str) -> SessionRef:
        life = self.lives.setdefault(ref, FakeSession())
        for text in texts:
            life.head += 1
            life.turns[life.head] = stored_turn(life.head, text)
        self._due_by(ref, self.now_ms + self.retry_ms)
        return ref

    def edit(self, ref: SessionRef, seq: int, text: str) -> None:
        self._replace(ref, seq, text, removed=False)

    def remove(self, ref: SessionRef, seq: int) -> None:
        self._replace(ref, seq, "[removed]", removed=True)

    def rewind(self, ref: SessionRef, to_seq: int) -> None:
        life = self.lives[ref]
        first = min((seq for seq in life.turns if seq > to_seq), default=None)
        if first is None:
            return
        life.turns = {seq: turn for seq, turn in life.turns.items() if seq <= to_seq}
        life.redo = [seq for seq in life.redo if seq < first]
        self._changed(ref, first, life.head)

    def set_user(self, ref: SessionRef, user: str) -> None:
        life = self.lives[ref]
        life.user, life.marks, life.changes = user, {}, life.changes + 1
        self._due_by(ref, self.now_ms)

    def erase(self, ref: SessionRef) -> None:
        self.lives.pop(ref, None)
        self.due_at.pop(ref, None)

    def mark_of(self, ref: SessionRef, collection: str) -> int:
        return self.lives[ref].marks.get(collection, 0) if ref in self.lives else 0

    def _replace(self, ref: SessionRef, seq: int, text: str, *, removed: bool) -> None:
        life = self.lives[ref]
        if seq not in life.turns or life.turns[seq].removed:
            return
        life.turns[seq] = stored_turn(seq, text, revision=life.turns[seq].revision + 1, removed=removed)
        life.redo = [one for one in life.redo if one != seq]
        if seq <= max(life.marks.values(), default=0):
            life.redo.append(seq)
        if len(life.redo) > self.most_redone:
            least = min(life.redo)
            life.marks = {name: min(mark, least - 1) for name, mark in life.marks.items()}
            life.redo = []
        self._changed(ref, seq, seq)

    def _changed(self, ref: SessionRef, first: int, last: int) -> None:
        life = self.lives[ref]
        life.changes += 1
        life.purges.append(Purge(first, last, self.now_ms))
        self._due_by(ref, self.now_ms)

    def _due_by(self, ref: SessionRef, at_ms: int) -> None:
        self.due_at[ref] = min(at_ms, self.due_at.get(ref, at_ms))

    async def embed_debt(self, ref: SessionRef, collection: str) -> EmbedDebt | None:
        life = self.lives.get(ref)
        if life is None:
            return None
        return EmbedDebt(
            head_seq=life.head,
            embedded_to=self.mark_of(ref, collection),
            user=life.user,
            changes=life.changes,
            redo=tuple(life.redo),
            purges=tuple(life.purges),
            read_at_ms=self.now_ms if life.purges else 0,
        )

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        assert limit >= 1
        for ref, life in self.lives.items():
            if (ref.tenant, ref.session) == (tenant, session):
                return [turn for seq, turn in life.turns.items() if seq > after_seq][:limit]
        return []

    async def mark_embedded(
        self,
        ref: SessionRef,
        upto_seq: int,
        collection: str,
        *,
        changes: int | None = None,
        redone: Sequence[int] = (),
        purged: Sequence[Purge] = (),
    ) -> MarkOutcome:
        self.before_mark()
        life = self.lives.get(ref)
        if life is None:
            self.due_at.pop(ref, None)
            return "gone"
        if changes not in (None, life.changes):
            return "changed"
        upto_seq = max(upto_seq, life.marks.pop(collection, 0))
        others = {name: min(mark, *(seq - 1 for seq in redone), mark) for name, mark in life.marks.items()}
        life.marks = {**dict(list(others.items())[-1:]), collection: upto_seq}
        life.redo = [seq for seq in life.redo if seq not in redone]
        life.purges = [purge for purge in life.purges if purge not in purged]
        is_behind = upto_seq < life.head or life.redo
        times = [self.now_ms + self.retry_ms] if is_behind else []
        times += [purge.asked_at_ms + milliseconds(ERASE_GRACE) for purge in life.purges]
        if times:
            self.due_at[ref] = min(times)
        else:
            self.due_at.pop(ref, None)
        return "marked"


@dataclass
class FakeTurnStore:
    """Points in memory by id. ``refuses`` says which points it does not take."""

    collection: str = "turns_fake_4"
    points: dict[str, TurnPoint] = field(default_factory=dict)
    calls: int = 0
    is_away: bool = False
    refuses: Callable[[TurnPoint], bool] = lambda _point: False

    async def upsert(self, points: Sequence[TurnPoint]) -> None:
        self.calls += 1
        if self.is_away:
            raise UnavailableError("the vector store does not answer")
        if any(map(self.refuses, points)):
            raise InvalidInputError("a point is not acceptable")
        self.points.update({point.id: point for point in points})

    async def delete(self, tenant: str, *, session: str, incarnation: str) -> None:
        if self.is_away:
            raise UnavailableError("the vector store does not answer")
        ref = SessionRef(tenant, session, incarnation)
        self.points = {key: point for key, point in self.points.items() if point.ref != ref}

    async def delete_turns(self, ref: SessionRef, turns: Sequence[TurnRange]) -> None:
        if not turns:
            return
        scope = Scope(tenant=ref.tenant, session=ref.session, incarnation=ref.incarnation, turns=turns)
        self.points = {key: point for key, point in self.points.items() if not scope.admits(point.payload())}

    def seqs(self, ref: SessionRef) -> list[int]:
        return sorted(point.seq for point in self.points.values() if point.ref == ref)

    def revisions(self, ref: SessionRef) -> set[tuple[int, int]]:
        """Seq and revision of each point."""
        return {(point.seq, point.revision) for point in self.points.values() if point.ref == ref}


@dataclass
class FakeEmbedder:
    """Vectors out of a hash. ``fails`` may raise for a batch of texts."""

    id: str = "fake"
    dimension: int = 4
    max_batch: int = 16
    scale: CosineScale = field(default_factory=CosineScale)
    fails: Callable[[Sequence[str]], object] = lambda _texts: None
    batches: list[list[str]] = field(default_factory=list)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.batches.append(list(texts))
        self.fails(texts)
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)

    def embed_query(self, text: str) -> Vector:
        return self._vector(text)

    def close(self) -> None:
        pass

    def _vector(self, text: str) -> Vector:
        raw = np.frombuffer(hashlib.sha256(text.encode()).digest()[:4], dtype=np.uint8).astype(np.float32) + 1
        vector: Vector = raw / np.float32(np.linalg.norm(raw))
        return vector


def span(ref: SessionRef, first: int = 1, last: int = TO_HEAD) -> EmbedSpan:
    return EmbedSpan(ref.tenant, ref.session, ref.incarnation, first, last)


class EmbedBench:
    """A pass and what it talks to."""

    def __init__(self, **options: int) -> None:
        self.turns = FakeTurnLog()
        self.store = FakeTurnStore()
        self.embedder = FakeEmbedder()
        self.options = EmbedOptions(**options)
        self.is_stopped: Callable[[], bool] = lambda: False

    async def run(self, *spans: EmbedSpan) -> EmbedReport:
        work = EmbedPass(self.turns, self.store, self.embedder, self.is_stopped, self.options)
        return await work.run(spans)

    def mark(self, ref: SessionRef) -> int:
        return self.turns.mark_of(ref, self.store.collection)
