"""Work that is not asked for any more: it killed its workers, or failed for good, at each of its starts.

The letters lie with the sessions, not with the queue: losing the queue must not bring poison back, an erasure has to
find them, and the script that sets work aside checks in the same step that this life of the session is not over. They
carry names and numbers, never words of a conversation.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version as installed_version

import orjson
from redis.asyncio import Redis

from prefold.jobs.names import WorkKind
from prefold.storage import aside, limits
from prefold.storage.restoring import restore_due
from prefold.storage.types import SessionRef, SessionView

MOST_STARTS = 3
"""After so many starts without a good end work is set aside."""
WORKER_DIED = "worker_died"
"""Reason of work that none of its workers survived."""
_MORE_TURNS_SHARE = 4
_MORE_TURNS_LEAST = 8


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One piece of work that was set aside."""

    at_ms: int
    """When it was set aside. First in the record: a script reads it there."""
    kind: WorkKind
    tenant: str
    session: str
    incarnation: str
    reason: str
    """``worker_died``, an error's code, or the type of an error and the place that raised it."""
    starts: int
    first_ms: int
    """Its first start that counted."""
    from_seq: int
    to_seq: int
    """The turns that were to be worked on; both 0 when that life of the session was over."""
    version: str
    """Of the Prefold that it failed with."""
    state: str
    """What may help when it changes: changes of turns, limit, turns to keep."""

    @property
    def ref(self) -> SessionRef:
        return SessionRef(self.tenant, self.session, self.incarnation)

    def encode(self) -> bytes:
        """One JSON object, ``at_ms`` first."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, record: bytes) -> "DeadLetter":
        """Inverse of ``encode``; members of later versions are passed over."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in orjson.loads(record).items() if name in known})

    def has_moved_on(self, view: SessionView | None, version: str, now_ms: int) -> bool:
        """Whether another try may end otherwise: turns were changed, the limits too, or Prefold itself.

        A summary that was refused may become a good one with more turns: a quarter more, so that tries grow rare.
        The end of a session is tried again after a while. ``view``: None when this life of the session is over.
        """
        if version != self.version:
            return True
        if self.kind == "expire":
            return now_ms >= self.at_ms + limits.milliseconds(limits.EXPIRY_AGAIN)
        if view is None:
            return False
        if self.kind == "compact" and self.reason != WORKER_DIED:
            more = max(self.to_seq // _MORE_TURNS_SHARE, _MORE_TURNS_LEAST)
            if view.head_seq >= self.to_seq + more:
                return True
        return self.state != state_of(view)


def state_of(view: SessionView) -> str:
    """What of a session may help when it changes."""
    return f"{view.changes} {view.hard_limit_tokens} {view.keep_recent_turns}"


@cache
def running_version() -> str:
    """The version of Prefold that runs."""
    return installed_version("prefold")


class DeadLetters:
    """The list of all tenants, on the sessions' Redis. Every call may raise ``UnavailableError``.

    At most ``limits.MOST_ASIDE`` letters a partition, each kept for ``limits.ASIDE_KEPT``.
    """

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def set_aside(self, letter: DeadLetter) -> bool:
        """Keeps the letter and takes its work out of ``due``; False: this life of the session is over. Twice is harmless."""
        return await aside.put_aside(self._client, letter.kind, letter.ref, letter.encode())

    async def take_out_again(self, letter: DeadLetter) -> None:
        """Something asked for the work although it is set aside: its due entry goes, unless it was replayed meanwhile."""
        await aside.take_out_again(self._client, letter.kind, letter.ref)

    async def find(self, kind: WorkKind, refs: Sequence[SessionRef]) -> list[DeadLetter | None]:
        """The letter of each, None where there is none."""
        records = await aside.records_of(self._client, kind, refs)
        return [DeadLetter.decode(record) if record else None for record in records]

    async def letters(
        self, *, tenant: str | None = None, session: str | None = None, kind: WorkKind | None = None
    ) -> list[DeadLetter]:
        """All letters, or those of a tenant, a session, a kind; the oldest first."""
        if tenant is not None and session is not None:
            records = await aside.records_of_session(self._client, tenant, session)
        else:
            records = await aside.all_records(self._client)
        letters = [DeadLetter.decode(record) for record in records]
        wanted = {"tenant": tenant, "session": session, "kind": kind}
        chosen = [one for one in letters if all(v in (None, getattr(one, name)) for name, v in wanted.items())]
        return sorted(chosen, key=lambda one: (one.at_ms, one.tenant, one.session, one.kind))

    async def release(self, letter: DeadLetter) -> None:
        """The letter goes and its work is due again, at once, if there still is any. Twice is harmless."""
        released = (f"{letter.kind}:{letter.incarnation}",)
        await restore_due(self._client, letter.tenant, letter.session, version=running_version(), released=released)

    async def remove(self, letter: DeadLetter) -> bool:
        """The letter goes; its work stays out of ``due`` until something asks for it. False: it was gone."""
        return await aside.remove_record(self._client, letter.kind, letter.ref)

    async def count(self, tenant: str, session: str) -> int:
        """Letters of all lives of the session."""
        return len(await aside.records_of_session(self._client, tenant, session))

    async def erase(self, tenant: str, session: str) -> int:
        """Removes the letters of all lives of the session; how many they were. Their work stays out of ``due``."""
        return await aside.forget_aside(self._client, tenant, session)
