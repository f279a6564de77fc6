"""Vectors of what was derived: summaries of segments, the digest of a session, facts of its user."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import structlog

from prefold.embedding import Embedder, Matrix
from prefold.errors import ConfigurationError, RefusedError, UnavailableError
from prefold.facts import Fact, FactBook
from prefold.memory.ports import DerivedStore, MemoryStorage
from prefold.recall.derived import DerivedPoint
from prefold.recall.derived_text import DerivedText, fact_text
from prefold.storage.memory_types import MemoryTicket, SessionDigest
from prefold.storage.types import SessionRef, StoredSegment
from prefold.storage.users import Unindexed, Users

__all__ = ["DerivedVectors", "OpenedStore", "UserFacts"]

log = structlog.get_logger(__name__)

_TEXTS_A_CALL = 16
_FACTS_A_ROUND = 100
_ROUNDS = 30
"""More than a user can have rows."""
_LOOKS = 20
"""Rows that change at every look are looked after by whoever changes them."""


class FactTexts(Protocol):
    """The rows whose vectors have to be made."""

    async def take_unindexed(self, tenant: str, user: str, limit: int) -> Unindexed: ...
    async def mark_indexed(self, tenant: str, user: str, done: Unindexed) -> None: ...
    async def live(self, tenant: str, user: str) -> dict[str, Fact]:
        """Those that are served, by id; all others need no vector."""


class UserFacts:
    """The same of ``prefold.storage.users`` and ``prefold.facts``."""

    def __init__(self, users: Users, book: FactBook, now_ms: Callable[[], int]) -> None:
        self._users = users
        self._book = book
        self._now_ms = now_ms

    async def take_unindexed(self, tenant: str, user: str, limit: int) -> Unindexed:
        return await self._users.take_unindexed(tenant, user, limit)

    async def mark_indexed(self, tenant: str, user: str, done: Unindexed) -> None:
        await self._users.mark_indexed(tenant, user, done.ids, done.version)

    async def live(self, tenant: str, user: str) -> dict[str, Fact]:
        return {one.id: one for one in await self._book.list(tenant, user, now_ms=self._now_ms())}


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """What it takes to store a text."""

    embedder: Embedder
    index: DerivedStore


class DerivedVectors:
    """Makes and removes the vectors of sessions and users. ``UnavailableError`` while a part is away."""

    def __init__(
        self, storage: MemoryStorage, facts: FactTexts, open_store: Callable[[], Awaitable[OpenedStore]]
    ) -> None:
        """``open_store`` loads the embedder; it is called at the first work that needs it, and again after a failure."""
        self._storage = storage
        self._facts = facts
        self._open_store = open_store
        self._opened: OpenedStore | None = None
        self._opening = asyncio.Lock()
        self._embedding = asyncio.Lock()

    async def of_session(self, ticket: MemoryTicket, upto: int, digest: SessionDigest | None) -> None:
        """Brings the session's texts up to date: those of new segments, or of all once turns were changed."""
        # Builds may have made segments behind the mark: the end of a session takes them all.
        after = 0 if ticket.forget or ticket.closing else ticket.remembered_to
        if ticket.forget:
            await self.forget_life(ticket.ref)
            digest = digest or await self._storage.read_digest(ticket.ref.tenant, ticket.ref.session)
        segments = await self._storage.read_segments(ticket.ref) if upto > after else []
        texts = [_of_segment(one) for one in segments if after < one.last_seq <= upto]
        if digest is not None:
            texts.append(DerivedText("summary", "digest", digest.text, digest.made_at_ms))
        await self._store(ticket.ref, ticket.user, texts)

    async def of_user(self, tenant: str, user: str) -> None:
        """Brings the facts of the user up to date, whoever wrote them."""
        for _ in range(_ROUNDS if user else 0):
            unindexed = await self._facts.take_unindexed(tenant, user, _FACTS_A_ROUND)
            if not unindexed.ids:
                return
            await self._of_facts(tenant, user, unindexed)

    async def forget_life(self, ref: SessionRef) -> None:
        """Removes what was derived from this life of the session."""
        store = await self._store_opened()
        await store.index.forget(ref.tenant, session=ref.session, incarnation=ref.incarnation)

    async def forget_user_without_facts(self, tenant: str, user: str) -> None:
        """Removes facts' vectors of a user of whom nothing is known."""
        if not await self._facts.live(tenant, user):
            store = await self._store_opened()
            await store.index.forget(tenant, user=user, kinds=["fact"])

    async def _of_facts(self, tenant: str, user: str, unindexed: Unindexed) -> None:
        """Others may have changed a row, and followed it, before its older vector arrived: then it is done again."""
        rows = await self._rows(tenant, user, unindexed)
        for _ in range(_LOOKS):
            if gone := [one for one, fact in rows.items() if fact is None]:
                store = await self._store_opened()
                await store.index.forget(tenant, user=user, kinds=["fact"], keys=gone)
            await self._store(
                SessionRef(tenant, "", ""), user, [fact_text(one) for one in rows.values() if one is not None]
            )
            seen, rows = rows, await self._rows(tenant, user, unindexed)
            if rows == seen:
                await self._facts.mark_indexed(tenant, user, unindexed)
                return

    async def _rows(self, tenant: str, user: str, unindexed: Unindexed) -> dict[str, Fact | None]:
        """As they are now; None: not served, or gone."""
        live = await self._facts.live(tenant, user)
        return {one: live.get(one) for one in unindexed.ids}

    async def _store(self, origin: SessionRef, user: str, texts: Sequence[DerivedText]) -> None:
        life = {"session": origin.session, "incarnation": origin.incarnation}
        for start in range(0, len(texts), _TEXTS_A_CALL):
            part = texts[start : start + _TEXTS_A_CALL]
            store = await self._store_opened()
            vectors = await self._vectors(store.embedder, [one.text for one in part])
            points = [
                one.point(origin.tenant, user, vector, **life)
                for one, vector in zip(part, vectors, strict=True)
                if vector is not None
            ]
            await self._upsert(store, points)

    async def _upsert(self, store: OpenedStore, points: Sequence[DerivedPoint]) -> None:
        try:
            await store.index.upsert(points)
        except UnavailableError as error:
            if error.code == "collection_missing":  # the server lost it: it is made anew at the next try
                self._opened = None
            raise

    async def _vectors(self, embedder: Embedder, texts: list[str]) -> list[np.ndarray | None]:
        """One call at a time: nobody waits for these. None for a text that the embedder refuses for good."""
        try:
            async with self._embedding:
                found: Matrix = await asyncio.to_thread(embedder.embed_documents, texts)
            return list(found)
        except ConfigurationError as error:
            raise UnavailableError(error.detail) from error
        except RefusedError as error:
            if len(texts) == 1:
                log.error("derived_text_refused", error=error.code)
                return [None]
        return [one for text in texts for one in await self._vectors(embedder, [text])]

    async def _store_opened(self) -> OpenedStore:
        async with self._opening:
            if self._opened is None:
                self._opened = await self._open_store()
            return self._opened


def _of_segment(segment: StoredSegment) -> DerivedText:
    return DerivedText("segment", f"{segment.level}:{segment.first_seq}-{segment.last_seq}", segment.text)
