"""``DELETE /v1/sessions/{session}``: erasure, with a receipt."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog
from starlette.responses import Response

from prefold.audit import AuditLog
from prefold.conversation.ids import check_name
from prefold.errors import NotFoundError, TransientError
from prefold.gateway.answers import ErasureAnswer, Remains
from prefold.gateway.auditing import note_removal
from prefold.gateway.bodies import json_response
from prefold.gateway.callers import Caller
from prefold.gateway.exchange import Exchange
from prefold.gateway.remains import remaining
from prefold.gateway.rewriting import LogRewrites
from prefold.gateway.since import before_of, life_before
from prefold.gateway.summary_views import iso_time
from prefold.gateway.sweeping import Findings, Sweep
from prefold.gateway.withdrawing import Withdrawing, WithdrawnFacts
from prefold.quotas import Quotas
from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys, TenantKeys, UserKeys
from prefold.storage.limits import ERASE_GRACE, RETENTION, TOMBSTONE_EXTRA
from prefold.storage.types import ErasedSession, SessionOptions, SessionRef

log = structlog.get_logger(__name__)


class SessionErasing:
    """Erases a session and what names it, by one path whoever asks. Safe to repeat."""

    def __init__(self, sessions: Sessions, sweep: Sweep, quotas: Quotas, audit: AuditLog) -> None:
        self._sessions = sessions
        self._sweep = sweep
        self._quotas = quotas
        self._audit = audit

    async def run(self, caller: Caller, session: str, *, incarnation: str = "") -> tuple[ErasedSession, Findings]:
        """What went, and what a second look found. ``NotFoundError`` (session_not_found).

        With ``incarnation`` a session that lives is spared unless it is that life.
        """
        tenant = caller.tenant
        try:
            erased = await self._sessions.erase(tenant, session, incarnation=incarnation)
        except NotFoundError:
            # Its first turns may have been published, and stand in the tenant's ingest stream.
            if incarnation or not await self._sweep.forget_published(tenant, session):
                raise
            erased = await self._erase_unborn(tenant, session)
        subject = {"session": session, "incarnation": erased.incarnation}
        await note_removal(self._audit, "session_erased", caller, subject)
        await self._quotas.forget_session(tenant, session)
        # The due entry stays: a job that embeds now may write once more, and the worker looks again after it.
        return erased, await self._sweep.run(tenant, erased)

    async def forget_published(self, tenant: str, session: str, before_ms: int) -> None:
        """What was published by then and is not stored yet: of a session that is not there nothing else names it."""
        await self._sweep.forget_published(tenant, session, before_ms=before_ms)

    async def _erase_unborn(self, tenant: str, session: str) -> ErasedSession:
        """Some of its turns may be in a dispatcher's hands: only the mark of an erased session keeps them out."""
        with suppress(TransientError):  # a store that takes no session takes none of the turns either
            await self._sessions.open(tenant, session, SessionOptions())
        try:
            return await self._sessions.erase(tenant, session)
        except NotFoundError:
            return ErasedSession(session, "", 0, 0)


_LOOK: Final = f"a worker has looked again, {ERASE_GRACE.seconds} seconds from now or once it runs"
_OF_USER: Final = Remains(where="what was known of the user from it", until=_LOOK)


class ErasureCalls:
    """Erases what was said. What is derived goes with it, and work under way is refused by the raised epoch."""

    def __init__(
        self, sessions: Sessions, erasing: SessionErasing, withdrawing: Withdrawing, rewrites: LogRewrites
    ) -> None:
        self._sessions = sessions
        self._erasing = erasing
        self._withdrawing = withdrawing
        self._rewrites = rewrites

    async def session(self, exchange: Exchange) -> Response:
        """Erase a session. Safe to repeat: a repeat finishes what a failure had left."""
        tenant, session = exchange.tenant, check_name(exchange.path["session"], "session")
        before_ms = before_of(exchange)
        life = await life_before(self._sessions, tenant, session, before_ms)
        if before_ms is not None:
            await self._erasing.forget_published(tenant, session, before_ms)
        erased, found = await self._erasing.run(exchange.caller, session, incarnation=life)
        users = await self._users_of(tenant, session, found.lives)
        facts = await self._withdraw(tenant, session, users)
        files = await remaining(
            self._rewrites,
            SessionKeys.of(tenant, session).meta,
            *([TenantKeys.of(tenant).ingest] if found.was_published else []),
            *(UserKeys.of(tenant, user).meta for user in sorted({*users.values()} - {""})),
            has_vectors=None in (found.vectors, facts.vectors_left),
            forks=erased.forks,
        )
        log.info("session_erased", tenant=tenant, session=session, turns=erased.turns, not_checked=found.not_checked())
        receipt = ErasureAnswer(
            session=session,
            erased_at=iso_time(time.time_ns() // 1_000_000),
            turns=erased.turns,
            keys_left=found.keys,
            events_left=found.events,
            due_left=found.due,
            dead_letters_left=found.dead_letters,
            commands_left=found.logged_commands,
            jobs_left=found.jobs,
            vectors_left=sum_known(found.vectors, facts.vectors_left),
            facts_withdrawn=facts.facts,
            facts_left=facts.facts_left,
            not_checked=sorted({*found.not_checked(), *_not_checked(facts)}),
            opened_anew=found.is_reopened,
            forks=list(erased.forks),
            remains=[*in_memory(found), *([_OF_USER] if facts.facts_left is None else []), *files],
        )
        return json_response(receipt)

    async def _users_of(self, tenant: str, session: str, lives: Sequence[str]) -> dict[str, str]:
        """By life; the tombstone knows it until a worker has looked again."""
        return {life: await self._sessions.erased_user(SessionRef(tenant, session, life)) or "" for life in lives}

    async def _withdraw(self, tenant: str, session: str, users: Mapping[str, str]) -> WithdrawnFacts:
        """What these lives alone showed of their user."""
        of_user: dict[str, list[str]] = {}
        for life, user in users.items():
            of_user.setdefault(user, []).append(life)
        found = [await self._withdrawing.of_lives(tenant, session, ended, user) for user, ended in of_user.items()]
        return WithdrawnFacts(
            facts=sum_known(*(one.facts for one in found)),
            facts_left=sum_known(*(one.facts_left for one in found)),
            vectors_left=sum_known(*(one.vectors_left for one in found)),
        )


def _not_checked(facts: WithdrawnFacts) -> list[str]:
    looks = {"facts": facts.facts_left, "vectors": facts.vectors_left}
    return [name for name, found in looks.items() if found is None]


def sum_known(*counts: int | None) -> int | None:
    """``None`` where one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def in_memory(found: Findings) -> list[Remains]:
    """What is not in a file, of one session."""
    days = (RETENTION + TOMBSTONE_EXTRA).days
    remains = [
        Remains(where="tombstone: the session's name, no word of it", until=f"{days} days have passed, or a PUT"),
        Remains(where="tombstone: whose session it was", until=_LOOK),
        Remains(where="due entry: the session's name, no word of it", until=_LOOK),
    ]
    if found.jobs is None:
        remains.append(Remains(where="job queue: the session's name, no word of it", until=_LOOK))
    if found.logged_commands is None:
        remains.append(
            Remains(where="log of slow commands", until="newer commands displace it, or the server restarts")
        )
    return remains
