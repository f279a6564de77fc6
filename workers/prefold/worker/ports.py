"""What the embed and expire jobs need from their surroundings."""

from collections.abc import Sequence
from typing import Protocol

from prefold.recall import TurnPoint, TurnRange
from prefold.storage.embed_types import EmbedDebt, MarkOutcome, Purge
from prefold.storage.types import SessionRef, StoredTurn


class ReadsTurns(Protocol):
    """A part of the sessions. May raise ``TransientError``."""

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        """Turns after ``after_seq``, ascending, of whatever life the session lives now. Numbers may be missing."""


class TurnLog(ReadsTurns, Protocol):
    """The sessions. Every call may raise ``TransientError``."""

    async def embed_debt(self, ref: SessionRef, collection: str) -> EmbedDebt | None:
        """One look at what is to be done in ``collection``; None: this life of the session is over."""

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
        """Notes progress, unless turns changed since ``changes`` or this life is over. Idempotent."""


class TurnStore(Protocol):
    """The vectors. Writes are idempotent; every call may raise ``TransientError``."""

    @property
    def collection(self) -> str:
        """Where the points go."""

    async def upsert(self, points: Sequence[TurnPoint]) -> None:
        """Returns once the points are stored. ``RefusedError``: one of them is not acceptable, none need be in."""

    async def delete(self, tenant: str, *, session: str, incarnation: str) -> None:
        """Removes all points of one life of a session, whatever collection they are in."""

    async def delete_turns(self, ref: SessionRef, turns: Sequence[TurnRange]) -> None:
        """Removes the points of these turns, whatever collection they are in. None named: nothing is done."""
