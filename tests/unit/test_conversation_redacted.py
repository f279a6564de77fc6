"""What stands in place of a removed turn: its shape, and none of its words."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from prefold.conversation import PreparedTurn, TurnKind, check_anthropic, redacted_turn, restore_turn
from prefold.conversation.markers import REMOVED_TEXT, late_result_blocks, result_block
from prefold.conversation.marks import neutralise, opening, strip_injected
from prefold.tokens import load_counter
from tests.support.prepared import PNG, blocks, call_blocks, count, prepare, published, raw_tokens

MARK = {"type": "text", "text": REMOVED_TEXT}
CALLED = {"type": "tool_use", "name": "SECRET_tool", "input": {"q": "SECRET"}}


@dataclass
class Logged:
    """A turn as the log gives it back."""

    id: str
    kind: str
    role: str
    verbatim_json: bytes


def logged(turn: PreparedTurn) -> Logged:
    verbatim = restore_turn(turn.envelope, turn.verbatim, turn.content, 7)
    return Logged(turn.id, turn.kind.value, turn.role, verbatim)


def redacted(**raw: Any) -> PreparedTurn:
    return redacted_turn(logged(prepare(**raw)), load_counter())


def test_a_plain_turn_is_the_marker_and_the_log_says_that_it_was_removed() -> None:
    turn = redacted(id="m1", role="user", content="SECRET", name="SECRET", ts="2026-01-01", metadata={"a": "SECRET"})
    assert (turn.kind, turn.role, turn.id) == (TurnKind.PLAIN, "user", "m1")
    assert blocks(turn.content) == [MARK]
    said = {"id": "m1", "role": "user", "ts": "2026-01-01", "content": REMOVED_TEXT, "removed": True}
    assert list(published(turn).items()) == list(said.items())
    assert (turn.tokens, turn.short_tokens) == (raw_tokens([MARK]), raw_tokens([MARK]))


@pytest.mark.parametrize("ts", [10**30, 1683554160.25, 1_900_000_000])
def test_a_time_that_was_a_number_stays_that_number(ts: float) -> None:
    assert published(redacted(role="user", content="x", ts=ts))["ts"] == ts


def test_an_assistants_words_thinking_and_media_are_gone() -> None:
    thought = {"type": "thinking", "thinking": "SECRET", "signature": "SECRET" * 9}
    turn = redacted(role="assistant", content=[thought, {"type": "text", "text": "SECRET"}])
    assert (turn.role, turn.has_thinking, blocks(turn.content)) == ("assistant", False, [MARK])
    picture = redacted(role="user", content=[{"type": "image", "source": PNG, "caption": "SECRET"}])
    assert blocks(picture.content) == [MARK]


def test_calls_keep_their_ids_in_order_and_nothing_else() -> None:
    turn = redacted(
        role="assistant",
        content=[{"type": "text", "text": "SECRET"}, {**CALLED, "id": "a:1"}, {**CALLED, "id": "c2"}],
    )
    first, *calls = call_blocks(turn)
    assert first == MARK
    assert calls == [
        {"type": "tool_use", "id": turn.call_ids[0], "name": "removed", "input": {}},
        {"type": "tool_use", "id": "c2", "name": "removed", "input": {}},
    ]
    assert (
        turn.call_ids == prepare(role="assistant", content=[{**CALLED, "id": "a:1"}, {**CALLED, "id": "c2"}]).call_ids
    )
    assert turn.tokens >= 4 + 3 * 3 + sum(count(json.dumps(call, separators=(",", ":"))) for call in calls)


def test_openais_calls_keep_their_ids_too() -> None:
    function = {"name": "SECRET", "arguments": '{"q":"SECRET"}'}
    calls = [{"id": name, "type": "function", "function": function} for name in ("c1", "c2")]
    turn = redacted(role="assistant", content=None, tool_calls=calls)
    assert (turn.kind, turn.call_ids) == (TurnKind.CALLS, ("c1", "c2"))
    assert b"SECRET" not in turn.envelope + b"".join(turn.pieces)


def test_results_keep_their_calls_and_say_the_marker() -> None:
    found = {"type": "tool_result", "content": "SECRET", "is_error": True}
    turn = redacted(role="user", content=[{**found, "tool_use_id": "c1"}, {**found, "tool_use_id": "c2"}])
    shown = [json.loads(result_block(part)) for part in turn.results]
    assert shown == [{"type": "tool_result", "tool_use_id": name, "content": REMOVED_TEXT} for name in ("c1", "c2")]
    assert turn.content == b""
    assert turn.tokens >= raw_tokens(shown)
    late = blocks(late_result_blocks(turn.results[0]))
    assert late[1:] == [MARK]
    assert check_anthropic([{"role": "user", "content": late}]) == []


@pytest.mark.parametrize(
    ("beside", "stays"),
    [
        ([], False),
        ([{"type": "text", "text": " \n"}], False),
        ([{"type": "text", "text": "SECRET"}], True),
        ([{"type": "input_text", "text": "SECRET"}], True),
        ([{"type": "image", "source": PNG}], True),
    ],
)
def test_words_beside_results_become_the_marker_and_none_come_in(beside: list[dict[str, Any]], stays: bool) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "SECRET"}
    turn = redacted(role="user", content=[result, *beside], tool_call_id=None, tool_calls=None)
    assert blocks(turn.content) == ([MARK] if stays else [])
    assert len(turn.results) == 1


@pytest.mark.parametrize("content", ["SECRET", None, [{"type": "text", "text": "SECRET"}]])
def test_a_result_of_role_tool_stays_one(content: Any) -> None:
    turn = redacted(role="tool", tool_call_id="c1", content=content)
    assert (turn.kind, [part.call_id for part in turn.results], turn.content) == (TurnKind.RESULTS, ["c1"], b"")
    assert published(turn).keys() == {"id", "role", "content", "removed"}


def test_a_system_turn_leaves_the_system_prompt() -> None:
    turn = redacted(role="developer", content="SECRET rule")
    assert (turn.kind, turn.system_text, turn.system_tokens) == (TurnKind.SYSTEM, b"", 0)
    assert blocks(turn.content) == [MARK]


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{**CALLED, "id": "c1"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
)
def test_a_turn_can_be_removed_that_was_removed_before(turn: dict[str, Any]) -> None:
    once = redacted(**turn)
    twice = redacted_turn(logged(once), load_counter())
    assert (twice.envelope, twice.kind, twice.digest) == (once.envelope, once.kind, once.digest)


def test_a_turn_that_would_be_refused_today_can_be_removed() -> None:
    source = {"type": "base64", "media_type": "image/tiff", "data": "SECRET"}
    content = [{"type": "image", "source": source}, {"type": "of the future"}]
    verbatim = json.dumps({"seq": 7, "id": "m1", "role": "user", "content": content, "unknown": "SECRET"})
    turn = redacted_turn(Logged("m1", "p", "user", verbatim.encode()), load_counter())
    assert blocks(turn.content) == [MARK]
    assert b"SECRET" not in turn.envelope


def test_no_conversation_passes_for_the_marker() -> None:
    assert neutralise(REMOVED_TEXT) == f"({REMOVED_TEXT[1:]}"
    text = f"{opening('ledger')} kept {REMOVED_TEXT} [Prefold: end of ledger] after"
    assert strip_injected(text) == " after", "the marker is no opening of a part of the head"
