"""Everything of a user, erased store by store, and read again."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from prefold.errors import GoneError, NotFoundError, UnavailableError
from prefold.gateway.callers import Caller
from prefold.gateway.erasure_calls import SessionErasing, sum_known
from prefold.gateway.fact_vectors import DerivedIndex
from prefold.gateway.since import check_user
from prefold.gateway.sweeping import Findings
from prefold.storage import Sessions
from prefold.storage.command_logs import CommandLogs
from prefold.storage.keys import UserKeys

__all__ = ["ErasedAll", "UserErasing"]

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 4
_NONE_THAT_LIVES: Final = "-"
"""No life has this name."""
_LOOKS: Final = 4
"""How often sessions that were opened meanwhile are looked for."""


@dataclass(slots=True)
class ErasedAll:
    """What went, and what a second look found. ``None``: the store could not be looked at."""

    sessions: dict[str, Findings] = field(default_factory=dict)
    turns: int = 0
    facts: int = 0
    facts_left: int = 0
    keys_left: int = 0
    sessions_left: list[str] = field(default_factory=list)
    is_cut_short: bool = False
    """There was no time for all of the sessions: what is known of the user stands until a repeat."""
    vectors: int | None = 0
    commands: int | None = 0

    def findings(self) -> Findings:
        """Those of all stores together."""
        each = list(self.sessions.values())
        return Findings(
            keys=self.keys_left + sum(one.keys for one in each),
            events=sum(one.events for one in each),
            due=sum(one.due for one in each),
            dead_letters=sum(one.dead_letters for one in each),
            logged_commands=sum_known(self.commands, *(one.logged_commands for one in each)),
            jobs=sum_known(*(one.jobs for one in each)),
            vectors=sum_known(self.vectors, *(one.vectors for one in each)),
            is_reopened=not self.is_cut_short and bool(self.sessions_left or self.facts_left or self.keys_left),
            was_published=any(one.was_published for one in each),
        )


class UserErasing:
    """Safe to repeat: a repeat finishes what a failure, or too little time, had left."""

    def __init__(self, sessions: Sessions, erasing: SessionErasing, index: DerivedIndex) -> None:
        self._sessions = sessions
        self._users = sessions.users
        self._erasing = erasing
        self._index = index
        self._logs = CommandLogs(sessions.client)

    async def run(self, caller: Caller, user: str, *, within_seconds: float, before_ms: int | None = None) -> ErasedAll:
        """Sessions first, for only the user's own list names them; then that list and what is known of the user.

        Raises ``UnavailableError`` when the session store does not answer; ``ConflictError`` (erased_since) for a user
        who was erased at ``before_ms`` or later.
        """
        tenant = caller.tenant
        await check_user(self._sessions, tenant, user, before_ms)
        until = time.monotonic() + within_seconds
        made = ErasedAll()
        await self._erase_sessions(caller, user, await self._users.sessions(tenant, user), made, until)
        if not made.is_cut_short:
            await self._erase_memory(caller, user, made, until)
        made.facts_left = len((await self._users.snapshot(tenant, user)).rows)
        made.sessions_left = await self._living(tenant, user)
        made.vectors = await self._forget_vectors(tenant, user)
        key = UserKeys.of(tenant, user).meta
        await self._logs.forget(key)
        made.commands = await self._logs.count(key)
        return made

    async def _erase_memory(self, caller: Caller, user: str, made: ErasedAll, until: float) -> None:
        """Takes the list away and looks whether it is written again: who opens a session notes it before and after."""
        tenant = caller.tenant
        for _ in range(_LOOKS):
            erased = await self._users.erase(tenant, user)
            made.facts += erased.facts
            made.keys_left = erased.keys_left
            await self._erase_sessions(caller, user, erased.sessions, made, until)
            if made.is_cut_short or not await self._users.sessions(tenant, user):
                return

    async def _erase_sessions(
        self, caller: Caller, user: str, names: Sequence[str], made: ErasedAll, until: float
    ) -> None:
        for start in range(0, len(names), _AT_ONCE):
            if time.monotonic() > until:
                made.is_cut_short = True
                return
            part = names[start : start + _AT_ONCE]
            ended = await asyncio.gather(
                *(self._erase_session(caller, user, session, made) for session in part), return_exceptions=True
            )
            for failure in ended:
                if failure is not None:
                    raise failure

    async def _erase_session(self, caller: Caller, user: str, session: str, made: ErasedAll) -> None:
        """One of the list, if it is the user's still: a name may belong to somebody else by now."""
        tenant = caller.tenant
        life = _NONE_THAT_LIVES
        try:
            view = await self._sessions.view(tenant, session)
            if view.user != user:
                return
            life = view.ref.incarnation
        except NotFoundError:
            return
        except GoneError:
            if session in made.sessions:
                return  # erased by this very call
        try:
            erased, made.sessions[session] = await self._erasing.run(caller, session, incarnation=life)
        except NotFoundError:
            return  # begun anew since the look, perhaps by somebody else; if by this user, the list says so again
        made.turns += erased.turns

    async def _living(self, tenant: str, user: str) -> list[str]:
        living = []
        for session in await self._users.sessions(tenant, user):
            try:
                view = await self._sessions.view(tenant, session)
            except (NotFoundError, GoneError):
                continue
            if view.user == user:
                living.append(session)
        return living

    async def _forget_vectors(self, tenant: str, user: str) -> int | None:
        try:
            return await self._index.forget_user(tenant, user)
        except UnavailableError as error:
            log.warning("vectors_not_forgotten", tenant=tenant, error=error.code)
            return None
