"""The gate that all workers share, on the queue's Redis; while that is away each process goes on by itself."""

import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import structlog
from redis.asyncio import Redis

from prefold.errors import TransientError
from prefold.messages.gate import Admission, Gate, GateLimits, GateRules, Noted, Report
from prefold.messages.local_gate import LocalGate
from prefold.storage import limits as kept
from prefold.storage.client import connect, redis_failures
from prefold.storage.keys import model_gate_key
from prefold.storage.scripts import script

__all__ = ["FallingBackGate", "RedisGate", "connect_gate", "credential_label"]

log = structlog.get_logger(__name__)

_REPLY = timedelta(seconds=1)
_AWAY_SECONDS = 5.0
"""So long nobody asks a store again that did not answer."""


def credential_label(api_key: str, base_url: str) -> str:
    """A keyed hash of key and server, 64 bits: all that is stored of them. The same in every process."""
    text = f"{base_url.rstrip('/')}\n{api_key}".encode()
    return hashlib.blake2b(text, digest_size=8, key=b"prefold model gate").hexdigest()


class RedisGate:
    """``Gate`` by two scripts. Raises ``TransientError`` when its store is away: see ``FallingBackGate``."""

    def __init__(
        self,
        client: Redis,
        credential: str,
        limits: GateLimits | None = None,
        rules: GateRules | None = None,
        *,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        """``now_ms`` replaces the server's clock, for tests."""
        self._client = client
        self._keys = [model_gate_key(credential)]
        self._limits = limits or GateLimits()
        self._rules = rules or GateRules()
        self._now_ms = now_ms

    async def admit(self, model: str, call_id: str, input_tokens: int) -> Admission:
        limits, rules = self._limits, self._rules
        args: list[str | int] = [call_id, input_tokens, limits.requests_per_minute, limits.input_tokens_per_minute]
        args += [_ms(rules.most_wait), _ms(rules.probe_ends), _ms(kept.MODEL_GATE_KEPT)]
        verdict, wait_ms, word = await self._run("admit_call", model, args)
        wait, word = timedelta(milliseconds=wait_ms), word.decode()
        if verdict == b"go":
            return Admission("go", wait, probes=word)
        return Admission(verdict.decode(), wait, word)

    async def note(self, model: str, call_id: str, report: Report) -> Noted:
        rules = self._rules
        args: list[str | int] = [call_id, report.signal, report.why, _ms(report.wait), int(report.is_bare)]
        args += [report.refund_tokens, self._limits.input_tokens_per_minute, rules.failures_to_open]
        args += [_ms(rules.open_pause), _ms(rules.most_open_pause), _ms(rules.park_pause), _ms(rules.most_park_pause)]
        args += [secrets.randbelow(1_000), _ms(kept.MODEL_GATE_KEPT)]
        event, failures, left_ms = await self._run("note_call", model, args)
        return Noted(event.decode(), failures, timedelta(milliseconds=left_ms))

    async def _run(self, name: str, model: str, args: Sequence[str | int]) -> Any:
        now = "" if self._now_ms is None else self._now_ms()
        with redis_failures():
            return await script(name).run(self._client, self._keys, [now, f"m:{quote(model, safe='')}", *args])


class FallingBackGate:
    """``Gate`` that never raises: ``local`` goes on while ``shared`` is away. Said once each time."""

    def __init__(self, shared: Gate, local: Gate, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._local = local
        self._monotonic = monotonic
        self._away_until = 0.0
        self._is_away = False

    async def admit(self, model: str, call_id: str, input_tokens: int) -> Admission:
        if self._monotonic() >= self._away_until:
            try:
                admission = await self._shared.admit(model, call_id, input_tokens)
            except TransientError as error:
                self._lost(error)
            else:
                self._found()
                return admission
        return await self._local.admit(model, call_id, input_tokens)

    async def note(self, model: str, call_id: str, report: Report) -> Noted:
        noted = await self._local.note(model, call_id, report)  # it learns always, so that it knows when it has to
        if self._monotonic() >= self._away_until:
            try:
                return await self._shared.note(model, call_id, report)
            except TransientError as error:
                self._lost(error)
        return noted

    def _lost(self, error: TransientError) -> None:
        self._away_until = self._monotonic() + _AWAY_SECONDS
        if not self._is_away:
            self._is_away = True
            log.warning("model_gate_local", error=error.code)

    def _found(self) -> None:
        if self._is_away:
            self._is_away = False
            log.info("model_gate_shared")


@asynccontextmanager
async def connect_gate(
    url: str, credential: str, limits: GateLimits, rules: GateRules, *, max_connections: int = 16
) -> AsyncIterator[FallingBackGate]:
    """The gate on the Redis of ``url``; opens nothing yet."""
    async with connect(url, max_connections=max_connections, timeout=_REPLY, retries=0) as client:
        yield FallingBackGate(RedisGate(client, credential, limits, rules), LocalGate(limits, rules))


def _ms(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)
