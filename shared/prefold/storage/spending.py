"""What model calls took: by tenant and day, with the day's budget, and by session. Sums only, no text of anybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from redis.asyncio import Redis

from prefold.errors import InvalidInputError
from prefold.storage import limits
from prefold.storage.client import redis_failures
from prefold.storage.keys import OF_SPENDING, SessionKeys, TenantKeys, metas_of, session_of, spending_of
from prefold.storage.scripts import script
from prefold.storage.types import ModelUsage, SessionRef

__all__ = ["DaySpending", "Held", "Settlement", "Spending", "day_of"]

_USAGE_FIELDS = ("calls", "input", "cache_read", "cache_write", "output", "micro_usd")
_DAY_FIELDS = (*_USAGE_FIELDS, "held", "failed", "unclear", "unpriced", "budget")


def day_of(now_ms: int) -> str:
    """The day (UTC) of a wall clock's milliseconds, as keys name it: ``20261130``."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%d")


@dataclass(frozen=True, slots=True)
class Held:
    """Money that was set aside for one call. It counts as spent until it is settled, whatever becomes of the caller."""

    tenant: str
    day: str
    id: str
    micro_usd: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a call really took."""

    usage: ModelUsage
    failed: bool = False
    """It brought no answer that could be used."""
    unclear: bool = False
    """Nobody said what it took: ``usage`` is what was set aside."""
    unpriced: bool = False
    """The price table has no row for its model: its cost counts as 0."""


@dataclass(frozen=True, slots=True)
class DaySpending:
    """One tenant's day."""

    tenant: str
    day: date
    usage: ModelUsage
    held_micro_usd: int
    """Set aside by calls under way, or by ones whose process died."""
    failed: int
    unclear: int
    unpriced: int
    budget_micro_usd: int | None
    """As the last call had it; None: no limit."""


class Spending:
    """The sums in the sessions' Redis. Every call raises ``UnavailableError`` or ``OverloadedError``."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def reserve(self, held: Held, budget_micro_usd: int | None) -> bool:
        """Sets the money aside; False: the day's budget does not cover it. Twice is harmless."""
        if held.micro_usd < 0:
            raise InvalidInputError("less than nothing cannot be set aside", field="micro_usd")
        budget = "" if budget_micro_usd is None else budget_micro_usd
        kept_ms = limits.milliseconds(limits.SPENDING_KEPT)
        verdict, _, _ = await self._run("reserve_spending", held, [held.id, held.micro_usd, budget, kept_ms])
        return bool(verdict == b"ok")

    async def settle(self, held: Held, settlement: Settlement) -> bool:
        """Counts what the call took and frees the rest; False: it was settled before."""
        usage = settlement.usage
        counts = dict(zip(_USAGE_FIELDS, _numbers(usage), strict=True))
        for name in ("failed", "unclear", "unpriced"):
            counts[name] = int(getattr(settlement, name))
        args: list[str | int] = [held.id]
        for name, count in counts.items():
            args += (name, count)
        return bool(await self._run("settle_spending", held, args))

    async def _run(self, name: str, held: Held, args: Sequence[str | int]) -> Any:
        with redis_failures():
            return await script(name).run(self._client, [TenantKeys.of(held.tenant).spending(held.day)], args)

    async def note(self, ref: SessionRef, call_id: str, usage: ModelUsage) -> bool:
        """Adds a call to its session; False: this life of it is over, or the call was noted before."""
        keys = SessionKeys.of(ref.tenant, ref.session)
        args: list[str | int] = [ref.incarnation, call_id, *_numbers(usage)]
        with redis_failures():
            return bool(await script("note_usage").run(self._client, keys.script_keys(), args))

    async def days(self, tenant: str, newest: date, count: int) -> list[DaySpending]:
        """The last ``count`` days up to ``newest``, newest first; a day without a call is all zeros."""
        days = [newest - timedelta(days=back) for back in range(count)]
        keys = TenantKeys.of(tenant)
        with redis_failures():
            async with self._client.pipeline(transaction=False) as pipe:
                for day in days:
                    pipe.hmget(keys.spending(day.strftime("%Y%m%d")), _DAY_FIELDS)
                found: list[Any] = await pipe.execute()
        return [_day(tenant, day, values) for day, values in zip(days, found, strict=True)]

    async def tenants(self) -> list[str]:
        """Tenants that model calls were made for, sorted. Goes through all keys: for tools."""
        with redis_failures():
            names = {spending_of(key.decode())[0] async for key in self._client.scan_iter(OF_SPENDING, count=1_000)}
        return sorted(names)

    async def sessions(self, tenant: str) -> list[tuple[str, ModelUsage]]:
        """The tenant's sessions that cost anything, the dearest first. Goes through all keys: for tools."""
        found: list[tuple[str, ModelUsage]] = []
        with redis_failures():
            keys = [key.decode() async for key in self._client.scan_iter(metas_of(tenant), count=1_000)]
            for key in keys:
                usage: Any = await self._client.hget(key, "usage")
                if usage:
                    found.append((session_of(key)[1], ModelUsage(*map(int, usage.split()))))
        return sorted(found, key=lambda one: (-one[1].micro_usd, one[0]))


def _numbers(usage: ModelUsage) -> tuple[int, ...]:
    return (
        usage.calls,
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
        usage.micro_usd,
    )


def _day(tenant: str, day: date, values: Sequence[bytes | None]) -> DaySpending:
    *counts, budget = values
    numbers = [int(value or 0) for value in counts]
    usage, (held, failed, unclear, unpriced) = ModelUsage(*numbers[:6]), numbers[6:]
    return DaySpending(tenant, day, usage, held, failed, unclear, unpriced, int(budget) if budget else None)
