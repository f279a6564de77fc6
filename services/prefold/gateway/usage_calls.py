"""``GET /v1/usage``: what the tenant's summaries took, by day."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated

from msgspec import Meta, Struct
from starlette.responses import Response

from prefold.gateway.bodies import json_response
from prefold.gateway.exchange import Exchange, whole_number
from prefold.storage.spending import DaySpending, Spending

__all__ = ["DEFAULT_DAYS", "MOST_DAYS", "DayUsage", "UsageAnswer", "UsageCalls"]

DEFAULT_DAYS = 7
MOST_DAYS = 92

Count = Annotated[int, Meta(ge=0)]
Usd = Annotated[float, Meta(ge=0)]


class DayUsage(Struct, frozen=True, kw_only=True):
    """One day in UTC, by the provider's counts and the operator's price table."""

    day: str
    """``2026-11-30``."""
    calls: Count
    """Calls that were billed, or may have been."""
    input_tokens: Count
    """Neither read from the provider's cache nor written to it."""
    cache_read_tokens: Count
    cache_write_tokens: Count
    output_tokens: Count
    cost_usd: Usd
    held_usd: Usd
    """Set aside by calls under way, or by ones whose process died; it counts against the budget."""
    failed_calls: Count
    """Calls without an answer that could be used, billed or not."""
    estimated_calls: Count
    """Of ``calls``: nobody said what they took, and they count as what was set aside."""
    unpriced_calls: Count
    """Of ``calls``: their model has no price, and they cost 0 here."""
    budget_usd: Usd | None
    """As the day's last call had it; ``null``: no limit, or no call."""


class UsageAnswer(Struct, frozen=True, kw_only=True):
    """Newest day first; a day without a call is all zeros."""

    days: list[DayUsage]


class UsageCalls:
    """What a tenant may know of its spending."""

    def __init__(self, spending: Spending, *, today: Callable[[], date] = lambda: datetime.now(UTC).date()) -> None:
        self._spending = spending
        self._today = today

    async def read(self, exchange: Exchange) -> Response:
        """The last days of the credential's tenant."""
        query = exchange.query("days")
        count = whole_number(query.get("days", str(DEFAULT_DAYS)), "days", least=1, most=MOST_DAYS)
        days = await self._spending.days(exchange.tenant, self._today(), count)
        return json_response(UsageAnswer(days=[_day(one) for one in days]))


def _day(one: DaySpending) -> DayUsage:
    usage = one.usage
    return DayUsage(
        day=one.day.isoformat(),
        calls=usage.calls,
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=_usd(usage.micro_usd),
        held_usd=_usd(one.held_micro_usd),
        failed_calls=one.failed,
        estimated_calls=one.unclear,
        unpriced_calls=one.unpriced,
        budget_usd=None if one.budget_micro_usd is None else _usd(one.budget_micro_usd),
    )


def _usd(micro_usd: int) -> float:
    return micro_usd / 1_000_000
