"""What writes the summaries: whether its key, prices and budget go together, and whether the provider takes calls now."""

import time
from datetime import timedelta
from urllib.parse import unquote

from prefold.config.settings import SummarizerSettings, check_summarizer
from prefold.doctor.findings import Finding
from prefold.doctor.settings import DoctorSettings
from prefold.errors import ConfigurationError, UnavailableError
from prefold.pricing import load_prices
from prefold.storage.client import connect, redis_failures
from prefold.storage.keys import OF_MODEL_GATES

__all__ = ["look_at_model"]

_PART = "model"
_REPLY_TIMEOUT = timedelta(seconds=2)
_MODEL_PREFIX, _OPEN_SUFFIX = "m:", ":open"


async def look_at_model(settings: DoctorSettings) -> list[Finding]:
    """Findings of the engine; one line where no model is asked. Never raises."""
    if settings.summarizer != "anthropic":
        return [Finding(_PART, "summarizer", "ok", f"{settings.summarizer}: no model is asked")]
    return [_key(settings), *_prices(settings), *await _gates(settings.queue_url)]


def _key(settings: SummarizerSettings) -> Finding:
    try:
        check_summarizer(settings)
    except ValueError as error:
        mend = "set it for the workers, and for the doctor"
        return Finding(_PART, "summarizer", "wrong", str(error), mend)
    return Finding(_PART, "summarizer", "ok", f"anthropic, {settings.summarizer_model}")


def _prices(settings: SummarizerSettings) -> list[Finding]:
    """Whether each model's calls can be counted in dollars."""
    try:
        table = load_prices(settings.prices_file)
    except ConfigurationError as error:
        return [Finding(_PART, "prices", "wrong", error.detail, "mend the file that PREFOLD_PRICES_FILE names")]
    has_budget = settings.summarizer_daily_budget_usd is not None or settings.summarizer_budgets_file is not None
    without = [
        model
        for model in (settings.summarizer_model, settings.summarizer_fallback_model)
        if model and table.find(model) is None
    ]
    if not without:
        return [Finding(_PART, "prices", "ok", "every model has one")]
    found = f"none for {', '.join(without)}: its calls cost nothing in the figures"
    if has_budget:
        found = f"none for {', '.join(without)}, and there is a budget: it is not asked"
    return [
        Finding(_PART, "prices", "wrong" if has_budget else "note", found, "add a row to a file, PREFOLD_PRICES_FILE")
    ]


async def _gates(queue_url: str) -> list[Finding]:
    """What all workers know of the keys that they use."""
    try:
        async with connect(queue_url, max_connections=2, timeout=_REPLY_TIMEOUT, retries=0) as client:
            with redis_failures():
                gates = [gate async for gate in client.scan_iter(match=OF_MODEL_GATES, count=1000)]
                found = [await client.hgetall(gate) for gate in gates]
    except UnavailableError as error:
        return [Finding(_PART, "calls", "unknown", f"the queue's Redis, which knows it: {error.detail}")]
    shut = [one for fields in found for one in _shut({_text(name): _text(value) for name, value in fields.items()})]
    return shut or [Finding(_PART, "calls", "ok", "no key is parked, no model is away")]


def _shut(gate: dict[str, str]) -> list[Finding]:
    """A key that is parked, and models that are not asked, now."""
    found = []
    if _left(gate.get("parked", "")) > 0:
        told = f"the provider refuses the key ({gate.get('why', '')}): not asked for {_left(gate['parked'])} s"
        found.append(Finding(_PART, "key", "wrong", told, "look at key, spend limit and model at the provider"))
    for name, until in gate.items():
        if name.startswith(_MODEL_PREFIX) and name.endswith(_OPEN_SUFFIX) and _left(until) > 0:
            model, why = name.removesuffix(_OPEN_SUFFIX), gate.get(name.removesuffix(_OPEN_SUFFIX) + ":why", "")
            told = f"away ({why or 'failures in a row'}): not asked for {_left(until)} s"
            mend = "wait, or look at the provider's status; until then the extractive engine writes the summaries"
            found.append(Finding(_PART, unquote(model.removeprefix(_MODEL_PREFIX)), "wrong", told, mend))
    return found


def _left(until_ms: str) -> int:
    """Seconds until then, rounded up; 0: it is over."""
    return max(0, -(-(int(until_ms) - time.time_ns() // 1_000_000) // 1000)) if until_ms.isdecimal() else 0


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
