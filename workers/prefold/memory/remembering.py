"""One session's memory, from the ticket to its end.

Whether there is something to do is decided by ``begin_memory`` alone, and whether it is done by ``end_memory``. Every
step between them may be done twice, so a worker that is killed anywhere leaves nothing worse than work to be repeated.
What is written after turns have changed is taken back: by whoever wrote it, when it looks at the session again, and by
the next pass, which is given the changed turns.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

import structlog

from prefold.compaction.build import Failed, Undecided
from prefold.compaction.lease import LeaseLostError, while_renewed
from prefold.compaction.pauses import PERMANENT, TRANSIENT, Pauses
from prefold.errors import GoneError, NotFoundError, PrefoldError, TransientError, place_of
from prefold.memory.derived_vectors import DerivedVectors
from prefold.memory.digest import DigestWriter
from prefold.memory.failures import Failures
from prefold.memory.learning import Learning
from prefold.memory.page import Page, all_turns, next_page
from prefold.memory.ports import FactRows, MemoryStorage
from prefold.memory.proposing import Proposing
from prefold.memory.undoing import withdraw_life, withdraw_outdated
from prefold.storage.memory_types import MemoryTicket, SessionDigest, TurnSpan
from prefold.storage.types import SessionRef, SessionView
from prefold.telemetry.metrics import REMEMBERED_SESSIONS
from prefold.telemetry.tracing import span

__all__ = ["LEASE", "Parts", "Remembering"]

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=10)
"""Renewed three times within it. So long a session waits whose worker died, at most."""
_ROUNDS = 200
"""Of ``PAGE_TURNS`` turns, in one go; what is left is due."""
_GIVE_BACK_SECONDS = 1.5

Void = Literal["gone", "changed"]
"""Why a ticket is worth nothing any more: that life of the session is over, or turns changed."""


class Epochs(Protocol):
    """Part of ``prefold.storage.users.Users``; see there."""

    async def epoch(self, tenant: str, user: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What a pass works with."""

    storage: MemoryStorage
    facts: FactRows
    learning: Learning
    proposing: Proposing
    digests: DigestWriter
    vectors: DerivedVectors
    failures: Failures
    users: Epochs
    now_ms: Callable[[], int]


class Remembering:
    """Sees to the memory of any number of sessions at once, as ``BuildPool`` asks it to."""

    def __init__(self, parts: Parts, *, lease: timedelta = LEASE) -> None:
        self._parts = parts
        self._storage = parts.storage
        self._lease_ms = int(lease.total_seconds() * 1000)

    @property
    def engine_name(self) -> str:
        """Of the engine that writes digests."""
        return self._parts.digests.engine_name

    async def begin(self, ref: SessionRef) -> MemoryTicket | str:
        """The claim: a ticket with a lease, or why there is none. Raises ``TransientError``."""
        ticket = await self._storage.begin_memory(ref, lease_ms=self._lease_ms)
        if isinstance(ticket, str):
            log.debug("memory_not_begun", tenant=ref.tenant, session=ref.session, reason=ticket)
            return Undecided(ticket) if ticket == "busy" else ticket
        return ticket

    async def build_with(self, ticket: MemoryTicket) -> str:
        """What became of it: ``ended``, ``gone``, ``lost``, a failure's code, or why it did not go on.

        Never raises but on cancellation, and when the storage does not answer (``TransientError``): then the lease
        runs out and the session is due again.
        """
        named = {"tenant": ticket.ref.tenant, "session": ticket.ref.session}
        with structlog.contextvars.bound_contextvars(**named), span("remember", named):
            for _ in range(_ROUNDS):
                outcome = await self._round(ticket)
                if outcome not in ("more", "changed"):
                    return outcome
                following = await self.begin(ticket.ref)
                if isinstance(following, str):
                    return following
                ticket = following
            return Undecided("unfinished")

    async def _round(self, ticket: MemoryTicket) -> str:
        try:
            outcome: str = await self._under_lease(ticket)
        except asyncio.CancelledError:
            await self._give_back(ticket)
            raise
        except TransientError as error:
            return Undecided(await self._rest(ticket, error.code, TRANSIENT, error.retry_after))
        except PrefoldError as error:
            return Failed(await self._rest(ticket, error.code, PERMANENT))
        except Exception as error:  # noqa: BLE001 (a fault over one session must not end the work on the others)
            # Its message may quote the conversation: the place says enough.
            return Failed(await self._rest(ticket, place_of(error), PERMANENT))
        if outcome != "lost":
            self._parts.failures.succeeded(ticket.ref)
            self._parts.learning.forget(ticket.ref)
        return outcome

    async def _under_lease(self, ticket: MemoryTicket) -> str:
        try:
            return await while_renewed(lambda: self._renewed(ticket), ticket.lease_ms, self._remember(ticket))
        except LeaseLostError:
            found = _found(await self._look(ticket), ticket)
        log.info("memory_lost", because=found)
        if found is None:
            return Undecided("lost")
        await self._take_back(ticket, found)
        return found

    async def _remember(self, ticket: MemoryTicket) -> str:
        """One round. Facts come before vectors: they are learnt as well while the vector store is away."""
        parts, storage = self._parts, self._storage
        epoch = await parts.users.epoch(ticket.ref.tenant, ticket.user) if ticket.user else 0
        if await self._look(ticket) is None:
            return await self._undo(ticket, "gone")
        page = await next_page(storage, ticket, epoch=epoch)
        await self._forget(ticket)
        await self._learn(ticket, page)
        if (found := _found(await self._look(ticket), ticket)) is not None:
            return await self._undo(ticket, found)
        closed = ticket.closing and page.is_last
        digest = await self._digest(ticket) if closed else None
        await parts.vectors.of_session(ticket, page.upto, digest)
        await parts.vectors.of_user(ticket.ref.tenant, ticket.user)
        outcome = await storage.end_memory(ticket, upto=page.upto, closed=closed)
        if outcome != "ended":
            return await self._undo(ticket, outcome)
        REMEMBERED_SESSIONS.inc()
        log.info("session_remembered", turns=len(page.turns), upto=page.upto, closed=closed, digest=digest is not None)
        return "ended" if page.is_last else "more"

    async def _forget(self, ticket: MemoryTicket) -> None:
        """What is known from turns that were changed or taken back."""
        await withdraw_outdated(self._storage, self._parts.facts, ticket, ticket.forget)
        with suppress(NotFoundError, GoneError):  # the next look tells
            await self._parts.proposing.forget(ticket.ref, ticket.forget)

    async def _learn(self, ticket: MemoryTicket, page: Page) -> None:
        if not page.turns:
            return
        learnt = await self._parts.learning.learnt(ticket, page)
        if _found(await self._look(ticket), ticket) is not None:
            return  # the extractor took its time; what nobody writes nobody has to take back
        with suppress(NotFoundError, GoneError):  # the next look tells
            await self._parts.proposing.add(ticket.ref, learnt.proposed)
        if learnt.stated:
            try:
                await self._parts.facts.learn(
                    ticket.ref.tenant, ticket.user, learnt.stated, epoch=learnt.epoch, now_ms=self._parts.now_ms()
                )
            except GoneError:
                log.info("user_erased_meanwhile")  # and all of their sessions with them
        if learnt.away is not None:
            raise learnt.away

    async def _look(self, ticket: MemoryTicket) -> SessionView | None:
        """The session as it is now; None: this life is over."""
        try:
            view = await self._storage.view(ticket.ref.tenant, ticket.ref.session)
        except (NotFoundError, GoneError):
            return None
        return view if view.ref == ticket.ref else None

    async def _undo(self, ticket: MemoryTicket, found: Void) -> str:
        """Takes back what this round wrote, and gives the ticket back: the session is due at once, if it still is."""
        log.info("memory_undone", because=found)
        await self._take_back(ticket, found)
        await self._storage.end_memory(ticket, upto=0, closed=False, retry_after_ms=1)
        return found

    async def _take_back(self, ticket: MemoryTicket, found: Void) -> None:
        """What was written of turns that are no longer what was read. The next round looks after the rest."""
        parts = self._parts
        if found == "changed":
            spans = [TurnSpan(ticket.remembered_to + 1, ticket.upto)] if ticket.upto > ticket.remembered_to else []
            await withdraw_outdated(self._storage, parts.facts, ticket, spans)
            return
        if not await self._storage.has_aged(ticket.ref):  # of one that only grew old its user keeps the facts
            await withdraw_life(parts.facts, ticket.ref, ticket.user)
        await parts.vectors.forget_life(ticket.ref)
        if ticket.user:
            await parts.vectors.of_user(ticket.ref.tenant, ticket.user)

    async def _digest(self, ticket: MemoryTicket) -> SessionDigest | None:
        """The session's digest, written once: a round that is repeated finds it."""
        kept = await self._storage.read_digest(ticket.ref.tenant, ticket.ref.session)
        if kept is not None and kept.upto == ticket.upto:
            return kept
        digest = await self._written(ticket)
        if digest is None or not await self._storage.keep_digest(ticket, digest):
            return None
        return digest

    async def _written(self, ticket: MemoryTicket) -> SessionDigest | None:
        async def last_error() -> str:
            return self._parts.failures.last(ticket.ref)

        turns = await all_turns(self._storage, ticket)
        try:
            return await self._parts.digests.write(ticket, turns, last_error)
        except (TransientError, LeaseLostError):
            raise
        except Exception as error:  # noqa: BLE001 (a session that nobody can sum up is to be closed all the same)
            code = error.code if isinstance(error, PrefoldError) else place_of(error)
            log.warning("digest_not_made", error=code)
            return None

    async def _renewed(self, ticket: MemoryTicket) -> bool:
        return await self._storage.renew_memory(ticket) == "ended"

    async def _rest(
        self, ticket: MemoryTicket, reason: str, pauses: Pauses, retry_after: timedelta | None = None
    ) -> str:
        """Gives the ticket back with a pause that grows from failure to failure."""
        pause_ms = self._parts.failures.pause_ms(ticket.ref, reason, pauses, retry_after)
        log.warning("memory_failed", reason=reason, pause_ms=pause_ms)
        await self._storage.end_memory(ticket, upto=0, closed=False, retry_after_ms=pause_ms)
        return reason

    async def _give_back(self, ticket: MemoryTicket) -> None:
        """On the way out: another worker may begin at once. Not for long, and not at all costs."""
        with suppress(PrefoldError, TimeoutError):
            async with asyncio.timeout(_GIVE_BACK_SECONDS):
                await self._storage.end_memory(ticket, upto=0, closed=False, retry_after_ms=1)


def _found(view: SessionView | None, ticket: MemoryTicket) -> Void | None:
    """None: the session is what it was when the ticket was given."""
    if view is None:
        return "gone"
    return "changed" if view.changes != ticket.changes else None
