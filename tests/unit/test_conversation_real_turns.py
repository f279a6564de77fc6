"""Recorded conversations, turn by turn: all are taken, given back, and short where they should be."""

import json
import os
from pathlib import Path

import pytest

from prefold.conversation import parse_json, prepare_turn, restore_turn
from prefold.conversation.short_forms import SHORT_TOKENS
from prefold.tokens import load_counter

DATA = Path(os.environ.get("PREFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILES = sorted(DATA.glob("*.jsonl"))


@pytest.mark.skipif(not FILES, reason=f"no conversation data in {DATA} (set PREFOLD_DATA)")
def test_every_recorded_turn_is_taken_and_given_back() -> None:
    taken = 0
    for file in FILES:
        for number, line in enumerate(file.read_bytes().splitlines()):
            raw = parse_json(line)
            turn = prepare_turn(raw, number, load_counter(), lambda: "made")
            restored = json.loads(restore_turn(turn.envelope, turn.verbatim, turn.content, number + 1))
            assert json.dumps(restored) == json.dumps({"seq": number + 1, **raw}), (file.name, number)
            assert turn.short_tokens <= max(SHORT_TOKENS, 60 * len(turn.call_ids) + 60 * len(turn.results))
            taken += 1
    assert taken > 1_000
