"""The model's side of a worker in tests: calls to the fake Messages API, with everything around them or without."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2

from prefold.config.settings import SummarizerSettings
from prefold.messages import Ask, Messages
from prefold.messages.client import Timeouts, connect_provider
from prefold.messages.gate import Gate, GateRules
from prefold.messages.keeper import Gatekeeper
from prefold.messages.local_gate import LocalGate
from prefold.messages.purse import Ledger, Purse
from prefold.pricing import load_prices
from prefold.pricing.budgets import Budgets
from prefold.storage.spending import Held, Settlement
from prefold.storage.types import ModelUsage, SessionRef

KEY = "sk-ant-test-0123456789"
MODEL = "claude-haiku-5-5"
TENANT, SESSION, INCARNATION = "acme", "s1", "0123456789ab"
PATIENT = GateRules(failures_to_open=1_000_000)
"""A gate that no number of failures shuts."""


def ask(text: str = "Say what matters.", **members: Any) -> Ask:
    """A small question."""
    given: dict[str, Any] = {
        "tenant": TENANT,
        "session": SESSION,
        "incarnation": INCARNATION,
        "purpose": "segment",
        "system": "You summarise.",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 1_000,
        "input_tokens": 100,
    }
    return Ask(**{**given, **members})


class Sums:
    """A ledger in memory; ``refuses`` stands for a budget that is spent."""

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.settled: list[Settlement] = []
        self.noted: list[ModelUsage] = []
        self.refuses = False

    async def reserve(self, held: Held, budget_micro_usd: int | None) -> bool:
        if self.refuses:
            return False
        self.held[held.id] = held
        return True

    async def settle(self, held: Held, settlement: Settlement) -> bool:
        del self.held[held.id]
        self.settled.append(settlement)
        return True

    async def note(self, ref: SessionRef, call_id: str, usage: ModelUsage) -> bool:
        self.noted.append(usage)
        return True


@asynccontextmanager
async def calling(
    http_client: httpx2.AsyncClient | None = None,
    *,
    base_url: str = "http://messages.fake",
    ledger: Ledger | None = None,
    gate: Gate | None = None,
    budgets: Budgets | None = None,
    timeouts: Timeouts | None = None,
    model: str = MODEL,
    calls_at_once: int = 64,
) -> AsyncIterator[Messages]:
    """Messages put together by hand; by default with a patient gate, and sums that nobody looks at."""
    times = timeouts or Timeouts(deadline=timedelta(seconds=20))
    async with connect_provider(
        api_key=KEY, base_url=base_url, timeouts=times, connections=calls_at_once, http_client=http_client
    ) as provider:
        messages = Messages(
            provider,
            Gatekeeper(gate or LocalGate(rules=PATIENT)),
            Purse(ledger or Sums(), load_prices(), budgets or Budgets()),
            model=model,
            calls_at_once=calls_at_once,
        )
        yield messages
        await messages.close()


def summarizer_settings(base_url: str, **members: Any) -> SummarizerSettings:
    """Settings as a worker has them, with a key."""
    given = {"summarizer": "anthropic", "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": base_url, **members}
    return SummarizerSettings(**given)
