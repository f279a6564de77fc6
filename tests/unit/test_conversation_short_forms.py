"""What stands for a turn when there is no room for it."""

import json

import pytest

from prefold.conversation import markers
from prefold.conversation.blocks import IMAGE_TOKENS
from prefold.conversation.short_forms import SHORT_TOKENS
from tests.support.prepared import PNG, blocks, call_blocks, count, prepare, raw_tokens


def test_a_turn_within_the_budget_has_no_short_form() -> None:
    turn = prepare(role="user", content="word " * (SHORT_TOKENS - 8))
    assert turn.tokens <= SHORT_TOKENS
    assert turn.short is None
    assert not turn.has_short


def test_a_long_text_is_shortened_to_head_and_tail() -> None:
    turn = prepare(role="user", content="BEGIN " + "word " * 5_000 + "END")
    assert turn.has_short
    assert turn.short is not None
    text = blocks(turn.short)[0]["text"]
    assert text.startswith("BEGIN word")
    assert text.endswith("word END")
    assert "tokens left out …]" in text
    assert SHORT_TOKENS * 0.7 < turn.short_tokens == 7 + count(text) <= SHORT_TOKENS


def test_an_image_is_shortened_to_its_placeholder() -> None:
    turn = prepare(
        role="user", content=[{"type": "text", "text": "see"}, {"type": "image", "source": PNG, "caption": "a dog"}]
    )
    assert turn.short is not None
    assert blocks(turn.short) == [{"type": "text", "text": "see\n[Image: a dog]"}]
    assert turn.short_tokens < 30


def test_thinking_is_left_out_of_the_short_form_of_a_plain_turn() -> None:
    thought = {"type": "thinking", "thinking": "hm " * 500, "signature": "E" * 100}
    turn = prepare(role="assistant", content=[thought, {"type": "text", "text": "Yes."}])
    assert turn.short == b'{"type":"text","text":"Yes."}'


def test_the_input_of_a_call_is_clipped_in_the_short_form() -> None:
    content = [
        {"type": "text", "text": "I write. " * 100},
        {"type": "tool_use", "id": "c1", "name": "write", "input": {"text": "word " * 2_000}},
        {"type": "tool_use", "id": "c2", "name": "now", "input": {"tz": "UTC"}},
    ]
    turn = prepare(role="assistant", content=content)
    text, write, now = call_blocks(turn, turn.short_pieces)
    assert text["type"] == "text"
    assert list(write["input"]) == ["_clipped"]
    assert write["input"]["_clipped"].startswith('{"text":"word')
    assert now["input"] == {"tz": "UTC"}
    assert turn.short_tokens <= SHORT_TOKENS


def test_thinking_before_a_call_is_kept_in_the_short_form_where_it_fits() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "write", "input": {"text": "word " * 2_000}}
    small = {"type": "thinking", "thinking": "I write it.", "signature": "E" * 100}
    large = {"type": "thinking", "thinking": "hm " * 500, "signature": "E" * 100}
    turn = prepare(role="assistant", content=[small, call])
    assert call_blocks(turn, turn.short_pieces)[0] == small
    assert turn.short_tokens <= SHORT_TOKENS
    turn = prepare(role="assistant", content=[large, call])
    assert [block["type"] for block in call_blocks(turn, turn.short_pieces)] == ["tool_use"]
    turn = prepare(role="assistant", content=[{"type": "text", "text": "So:"}, small, call])
    assert [block["type"] for block in call_blocks(turn, turn.short_pieces)] == ["text", "tool_use"]


def test_results_share_the_budget_of_the_short_form() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"{n}: " + "line\n" * 1_000} for n in range(3)
    ]
    turn = prepare(role="user", content=[*content, {"type": "text", "text": "go on " * 300}])
    assert turn.short_tokens <= SHORT_TOKENS
    for number, part in enumerate(turn.results):
        assert part.short is not None
        assert json.loads(part.short).startswith(f"{number}: line")
    assert turn.short is not None
    assert raw_tokens(
        [json.loads(markers.result_block(part, short=True)) for part in turn.results] + blocks(turn.short)
    ) <= (turn.short_tokens)


def test_an_image_in_a_result_is_shortened_to_its_placeholder() -> None:
    content = [{"type": "image", "source": PNG, "caption": "chart"}]
    turn = prepare(role="user", content=[{"type": "tool_result", "tool_use_id": "c", "content": content}])
    assert turn.tokens > IMAGE_TOKENS
    assert turn.results[0].short == b'"[Image: chart]"'
    assert turn.short_tokens < 60


@pytest.mark.parametrize("number", [20, 128])
def test_a_turn_of_many_items_is_as_short_as_each_of_them_can_be(number: int) -> None:
    calls = [
        {"type": "tool_use", "id": f"toolu_{n:04}", "name": "search", "input": {"q": "word " * 300}}
        for n in range(number)
    ]
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n:04}", "content": "word " * 300} for n in range(number)]
    for turn in (prepare(role="assistant", content=calls), prepare(role="user", content=results)):
        assert turn.tokens > 300 * number
        assert turn.short_tokens <= 60 * number


def test_a_long_system_turn_has_a_short_form_with_its_marker() -> None:
    turn = prepare(role="system", content="Be kind. " * 500)
    assert turn.short is not None
    assert blocks(turn.short)[0]["text"].startswith("[System message:]\nBe kind.")
    assert turn.short_tokens <= SHORT_TOKENS
