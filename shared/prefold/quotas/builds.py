"""How many summaries a tenant may begin an hour."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog
from redis.exceptions import RedisError

from prefold.access import Allowances
from prefold.errors import PrefoldError
from prefold.quotas.errors import QuotaError
from prefold.storage.quotas import QuotaCounts

__all__ = ["BuildQuotas"]

log = structlog.get_logger(__name__)

_SPREAD_MS: Final = 60_000
"""Into the next hour, so that not all sessions that waited for it come at once."""


class BuildQuotas:
    """Counts the builds that are begun. ``allowances`` is asked for each of them."""

    def __init__(self, counts: QuotaCounts, allowances: Callable[[], Allowances]) -> None:
        self._counts = counts
        self._allowances = allowances

    async def take(self, tenant: str) -> None:
        """Counts one. Raises ``QuotaError`` (code ``builds_per_hour``) when the hour's are used up.

        Where the counts cannot be reached the build goes on: what it needs more will say so.
        """
        limit = self._allowances().of(tenant).builds_per_hour
        if limit is None:
            return
        try:
            wait_ms = await self._counts.count_build(tenant, limit)
        except (PrefoldError, RedisError) as error:
            log.warning("quota_counts_away", tenant=tenant, error=type(error).__qualname__)
            return
        if wait_ms:
            retry_after = timedelta(milliseconds=wait_ms + secrets.randbelow(_SPREAD_MS))
            detail = f"the tenant may have {limit} summaries begun an hour"
            raise QuotaError("builds_per_hour", detail, retry_after, code="builds_per_hour")
