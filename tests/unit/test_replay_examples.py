"""The conversation that the project ships: its shape, and that its questions can be answered from it."""

import json
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from prefold.conversation import Fragment, anthropic_messages, check_anthropic
from prefold.conversation.encoding import encode
from prefold.replay.demo import HARD_LIMIT_TOKENS, example_path
from prefold.replay.demo_end import FACTS
from prefold.tokens import load_counter

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def turns() -> list[dict[str, Any]]:
    return [json.loads(line) for line in example_path().read_text(encoding="utf-8").splitlines()]


def blocks_of(turn: dict[str, Any]) -> list[dict[str, Any]]:
    content = turn["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def test_the_conversation_has_150_turns_or_more_and_begins_with_the_policy(turns: list[dict[str, Any]]) -> None:
    assert 150 <= len(turns) <= 190
    assert [turn["role"] for turn in turns].count("system") == 1
    assert turns[0]["role"] == "system"


def test_time_only_moves_forward_over_several_days(turns: list[dict[str, Any]]) -> None:
    times = [datetime.fromisoformat(turn["ts"]) for turn in turns]

    assert all(earlier < later for earlier, later in pairwise(times))
    assert len({time.date() for time in times}) >= 5


def test_it_is_a_conversation_that_a_provider_accepts(turns: list[dict[str, Any]]) -> None:
    fragments = [
        Fragment(turn["role"], number, "", 1, encode(blocks_of(turn))[1:-1]) for number, turn in enumerate(turns[1:], 2)
    ]

    assert check_anthropic(anthropic_messages(fragments), turns[0]["content"]) == []


def test_it_has_tool_rounds_with_parallel_calls_and_failures(turns: list[dict[str, Any]]) -> None:
    kinds = Counter(block["type"] for turn in turns for block in blocks_of(turn))
    rounds = [turn for turn in turns if any(block["type"] == "tool_use" for block in blocks_of(turn))]
    parallel = [turn for turn in rounds if sum(block["type"] == "tool_use" for block in blocks_of(turn)) > 1]
    failures = [block for turn in turns for block in blocks_of(turn) if block.get("is_error")]

    assert kinds["tool_use"] == kinds["tool_result"] >= 20
    assert len(parallel) >= 3
    assert len(failures) >= 2


def test_no_turn_is_larger_than_a_tenth_of_the_demos_limit(turns: list[dict[str, Any]]) -> None:
    counter = load_counter()

    assert max(counter.count(encode(blocks_of(turn)).decode()) for turn in turns) <= HARD_LIMIT_TOKENS // 10


def test_the_facts_that_the_demo_looks_for_are_said_in_its_first_half(turns: list[dict[str, Any]]) -> None:
    first_half = " ".join(json.dumps(turn["content"], ensure_ascii=False) for turn in turns[: len(turns) // 2])

    for fact in FACTS:
        assert fact.value.casefold() in first_half.casefold(), fact.told


def test_the_evidence_of_each_question_stands_in_the_conversation(turns: list[dict[str, Any]]) -> None:
    questions = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))["questions"]
    ids = {turn["id"] for turn in turns}

    assert len(questions) >= 10
    assert len({question["id"] for question in questions}) == len(questions)
    for question in questions:
        assert set(question["evidence"]) <= ids
        assert bool(question["evidence"]) == (question["answer"] is not None)
