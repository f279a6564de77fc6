"""The session ``s`` of ``acme``, changed alike in the fake log and on a real server."""

from dataclasses import dataclass
from typing import Protocol

from prefold.conversation import prepare_turn, redacted_turn
from prefold.conversation.turns import PreparedTurn
from prefold.storage import Sessions
from prefold.storage.types import SessionOptions, SessionRef, StoredTurn
from prefold.tokens import load_counter
from tests.support.embedding import FakeTurnLog

COUNTER = load_counter()


class Changes(Protocol):
    """What a test does to the session."""

    async def add(self, *texts: str) -> SessionRef: ...
    async def edit(self, ref: SessionRef, seq: int, text: str) -> None: ...
    async def remove(self, ref: SessionRef, seq: int) -> None: ...
    async def rewind(self, ref: SessionRef, to_seq: int) -> None: ...
    async def set_user(self, ref: SessionRef, user: str) -> None: ...
    async def erase(self, ref: SessionRef) -> None: ...

    async def due_at(self) -> int | None:
        """When the session is to be embedded, as far as it is due."""


@dataclass
class FakeChanges:
    log: FakeTurnLog

    async def add(self, *texts: str) -> SessionRef:
        return self.log.add(SessionRef("acme", "s", "a1"), *texts)

    async def edit(self, ref: SessionRef, seq: int, text: str) -> None:
        self.log.edit(ref, seq, text)

    async def remove(self, ref: SessionRef, seq: int) -> None:
        self.log.remove(ref, seq)

    async def rewind(self, ref: SessionRef, to_seq: int) -> None:
        self.log.rewind(ref, to_seq)

    async def set_user(self, ref: SessionRef, user: str) -> None:
        self.log.set_user(ref, user)

    async def erase(self, ref: SessionRef) -> None:
        self.log.erase(ref)

    async def due_at(self) -> int | None:
        return next(iter(self.log.due_at.values()), None)


@dataclass
class RealChanges:
    sessions: Sessions
    count: int = 0

    async def add(self, *texts: str) -> SessionRef:
        raws = [{"id": f"m{self.count + place}", "role": "user", "content": text} for place, text in enumerate(texts)]
        self.count += len(texts)
        return (await self.sessions.append("acme", "s", [_prepared(raw) for raw in raws])).ref

    async def edit(self, ref: SessionRef, seq: int, text: str) -> None:
        stored = await self._turn(ref, seq)
        turn = _prepared({"id": stored.id, "role": "user", "content": text})
        await self.sessions.edit_turn("acme", "s", stored.id, turn)

    async def remove(self, ref: SessionRef, seq: int) -> None:
        stored = await self._turn(ref, seq)
        await self.sessions.remove_turn("acme", "s", stored.id, redacted_turn(stored, COUNTER))

    async def rewind(self, ref: SessionRef, to_seq: int) -> None:
        await self.sessions.rewind("acme", "s", to_seq)

    async def set_user(self, ref: SessionRef, user: str) -> None:
        await self.sessions.open("acme", "s", SessionOptions(user=user))

    async def erase(self, ref: SessionRef) -> None:
        await self.sessions.erase("acme", "s")

    async def due_at(self) -> int | None:
        items = await self.sessions.due_sets.due(2**52, 100)
        return next((item.due_at_ms for item in items if item.kind == "embed"), None)

    async def _turn(self, ref: SessionRef, seq: int) -> StoredTurn:
        turn = await self.sessions.turn_of_life(ref, seq)
        assert turn is not None
        return turn


def _prepared(raw: dict[str, str]) -> PreparedTurn:
    return prepare_turn(raw, 0, COUNTER, lambda: "unused")
