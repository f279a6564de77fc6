"""What names a session beside its own keys: events, due entries, and the slow log of the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from prefold.storage.client import redis_failures
from prefold.storage.command_logs import CommandLogs
from prefold.storage.events import GROUP
from prefold.storage.keys import SessionKeys
from prefold.storage.scripts import script

__all__ = ["SessionTraces", "Traces"]

_PAGE = 1_000
_END = b"end:"
"""Before the name of a life that is over, in the tombstone."""
_STANDING = ("expire",)
"""Kinds of due entries that an erasure leaves: they make a worker look again."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What a look found of the lives of a session that are over."""

    keys: int
    """The session's own, its tombstone apart."""
    events: int
    due: int
    """Due entries, but for the one that makes a worker look again."""
    logged_commands: int | None
    """Commands with its keys, and so perhaps its words, in the server's log of slow commands. None: not allowed to look."""
    is_reopened: bool
    """A new life has begun: what belongs to it does not count."""


class SessionTraces:
    """Finds and removes them. Both are safe to repeat, and touch no life that has begun since."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._logs = CommandLogs(client)

    async def ended(self, tenant: str, session: str) -> list[str]:
        """Lives that are over and that no worker has followed up to the end, the newest last."""
        reply: Any = self._client.hgetall(SessionKeys.of(tenant, session).tomb)
        with redis_failures():
            stored: dict[bytes, bytes] = await reply
        ends = {name[len(_END) :].decode(): int(at) for name, at in stored.items() if name.startswith(_END)}
        return sorted(ends, key=lambda life: ends[life])

    async def remove(self, tenant: str, session: str) -> None:
        """Removes events (acknowledged too), due entries and logged commands of every life that is over."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            # What is read before the living one is known cannot be of a life that begins after that.
            events, due = await self._events(keys), await self._due(keys)
            living = await self._living(keys)
            for page in _pages([entry_id for entry_id, life in events if life != living]):
                await script("forget_events").run(self._client, (keys.events,), (GROUP, *page))
            over = [member for member, life in due if life != living]
            if over:
                await self._client.zrem(keys.due, *over)
        await self._logs.forget(keys.meta)

    async def look(self, tenant: str, session: str) -> Traces:
        """What is there now."""
        keys = SessionKeys.of(tenant, session)
        with redis_failures():
            events, due = await self._events(keys), await self._due(keys)
            logged = await self._logs.count(keys.meta)
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hget(keys.meta, "incarnation")
                pipe.exists(*keys.erasable())
                found, existing = await pipe.execute()
        living = _text(found)
        return Traces(
            keys=0 if living else existing,
            events=sum(life != living for _, life in events),
            due=sum(life != living for _, life in due),
            logged_commands=logged,
            is_reopened=bool(living),
        )

    async def _living(self, keys: SessionKeys) -> str:
        reply: Any = self._client.hget(keys.meta, "incarnation")
        return _text(await reply)

    async def _events(self, keys: SessionKeys) -> list[tuple[bytes, str]]:
        """Entries of the partition's stream that name the session, each with its life."""
        found, after = [], "-"
        while True:
            page: Any = await self._client.xrange(keys.events, min=after, count=_PAGE)
            for entry_id, fields in page:
                for value in fields.values():
                    if value.startswith(f"{keys.label}:".encode()):
                        found.append((entry_id, value.split(b" ", 1)[0].rpartition(b":")[2].decode()))
                        break
            if len(page) < _PAGE:
                return found
            after = f"({page[-1][0].decode()}"

    async def _due(self, keys: SessionKeys) -> list[tuple[bytes, str]]:
        """Due entries that name the session, each with its life."""
        found = []
        async for member, _ in self._client.zscan_iter(keys.due, match=f"*:{keys.label}:*", count=_PAGE):
            kind, life = member.decode().split(":", 1)
            if kind not in _STANDING and life.startswith(f"{keys.label}:"):
                found.append((member, life.rpartition(":")[2]))
        return found


def _pages(entry_ids: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [entry_ids[start : start + _PAGE] for start in range(0, len(entry_ids), _PAGE)]


def _text(value: bytes | None) -> str:
    return value.decode() if value else ""
