"""What calls cost: set aside before, counted after, by tenant and session, within the day's budget."""

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from prefold.config.settings import CHUNK_MARGIN
from prefold.errors import TransientError
from prefold.messages.asking import Ask
from prefold.messages.errors import BudgetSpentError
from prefold.messages.outcomes import Verdict
from prefold.pricing import BilledTokens, Price, PriceTable
from prefold.pricing.budgets import Budgets
from prefold.storage import limits
from prefold.storage.spending import Held, Settlement, day_of
from prefold.storage.types import ModelUsage, SessionRef

__all__ = ["Ledger", "Purse", "Reservation", "call_id"]

log = structlog.get_logger(__name__)


class Ledger(Protocol):
    """Where sums are kept: ``prefold.storage.spending.Spending``. Raises ``TransientError`` when it is away."""

    async def reserve(self, held: Held, budget_micro_usd: int | None) -> bool: ...
    async def settle(self, held: Held, settlement: Settlement) -> bool: ...
    async def note(self, ref: SessionRef, call_id: str, usage: ModelUsage) -> bool: ...


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money set aside for one call."""

    held: Held
    price: Price | None
    ask: Ask


def call_id() -> str:
    """A new name of a call, for what has to be done once."""
    return secrets.token_hex(limits.CALL_ID_CHARACTERS // 2)


class Purse:
    """Reserves and settles."""

    def __init__(
        self,
        ledger: Ledger,
        prices: PriceTable,
        budgets: Budgets,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._ledger = ledger
        self._prices = prices
        self._budgets = budgets
        self._now_ms = now_ms
        self._told: set[str] = set()

    async def reserve(self, ask: Ask, model: str, name: str) -> Reservation:
        """Sets aside what the call may cost at most. ``BudgetSpentError``; ``TransientError``: nobody can tell."""
        budget, price = self._budgets.of(ask.tenant), self._prices.find(model)
        if price is None:
            self._tell_unpriced(model)
            if budget is not None:
                raise BudgetSpentError("there is a budget, and no price for the model: set PREFOLD_PRICES_FILE")
        held = Held(ask.tenant, day_of(self._now_ms()), name, most_cost(ask, price))
        if not await self._ledger.reserve(held, budget):
            raise BudgetSpentError("the tenant's budget of the day does not cover the call")
        return Reservation(held, price, ask)

    async def release(self, reservation: Reservation) -> None:
        """The call was not made."""
        await self._settle(reservation, Settlement(ModelUsage()))

    async def settle(self, reservation: Reservation, verdict: Verdict | None) -> ModelUsage:
        """Counts what the call took, and returns it. None: it was broken off, and may have been billed.

        A call of which nobody says what it took counts as what was set aside. Never raises: where the sums are away
        the money stays set aside, and counts as spent that day.
        """
        settlement = _settlement(reservation, verdict)
        await self._settle(reservation, settlement)
        if settlement.usage.calls:
            await self._note(reservation, settlement.usage)
        return settlement.usage

    async def _settle(self, reservation: Reservation, settlement: Settlement) -> None:
        try:
            await self._ledger.settle(reservation.held, settlement)
        except TransientError as error:
            log.warning("usage_not_settled", tenant=reservation.ask.tenant, error=error.code)

    async def _note(self, reservation: Reservation, usage: ModelUsage) -> None:
        try:
            await self._ledger.note(reservation.ask.ref, reservation.held.id, usage)
        except TransientError as error:
            log.warning("usage_not_noted", session=reservation.ask.session, error=error.code)

    def _tell_unpriced(self, model: str) -> None:
        if model not in self._told and len(self._told) < 100:
            self._told.add(model)
            log.warning("model_without_price", model=model)


def most_cost(ask: Ask, price: Price | None) -> int:
    """Millionths of a USD that the call costs at most.

    Its tokens as a provider may count them, and a full answer; of a shared prefix all is written to the cache, for an hour.
    """
    if price is None:
        return 0
    prompt = math.ceil(ask.input_tokens * CHUNK_MARGIN)
    writes = prompt if ask.purpose == "prefix" else 0
    return price.cost(
        BilledTokens(input_tokens=prompt - writes, cache_write_1h_tokens=writes, output_tokens=ask.max_tokens)
    )


def _settlement(reservation: Reservation, verdict: Verdict | None) -> Settlement:
    failed = verdict is None or verdict.error is not None
    billing = "unclear" if verdict is None else verdict.billing
    unpriced = reservation.price is None and billing != "nothing"
    if billing == "nothing":
        return Settlement(ModelUsage(), failed=failed)
    if verdict is None or verdict.used is None:
        ask = reservation.ask
        usage = ModelUsage(calls=1, input_tokens=ask.input_tokens, micro_usd=reservation.held.micro_usd)
        return Settlement(usage, failed=failed, unclear=True, unpriced=unpriced)
    return Settlement(usage_of(verdict.used, reservation.price), failed=failed, unpriced=unpriced)


def usage_of(used: BilledTokens, price: Price | None) -> ModelUsage:
    """One call with its cost; without a price it costs 0."""
    return ModelUsage(
        calls=1,
        input_tokens=used.input_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        output_tokens=used.output_tokens,
        micro_usd=price.cost(used) if price else 0,
    )
