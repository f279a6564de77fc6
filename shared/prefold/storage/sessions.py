"""Sessions in Redis: one typed call for each thing that can be done with one."""

import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
from redis.asyncio import Redis

from prefold.conversation.turns import PreparedTurn
from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError
from prefold.storage import builds, limits
from prefold.storage.append import Defaults, append_args, parse_append
from prefold.storage.client import connect, redis_failures
from prefold.storage.due import DueSets
from prefold.storage.events import TurnEvents
from prefold.storage.hot import HotClient, connect_hot
from prefold.storage.keys import SessionKeys
from prefold.storage.log import stored_turn
from prefold.storage.scripts import script
from prefold.storage.state import META_FIELDS, STANDBY_FIELDS, context_of, view_of
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
    StoredContext,
    StoredTurn,
)

__all__ = ["Sessions", "connect_sessions"]

MOST_TURNS_A_READ = 500


class Sessions:
    """All calls raise ``UnavailableError`` or ``OverloadedError`` when Redis does not take them.

    ``now_ms`` replaces Redis's own clock in every script; it is there for tests of time.
    """

    def __init__(
        self,
        client: Redis,
        *,
        hot: HotClient | None = None,
        defaults: Defaults | None = None,
        now_ms: int | None = None,
    ) -> None:
        self._client = client
        self._hot = hot
        self._defaults = defaults or Defaults()
        self.now_ms = now_ms
        self.events = TurnEvents(client)
        self.due_sets = DueSets(client)

    @property
    def client(self) -> Redis:
        """The connection, for health checks."""
        return self._client

    async def _run(self, name: str, keys: SessionKeys, args: Sequence[str | bytes | int]) -> Any:
        with redis_failures():
            return await script(name).run(self._hot or self._client, keys.script_keys(), args)

    @property
    def _now(self) -> str | int:
        return "" if self.now_ms is None else self.now_ms

    async def load_scripts(self) -> None:
        """Loads every script, so that the first call does not pay for it."""
        with redis_failures():
            for name in (
                "append",
                "open_session",
                "begin_build",
                "commit_build",
                "hold_build",
                "mark_embedded",
                "erase_session",
            ):
                await self._client.script_load(script(name).source)

    async def append(self, tenant: str, session: str, turns: Sequence[PreparedTurn]) -> AppendResult:
        """Stores turns in order, all or none; creates the session if need be.

        A turn whose id was published before is a duplicate when its digest is the same, else the whole call is
        refused with ``ConflictError`` (turn_conflict). ``GoneError``: the session was erased.
        """
        keys = SessionKeys.of(tenant, session)
        incarnation = secrets.token_hex(6)
        now_ms = f"={self.now_ms}" if self.now_ms is not None else time.time_ns() // 1_000_000
        args = append_args(keys.label, incarnation, turns, self._defaults, now_ms)
        return parse_append(tenant, session, turns, await self._run("append", keys, args))

    async def open(self, tenant: str, session: str, options: SessionOptions) -> SessionView:
        """Creates the session or changes its options. A lower limit takes effect at once.

        ``ConflictError`` (user_conflict): it belongs to another user. ``InvalidInputError`` (no_room): system and
        tools leave too little of the limit for a conversation.
        """
        keys = SessionKeys.of(tenant, session)
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
        if verdict == "conflict":
            raise ConflictError("the session belongs to another user", code="user_conflict", field="user")
        if verdict == "no_room":
            raise InvalidInputError(
                f"system and tools may take {max(0, reply[1])} tokens of this limit", code="no_room", field="system"
            )
        return await self.view(tenant, session)

    async def read_context(self, tenant: str, session: str) -> StoredContext:
        """One consistent snapshot of the precomputed context: ``NotFoundError`` (session_not_found), ``GoneError``."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            body, meta = await self._snapshot(keys)
        if body is None or meta[0] is None:
            raise await self._missing(keys, session)
        return context_of(tenant, session, body, meta)

    async def _snapshot(self, keys: SessionKeys) -> tuple[bytes | None, list[bytes | None]]:
        if self._hot is not None:
            get, fields = ("GET", keys.context), ("HMGET", keys.meta, *META_FIELDS)
            return tuple(await self._hot.execute(("MULTI",), get, fields, ("EXEC",)))
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.get(keys.context)
            pipe.hmget(keys.meta, META_FIELDS)
            return tuple(await pipe.execute())

    async def view(self, tenant: str, session: str) -> SessionView:
        """What there is to say about the session: ``NotFoundError`` (session_not_found), ``GoneError``."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hmget(keys.meta, META_FIELDS)
                pipe.hmget(keys.standby, STANDBY_FIELDS)
                pipe.time()
                meta, standby, (seconds, micros) = await pipe.execute()
        if meta[0] is None:
            raise await self._missing(keys, session)
        now_ms = self.now_ms if self.now_ms is not None else seconds * 1000 + micros // 1000
        return view_of(tenant, session, meta, standby, now_ms)

    async def _missing(self, keys: SessionKeys, session: str) -> NotFoundError | GoneError:
        with redis_failures():
            erased = await self._client.hget(keys.tomb, "erased")
        return GoneError("the session was erased; PUT it to create it anew") if erased else _not_found(session)

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        """The verbatim log, ascending, seq > ``after_seq``; at most ``limit`` (1..500) turns."""
        if not 1 <= limit <= MOST_TURNS_A_READ:
            raise InvalidInputError(f"limit must be from 1 to {MOST_TURNS_A_READ}", field="limit")
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            entries: Any = await self._client.xrange(keys.turns, min=f"{after_seq + 1}-0", count=limit)
        return [stored_turn(entry_id, fields) for entry_id, fields in entries]

    async def erase(self, tenant: str, session: str) -> ErasedSession:
        """Removes the session from Redis; appends get ``GoneError`` until it is opened anew. Twice is harmless.

        ``NotFoundError`` (session_not_found): there never was one, or its tombstone has ended.
        """
        keys = SessionKeys.of(tenant, session)
        tombstone_ms = self._defaults.retention_ms + limits.milliseconds(limits.TOMBSTONE_EXTRA)
        reply = await self._run("erase_session", keys, [self._now, keys.label, tombstone_ms, ""])
        if reply[0] == b"unknown":
            raise _not_found(session)
        with redis_failures():
            left = await self._client.exists(*keys.erasable())
        if reply[0] == b"erased":
            return ErasedSession(session, "", 0, left)
        return ErasedSession(session, reply[1].decode(), reply[2], left)

    async def expire(self, ref: SessionRef) -> bool:
        """Removes a session whose time has come; False: it lives on. An append may begin it anew.

        True also when it is gone already: then its vectors may be left, and ``end_expiry`` has not been called.
        """
        keys = SessionKeys.of(ref.tenant, ref.session)
        tombstone_ms = self._defaults.retention_ms + limits.milliseconds(limits.TOMBSTONE_EXTRA)
        reply = await self._run("erase_session", keys, [self._now, keys.label, tombstone_ms, ref.incarnation])
        return bool(reply[0] != b"alive")

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

    async def abandon_build(self, ticket: BuildTicket, reason: str, retry_after_ms: int) -> None:
        """Ends the lease; the session is due again after ``retry_after_ms``, and shows ``reason`` until then."""
        await self._hold(ticket, "abandon", retry_after_ms, reason)

    async def _hold(self, ticket: BuildTicket, action: str, ms: int, reason: str) -> bool:
        keys = SessionKeys.of(ticket.ref.tenant, ticket.ref.session)
        args = [self._now, keys.label, ticket.ref.incarnation, ticket.epoch, action, ms, reason]
        return bool(await self._run("hold_build", keys, args))

    async def due(self, partition: int, now_ms: int, limit: int) -> list[DueItem]:
        """Entries of one partition whose time has come; ``due_sets.due`` asks all at once."""
        return await self.due_sets.due(now_ms, limit, (partition,))

    async def embedded_to(self, ref: SessionRef, collection: str) -> int:
        """Seq up to which the session is embedded in this collection; 0 when another embedder did it."""
        keys = SessionKeys.of(ref.tenant, ref.session)
        with redis_failures():
            found: list[Any] = await self._client.hmget(keys.meta, ("incarnation", "embedded"))
        incarnation, stored = found
        if incarnation is None or incarnation.decode() != ref.incarnation or not stored:
            return 0
        seq, name = stored.decode().split(" ", 1)
        return int(seq) if name == collection else 0

    async def mark_embedded(self, ref: SessionRef, upto_seq: int, collection: str) -> bool:
        """Notes that the turns up to ``upto_seq`` are embedded; False: this life is over, undo the upsert."""
        keys = SessionKeys.of(ref.tenant, ref.session)
        grace_ms = self._defaults.embed_grace_ms
        args = [self._now, keys.label, ref.incarnation, upto_seq, collection, grace_ms]
        return bool(await self._run("mark_embedded", keys, args))


def _not_found(session: str) -> NotFoundError:
    return NotFoundError(f"there is no session {session!r}", code="session_not_found")


def _given(options: SessionOptions) -> dict[str, str | bytes | int]:
    given: dict[str, str | bytes | int] = {}
    for name in ("user", "model", "metadata"):
        value = getattr(options, name)
        if value is not None:
            given[name] = value
    if options.hard_limit_tokens is not None:
        given["hard"] = options.hard_limit_tokens
    if options.soft_ratio is not None:
        given["ratio"] = round(options.soft_ratio * 1000)
    if options.keep_recent_turns is not None:
        given["keep"] = options.keep_recent_turns
    if options.system is not None:
        given["system"] = orjson.dumps(options.system)[1:-1]
        given["systok"] = options.system_tokens
    if options.tools is not None:
        given["tools"] = options.tools
        given["tooltok"] = options.tools_tokens
    return given


@asynccontextmanager
async def connect_sessions(
    url: str, *, max_connections: int = 64, defaults: Defaults | None = None
) -> AsyncIterator[Sessions]:
    """``Sessions`` on the Redis of ``url`` (``redis://…`` or ``unix:///path``); the connections are closed at the end."""
    async with connect(url, max_connections=max_connections) as client, connect_hot(url) as hot:
        yield Sessions(client, hot=hot, defaults=defaults)
