"""Turns of every shape, removed: the shape is read from what was published as it was when that was stored."""

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given

from prefold.conversation import PreparedTurn, TurnKind, redacted_turn, restore_turn
from prefold.conversation.markers import REMOVED_TEXT
from prefold.tokens import load_counter
from tests.property.test_conversation_turns import accepted, content_of, count_blocks, relaxed, turns


def removed(turn: PreparedTurn) -> PreparedTurn:
    verbatim = restore_turn(turn.envelope, turn.verbatim, turn.content, 3)
    stored = SimpleNamespace(id=turn.id, kind=turn.kind.value, role=turn.role, verbatim_json=verbatim)
    return redacted_turn(stored, load_counter())


@relaxed
@given(raw=turns)
def test_a_removed_turn_keeps_the_shape_that_rounds_depend_on(raw: dict[str, Any]) -> None:
    turn = accepted(raw)
    instead = removed(turn)
    assert (instead.id, instead.kind, instead.role) == (turn.id, turn.kind, turn.role)
    assert instead.call_ids == turn.call_ids
    assert [part.call_id for part in instead.results] == [part.call_id for part in turn.results]
    if turn.kind is TurnKind.RESULTS:
        assert bool(instead.content) == bool(turn.content)
    for late in (False, True):
        assert count_blocks(content_of(instead, late=late)) <= instead.tokens


@relaxed
@given(raw=turns)
def test_a_removed_turn_says_nothing_but_the_marker(raw: dict[str, Any]) -> None:
    turn = removed(accepted(raw))
    said = json.loads(restore_turn(turn.envelope, turn.verbatim, turn.content, 3))
    assert said["content"] == REMOVED_TEXT
    assert said.keys() <= {"seq", "id", "role", "ts", "content", "removed"}
    for block in json.loads(b"[" + content_of(turn) + b"]"):
        if block["type"] == "tool_use":
            assert (block["name"], block["input"]) == ("removed", {})
        else:
            assert block.get("text", block.get("content")) == REMOVED_TEXT
