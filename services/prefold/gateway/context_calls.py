"""``GET /v1/sessions/{session}/context``: the hot way out."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple, cast

from starlette.background import BackgroundTask
from starlette.responses import Response

from prefold.assembly import (
    LEAST_BUDGET_TOKENS,
    Format,
    ProfileInput,
    RecallInput,
    ServedContext,
    Ttl,
    assemble,
)
from prefold.conversation.ids import check_name
from prefold.errors import InvalidInputError
from prefold.gateway.background import InBackground
from prefold.gateway.context_records import ContextRecords, record_of, record_time
from prefold.gateway.exchange import Exchange, whole_number
from prefold.gateway.metrics import note_served, note_total
from prefold.gateway.profiles import ContextReads
from prefold.gateway.recalling import ContextRecall
from prefold.storage.types import SessionRef, StoredContext
from prefold.telemetry.metrics import CONTEXT_SECONDS
from prefold.tokens import TokenCounter

MOST_BUDGET_TOKENS = 10_000_000
MOST_QUERY_CHARS = 8_000

_FORMATS = ("anthropic", "openai")
_TTLS = ("5m", "1h")
_PLAIN, _RECALLING = ("no",), ("yes",)
_ANSWER_FORMAT = 3
"""Part of the ETag: raise it when the same stored context is served otherwise."""
_THREAD_FROM_BYTES = 262_144
"""Larger contexts are cut in a thread, so that they do not hold up the others."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a read asks for."""

    form: Format
    budget: int | None
    text: str | None
    cache: Ttl | None


class PlainAnswer(NamedTuple):
    """The answer to a read that asks for nothing special, and what is noted of it. Holds the words once."""

    ref: SessionRef
    tag: str
    body: bytes
    record: dict[str, Any]
    tokens: int
    most: int
    degraded: bool


class ContextCalls:
    """Serves contexts."""

    def __init__(
        self,
        reads: ContextReads,
        counter: InBackground[TokenCounter],
        recall: ContextRecall,
        records: ContextRecords | None,
    ) -> None:
        self._reads = reads
        self._counter = counter
        self._recall = recall
        self._records = records

    async def read(self, exchange: Exchange) -> Response:
        """What to send to the model now; 304 when the client has it."""
        began = perf_counter()
        session = check_name(exchange.path["session"], "session")
        asked = _asked(exchange.query("format", "query", "budget_tokens", "cache"))
        stored, profile = await self._reads.read(exchange.tenant, session)
        if asked.text is None:
            tag = etag_of(stored, profile, asked.form, asked.budget, asked.cache)
            if exchange.has_tag(tag):
                return tagged(304, tag)
            served = await self._assemble(stored, asked, profile, None)
            return self._answer(stored, served, asked, tag, served.to_json(), began)
        recalled = await self._recall.recall(stored, asked.text, asked.budget)
        served = await self._assemble(stored, asked, profile, recalled)
        body = served.to_json()
        tag = f'"q-{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
        return tagged(304, tag) if exchange.has_tag(tag) else self._answer(stored, served, asked, tag, body, began)

    def serve_plain(
        self, stored: StoredContext, profile: ProfileInput, counter: TokenCounter, began: float
    ) -> PlainAnswer:
        """The answer to a read that asks for nothing special, from its parts; ``keep`` keeps its record."""
        return self.answer_plain(stored, profile, assemble(stored, counter, profile=profile), began)

    def answer_plain(
        self, stored: StoredContext, profile: ProfileInput, served: ServedContext, began: float, summary: str = ""
    ) -> PlainAnswer:
        """The same of a context that is assembled already; ``summary`` names its summary where the body has none."""
        tag = etag_of(stored, profile, "anthropic", None)
        record = record_of(
            stored, served, with_query=False, form="anthropic", budget_tokens=None, etag=tag, summary=summary
        )
        most = stored.hard_limit_tokens
        answer = PlainAnswer(stored.ref, tag, served.to_json(), record, served.total_tokens, most, stored.degraded)
        return self.repeat_plain(answer, began)

    def repeat_plain(self, answer: PlainAnswer, began: float) -> PlainAnswer:
        """The answer, counted."""
        note_total(answer.tokens, answer.most, degraded=answer.degraded)
        CONTEXT_SECONDS.observe(_PLAIN, perf_counter() - began)
        return answer

    def keep(self, answer: PlainAnswer) -> None:
        """Keep the record of a plain answer: after its last byte."""
        if self._records is not None:
            self._records.note(answer.ref, {**answer.record, "at": record_time()})

    def _answer(
        self, stored: StoredContext, served: ServedContext, asked: _Asked, tag: str, body: bytes, began: float
    ) -> Response:
        answer = tagged(200, tag, body)
        note_served(stored, served, asked.budget)
        CONTEXT_SECONDS.observe(_PLAIN if asked.text is None else _RECALLING, perf_counter() - began)
        records = self._records
        if records is None:
            return answer

        async def note() -> None:
            record = record_of(
                stored,
                served,
                with_query=asked.text is not None,
                form=asked.form,
                budget_tokens=asked.budget,
                etag=tag,
            )
            records.note(stored.ref, record)

        answer.background = BackgroundTask(note)  # after the last byte of the answer
        return answer

    async def _assemble(
        self, stored: StoredContext, asked: _Asked, profile: ProfileInput, recalled: RecallInput | None
    ) -> ServedContext:
        counter = await self._counter.get()

        def run() -> ServedContext:
            return assemble(
                stored,
                counter,
                form=asked.form,
                budget_tokens=asked.budget,
                profile=profile,
                recalled=recalled,
                cache=asked.cache,
            )

        has_work = asked.budget is not None or asked.text is not None or asked.form == "openai"
        return await asyncio.to_thread(run) if has_work and len(stored.body) > _THREAD_FROM_BYTES else run()


def _asked(query: Mapping[str, str]) -> _Asked:
    form = _format_of(query.get("format", "anthropic"))
    return _Asked(
        form=form,
        budget=_budget_of(query.get("budget_tokens")),
        text=_query_of(query.get("query")),
        cache=_cache_of(query.get("cache"), form),
    )


def etag_of(
    stored: StoredContext, profile: ProfileInput, form: Format, budget: int | None, cache: Ttl | None = None
) -> str:
    """Strong: whatever changes the answer changes one of these.

    Within a version the context string only grows, by turns, each of which raises ``head_seq``. Pinned state and profile
    count by their bytes.
    """
    parts = (
        _ANSWER_FORMAT,
        stored.ref.incarnation,
        stored.version,
        stored.head_seq,
        stored.begin + len(stored.body),
        stored.status,
        stored.calibration,
        stored.hard_limit_tokens,
        stored.system_tokens,
        stored.tools_tokens,
        stored.open_calls,
        stored.system,
        stored.state,
        stored.state_tokens,
        profile.text,
        profile.failure,
        profile.yielded,
        form,
        budget,
        cache,
    )
    return f'"{hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()}"'


def tagged(status: int, tag: str, body: bytes = b"") -> Response:
    """An answer with its ETag."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    return Response(body, status, headers, "application/json" if status == 200 else None)


def _format_of(value: str) -> Format:
    if value not in _FORMATS:
        raise InvalidInputError(f"must be one of {', '.join(_FORMATS)}", field="format")
    return cast("Format", value)


def _budget_of(value: str | None) -> int | None:
    if value is None:
        return None
    return whole_number(value, "budget_tokens", least=LEAST_BUDGET_TOKENS, most=MOST_BUDGET_TOKENS)


def _cache_of(value: str | None, form: Format) -> Ttl | None:
    if value is None:
        return None
    if value not in _TTLS:
        raise InvalidInputError(f"must be one of {', '.join(_TTLS)}", field="cache")
    if form != "anthropic":
        raise InvalidInputError("only format=anthropic has cache breakpoints", field="cache")
    return cast("Ttl", value)


def _query_of(value: str | None) -> str | None:
    if value is None:
        return None
    if not value.strip() or len(value) > MOST_QUERY_CHARS:
        raise InvalidInputError(f"must be 1 to {MOST_QUERY_CHARS} characters, not all blank", field="query")
    return value
