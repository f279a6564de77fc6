"""What is left out of recorded conversations, and that no question's evidence is among it."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prefold.recall.keeping import why_not
from tests.support.compaction import DATA
from tests.support.seeds import tell

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no recorded conversations in {DATA} (set PREFOLD_DATA)")

SETS = ("locomo", "beam", "memorybank", "trip", "tau", "code", "irc")
LEAST = {"locomo": 20, "irc": 20, "code": 8, "memorybank": 1}
"""So many turns of a set are left out at least: a rule that never applies keeps its promise by doing nothing."""
MOST_SHARE = 0.1


def conversations(name: str) -> Iterator[tuple[list[dict[str, Any]], set[str]]]:
    """The turns of each conversation of a set, and the ids that some question needs."""
    for path in sorted(DATA.glob(f"{name}-*.jsonl")):
        yield [json.loads(line) for line in path.read_text("utf-8").splitlines()], evidence(path)


def evidence(path: Path) -> set[str]:
    sidecar = path.with_suffix(".qa.json")
    questions = json.loads(sidecar.read_text("utf-8"))["questions"] if sidecar.exists() else []
    needed = [one for question in questions for one in (question, question.get("correction") or {})]
    return {turn for one in needed for turn in one.get("evidence") or ()}


@pytest.mark.parametrize("name", SETS)
def test_no_evidence_of_any_question_is_left_out(name: str) -> None:
    left_out: Counter[str] = Counter()
    lost, turns = [], 0
    for conversation, needed in conversations(name):
        raw = [None, *(json.dumps(turn).encode() for turn in conversation), None]
        turns += len(conversation)
        for at, turn in enumerate(conversation, 1):
            one = raw[at]
            assert one is not None
            if reason := why_not(one, raw[at - 1], raw[at + 1]):
                left_out[reason] += 1
                lost += [turn["id"]] if turn["id"] in needed else []
    if not turns:
        pytest.skip(f"no conversations of {name} in {DATA}")
    tell(f"{name}: {left_out.total()} of {turns} turns are not embedded: {dict(left_out)}; evidence lost: {len(lost)}")
    assert lost == []
    assert LEAST.get(name, 0) <= left_out.total() <= MOST_SHARE * turns
