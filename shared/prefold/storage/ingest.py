"""Turns that backends publish by ``XADD``: one stream a tenant, read by one reader at a time.

Nothing is assigned to a reader: an entry is in the stream until its turn is stored, and a reader begins at the first
one. So a crash anywhere repeats entries, which the append script knows by their ids, and loses none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.command_logs import CommandLogs
from prefold.storage.keys import TenantKeys, tenant_of
from prefold.storage.routing import check_reach, is_out_of_reach
from prefold.storage.scripts import script

__all__ = ["IngestEntry", "IngestStreams", "LeaseHeld", "Waiting", "is_wrong_type"]

_LOOKED_AT = 500
"""Entries of one step of an erasure."""
_IDS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class IngestEntry:
    """One entry as it stands in the stream."""

    id: str
    size_bytes: int
    """Of all its names and values."""
    session: bytes
    """Its last field of that name, if that may be a name; else empty."""
    fields: tuple[tuple[bytes, bytes], ...]
    """In order, doubled ones too; empty when the entry is larger than the reader asked for."""


@dataclass(frozen=True, slots=True)
class LeaseHeld:
    """Another reader has the stream."""

    for_ms: int
    """Unless it takes more."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What stands in a tenant's stream."""

    tenant: str
    entries: int
    oldest_ms: int
    """When the oldest was published, by the clock of the stream's server; 0 without any."""
    is_stream: bool = True
    """False: the key is of another type, and nothing is read from it before somebody removes it."""


class IngestStreams:
    """The ingest streams of tenants. Every call may raise ``UnavailableError``.

    Others write the keys of streams, so that one may be of another type: it then holds no entry, and concerns its tenant
    alone.
    """

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._logs = CommandLogs(client)

    async def lengths(self, tenants: Sequence[str]) -> list[int | None]:
        """Entries that wait, a tenant each; 0 too for streams on a server of a cluster that is away, unless all are.

        None: the key is no stream.
        """
        if not tenants:
            return []
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for tenant in tenants:
                    pipe.xlen(TenantKeys.of(tenant).ingest)
                replies: list[Any] = await pipe.execute(raise_on_error=False)
            check_reach(replies)
        return [0 if is_out_of_reach(one) else _checked(one) for one in replies]

    async def waiting(self, tenants: Sequence[str]) -> list[Waiting]:
        """What stands in each stream now, for whoever watches."""
        lengths = await self.lengths(tenants)
        if not tenants:
            return []
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for tenant in tenants:
                    pipe.xrange(TenantKeys.of(tenant).ingest, count=1)
                first: list[Any] = await pipe.execute(raise_on_error=False)
        oldest = [int(one[0][0].split(b"-")[0]) if isinstance(one, list) and one else 0 for one in first]
        return [
            Waiting(tenant, length or 0, since_ms, is_stream=length is not None)
            for tenant, length, since_ms in zip(tenants, lengths, oldest, strict=True)
        ]

    async def tenants(self) -> list[str]:
        """Of whose stream or dead letters anything is there, whether or not somebody reads it. Walks through all keys."""
        with redis_failures():
            keys = self._client.scan_iter(match=TenantKeys.with_ingest(), count=1_000)
            return sorted({tenant_of(key.decode()) async for key in keys})

    async def take(
        self,
        tenant: str,
        owner: str,
        *,
        after: str = "",
        count: int,
        most_bytes: int,
        most_entry_bytes: int,
        lease: timedelta,
    ) -> list[IngestEntry] | LeaseHeld:
        """Takes the lease, or keeps it, and gives the entries behind ``after``; they stay in the stream."""
        keys = TenantKeys.of(tenant)
        used_ms = limits.milliseconds(limits.INGEST_USED)
        args = (owner, limits.milliseconds(lease), after, count, most_bytes, most_entry_bytes, used_ms)
        reply = await self._run("take_ingest", (keys.ingest, keys.ingest_lease, keys.ingest_used), args)
        if reply and reply[0] == b"held":
            return LeaseHeld(int(reply[1]))
        return [_entry(*one) for one in reply]

    async def give_back(self, tenant: str, owner: str) -> None:
        """Ends the lease, if it is the owner's."""
        keys = TenantKeys.of(tenant)
        given = (keys.ingest, keys.ingest_lease, keys.ingest_used)
        await self._run("take_ingest", given, [owner, 0, "", 0, 0, 0, 0])

    async def was_used(self, tenant: str) -> bool:
        """Whether the files of the stream's server may hold words that were published on it."""
        keys = TenantKeys.of(tenant)
        with redis_failures():
            return bool(await self._client.exists(keys.ingest, keys.ingest_used))

    async def drop(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Takes out entries whose turns are stored. Twice is harmless."""
        for start in range(0, len(entry_ids), _IDS_AT_ONCE):
            part = entry_ids[start : start + _IDS_AT_ONCE]
            await self._run("drop_ingest", (TenantKeys.of(tenant).ingest,), part)

    async def forget(self, tenant: str, session: str, *, before_ms: int | None = None) -> int:
        """Removes what waits for an erased session, and what the server's log of slow commands quotes; how many entries.

        What is published from now on (or later than ``before_ms``) stays: it may be for a new life of the session.
        """
        removed = await self._look(tenant, session, remove=True, upto="" if before_ms is None else str(before_ms))
        await self._logs.forget(TenantKeys.of(tenant).ingest)
        return removed

    async def count(self, tenant: str, session: str) -> int:
        """Entries that wait for the session."""
        return await self._look(tenant, session, remove=False)

    async def _look(self, tenant: str, session: str, *, remove: bool, upto: bytes | str = "") -> int:
        keys, total = (TenantKeys.of(tenant).ingest,), 0
        after: bytes | str = ""
        while True:
            args: list[str | bytes | int] = [session, after, upto, _LOOKED_AT, int(remove)]
            try:
                found, after, upto = await self._run("forget_waiting", keys, args)
            except ResponseError as error:
                if is_wrong_type(error):
                    return total
                raise
            total += int(found)
            if not after:
                return total

    async def _run(self, name: str, keys: Sequence[str], args: Sequence[str | bytes | int]) -> Any:
        with redis_failures():
            return await script(name).run(self._client, keys, args)


def _entry(entry_id: bytes, size: int, session: bytes, flat: Sequence[bytes]) -> IngestEntry:
    return IngestEntry(entry_id.decode(), size, session, tuple(zip(flat[::2], flat[1::2], strict=True)))


def is_wrong_type(reply: object) -> bool:
    """Whether Redis refuses a command for what the key holds."""
    return isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE")


def _checked(reply: Any) -> int | None:
    if is_wrong_type(reply):
        return None
    if isinstance(reply, Exception):
        with redis_failures():
            raise reply
    return int(reply)
