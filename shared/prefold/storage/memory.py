"""What is remembered of a session: its pinned state, the marks of the memory workers, its end, records of its contexts."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from prefold.conversation.encoding import orjson
from prefold.errors import ConflictError, InvalidInputError
from prefold.storage import limits
from prefold.storage.append import changing
from prefold.storage.branching import BranchingSessions
from prefold.storage.changes import not_found
from prefold.storage.client import redis_failures
from prefold.storage.hot import HotClient
from prefold.storage.keys import SessionKeys, record_keys
from prefold.storage.memory_types import MemoryOutcome, MemoryTicket, SessionDigest, StoredState, spans_of
from prefold.storage.scripts import script
from prefold.storage.state import SessionState, proposals_of
from prefold.storage.types import SessionRef, SessionView

__all__ = ["RememberingSessions"]

_STATE_FIELDS = ("state", "pinned", "state_version", "state_cap", "proposals", "user")
_OUTCOMES: dict[str, MemoryOutcome] = {"ended": "ended", "gone": "gone", "changed": "changed"}


class RememberingSessions(BranchingSessions):
    """Calls about what stands beside the log."""

    async def read_state(self, tenant: str, session: str) -> StoredState:
        """The pinned state: ``NotFoundError`` (session_not_found), ``GoneError``."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            fields: Any = await self._client.hmget(keys.meta, _STATE_FIELDS)
        packed, body, version, cap, proposals, user = fields
        if packed is None:
            raise await self._missing(keys, session)
        state = SessionState.unpack(packed)
        return StoredState(
            ref=SessionRef(tenant, session, state.incarnation),
            version=int(version or 0),
            body=body or b"",
            tokens=state.pintok,
            cap_tokens=int(cap or limits.STATE_CAP_TOKENS),
            proposals=proposals_of(proposals),
            user=(user or b"").decode(),
        )

    async def put_state(
        self,
        tenant: str,
        session: str,
        *,
        expected_version: int,
        body: bytes,
        tokens: int,
        incarnation: str = "",
        forgets: bool = False,
    ) -> StoredState:
        """Replaces the pinned state; an empty ``body`` takes it away. ``tokens`` (raw) count within the limit.

        ``ConflictError`` (version_conflict): another version is there than the expected one, 0 for none yet.
        ``InvalidInputError`` (no_room): the conversation would be left too little of the limit. With ``incarnation``
        only that life of the session is written to: ``NotFoundError`` when it is over. ``forgets``: the write takes
        something away, so it is done even when the store is full.
        """
        keys = SessionKeys.of(tenant, session)
        args = [self._now, keys.label, expected_version, body, tokens, incarnation]
        reply = await self._run("cut_state" if forgets else "put_state", keys, args)
        verdict = reply[0].decode()
        if verdict == "none" and incarnation:
            raise not_found(session)
        if verdict in ("none", "gone"):
            raise await self._missing(keys, session)
        if verdict == "changing":
            raise changing()
        if verdict == "conflict":
            raise ConflictError(f"the state has version {reply[1]} now", code="version_conflict")
        if verdict == "no_room":
            raise InvalidInputError(
                f"the state may take {reply[1]} tokens of this session's limit", code="no_room", field="state"
            )
        return await self.read_state(tenant, session)

    async def ask_close(self, tenant: str, session: str) -> SessionView:
        """Asks the memory workers to close the session at once. Twice is harmless; a turn that comes opens it again."""
        keys = SessionKeys.of(tenant, session)
        reply = await self._run("close_session", keys, [self._now, keys.label])
        if reply[0] == b"changing":
            raise changing()
        return await self.view(tenant, session)  # raises for one that is not there

    async def begin_memory(self, ref: SessionRef, *, lease_ms: int) -> MemoryTicket | str:
        """Leave to take out of the log what is worth remembering, or why not: gone, none, busy, later."""
        keys = SessionKeys.of(ref.tenant, ref.session)
        reply = await self._run("begin_memory", keys, [self._now, keys.label, ref.incarnation, lease_ms])
        verdict = str(reply[0].decode())
        return _ticket(ref, reply[1:], lease_ms) if verdict == "ok" else verdict

    async def end_memory(
        self, ticket: MemoryTicket, *, upto: int, closed: bool, retry_after_ms: int = 0
    ) -> MemoryOutcome:
        """Notes that turns up to ``upto`` are remembered and the ticket's ``forget`` is done; ends the lease.

        With ``retry_after_ms`` nothing is noted, and the session is due again then. ``changed``: turns changed since
        the ticket was given, nothing is noted, and the session is due at once.
        """
        what = "retry" if retry_after_ms else "end"
        return await self._end(ticket, what, retry_after_ms, (upto, int(closed), ticket.head_seq))

    async def renew_memory(self, ticket: MemoryTicket) -> MemoryOutcome:
        """Lengthens the lease by its length from now; anything but ``ended``: stop, as after ``end_memory``."""
        return await self._end(ticket, "renew", ticket.lease_ms, ())

    async def _end(self, ticket: MemoryTicket, what: str, ms: int, rest: Sequence[int]) -> MemoryOutcome:
        keys = SessionKeys.of(ticket.ref.tenant, ticket.ref.session)
        args = [self._now, keys.label, ticket.ref.incarnation, ticket.changes, what, ms, *rest]
        reply = await self._run("end_memory", keys, args)
        return _OUTCOMES[reply.decode()]

    async def keep_digest(self, ticket: MemoryTicket, digest: SessionDigest) -> bool:
        """Keeps the session's own summary; False: this life is over, or turns changed since the ticket."""
        keys = SessionKeys.of(ticket.ref.tenant, ticket.ref.session)
        body = b"%d %s" % (digest.upto, orjson.dumps(asdict(digest)))
        args = [self._now, keys.label, ticket.ref.incarnation, ticket.changes, body]
        return bool(await self._run("keep_digest", keys, args))

    async def read_digest(self, tenant: str, session: str) -> SessionDigest | None:
        """What the session came to when it closed; None: it never did, or a turn of it changed since."""
        with redis_failures():
            body: Any = await self._client.hget(SessionKeys.of(tenant, session).meta, "digest")
        return SessionDigest(**orjson.loads(body.split(b" ", 1)[1])) if body else None

    async def note_context(self, ref: SessionRef, record: bytes) -> None:
        """Keeps the record of a context that was served, as long as this life of the session lives."""
        keys = SessionKeys.of(ref.tenant, ref.session)
        ends_ms = limits.milliseconds(limits.CONTEXTS_END)
        args: list[str | bytes | int] = [ref.incarnation, record, limits.CONTEXTS_KEPT, ends_ms]
        with redis_failures():
            await script("note_context").run(self._hot or self._client, (keys.meta, keys.contexts), args)

    async def note_contexts(self, noted: Sequence[tuple[SessionRef, bytes]]) -> None:
        """The same of several records, in one round trip where there is one server. Raises for the first that is refused."""
        hot, one = self._hot, script("note_context")
        if not isinstance(hot, HotClient) or len(noted) == 1:
            for ref, record in noted:
                await self.note_context(ref, record)
            return
        calls, ends_ms = [], limits.milliseconds(limits.CONTEXTS_END)
        for ref, record in noted:
            meta, contexts = record_keys(ref.tenant, ref.session)
            calls.append(
                ("EVALSHA", one.sha, 2, meta, contexts, ref.incarnation, record, limits.CONTEXTS_KEPT, ends_ms)
            )
        with redis_failures():
            replies = await hot.exchange(calls)
        for (ref, record), reply in zip(noted, replies, strict=True):
            if isinstance(reply, Exception):
                await self.note_context(ref, record)

    async def read_contexts(self, tenant: str, session: str, limit: int) -> list[bytes]:
        """Records of the last contexts, the newest first: ``NotFoundError`` (session_not_found), ``GoneError``."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hexists(keys.meta, "state")
                pipe.lrange(keys.contexts, 0, limit - 1)
                exists, records = await pipe.execute()
        if not exists:
            raise await self._missing(keys, session)
        return list(records)

    async def erased_user(self, ref: SessionRef) -> str | None:
        """Of whom an erased life was, until nothing is left of it; None: nobody's, or it ended by its age."""
        tomb = SessionKeys.of(ref.tenant, ref.session).tomb
        with redis_failures():
            user: Any = await self._client.hget(tomb, f"user:{ref.incarnation}")
        return user.decode() if user else None

    async def has_aged(self, ref: SessionRef) -> bool:
        """Whether a user's life ended by its age, until nothing is left of it: what was learnt of it is still theirs."""
        tomb = SessionKeys.of(ref.tenant, ref.session).tomb
        with redis_failures():
            found: Any = await self._client.hexists(tomb, f"aged:{ref.incarnation}")
        return bool(found)

    async def unlist(self, ref: SessionRef) -> None:
        """Nothing is left of this life: its user's list names the session no more, unless it is the user's again."""
        names = (f"user:{ref.incarnation}", f"aged:{ref.incarnation}")
        with redis_failures():
            found: Any = await self._client.hmget(SessionKeys.of(ref.tenant, ref.session).tomb, names)
        for user in {one.decode() for one in found if one}:
            await self._unlist(ref.tenant, ref.session, user)


def _ticket(ref: SessionRef, reply: Sequence[Any], lease_ms: int) -> MemoryTicket:
    user, remembered, upto, head, closing, forget, changes, epoch, hard, calibration, spoken, first, copied = reply
    copied_to, copied_at_ms = map(int, (copied or b"0 0").split())
    return MemoryTicket(
        ref=ref,
        user=user.decode(),
        remembered_to=remembered,
        upto=upto,
        head_seq=head,
        closing=bool(closing),
        forget=spans_of(forget),
        changes=changes,
        epoch=epoch,
        lease_ms=lease_ms,
        hard_limit_tokens=hard,
        calibration=calibration / 1000,
        spoken_at_ms=spoken,
        first_user_seq=first,
        copied_to=copied_to,
        copied_at_ms=copied_at_ms,
    )
