"""The model of this process: ``ask`` makes one call and returns only what can be used."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from prefold.config.settings import SummarizerSettings
from prefold.errors import ConfigurationError, PrefoldError, TransientError
from prefold.messages.asking import Ask, Reply
from prefold.messages.client import PROVIDER_URL, Provider, Timeouts, connect_provider
from prefold.messages.errors import AnswerRefusedError
from prefold.messages.gate import GateLimits, GateRules
from prefold.messages.keeper import Gatekeeper
from prefold.messages.outcomes import Verdict, judge_answer, judge_failure
from prefold.messages.purse import Ledger, Purse, Reservation, call_id
from prefold.messages.shared_gate import connect_gate, credential_label
from prefold.pricing import prices_and_budgets
from prefold.storage.types import ModelUsage
from prefold.telemetry.metrics import BUILD_COST_USD, BUILD_TOKENS, MODEL_CALL_SECONDS
from prefold.telemetry.tracing import note, span
from prefold.worker.waiting import waiting

if TYPE_CHECKING:
    import httpx2

__all__ = ["Messages", "connect_messages", "request_body"]

T = TypeVar("T")

log = structlog.get_logger(__name__)

_THINKS_BY_DEFAULT = re.compile(r"claude-[a-z]+-(?:[5-9]|[1-9]\d)(?:-\d{1,2})?(?:-20\d{6}|-latest)?")
"""Claude models from generation 5 on: all think unless told otherwise, and all know ``effort``."""
_NEVER_SENT = frozenset({"stream", "metadata"})
"""Answers come whole, and nobody is named to the provider."""
_LAST_WORDS_SECONDS = 1.0
_ENGINE = "anthropic"
"""As the engines that ask a model are called in the metrics."""


class Messages:
    """One for a process, on its loop; any number of coroutines may ask at once."""

    def __init__(
        self,
        provider: Provider,
        keeper: Gatekeeper,
        purse: Purse,
        *,
        model: str,
        fallback_model: str | None = None,
        calls_at_once: int = 64,
    ) -> None:
        self.model = model
        self.fallback_model = fallback_model
        self._provider = provider
        self._keeper = keeper
        self._purse = purse
        self._slots = asyncio.Semaphore(calls_at_once)
        self._last_words: set[asyncio.Task[Any]] = set()

    async def ask(self, ask: Ask) -> Reply:
        """The answer of one call; ``errors`` lists every way in which there is none.

        At most two seconds are waited for a rate limit, and until one of ``calls_at_once`` has ended; the rest is the
        call. Never retried here. Cancelling is safe: the call then counts as what was set aside for it.
        """
        model, name = ask.model or self.model, call_id()
        async with waiting(), self._slots:
            reservation = await self._reserved(ask, model, name)
            try:
                await self._keeper.enter(model, name, ask.input_tokens)
            except asyncio.CancelledError:
                self._later(self._abandon(model, reservation))
                raise
            except Exception:
                await self._purse.release(reservation)
                raise
            return await self._call(ask, model, reservation)

    async def _reserved(self, ask: Ask, model: str, name: str) -> Reservation:
        reserving = asyncio.create_task(self._purse.reserve(ask, model, name))
        try:
            return await asyncio.shield(reserving)
        except asyncio.CancelledError:
            self._later(self._undo(reserving))
            raise

    async def _call(self, ask: Ask, model: str, reservation: Reservation) -> Reply:
        began = time.monotonic()
        try:
            with span("model call", {"model": model, "purpose": ask.purpose}, kind="client"):
                verdict = await self._outcome(ask, model)
                note({"outcome": verdict.error.code if verdict.error else "ok", "request_id": verdict.request_id})
        except BaseException:  # cancelled, or a fault of ours
            self._later(self._give_up(model, reservation))
            raise
        seconds = time.monotonic() - began
        stay_away, usage = await asyncio.shield(self._later(self._count(ask, model, verdict, reservation)))
        _tell(ask, model, verdict, usage, seconds)
        reply = Reply(verdict.text, verdict.model or model, verdict.request_id, usage, seconds)
        return _given(verdict, reply, stay_away)

    async def _count(
        self, ask: Ask, model: str, verdict: Verdict, reservation: Reservation
    ) -> tuple[timedelta, ModelUsage]:
        stay_away = await self._keeper.leave(model, reservation.held.id, verdict, ask.input_tokens)
        return stay_away, await self._purse.settle(reservation, verdict)

    async def _outcome(self, ask: Ask, model: str) -> Verdict:
        try:
            answer = await self._provider.send(request_body(ask, model))
        except Exception as error:  # noqa: BLE001 (what is not the provider's is raised again)
            return judge_failure(error)
        return judge_answer(answer)

    async def _give_up(self, model: str, reservation: Reservation) -> None:
        await self._keeper.give_up(model, reservation.held.id)
        await self._purse.settle(reservation, None)

    async def _abandon(self, model: str, reservation: Reservation) -> None:
        await self._keeper.give_up(model, reservation.held.id)
        await self._purse.release(reservation)

    async def _undo(self, reserving: asyncio.Task[Reservation]) -> None:
        with suppress(PrefoldError):
            await self._purse.release(await reserving)

    def _later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Goes on when whoever asked is cancelled; ``close`` waits for it."""
        task = asyncio.create_task(work)
        self._last_words.add(task)
        task.add_done_callback(self._last_words.discard)
        return task

    async def close(self) -> None:
        """Waits a moment for what is still to be counted. Twice is legal."""
        if self._last_words:
            await asyncio.wait(self._last_words, timeout=_LAST_WORDS_SECONDS)


def request_body(ask: Ask, model: str) -> dict[str, Any]:
    """What is sent. Nothing in it names tenant, session or user: there is no ``metadata``.

    A summary needs little thinking, and thinking is billed as output: where a model thinks by default it is told so.
    Not over a shared prefix, whose cache depends on the effort.
    """
    body: dict[str, Any] = {"model": model, "max_tokens": ask.max_tokens, "messages": ask.messages}
    if ask.system is not None:
        body["system"] = ask.system
    if ask.tools is not None:
        body["tools"] = ask.tools
    if ask.purpose != "prefix" and _THINKS_BY_DEFAULT.fullmatch(model):
        body["output_config"] = {"effort": "low"}
    return {**body, **{name: value for name, value in ask.extra.items() if name not in _NEVER_SENT}}


def _given(verdict: Verdict, reply: Reply, stay_away: timedelta) -> Reply:
    error = verdict.error
    if error is None:
        return reply
    if isinstance(error, AnswerRefusedError) and verdict.has_answer:
        error.reply = reply
    if isinstance(error, TransientError):
        error.retry_after = stay_away
    raise error from None


def _tell(ask: Ask, model: str, verdict: Verdict, usage: ModelUsage, seconds: float) -> None:
    _add_up(verdict, usage, seconds)
    log.info(
        "model_call",
        outcome=verdict.error.code if verdict.error else "ok",
        detail=verdict.error.detail if verdict.error else "",
        purpose=ask.purpose,
        session=ask.session,
        model=model,
        request_id=verdict.request_id,
        seconds=round(seconds, 3),
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        micro_usd=usage.micro_usd,
    )


def _add_up(verdict: Verdict, usage: ModelUsage, seconds: float) -> None:
    result = "ok" if verdict.error is None else "refused" if verdict.has_answer else "failed"
    MODEL_CALL_SECONDS.labels(result).observe(seconds)
    tokens = {
        "input": usage.input_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "output": usage.output_tokens,
    }
    for direction, number in tokens.items():
        BUILD_TOKENS.labels(_ENGINE, direction).inc(number)
    BUILD_COST_USD.labels(_ENGINE).inc(usage.micro_usd / 1_000_000)


@asynccontextmanager
async def connect_messages(
    settings: SummarizerSettings,
    ledger: Ledger,
    *,
    gate_url: str,
    rules: GateRules | None = None,
    http_client: "httpx2.AsyncClient | None" = None,
) -> AsyncIterator[Messages]:
    """What the settings describe, closed at the end. ``gate_url``: the Redis that all workers share.

    ``ConfigurationError`` when the settings, the price table or the budgets cannot work. ``http_client`` replaces the
    network, ``rules`` the pauses: for tests.
    """
    prices, budgets = prices_and_budgets(settings)
    if settings.anthropic_api_key is None:
        raise ConfigurationError("ANTHROPIC_API_KEY: the Messages API needs a key", field="ANTHROPIC_API_KEY")
    key, base_url = settings.anthropic_api_key.get_secret_value(), settings.anthropic_base_url or PROVIDER_URL
    limits = GateLimits(settings.summarizer_requests_per_minute, settings.summarizer_input_tokens_per_minute)
    times = _timeouts(settings)
    rules = rules or GateRules(probe_ends=times.deadline + timedelta(seconds=30))
    at_once = settings.summarizer_calls_at_once
    async with AsyncExitStack() as stack:
        connecting = connect_provider(
            api_key=key, base_url=base_url, timeouts=times, connections=at_once, http_client=http_client
        )
        provider = await stack.enter_async_context(connecting)
        gate = await stack.enter_async_context(connect_gate(gate_url, credential_label(key, base_url), limits, rules))
        messages = Messages(
            provider,
            Gatekeeper(gate),
            Purse(ledger, prices, budgets),
            model=settings.summarizer_model,
            fallback_model=settings.summarizer_fallback_model,
            calls_at_once=at_once,
        )
        stack.push_async_callback(messages.close)
        yield messages


def _timeouts(settings: SummarizerSettings) -> Timeouts:
    return Timeouts(
        connect=timedelta(seconds=settings.summarizer_connect_seconds),
        read=timedelta(seconds=settings.summarizer_read_seconds),
        deadline=timedelta(seconds=settings.summarizer_deadline_seconds),
    )
