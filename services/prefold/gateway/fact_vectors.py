"""Vectors of a user's facts, made and removed at the write that changes them, as far as the vector store answers.

What could not be done stays noted with the user, and a memory worker does it.
"""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

import structlog

from prefold.errors import RefusedError, TransientError
from prefold.facts import Fact, FactBook
from prefold.recall import DerivedKind
from prefold.storage.types import SessionRef
from prefold.storage.users import Users

__all__ = ["DerivedIndex", "FactVectors"]

log = structlog.get_logger(__name__)

_WITHIN_SECONDS: Final = 2.0
_MOST_ROWS: Final = 100
"""That one call takes on; a worker does the rest."""
_LOOKS: Final = 4
"""At a user whom others write of all the time; then a worker does it."""


class DerivedIndex(Protocol):
    """The vectors of derived texts, as writes and erasures need them. Every call raises ``UnavailableError``."""

    async def store_facts(self, tenant: str, user: str, facts: Sequence[Fact]) -> None:
        """Stores the facts as they are; waits for no embedder that is still loading."""
        ...

    async def forget_derived(
        self,
        tenant: str,
        *,
        user: str | None = None,
        session: str | None = None,
        incarnation: str | None = None,
        kinds: Sequence[DerivedKind] | None = None,
        keys: Sequence[str] | None = None,
    ) -> int:
        """Deletes what all of this names, in the collections of all embedders; how many a second look still finds."""
        ...

    async def forget_user(self, tenant: str, user: str) -> int:
        """Deletes everything of the user in all collections; how many a second look still finds."""
        ...


class FactVectors:
    """Brings vectors up to date with rows. Never fails: a row's vector is a hint, checked against the row when read."""

    def __init__(self, users: Users, book: FactBook, index: DerivedIndex) -> None:
        self._users = users
        self._book = book
        self._index = index

    async def follow(self, tenant: str, user: str, gone: Collection[str] = ()) -> int | None:
        """Stores and removes what the last writes changed; how many of the removed are left, ``None``: not known.

        ``gone``: rows that this very write took away.
        """
        try:
            async with asyncio.timeout(_WITHIN_SECONDS):
                changed = await self._users.take_unindexed(tenant, user, _MOST_ROWS)
                names = {*gone, *changed.ids}
                live = await self._live(tenant, user)  # after it: whoever writes now must not pass for a row that went
                left = await self._remove(tenant, user, names - live.keys(), changed.version)
                now = await self._rows_since(tenant, user, changed.version, live)
        except (TransientError, TimeoutError) as error:
            log.warning("fact_vectors_wait", tenant=tenant, error=type(error).__qualname__)
            return None
        came_back = now.keys() & names - live.keys()
        wanted = {one: now[one] for one in {*changed.ids, *came_back} if one in now}
        await self._store(tenant, user, wanted, changed.version)
        return left

    async def forget(self, ref: SessionRef, keys: Sequence[str]) -> None:
        """Removes texts that were made of a session's turns; what cannot be removed now is no text any more when read."""
        try:
            await self._index.forget_derived(
                ref.tenant, session=ref.session, incarnation=ref.incarnation, kinds=("segment", "summary"), keys=keys
            )
        except TransientError as error:
            log.warning("derived_vectors_wait", tenant=ref.tenant, session=ref.session, error=error.code)

    async def _live(self, tenant: str, user: str) -> dict[str, Fact]:
        now_ms = time.time_ns() // 1_000_000
        return {one.id: one for one in await self._book.list(tenant, user, now_ms=now_ms)}

    async def _remove(self, tenant: str, user: str, gone: Collection[str], version: int) -> int:
        if not gone:
            return 0
        left = await self._index.forget_derived(tenant, user=user, kinds=("fact",), keys=sorted(gone))
        if not left:
            await self._users.mark_indexed(tenant, user, gone, version)
        return left

    async def _store(self, tenant: str, user: str, facts: Mapping[str, Fact], version: int) -> None:
        if not facts:
            return
        try:
            async with asyncio.timeout(_WITHIN_SECONDS):
                await self._store_as_they_are(tenant, user, facts, version)
        except (TransientError, RefusedError, TimeoutError) as error:
            log.warning("fact_vectors_wait", tenant=tenant, error=type(error).__qualname__)

    async def _store_as_they_are(self, tenant: str, user: str, facts: Mapping[str, Fact], version: int) -> None:
        """Others may have changed a row, and followed it, before its older vector arrived: then it is done again."""
        names = list(facts)
        for _ in range(_LOOKS):
            await self._index.store_facts(tenant, user, list(facts.values()))
            live = await self._rows_since(tenant, user, version, facts)
            now = {one: live[one] for one in names if one in live}
            if now == facts:
                await self._users.mark_indexed(tenant, user, names, version)
                return
            await self._remove(tenant, user, set(names) - now.keys(), version)
            facts = now

    async def _rows_since(self, tenant: str, user: str, version: int, known: Mapping[str, Fact]) -> Mapping[str, Fact]:
        """The rows that are served now: ``known`` as long as nobody has written since ``version``."""
        _, now = await self._users.version(tenant, user)
        return known if now == version else await self._live(tenant, user)
