"""Job arguments as JSON lists, and the id that follows from them.

A payload comes out of Redis, where anyone with access may have written it: decoding checks every field and
raises ``InvalidInputError``, so that a bad job is refused for good and not retried.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from prefold.errors import InvalidInputError
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionRef

Json = list[list[str | int]]

TO_HEAD: Final = 2**53 - 1
"""As ``last_seq`` of a span: whatever the log holds when the job runs."""


def encode_spans(spans: Sequence[EmbedSpan]) -> Json:
    """One ``[tenant, session, incarnation, first_seq, last_seq]`` a span."""
    return [[span.tenant, span.session, span.incarnation, span.first_seq, span.last_seq] for span in spans]


def decode_spans(payload: object) -> list[EmbedSpan]:
    """Inverse of ``encode_spans``. Raises ``InvalidInputError``."""
    spans = []
    for index, row in enumerate(_rows(payload, "spans")):
        field = f"spans[{index}]"
        tenant, session, incarnation = _names(row, 5, field)
        first, last = _seq(row[3], f"{field}[3]"), _seq(row[4], f"{field}[4]")
        if first > last:
            raise InvalidInputError("first_seq is after last_seq", field=field)
        spans.append(EmbedSpan(tenant, session, incarnation, first, last))
    return spans


def encode_sessions(sessions: Sequence[SessionRef]) -> Json:
    """One ``[tenant, session, incarnation]`` a session."""
    return [[ref.tenant, ref.session, ref.incarnation] for ref in sessions]


def decode_sessions(payload: object) -> list[SessionRef]:
    """Inverse of ``encode_sessions``. Raises ``InvalidInputError``."""
    rows = enumerate(_rows(payload, "sessions"))
    return [SessionRef(*_names(row, 3, f"sessions[{index}]")) for index, row in rows]


def job_id(queue: str, payload: Json, occasion: str) -> str:
    """The same work on the same occasion has the same id: letters, digits, ``_`` and ``-``, 40 characters or so.

    ``occasion`` tells two wishes for the same work apart (the newest seq that caused it, or the reconciler's
    window), so that a finished, failed or lost job never blocks a later one.
    """
    work = json.dumps([payload, occasion], ensure_ascii=True, separators=(",", ":"))
    return f"{queue}-{hashlib.blake2b(work.encode(), digest_size=16).hexdigest()}"


def _rows(payload: object, field: str) -> list[list[object]]:
    if not isinstance(payload, list) or not all(isinstance(row, list) for row in payload):
        raise InvalidInputError("expected a list of lists", field=field)
    return payload


def _names(row: list[object], width: int, field: str) -> tuple[str, str, str]:
    if len(row) != width:
        raise InvalidInputError(f"expected {width} values", field=field)
    tenant, session, incarnation = row[:3]
    if not (isinstance(tenant, str) and isinstance(session, str) and isinstance(incarnation, str)):
        raise InvalidInputError("tenant, session and incarnation are strings", field=field)
    if not (tenant and session and incarnation):
        raise InvalidInputError("tenant, session and incarnation are not empty", field=field)
    return tenant, session, incarnation


def _seq(value: object, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInputError("a seq is a whole number from 1", field=field)
    return value
