"""Sessions in Redis: one typed call for each thing that can be done with one."""

import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cached_property
from typing import Any

from prefold.conversation.encoding import orjson
from prefold.conversation.turns import PreparedTurn, TurnKind
from prefold.errors import ConflictError, InvalidInputError
from prefold.storage import builds, embedded, limits, segments
from prefold.storage.append import PACKED_PARTS, Defaults, append_args, changing, packed_append, parse_append
from prefold.storage.build_times import BuildLeads, BuildTimes
from prefold.storage.changes import not_found
from prefold.storage.client import connect, redis_failures
from prefold.storage.embed_types import EmbedDebt, MarkOutcome, Purge
from prefold.storage.fields import INCARNATION_CHARACTERS
from prefold.storage.hot import Argument, Waiting
from prefold.storage.keys import SessionKeys, packed_script_keys
from prefold.storage.lean import connect_lean
from prefold.storage.memory import RememberingSessions
from prefold.storage.scripts import script
from prefold.storage.state import SessionState, origin_of
from prefold.storage.types import (
    AppendResult,
    BuildTicket,
    BuiltSummary,
    CommitResult,
    DueItem,
    ErasedSession,
    SessionOptions,
    SessionRef,
    SessionView,
    StoredSegment,
    StoredTurn,
)

__all__ = ["Sessions", "connect_sessions"]

_DRAWN_TOGETHER = 64


class Sessions(RememberingSessions):
    """Everything that can be done with a session. All calls raise ``UnavailableError`` or ``OverloadedError``."""

    @cached_property
    def _incarnations(self) -> Iterator[str]:
        """New ones for ever."""
        return _Drawn()

    async def append(self, tenant: str, session: str, turns: Sequence[PreparedTurn]) -> AppendResult:
        """Stores turns in order, all or none; creates the session if need be.

        A turn whose id was published before is a duplicate when its digest is the same, else the whole call is
        refused with ``ConflictError`` (turn_conflict). ``GoneError``: the session was erased. ``InvalidInputError``: no turns.
        """
        keys, args = self._append_call(tenant, session, turns)
        return parse_append(tenant, session, turns, await self._run("append", keys, args))

    def start_append(self, tenant: str, session: str, turns: Sequence[PreparedTurn], waiting: Waiting) -> bool:
        """``append`` without a task: ``waiting`` gets what ``parse_append`` takes, or redis-py's exception.

        After any failure ``append`` may be called with the same turns, as after a lost connection. False: nothing was
        sent, only ``append`` is open.
        """
        direct = self._direct
        if direct is None or (self.replicated is not None and self.replicated.needed):
            return False
        if len(turns) == 1 and turns[0].kind is TurnKind.PLAIN and self.now_ms is None:
            label, keys = packed_script_keys(tenant, session)
            lead_ms = self.leads.ms_of(tenant) if self.leads is not None else None
            now_ms, incarnation = time.time_ns() // 1_000_000, next(self._incarnations)
            head = self._append_head + keys
            packed = packed_append(head, label, incarnation, turns[0], self._defaults, now_ms, lead_ms)
            return direct.start_packed(waiting, packed)
        names, args = self._append_call(tenant, session, turns)
        return direct.start(waiting, ("EVALSHA", script("append").sha, 11, *names.script_keys(), *args))

    @cached_property
    def _append_head(self) -> bytes:
        return b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$2\r\n11\r\n" % (PACKED_PARTS, script("append").sha.encode())

    def _append_call(
        self, tenant: str, session: str, turns: Sequence[PreparedTurn]
    ) -> tuple[SessionKeys, list[Argument]]:
        if not turns:
            raise InvalidInputError("there is no turn to store", field="turns")
        keys = SessionKeys.of(tenant, session)
        now_ms = f"={self.now_ms}" if self.now_ms is not None else time.time_ns() // 1_000_000
        lead_ms = self.leads.ms_of(tenant) if self.leads is not None else None
        return keys, append_args(keys.label, next(self._incarnations), turns, self._defaults, now_ms, lead_ms)

    async def open(self, tenant: str, session: str, options: SessionOptions) -> SessionView:
        """Creates the session or changes its options. A lower limit takes effect at once.

        ``ConflictError`` (user_conflict): it belongs to another user. ``InvalidInputError`` (no_room): system and
        tools leave too little of the limit for a conversation.
        """
        keys = SessionKeys.of(tenant, session)
        if options.user is not None:  # first, so that whoever erases the user finds the session
            await self.users.note_session(tenant, options.user, session)
        given = _given(options)
        defaults = self._defaults
        args: list[str | bytes | int] = [
            self._now,
            secrets.token_hex(6),
            keys.label,
            defaults.retention_ms,
            defaults.limits,
            len(given),
        ]
        for name, value in given.items():
            args += (name, value)
        reply = await self._run("open_session", keys, args)
        verdict = reply[0].decode()
        if options.user is not None:
            if verdict != "ok":
                await self._unlist(tenant, session, options.user)
            else:  # again: the list may have been taken away, or this name off it, before the opening
                await self.users.note_session(tenant, options.user, session)
        if verdict == "conflict":
            raise ConflictError("the session belongs to another user", code="user_conflict", field="user")
        if verdict == "changing":
            raise changing()
        if verdict == "no_room":
            raise InvalidInputError(
                f"system and tools may take {max(0, reply[1])} tokens of this limit", code="no_room", field="system"
            )
        return await self.view(tenant, session)

    async def erase(self, tenant: str, session: str, *, incarnation: str = "") -> ErasedSession:
        """Removes the session from Redis; appends get ``GoneError`` until it is opened anew. Twice is harmless.

        With ``incarnation`` a session that lives is spared unless it is that life: ``NotFoundError`` as well.
        ``NotFoundError`` (session_not_found): there never was one, or its tombstone has ended.
        """
        keys = SessionKeys.of(tenant, session)
        tombstone_ms = self._defaults.retention_ms + limits.milliseconds(limits.TOMBSTONE_EXTRA)
        reply = await self._run("erase_session", keys, [self._now, keys.label, tombstone_ms, incarnation, "asked"])
        if reply[0] == b"unknown":
            raise not_found(session)
        with redis_failures():
            left = await self._client.exists(*keys.erasable())
        if reply[0] == b"erased":
            return ErasedSession(session, "", 0, left)
        forks = await self._hand_over(tenant, reply)
        return ErasedSession(session, reply[1].decode(), reply[2], left, await self.living_forks(tenant, forks))

    async def expire(self, ref: SessionRef) -> bool:
        """Removes a session whose time has come; False: it lives on. An append may begin it anew.

        True also when it is gone already: then its vectors may be left, and ``end_expiry`` has not been called.
        """
        keys = SessionKeys.of(ref.tenant, ref.session)
        tombstone_ms = self._defaults.retention_ms + limits.milliseconds(limits.TOMBSTONE_EXTRA)
        reply = await self._run("erase_session", keys, [self._now, keys.label, tombstone_ms, ref.incarnation])
        await self._hand_over(ref.tenant, reply)
        return bool(reply[0] != b"alive")

    async def _hand_over(self, tenant: str, erased: list[Any]) -> list[str]:
        """What was forked from a fork that is gone holds turns of that one's source: there it is named from now on."""
        if erased[0] != b"ok" or not erased[3]:
            return []
        forks: list[str] = erased[3].decode().split("\n")
        if erased[4]:
            session, incarnation = origin_of(erased[4])
            source = SessionKeys.of(tenant, session)
            for fork in forks:
                await self._run("note_fork", source, [source.label, incarnation, fork])
        return forks

    async def end_expiry(self, ref: SessionRef) -> None:
        """Nothing of this life is left anywhere: its due entry goes."""
        await self.due_sets.end_expiry(ref)

    async def begin_build(self, tenant: str, session: str, incarnation: str, lease_ms: int) -> BuildTicket | str:
        """Leave to build the next summary, or why not: gone, not_due, busy, backoff, no_cut."""
        keys = SessionKeys.of(tenant, session)
        args = [self._now, keys.label, incarnation, lease_ms]
        ref = SessionRef(tenant, session, incarnation)
        return builds.parse_begin(ref, await self._run("begin_build", keys, args))

    async def commit_build(self, ticket: BuildTicket, summary: BuiltSummary) -> CommitResult:
        """Makes the summary the standby, or the active one when the context waits for it.

        ``stale``: the ticket is void, the turns that it covers changed, or it was committed already. ``no_gain``:
        the result would not be smaller than what it replaces; the ticket stays open until it is abandoned.
        """
        keys = SessionKeys.of(ticket.ref.tenant, ticket.ref.session)
        args = builds.commit_args(self._now, keys.label, ticket, summary)
        return builds.parse_commit(await self._run("commit_build", keys, args))

    async def renew_build(self, ticket: BuildTicket) -> bool:
        """Lengthens the lease by its length from now; False: the ticket is void, stop the work."""
        return await self._hold(ticket, "renew", ticket.lease_ms, "")

    async def is_degraded(self, ref: SessionRef) -> bool:
        """Whether this life of the session leaves out turns for want of a summary now."""
        with redis_failures():
            packed: Any = await self._client.hget(SessionKeys.of(ref.tenant, ref.session).meta, "state")
        state = SessionState.unpack(packed) if packed else None
        return state is not None and state.incarnation == ref.incarnation and bool(state.deg)

    async def abandon_build(self, ticket: BuildTicket, reason: str, retry_after_ms: int) -> None:
        """Ends the lease; the session is due again after ``retry_after_ms``, and shows ``reason`` until then."""
        await self._hold(ticket, "abandon", retry_after_ms, reason)

    async def rest_build(self, ticket: BuildTicket, reason: str) -> None:
        """Ends the lease; no build before the log has grown by a refresh step. The session shows ``reason`` until one."""
        await self._hold(ticket, "rest", 0, reason)

    async def note_build_time(self, tenant: str, engine: str, seconds: float) -> None:
        """Notes how long a session of the tenant waited for a summary."""
        await self.build_times.note(tenant, engine, seconds)

    async def read_segments(self, ref: SessionRef) -> list[StoredSegment]:
        """Segments of this life of the session that are kept, by first turn, then level."""
        return await segments.read_segments(self._client, ref)

    async def keep_segment(self, ticket: BuildTicket, segment: StoredSegment) -> bool:
        """Keeps a segment of turns that the ticket covers; False: the ticket is void."""
        keys = SessionKeys.of(ticket.ref.tenant, ticket.ref.session)
        args = segments.keep_args(keys.label, ticket, segment)
        return bool(await self._run("keep_segment", keys, [self._now, *args]))

    async def _hold(self, ticket: BuildTicket, action: str, ms: int, reason: str) -> bool:
        keys = SessionKeys.of(ticket.ref.tenant, ticket.ref.session)
        args = [self._now, keys.label, ticket.ref.incarnation, ticket.epoch, action, ms, reason]
        return bool(await self._run("hold_build", keys, args))

    async def due(self, partition: int, now_ms: int, limit: int) -> list[DueItem]:
        """Entries of one partition whose time has come; ``due_sets.due`` asks all at once."""
        return await self.due_sets.due(now_ms, limit, (partition,))

    async def embed_debt(self, ref: SessionRef, collection: str) -> EmbedDebt | None:
        """What embedders still have to do in this collection; None: this life of the session is over."""
        return await embedded.read_debt(self._client, ref, collection, self.now_ms)

    async def embedded_to(self, ref: SessionRef, collection: str) -> int:
        """Seq up to which the session is embedded in this collection; 0 when another embedder did it."""
        debt = await self.embed_debt(ref, collection)
        return debt.embedded_to if debt else 0

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
        """Notes that the turns up to ``upto_seq`` are embedded, and which changed ones are done. Idempotent.

        ``changes`` as they were before the turns were read: when they have moved on nothing is noted.
        """
        keys, grace_ms = SessionKeys.of(ref.tenant, ref.session), self._defaults.embed_grace_ms
        args = embedded.mark_args(
            ref, upto_seq, collection, grace_ms=grace_ms, changes=changes, redone=redone, purged=purged
        )
        return embedded.parse_mark(await self._run("mark_embedded", keys, [self._now, keys.label, *args]))

    async def turn_of_life(self, ref: SessionRef, seq: int) -> StoredTurn | None:
        """The turn ``seq`` of this life as it stands now; None: it was taken back, or this life is over."""
        return await embedded.read_turn(self._client, ref, seq)


class _Drawn(Iterator[str]):
    """Random incarnations. Each append has one with it, so a system call serves many. Threads may share it."""

    def __init__(self) -> None:
        self._ready: list[str] = []

    def __next__(self) -> str:
        while True:
            try:
                return self._ready.pop()
            except IndexError:
                digits = secrets.token_hex(_DRAWN_TOGETHER * INCARNATION_CHARACTERS // 2)
                starts = range(0, len(digits), INCARNATION_CHARACTERS)
                self._ready += [digits[start : start + INCARNATION_CHARACTERS] for start in starts]


_GIVEN_AS = {
    "user": "user",
    "model": "model",
    "metadata": "metadata",
    "shared_prefix": "shared_prefix",
    "proposals": "proposals",
    "hard_limit_tokens": "hard",
    "keep_recent_turns": "keep",
    "state_cap_tokens": "state_cap",
}
"""Options that the script takes as they are, and what it calls them."""


def _given(options: SessionOptions) -> dict[str, str | bytes | int]:
    values = {name: getattr(options, option) for option, name in _GIVEN_AS.items()}
    given: dict[str, str | bytes | int] = {name: value for name, value in values.items() if value is not None}
    if options.soft_ratio is not None:
        given["ratio"] = round(options.soft_ratio * 1000)
    if options.adaptive:
        given["adaptive"] = 1
    if options.close_after_seconds is not None:
        given["idle"] = options.close_after_seconds * 1000
    if options.system is not None:
        given["system"] = orjson.dumps(options.system)[1:-1]
        given["systok"] = options.system_tokens
    if options.tools is not None:
        given["tools"] = options.tools
        given["tooltok"] = options.tools_tokens
    return given


@asynccontextmanager
async def connect_sessions(
    url: str, *, max_connections: int = 64, defaults: Defaults | None = None, lead: timedelta | None = None
) -> AsyncIterator[Sessions]:
    """``Sessions`` on the Redis of ``url`` (see ``connect``); the connections are closed at the end.

    ``lead``: how long a build takes while none of a tenant was measured; with it appends heed what was.
    """
    async with (
        connect(url, max_connections=max_connections) as client,
        connect_lean(url, client) as (hot, replicated),
    ):
        leads = BuildLeads(BuildTimes(client), lead) if lead is not None else None
        try:
            yield Sessions(client, hot=hot, replicated=replicated, defaults=defaults, leads=leads)
        finally:
            if leads is not None:
                await leads.close()
