"""Reading sessions, and running their scripts: what every other call stands on."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from redis.asyncio import Redis

from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError
from prefold.storage.append import Defaults
from prefold.storage.build_times import BuildLeads, BuildTimes
from prefold.storage.changes import not_found
from prefold.storage.client import redis_failures
from prefold.storage.due import DueSets
from prefold.storage.events import TurnEvents
from prefold.storage.hot import Argument, HotClient, Waiting
from prefold.storage.keys import SessionKeys, read_keys
from prefold.storage.lean import Lean
from prefold.storage.log import stored_turn
from prefold.storage.replicated import ReplicatedWrites
from prefold.storage.scripts import script
from prefold.storage.spending import Spending
from prefold.storage.state import (
    CONTEXT_FIELDS,
    STANDBY_FIELDS,
    VIEW_FIELDS,
    SessionState,
    context_of,
    record_of,
    view_of,
)
from prefold.storage.types import ActiveView, SessionView, StoredContext, StoredTurn
from prefold.storage.users import Users

__all__ = ["MOST_TURNS_A_READ", "StoredSessions"]

MOST_TURNS_A_READ = 500
_STAGES = {"change_log", "erase_session"}
"""Scripts that touch staged copies too."""


class StoredSessions:
    """Sessions as they stand. Raises ``UnavailableError`` or ``OverloadedError`` when Redis does not take a call.

    ``now_ms`` replaces Redis's own clock in every script; it is there for tests of time.
    """

    def __init__(
        self,
        client: Redis,
        *,
        hot: Lean | None = None,
        replicated: ReplicatedWrites | None = None,
        defaults: Defaults | None = None,
        now_ms: int | None = None,
        leads: BuildLeads | None = None,
    ) -> None:
        self._client = client
        self._hot = hot
        self.replicated = replicated
        self._defaults = defaults or Defaults()
        self.now_ms = now_ms
        self.leads = leads
        """How long builds take, by tenant; None: as the defaults say."""
        self.build_times = BuildTimes(client)
        self.spending = Spending(client)
        self.events = TurnEvents(client)
        self.due_sets = DueSets(client)

    @cached_property
    def users(self) -> Users:
        """What is known of users, on the same servers."""
        return Users(self._client, self._hot)

    @property
    def client(self) -> Redis:
        """The connection, for health checks."""
        return self._client

    async def _run(self, name: str, keys: SessionKeys, args: Sequence[str | bytes | int]) -> Any:
        with redis_failures():
            given = keys.change_keys() if name in _STAGES else keys.script_keys()
            waits = self.replicated if self.replicated and self.replicated.needed else None
            return await script(name).run(waits or self._hot or self._client, given, args)

    @property
    def connections_made(self) -> int:
        """Rises when a connection to the server is made anew: behind it may be another server, or other settings."""
        own = self._hot.connections_made if self._hot else 0
        return own + (self.replicated.connections_made if self.replicated else 0)

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
                "keep_segment",
                "mark_embedded",
                "begin_memory",
                "end_memory",
                "put_state",
                "note_context",
                "erase_session",
                "change_log",
            ):
                await self._client.script_load(script(name).source)

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
            return tuple(await self._hot.execute(*_snapshot_commands(keys)))
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.get(keys.context)
            pipe.hmget(keys.meta, CONTEXT_FIELDS)
            return tuple(await pipe.execute())

    def start_read(self, tenant: str, session: str, waiting: Waiting, *, user: str = "", begin: int = 0) -> bool:
        """``read_context`` without a task, and with ``user`` that user's profile in the same round trip.

        ``begin``: where in the context string to begin, for a caller who knows what is before it. ``waiting`` gets what
        ``finish_read`` takes. False: nothing was sent, only the long way is open.
        """
        direct = self._direct
        if direct is None:
            return False
        context, meta = read_keys(tenant, session)
        packed = _packed_snapshot(context, meta, begin)
        if not user:
            return direct.start_packed(waiting, packed, 4)
        _, profile = Users.profile_command(tenant, user)
        return direct.start_packed(waiting, packed + b"*2\r\n" + _bulk(b"GET") + _bulk(profile.encode()), 5)

    def finish_read(
        self, tenant: str, session: str, replies: Sequence[Any], begin: int = 0
    ) -> tuple[StoredContext, Any] | None:
        """The snapshot and the stored profile; None: the long way tells why there is none.

        Whether what was known before ``begin`` holds still, its life and version say.
        """
        snapshot, profile = replies[3], replies[4] if len(replies) > 4 else None
        if not isinstance(snapshot, list) or isinstance(profile, Exception):
            return None
        body, meta = snapshot
        if not isinstance(body, bytes) or not isinstance(meta, list) or meta[0] is None:
            return None
        return context_of(tenant, session, body, meta, begin), profile

    @property
    def _direct(self) -> HotClient | None:
        """The lean connection, where there is one server."""
        return self._hot if isinstance(self._hot, HotClient) else None

    async def view(self, tenant: str, session: str) -> SessionView:
        """What there is to say about the session: ``NotFoundError`` (session_not_found), ``GoneError``."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hmget(keys.meta, VIEW_FIELDS)
                pipe.hmget(keys.standby, STANDBY_FIELDS)
                pipe.time()
                meta, standby, (seconds, micros) = await pipe.execute()
        if meta[0] is None:
            raise await self._missing(keys, session)
        now_ms = self.now_ms if self.now_ms is not None else seconds * 1000 + micros // 1000
        found = view_of(tenant, session, meta, standby, now_ms)
        return replace(found, active=await self._active(keys, found, meta[0])) if found.covers_to else found

    async def _active(self, keys: SessionKeys, view: SessionView, packed: bytes) -> ActiveView | None:
        """The summary that stands in the context; None when it has just been replaced."""
        with redis_failures():
            body: Any = await self._client.hget(keys.summaries, str(SessionState.unpack(packed).sver))
        return ActiveView(view.covers_to, record_of(body)) if body else None

    async def _missing(self, keys: SessionKeys, session: str) -> NotFoundError | GoneError:
        with redis_failures():
            erased = await self._client.hget(keys.tomb, "erased")
        return GoneError("the session was erased; PUT it to create it anew") if erased else not_found(session)

    async def _unlist(self, tenant: str, session: str, user: str) -> None:
        """The user's list names the session no more, unless it is the user's."""
        await self.users.drop_session(tenant, user, session)
        with suppress(NotFoundError, GoneError):  # whoever opens it after this look notes it again after that
            if (await self.view(tenant, session)).user == user:
                await self.users.note_session(tenant, user, session)

    async def read_turns(self, tenant: str, session: str, after_seq: int, limit: int) -> list[StoredTurn]:
        """The verbatim log, ascending, seq > ``after_seq``; at most ``limit`` (1..500) turns."""
        if not 1 <= limit <= MOST_TURNS_A_READ:
            raise InvalidInputError(f"limit must be from 1 to {MOST_TURNS_A_READ}", field="limit")
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            entries: Any = await self._client.xrange(keys.turns, min=f"{after_seq + 1}-0", count=limit)
        return [stored_turn(entry_id, fields) for entry_id, fields in entries]

    async def find_turn(self, tenant: str, session: str, turn_id: str) -> StoredTurn:
        """The turn of that id: ``NotFoundError`` (session_not_found, turn_not_found), ``ConflictError`` (turn_rewound)."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hget(keys.meta, "state")
                pipe.hget(keys.ids, f"t:{turn_id}")
                state, stored = await pipe.execute()
        if state is None:
            raise await self._missing(keys, session)
        if stored is None:
            raise NotFoundError(f"there is no turn {turn_id!r}", code="turn_not_found")
        seq = int(stored.lstrip(b"d").split(b" ", 1)[0])
        found = await self.read_turns(tenant, session, seq - 1, 1)
        if not found or found[0].seq != seq:
            raise ConflictError(f"turn {turn_id!r} was taken back by a rewind", code="turn_rewound")
        return found[0]


def _snapshot_commands(keys: SessionKeys) -> Sequence[Sequence[Argument]]:
    return ("MULTI",), ("GET", keys.context), ("HMGET", keys.meta, *CONTEXT_FIELDS), ("EXEC",)


def _packed_snapshot(context: bytes, meta: bytes, begin: int) -> bytes:
    """The same as it goes over the wire; with ``begin``, of what follows so many bytes."""
    at = b"%d" % begin
    read = b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(context), context)
    if begin:
        read = b"*4\r\n$8\r\nGETRANGE\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$2\r\n-1\r\n" % (len(context), context, len(at), at)
    return b"".join(
        (_MULTI, read, b"*%d\r\n$5\r\nHMGET\r\n$%d\r\n" % (2 + len(CONTEXT_FIELDS), len(meta)), meta, _REST)
    )


def _bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


_MULTI = b"*1\r\n" + _bulk(b"MULTI")
_REST = b"\r\n" + b"".join(_bulk(name.encode()) for name in CONTEXT_FIELDS) + b"*1\r\n" + _bulk(b"EXEC")
