"""Correcting and branching: rewind, edit, removal, fork."""

from collections.abc import Sequence
from typing import Any

from prefold.conversation.turns import PreparedTurn
from prefold.errors import GoneError, NotFoundError
from prefold.storage import changes
from prefold.storage.client import redis_failures
from prefold.storage.forks import CutState, Fork
from prefold.storage.keys import SessionKeys
from prefold.storage.reading import StoredSessions
from prefold.storage.types import ChangeResult, SessionView

__all__ = ["BranchingSessions"]


class BranchingSessions(StoredSessions):
    """Changes of what was said. Each is done whole or not at all, and safe to repeat."""

    async def rewind(self, tenant: str, session: str, to_seq: int) -> ChangeResult:
        """Takes back every turn after ``to_seq`` and what was derived of it. Twice is harmless.

        ``InvalidInputError`` (seq_ahead): there is no such turn yet. The numbers are not given out again, and the ids
        of the turns are refused from then on (turn_rewound).
        """
        return await self._change(tenant, session, "rewind", to_seq, None)

    async def edit_turn(self, tenant: str, session: str, turn_id: str, turn: PreparedTurn) -> ChangeResult:
        """The turn says from now on what ``turn`` says; what was derived of the old words goes. Twice is harmless.

        ``NotFoundError`` (turn_not_found), ``ConflictError`` (turn_rewound, turn_removed; turn_shape: kind, role or
        calls would change), ``InvalidInputError`` (no_room: a leading system turn that leaves none).
        """
        return await self._change(tenant, session, "edit", turn_id, turn)

    async def remove_turn(self, tenant: str, session: str, turn_id: str, redacted: PreparedTurn) -> ChangeResult:
        """``redacted`` stands in the turn's place; its id can neither be published nor edited again. Twice is harmless."""
        return await self._change(tenant, session, "remove", turn_id, redacted)

    async def _change(
        self, tenant: str, session: str, operation: changes.Operation, target: int | str, turn: PreparedTurn | None
    ) -> ChangeResult:
        keys = SessionKeys.of(tenant, session)

        async def run(args: Sequence[str | bytes | int]) -> Any:
            return await self._run("change_log", keys, [self._now, keys.label, *args])

        return await changes.change(tenant, session, operation, target, turn, run)

    async def fork(
        self,
        tenant: str,
        session: str,
        new_session: str,
        at_seq: int | None = None,
        *,
        cut_state: CutState | None = None,
    ) -> SessionView:
        """A new session of the turns 1..``at_seq`` (None: all), with the same ids, settings and summary. Twice is harmless.

        ``cut_state`` makes the fork's pinned state of the source's: without what was derived of turns that the fork
        does not have. ``ConflictError`` (session_exists: another session has that name), ``InvalidInputError`` (seq_ahead).
        """
        source, target = SessionKeys.of(tenant, session), SessionKeys.of(tenant, new_session)
        retention_ms = self._defaults.retention_ms
        if user := await self._user_of(source):  # first, so that whoever erases the user finds the fork
            await self.users.note_session(tenant, user, new_session)
        fork = Fork(self._client, source, target, now=self._now, retention_ms=retention_ms, cut_state=cut_state)
        try:
            await fork.run(session, new_session, at_seq)
        except NotFoundError:
            raise await self._missing(source, session) from None
        if user:  # again: this name may have been taken off the list before the fork was there
            await self.users.note_session(tenant, user, new_session)
        if self.replicated and self.replicated.needed:
            with redis_failures():
                await self.replicated.confirm(target.meta)
        return await self.view(tenant, new_session)

    async def living_forks(self, tenant: str, forks: Sequence[str]) -> tuple[str, ...]:
        """Those of ``forks`` that are there, and their forks in turn: who may hold the same turns."""
        found: list[str] = []
        open_ends = list(forks)
        while open_ends:
            name = open_ends.pop(0)
            if name in found:
                continue
            try:
                view = await self.view(tenant, name)
            except (NotFoundError, GoneError):
                continue
            found.append(name)
            open_ends += view.forks
        return tuple(found)

    async def _user_of(self, keys: SessionKeys) -> str:
        with redis_failures():
            user: Any = await self._client.hget(keys.meta, "user")
        return user.decode() if user else ""
