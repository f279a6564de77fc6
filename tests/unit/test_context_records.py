"""What is kept of a context that was served, and what the log says of it."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import AsyncMock

import pytest
from structlog.testing import capture_logs

from prefold.assembly.served import ServedContext, ServedLeftOut, ServedRecall
from prefold.gateway.context_records import MOST_LEFT_OUT, MOST_TOLD, ContextRecords, record_of
from prefold.storage.types import SessionRef, StoredContext

LIFE = SessionRef("acme", "s", "life")
SUMMARY = b'{"role":"user","seq":1,"part":"summary","tokens":%d,"content":[]}\n'


def record(recalled: Sequence[ServedRecall] = (), summary_tokens: int = 7) -> dict[str, Any]:
    """Of a context whose summary is of turn 1."""
    served = ServedContext(2, 1, "ok", "", b"[]", 40, {"summary": 7, "recall": 33}, tuple(recalled), (), ())
    body = b"\n" + SUMMARY % summary_tokens
    stored = StoredContext(LIFE, body, 2, 1, 9, "ok", "", 0, 0, 1.0, 1_000, "", (), True, "")
    return record_of(stored, served, with_query=True, form="anthropic", budget_tokens=None, etag='"q-1"')


async def told(*records: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of these records."""
    kept = ContextRecords(AsyncMock())
    with capture_logs() as logs:
        for one in records:
            kept.note(LIFE, one)
        await kept.close()
    return [dict(event) for event in logs if event["event"] == "context_served"]


async def test_the_log_says_what_was_recalled_by_id_and_score_and_shows_that_the_summary_is_another() -> None:
    turn = ServedRecall(5, "user", 0.71, 20, "turn", "t5")
    digest = ServedRecall(0, "", 0.4, 13, "summary", "digest", session="s0", copies=2)
    fact = ServedRecall(0, "", 0.0, 9, "fact", "f1", sources=(("other", "t1", 1),))
    first, same, rewritten = await told(record([turn, digest, fact]), record(), record(summary_tokens=8))
    assert (first["recalled"], first["tokens"], first["sections"]) == (3, 40, {"summary": 7, "recall": 33})
    assert first["recalled_ids"] == [
        {"kind": "turn", "id": "t5", "seq": 5, "score": 0.71},
        {"kind": "summary", "id": "digest", "session": "s0", "score": 0.4},
        {"kind": "fact", "id": "f1", "score": 0.0},
    ]
    assert same["recalled_ids"] == []
    assert first["summary"] == same["summary"] != rewritten["summary"]
    assert len(first["summary"]) == 16


@pytest.mark.parametrize("count", [MOST_TOLD, 500])
async def test_the_log_names_no_more_than_so_many(count: int) -> None:
    items = [ServedRecall(seq, "user", 0.5, 1, "turn", f"t{seq}") for seq in range(1, count + 1)]
    (event,) = await told(record(items))
    assert (event["recalled"], len(event["recalled_ids"])) == (count, MOST_TOLD)


def test_a_record_stays_small_however_much_yielded() -> None:
    yielded = tuple(ServedLeftOut("window", None, "short_form", seq, seq) for seq in range(5_000))
    served = ServedContext(1, 0, "degraded", "", b"[]", 0, {}, (), yielded, ())
    stored = StoredContext(LIFE, b"", 1, 0, 5_000, "degraded", "", 0, 0, 1.0, 1_000, "", (), True, "")
    kept = record_of(stored, served, with_query=False, form="openai", budget_tokens=None, etag="")
    assert len(kept["left_out"]) == MOST_LEFT_OUT
    assert kept["left_out"][0]["first_seq"] == 0
