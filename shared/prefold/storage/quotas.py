"""What a tenant has used of what it may use: counted in the sessions' Redis, for all gateways and workers."""

import hashlib
from datetime import timedelta
from typing import Any, NamedTuple

from redis.asyncio import Redis

from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.keys import TenantKeys
from prefold.storage.scripts import script

__all__ = ["SEEN_EVERY", "Leased", "Owed", "QuotaCounts"]

_DIGEST_BYTES = 16
SEEN_EVERY = timedelta(days=1)
"""A live session is seen again by then, if anything is appended to it."""


class Owed(NamedTuple):
    """Of one quota: what was let through and is not counted yet (below zero: what is given back), and what is wanted."""

    used: int
    wanted: int


class Leased(NamedTuple):
    """What was granted."""

    turns: int
    turns_wait_ms: int
    """Until there are turns again; 0: there are some left."""
    tokens: int
    day_left_ms: int


class QuotaCounts:
    """Every call raises ``UnavailableError`` or ``OverloadedError``."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def lease(
        self, tenant: str, *, rate: float | None, burst: float, turns: Owed, day_limit: int | None, tokens: Owed
    ) -> Leased:
        """Counts what is owed and grants what there is. A rate or limit of None is not counted."""
        asked_rate, asked_limit = "" if rate is None else str(rate), "" if day_limit is None else day_limit
        key = TenantKeys.of(tenant).quota
        return Leased(*await self._run("lease_quota", key, asked_rate, str(burst), *turns, asked_limit, *tokens))

    async def admit_session(self, tenant: str, session: str, limit: int | None) -> bool:
        """True: the session is one of the tenant's live ones now; with a limit of None always."""
        kept_ms = limits.milliseconds(limits.RETENTION + SEEN_EVERY)
        asked = "" if limit is None else limit
        return bool(
            await self._run("admit_session", TenantKeys.of(tenant).quota_sessions, _name(session), asked, kept_ms)
        )

    async def forget_session(self, tenant: str, session: str) -> None:
        """The session is live no more. Twice is harmless."""
        with redis_failures():
            await self._client.zrem(TenantKeys.of(tenant).quota_sessions, _name(session))

    async def count_build(self, tenant: str, limit: int) -> int:
        """0: a summary may be begun, and is counted; else the ms until the next hour."""
        return int(await self._run("count_build", TenantKeys.of(tenant).quota, limit))

    async def _run(self, name: str, key: str, *args: str | bytes | int) -> Any:
        with redis_failures():
            return await script(name).run(self._client, [key], args)


def _name(session: str) -> bytes:
    return hashlib.sha256(session.encode()).digest()[:_DIGEST_BYTES]
