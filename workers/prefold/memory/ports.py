"""What the memory of sessions needs from its surroundings. Every call may raise ``TransientError``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from prefold.facts.rows import Stated
from prefold.recall.derived import DerivedKind, DerivedPoint
from prefold.storage.memory_types import MemoryOutcome, MemoryTicket, SessionDigest, TurnSpan
from prefold.storage.types import SessionRef, SessionView, StoredSegment, StoredTurn

if TYPE_CHECKING:  # an embed worker, which forgets, has no use for it
    from prefold.memory.extracting import Extraction

__all__ = ["DerivedStore", "Extractor", "FactRows", "MemoryStorage", "ModelExtracts"]


class MemoryStorage(Protocol):
    """Part of ``prefold.storage.Sessions``; see there."""

    async def begin_memory(self, ref: SessionRef, *, lease_ms: int) -> MemoryTicket | str: ...
    async def renew_memory(self, ticket: MemoryTicket) -> MemoryOutcome: ...
    async def end_memory(
        self, ticket: MemoryTicket, *, upto: int, closed: bool, retry_after_ms: int = 0
    ) -> MemoryOutcome: ...
    async def has_aged(self, ref: SessionRef) -> bool: ...
    async def view(self, tenant: str, session: str) -> SessionView: ...
    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]: ...
    async def read_segments(self, ref: SessionRef) -> list[StoredSegment]: ...
    async def keep_digest(self, ticket: MemoryTicket, digest: SessionDigest) -> bool: ...
    async def read_digest(self, tenant: str, session: str) -> SessionDigest | None: ...


class FactRows(Protocol):
    """Part of ``prefold.facts.FactBook``: these calls may come twice, and in any order."""

    async def learn(
        self, tenant: str, user: str, stated: Sequence[Stated], *, now_ms: int, epoch: int | None = None
    ) -> Any:
        """Raises ``GoneError`` when the user was erased since ``epoch``."""

    async def withdraw(
        self,
        tenant: str,
        user: str,
        *,
        session: str,
        incarnation: str | None = None,
        spans: Sequence[TurnSpan] | None,
        below_revision: int | None = None,
    ) -> Any:
        """Takes away what is known from these turns alone; ``spans`` None: from all of them."""


class Extractor(Protocol):
    """Finds what a user states of themself. Blocks no loop; may raise anything over turns that it cannot read."""

    async def extract(
        self, ticket: MemoryTicket, turns: Sequence[StoredTurn], *, stored_at_ms: int
    ) -> Sequence[Stated]:
        """``stored_at_ms`` stands for the time of turns whose producer told none."""


class ModelExtracts(Protocol):
    """``prefold.memory.extracting.ModelExtractor``; see there."""

    async def run(
        self, ref: SessionRef, turns: Sequence[StoredTurn], *, stored_at_ms: int, before: Sequence[StoredTurn]
    ) -> "Extraction": ...


class DerivedStore(Protocol):
    """Vectors of derived texts. Writes are idempotent."""

    async def upsert(self, points: Sequence[DerivedPoint]) -> None: ...
    async def forget(
        self,
        tenant: str,
        *,
        user: str | None = None,
        session: str | None = None,
        incarnation: str | None = None,
        kinds: Sequence[DerivedKind] | None = None,
        keys: Sequence[str] | None = None,
    ) -> int: ...
