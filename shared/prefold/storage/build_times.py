"""How long sessions wait for their summaries: measured by the workers, heeded by the appends."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from math import ceil
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prefold.errors import TransientError
from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.keys import TenantKeys

__all__ = ["BuildLeads", "BuildTimes"]

_FRESH_SECONDS = 10.0
_MOST_TENANTS = 10_000
_LEAST_MEASURED = 20
"""Of fewer builds the slowest says nothing about the next: the prior counts as one of them."""
_SHARE = 0.95


class BuildTimes:
    """The newest build times of each tenant."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def note(self, tenant: str, engine: str, seconds: float) -> None:
        """Adds one; ``engine`` wrote the summary."""
        key = TenantKeys.of(tenant).build_times
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.lpush(key, f"{max(0, round(seconds * 1000))} {engine}")
                pipe.ltrim(key, 0, limits.BUILD_TIMES_KEPT - 1)
                pipe.pexpire(key, limits.milliseconds(limits.BUILD_TIMES_END))
                await pipe.execute()

    async def lead_ms(self, tenant: str, prior_ms: int) -> int:
        """95th percentile in ms. Until enough was measured ``prior_ms`` is taken for what is missing."""
        with redis_failures():
            stored: Any = await self._client.lrange(TenantKeys.of(tenant).build_times, 0, -1)
        return _p95([int(one.split(b" ", 1)[0]) for one in stored], prior_ms)


def _p95(measured: Sequence[int], prior_ms: int) -> int:
    times = sorted([*measured, *[prior_ms] * max(0, _LEAST_MEASURED - len(measured))])
    return times[ceil(_SHARE * len(times)) - 1]


class BuildLeads:
    """``BuildTimes`` as appends read it: at once, from memory, seconds old. One event loop."""

    def __init__(self, times: BuildTimes, prior: timedelta, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._times = times
        self._prior_ms = limits.milliseconds(prior)
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, int]] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}

    def ms_of(self, tenant: str) -> int:
        """What is known of the tenant, the prior until then; asks for news in the background."""
        read_at, lead_ms = self._known.get(tenant, (0.0, self._prior_ms))
        if tenant not in self._reading and (not read_at or self._monotonic() - read_at > _FRESH_SECONDS):
            self._reading[tenant] = asyncio.create_task(self._read(tenant, lead_ms))
        return lead_ms

    async def _read(self, tenant: str, known_ms: int) -> None:
        lead_ms = known_ms  # also where there are no news: it is asked for again after a while, not at each append
        try:
            with suppress(TransientError, ResponseError):  # whoever may not read it goes by what is known
                lead_ms = await self._times.lead_ms(tenant, self._prior_ms)
        finally:
            self._reading.pop(tenant, None)
            if len(self._known) >= _MOST_TENANTS:
                self._known.pop(next(iter(self._known)))
            self._known[tenant] = (self._monotonic(), lead_ms)

    async def close(self) -> None:
        """Ends what is being read."""
        reading = list(self._reading.values())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
