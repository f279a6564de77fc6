"""Fakes of what the embed job talks to. They keep the promises of ``prefold.worker.embed_pass``'s ports."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prefold.embedding import CosineScale, Matrix, Vector
from prefold.errors import InvalidInputError, NotFoundError, UnavailableError
from prefold.recall import TurnPoint
from prefold.storage.types import SessionRef, SessionView, StoredTurn


def stored_turn(seq: int, text: str, *, revision: int = 0) -> StoredTurn:
    content = json.dumps({"type": "text", "text": text}).encode()
    verbatim = json.dumps({"seq": seq, "id": f"t{seq}", "role": "user", "content": text}).encode()
    return StoredTurn(seq, f"t{seq}", "user", "p", content, b"", 5, 5, True, revision, verbatim)


@dataclass
class FakeTurnLog:
    """Sessions in memory. ``before_mark`` runs before each mark, as what happens beside an upsert."""

    texts: dict[SessionRef, list[str]] = field(default_factory=dict)
    marks: dict[tuple[SessionRef, str], int] = field(default_factory=dict)
    due: set[SessionRef] = field(default_factory=set)
    users: dict[str, str] = field(default_factory=dict)
    before_mark: Callable[[], object] = lambda: None
    reads: list[tuple[str, int, int]] = field(default_factory=list)

    def add(self, ref: SessionRef, *texts: str) -> SessionRef:
        self.texts.setdefault(ref, []).extend(texts)
        self.due.add(ref)
        return ref

    def _ref(self, tenant: str, session: str) -> SessionRef:
        for ref in self.texts:
            if (ref.tenant, ref.session) == (tenant, session):
                return ref
        raise NotFoundError("no such session")

    async def view(self, tenant: str, session: str) -> SessionView:
        ref = self._ref(tenant, session)
        given: dict[str, Any] = dict.fromkeys(SessionView.__dataclass_fields__)
        given.update(ref=ref, user=self.users.get(session, ""), head_seq=len(self.texts[ref]))
        return SessionView(**given)

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        assert limit >= 1
        self.reads.append((session, after_seq, limit))
        texts = self.texts[self._ref(tenant, session)][after_seq : after_seq + limit]
        return [stored_turn(after_seq + 1 + index, text) for index, text in enumerate(texts)]

    async def embedded_to(self, ref: SessionRef, collection: str) -> int:
        return self.marks.get((ref, collection), 0)

    async def mark_embedded(self, ref: SessionRef, upto_seq: int, collection: str) -> bool:
        self.before_mark()
        if ref not in self.texts:
            self.due.discard(ref)
            return False
        self.marks[ref, collection] = max(upto_seq, self.marks.get((ref, collection), 0))
        if self.marks[ref, collection] >= len(self.texts[ref]):
            self.due.discard(ref)
        return True


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

    def seqs(self, ref: SessionRef) -> list[int]:
        return sorted(point.seq for point in self.points.values() if point.ref == ref)


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
