"""Facts that turns showed, taken back at once when the turns go. Workers do it too, from what the session notes."""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError, OverloadedError, TransientError
from prefold.facts import Fact, FactBook
from prefold.gateway.background import InBackground
from prefold.gateway.fact_vectors import FactVectors
from prefold.pinned import Pinned, change_state, without_turns
from prefold.storage import Sessions
from prefold.storage.memory_types import StoredState, TurnSpan
from prefold.storage.types import SessionRef
from prefold.tokens import TokenCounter

__all__ = ["Withdrawing", "WithdrawnFacts"]

log = structlog.get_logger(__name__)

_WITHIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class WithdrawnFacts:
    """What went, and what a second look still found."""

    facts: int | None = 0
    """Rows that nothing spoke for any more. ``None``, here and below: not known; workers take them back."""
    facts_left: int | None = 0
    """Rows that still name a turn that is gone."""
    vectors_left: int | None = 0


class Withdrawing:
    """Takes back what was known, and what was proposed, from turns that are gone. Twice is harmless."""

    def __init__(
        self, sessions: Sessions, book: FactBook, vectors: FactVectors, counter: InBackground[TokenCounter]
    ) -> None:
        self._sessions = sessions
        self._book = book
        self._vectors = vectors
        self._counter = counter

    async def of_lives(self, tenant: str, session: str, lives: Collection[str], user: str) -> WithdrawnFacts:
        """What whole lives of a session showed. Raises ``UnavailableError``; a worker does it later then.

        Nobody waits long where many write of the user at once.
        """
        if not user or not lives:
            return WithdrawnFacts()
        try:
            async with asyncio.timeout(_WITHIN_SECONDS):
                return await self._of_lives(tenant, session, lives, user)
        except (OverloadedError, TimeoutError) as error:
            log.warning("facts_not_withdrawn", tenant=tenant, session=session, error=type(error).__qualname__)
            return WithdrawnFacts(None, None, None)

    async def _of_lives(self, tenant: str, session: str, lives: Collection[str], user: str) -> WithdrawnFacts:
        dropped: set[str] = set()
        for life in lives:
            try:
                withdrawn = await self._book.withdraw(tenant, user, session=session, incarnation=life, spans=None)
            except GoneError:  # the user is being erased: nothing of theirs is left in any case
                continue
            dropped |= set(withdrawn.dropped)
        rows, vectors_left = await self._look(tenant, user, dropped)
        left = sum(any(one.session == session and one.incarnation in lives for one in row.sources) for row in rows)
        return WithdrawnFacts(len(dropped), left, vectors_left)

    async def derived_of(self, tenant: str, session: str) -> frozenset[str]:
        """Keys of the texts that were made of the session's turns, to be given to ``of_turns`` after a change of them.

        ``NotFoundError`` (session_not_found), ``GoneError``.
        """
        return await self._derived((await self._sessions.view(tenant, session)).ref)

    async def of_turns(
        self, ref: SessionRef, user: str, span: TurnSpan, derived: frozenset[str], *, below_revision: int | None = None
    ) -> int | None:
        """What changed turns showed: how many facts went; ``None``: not known, and workers do it.

        ``derived``: what ``derived_of`` said before the change; the vectors of what is no more go too.
        """
        if span.first_seq > span.last_seq:
            return 0
        try:
            async with asyncio.timeout(_WITHIN_SECONDS):
                await self._proposals(ref, span)
                if gone := derived - await self._derived(ref):
                    await self._vectors.forget(ref, sorted(gone))
                return await self._facts(ref, user, span, below_revision) if user else 0
        except (TransientError, TimeoutError) as error:
            log.warning("facts_not_withdrawn", tenant=ref.tenant, session=ref.session, error=type(error).__qualname__)
            return None

    async def _derived(self, ref: SessionRef) -> frozenset[str]:
        segments = await self._sessions.read_segments(ref)
        digest = await self._sessions.read_digest(ref.tenant, ref.session)
        keys = {f"{one.level}:{one.first_seq}-{one.last_seq}" for one in segments}
        return frozenset(keys | ({"digest"} if digest is not None else set()))

    async def _facts(self, ref: SessionRef, user: str, span: TurnSpan, below_revision: int | None) -> int:
        try:
            withdrawn = await self._book.withdraw(
                ref.tenant,
                user,
                session=ref.session,
                incarnation=ref.incarnation,
                spans=[span],
                below_revision=below_revision,
            )
        except GoneError:
            return 0
        if withdrawn.dropped or withdrawn.weakened or withdrawn.restored:
            await self._look(ref.tenant, user, withdrawn.dropped)
        return len(withdrawn.dropped)

    async def _look(self, tenant: str, user: str, gone: Collection[str]) -> tuple[Sequence[Fact], int | None]:
        now_ms = time.time_ns() // 1_000_000
        rows = await self._book.list(tenant, user, history=True, now_ms=now_ms)
        return rows, await self._vectors.follow(tenant, user, gone)

    async def _proposals(self, ref: SessionRef, span: TurnSpan) -> None:
        counter = await self._counter.get()

        def kept(pinned: Pinned, stored: StoredState) -> Pinned:
            apply = stored.proposals == "apply"
            return without_turns(pinned, [span], apply=apply, counter=counter, cap_tokens=stored.cap_tokens)

        try:
            await change_state(self._sessions, ref.tenant, ref.session, kept, incarnation=ref.incarnation, forgets=True)
        except (NotFoundError, GoneError):
            return
        except (ConflictError, InvalidInputError) as error:
            log.warning("proposals_not_withdrawn", session=ref.session, reason=error.code)
