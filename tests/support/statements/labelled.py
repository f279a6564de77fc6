"""The development conversations, what is extracted from them, and what a reader thought of it.

A label is the place of a row (conversation, turn, whose words) and a hash of its relation and object, with the verdict:
right when the speaker states this lastingly about themself, and relation, object and category say so. No word of the
conversations is kept here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

import orjson
import pytest

from prefold.facts.rows import Stated
from prefold.memory.extracting import extract_offline
from prefold.storage.types import SessionRef, StoredTurn
from tests.support.compaction import DATA

Speaker = Literal["user", "assistant"]
LABELS = Path(__file__).with_name("labels.json")
_KINDS = {"tool_use": "c", "tool_result": "r"}
_REF = SessionRef("acme", "data", "life1")


@dataclass(frozen=True, slots=True)
class Extracted:
    """One row, and where it is in the data."""

    conversation: str
    speaker: Speaker
    row: Stated

    @property
    def label(self) -> str:
        """Its key among the labels."""
        said = f"{self.row.retracts} {self.row.relation} {self.row.object} {self.row.category}"
        digest = sha256(said.encode()).hexdigest()[:10]
        return f"{self.conversation}:{self.row.source.turn_id}:{self.speaker}:{digest}"


def read_labels() -> dict[str, bool]:
    """Key of a row → whether it is right."""
    labels: dict[str, bool] = json.loads(LABELS.read_text())
    return labels


def extracted_from_data(most_bytes: int | None = None) -> Iterator[Extracted]:
    """All rows of all conversations; of those between two people, of both. Skips the test where there is no data.

    ``most_bytes``: only of conversations of that size.
    """
    paths = [path for path in sorted(DATA.glob("*.jsonl")) if most_bytes is None or path.stat().st_size <= most_bytes]
    if not paths:
        pytest.skip(f"no development data in {DATA} (set PREFOLD_DATA)")
    for path in paths:
        turns = [_turn(seq, line) for seq, line in enumerate(path.read_bytes().splitlines(), start=1)]
        speakers: tuple[Speaker, ...] = ("user", "assistant") if path.stem.startswith("locomo") else ("user",)
        for speaker in speakers:
            own = [replace(turn, role="user") for turn in turns if turn.role == speaker]
            yield from (Extracted(path.stem, speaker, row) for row in extract_offline(own, _REF))


def _turn(seq: int, line: bytes) -> StoredTurn:
    """Without its tokens, which nobody asks for here."""
    said = orjson.loads(line)
    blocks = said["content"]
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
    kinds = [_KINDS[block["type"]] for block in blocks if block["type"] in _KINDS]
    return StoredTurn(
        seq=seq,
        id=said["id"],
        role="assistant" if said["role"] == "assistant" else "user",
        kind="y" if said["role"] == "system" else (kinds or ["p"])[0],
        content=orjson.dumps(blocks)[1:-1],
        short=b"",
        tokens=0,
        short_tokens=0,
        is_cut=True,
        revision=0,
        verbatim_json=line,
    )
