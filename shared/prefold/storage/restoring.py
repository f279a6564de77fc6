"""The ``due`` sets made again out of the sessions' own state: losing one costs time, never work."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

from redis.asyncio import Redis

from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.cluster import servers_of
from prefold.storage.keys import OF_SESSIONS, PartitionKeys, SessionKeys, session_of
from prefold.storage.scripts import script

__all__ = ["restore_due", "sessions_in_pages"]


async def restore_due(client: Redis, tenant: str, session: str, *, version: str, released: Iterable[str] = ()) -> int:
    """Adds the due entries that the session's state calls for and that are missing; how many that were.

    What was set aside with this ``version`` of Prefold stays out, but for ``released`` (``kind:incarnation``), which is
    tried again, now. Twice is harmless.
    """
    keys = SessionKeys.of(tenant, session)
    given = (*keys.script_keys(), PartitionKeys.of(keys.partition).dead)
    grace_ms = limits.milliseconds(limits.EMBED_GRACE)
    with redis_failures():
        added: Any = await script("restore_due").run(client, given, ["", keys.label, grace_ms, version, *released])
    return int(added)


async def sessions_in_pages(client: Redis, look_at: int) -> AsyncIterator[list[tuple[str, str]]]:
    """Tenant and session of all that live or left a tombstone, one page for about ``look_at`` keys of any kind.

    A session may come more than once. One that begins or ends on the way may be missed, and on a cluster one that
    moves to another server.
    """
    with redis_failures():
        servers = await servers_of(client)
    for server in servers:
        cursor: Any = None
        while cursor is None or int(cursor):
            with redis_failures():
                page: Any = await server.client.scan(cursor or 0, match=OF_SESSIONS, count=look_at)
            cursor, names = page
            yield sorted({session_of(name.decode()) for name in names})
