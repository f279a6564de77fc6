"""Conversations as the log gives them, without a server."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.ledger.collect import Ledger, collect_ledger
from prefold.compaction.reading.turns import TurnCache, language_of
from prefold.storage.types import BuildTicket, SessionRef, StoredTurn
from prefold.tokens import load_counter

REF = SessionRef("acme", "chat", "life1")
DATA = Path(os.environ.get("PREFOLD_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
_KINDS = {"tool_use": "c", "tool_result": "r"}


def stored(seq: int, role: str, content: str | list[dict[str, Any]], **members: str) -> StoredTurn:
    """One turn of the log. ``members``: name, ts, and what else was published with it."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    served = [{key: value for key, value in block.items() if key != "caption"} for block in blocks]
    kinds = [_KINDS[block["type"]] for block in blocks if block["type"] in _KINDS]
    kind = "y" if role == "system" else (kinds or ["p"])[0]
    tokens = 4 + sum(_block_tokens(block) for block in served)
    verbatim = orjson.dumps({"seq": seq, "id": f"t{seq}", "role": role, **members, "content": content})
    return StoredTurn(
        seq=seq,
        id=f"t{seq}",
        role="assistant" if role == "assistant" else "user",
        kind=kind,
        content=orjson.dumps(served)[1:-1],
        short=b"",
        tokens=tokens,
        short_tokens=tokens,
        is_cut=kind != "r",
        revision=0,
        verbatim_json=verbatim,
    )


def talk(*said: tuple[str, str | list[dict[str, Any]]]) -> list[StoredTurn]:
    """Turns 1, 2, … of (role, content)."""
    return [stored(seq, role, content) for seq, (role, content) in enumerate(said, start=1)]


def users(*texts: str) -> list[StoredTurn]:
    """What a user said, turn by turn, with a short answer after each."""
    return talk(*(turn for text in texts for turn in (("user", text), ("assistant", "I see."))))


def small_talk(first: int, turns: int) -> list[StoredTurn]:
    """Turns ``first`` and on, of about 25 tokens each, that say nothing of note."""
    words = "weather garden river music window morning bread paper shoes clouds train street lamp coffee dinner".split()
    said = []
    for seq in range(first, first + turns):
        one, two, three = (words[(seq * step) % len(words)] for step in (1, 4, 7))
        text = f"The {one} seemed rather quiet today, and the {two} looked somehow like some {three} over there."
        said.append(stored(seq, "user" if seq % 2 else "assistant", text))
    return said


def call(name: str, call_id: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]


def result(call_id: str, content: str, **members: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": content, **members}]


def new_cache() -> TurnCache:
    return TurnCache(load_counter())


def ledger_of(turns: Iterable[StoredTurn], cache: TurnCache | None = None) -> Ledger:
    return collect_ledger((cache or new_cache()).read(REF, turns))


def wanted_of(
    turns: Sequence[StoredTurn], cap_tokens: int, *, carried: tuple[str, ...] = (), cache: TurnCache | None = None
) -> SummaryInput:
    readings = (cache or new_cache()).read(REF, turns)
    ledger = collect_ledger(readings)
    leave = ticket(turns[-1].seq if turns else 0, 32_000)
    return SummaryInput(REF, tuple(turns), cap_tokens, language_of(readings), ledger, carried, ticket=leave)


def summarize(turns: Sequence[StoredTurn], cap_tokens: int = 400, **options: Any) -> Summary:
    """What the extractive engine makes of ``turns``."""
    cache = new_cache()
    return ExtractiveSummarizer(cache, load_counter()).summarize_now(
        wanted_of(turns, cap_tokens, cache=cache, **options)
    )


def ticket(covers_to: int, hard_limit: int, **members: Any) -> BuildTicket:
    """Leave to build turns 1 to ``covers_to``."""
    given: dict[str, Any] = {
        "ref": REF,
        "epoch": 1,
        "covers_to": covers_to,
        "base_covers_to": 0,
        "lease_ms": 30_000,
        "hard_limit_tokens": hard_limit,
        "fixed_tokens": 0,
        "calibration": 1.0,
        "carried_turn": 0,
        "first_user_seq": 1,
        **members,
    }
    return BuildTicket(**given)


def data_talk(name: str) -> tuple[list[StoredTurn], dict[str, int]]:
    """A development conversation, and the seq of each of its line ids. Skips the test where it is not there."""
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no development data: {path} (set PREFOLD_DATA)")
    turns, seqs = [], {}
    for seq, line in enumerate(path.read_text().splitlines(), start=1):
        said = json.loads(line)
        members = {key: said[key] for key in ("name", "ts") if key in said}
        turns.append(stored(seq, said["role"], said["content"], **members))
        seqs[said["id"]] = seq
    return turns, seqs


def data_questions(name: str) -> list[dict[str, Any]]:
    """Questions on a development conversation that have an answer in it."""
    path = DATA / f"{name}.qa.json"
    if not path.exists():
        pytest.skip(f"no development data: {path} (set PREFOLD_DATA)")
    questions: list[dict[str, Any]] = json.loads(path.read_text())["questions"]
    return [one for one in questions if one["category"] not in ("abstention", "adversarial")]


def _block_tokens(block: dict[str, Any]) -> int:
    count = load_counter().count
    if block["type"] == "text":
        return 3 + count(str(block["text"]))
    return 1603 if block["type"] == "image" else 3 + count(orjson.dumps(block).decode())
