"""Records of the contexts that were served: written after the answer, read by ``GET …/contexts``.

A record holds ids, numbers and reasons, never words: neither the query's nor the conversation's.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
import structlog
from starlette.responses import Response

from prefold.assembly import ServedContext
from prefold.assembly.served import shown_left_out, shown_recall
from prefold.config.clock import utc_now
from prefold.config.logs import logged_together
from prefold.conversation.ids import check_name
from prefold.errors import PrefoldError
from prefold.gateway.bodies import json_response
from prefold.gateway.exchange import Exchange, whole_number
from prefold.gateway.recall_answers import ContextRecord, ContextsAnswer
from prefold.storage import Sessions
from prefold.storage.limits import CONTEXTS_KEPT
from prefold.storage.types import SessionRef, StoredContext

__all__ = ["ContextRecordCalls", "ContextRecords", "opened_records", "record_of", "record_time", "summary_of"]

log = structlog.get_logger(__name__)

_MOST_WAITING = 256
"""Records: when so many wait, the store is slow, and the oldest go."""
_MOST_AT_ONCE = 32
MOST_LEFT_OUT = 200
"""That a record names: of a long session whose turns stand in short form there are thousands, one each."""
MOST_TOLD = 20
"""Recalled items that the log event names; the record has them all."""
_TOLD = ("kind", "id", "session", "seq", "score")
_CLOSING_SECONDS = 1.0
_SUMMARY = b'"part":"summary",'


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A record that is still to be written. Small, whatever the context was."""

    ref: SessionRef
    record: dict[str, Any]


def record_of(
    stored: StoredContext,
    served: ServedContext,
    *,
    with_query: bool,
    form: str,
    budget_tokens: int | None,
    etag: str,
    summary: str = "",
) -> dict[str, Any]:
    """What is kept of an assembly. ``summary``: ``summary_of`` its context string, where that is known already."""
    return {
        "at": record_time(),
        "version": served.version,
        "covers_to": served.covers_to,
        "head_seq": stored.head_seq,
        "with_query": with_query,
        "format": form,
        "budget_tokens": budget_tokens,
        "tokens": {"total": served.total_tokens, "sections": dict(served.sections)},
        "recalled": [_kept_of(shown_recall(one)) for one in served.recalled],
        "left_out": [shown_left_out(one) for one in served.left_out[:MOST_LEFT_OUT]],
        "summary": (summary or summary_of(stored.body)) if stored.covers_to else "",
        "etag": etag,
    }


def record_time() -> str:
    """Now, as records say it."""
    return f"{utc_now()[:23]}Z"


def _kept_of(recalled: dict[str, Any]) -> dict[str, Any]:
    """Without the turns that a fact is from: they may be another session's, and its erasure does not reach this record."""
    return {name: value for name, value in recalled.items() if name != "sources"}


def summary_of(body: bytes) -> str:
    """Tells one summary from another; empty without one."""
    at = body.find(_SUMMARY)
    if at < 0:
        return ""
    line = body[body.rfind(b"\n", 0, at) + 1 : body.find(b"\n", at)]
    return hashlib.blake2b(line, digest_size=8).hexdigest()


class ContextRecords:
    """Writes records behind the answers, one after the other; what cannot be written is dropped and logged."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._waiting: deque[_Waiting] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._dropped = 0
        self._closed = False

    def note(self, ref: SessionRef, record: dict[str, Any]) -> None:
        """Returns at once; after ``close`` nothing is kept."""
        if self._closed:
            return
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(_Waiting(ref, record))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Writes what waits, if that is soon done. Twice is legal."""
        self._closed = True
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=_CLOSING_SECONDS)
            self._writer.cancel()

    async def _write(self) -> None:
        while self._waiting:
            count = min(len(self._waiting), _MOST_AT_ONCE)
            await self._write_together([self._waiting.popleft() for _ in range(count)])
        if self._dropped:
            log.warning("context_records_dropped", count=self._dropped)
            self._dropped = 0

    async def _write_together(self, some: Sequence[_Waiting]) -> None:
        with logged_together():
            for one in some:
                _tell(one)
        try:
            await self._sessions.note_contexts([(one.ref, orjson.dumps(one.record)) for one in some])
        except PrefoldError as error:
            for one in some:
                log.warning("context_record_lost", tenant=one.ref.tenant, session=one.ref.session, reason=error.code)
        except Exception as error:  # noqa: BLE001  # the boundary of a background task: the next record is another's
            log.error("context_record_failed", session=some[0].ref.session, error=type(error).__qualname__)


def _tell(one: _Waiting) -> None:
    ref, record = one.ref, one.record
    log.info(
        "context_served",
        tenant=ref.tenant,
        session=ref.session,
        **{name: record[name] for name in ("version", "covers_to", "with_query", "format", "budget_tokens")},
        tokens=record["tokens"]["total"],
        sections=record["tokens"]["sections"],
        recalled=len(record["recalled"]),
        recalled_ids=[_told(item) for item in record["recalled"][:MOST_TOLD]],
        left_out=len(record["left_out"]),
        summary=record["summary"],
    )


def _told(recalled: dict[str, Any]) -> dict[str, Any]:
    return {name: recalled[name] for name in _TOLD if name in recalled}


@asynccontextmanager
async def opened_records(sessions: Sessions) -> AsyncIterator[ContextRecords]:
    """Records while the session store is there; what still waits at the end is written, if that is soon done."""
    records = ContextRecords(sessions)
    try:
        yield records
    finally:
        await records.close()


class ContextRecordCalls:
    """``GET …/contexts``."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def read(self, exchange: Exchange) -> Response:
        """The records of the last contexts, the newest first."""
        session = check_name(exchange.path["session"], "session")
        given = exchange.query("limit").get("limit")
        limit = CONTEXTS_KEPT if given is None else whole_number(given, "limit", least=1, most=CONTEXTS_KEPT)
        # One more, because each is compared with the one before.
        kept = await self._sessions.read_contexts(exchange.tenant, session, min(limit + 1, CONTEXTS_KEPT))
        records = [orjson.loads(one) for one in kept]
        before = [*records[1:], None][: len(records)]
        answered = [_shown(record, earlier) for record, earlier in zip(records, before, strict=True)]
        return json_response(ContextsAnswer(contexts=answered[:limit]))


def _shown(record: dict[str, Any], earlier: dict[str, Any] | None) -> ContextRecord:
    """``summary_rewritten`` is not known of the oldest that is kept."""
    summary = record.pop("summary")
    rewritten = None if earlier is None else earlier.get("summary", "") != summary
    return msgspec.convert({**record, "summary_rewritten": rewritten}, ContextRecord)
