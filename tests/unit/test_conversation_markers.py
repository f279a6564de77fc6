"""The texts that Prefold writes: valid blocks, within the tokens that the scripts reckon with."""

import json

import pytest

from prefold.conversation import ResultPart, check_anthropic, markers
from prefold.conversation.encoding import encode
from prefold.tokens import load_counter

CALL_IDS = ["a", "toolu_01A09q90qw90lq917835lq9", "x" * 64, "Zq9-_7Kx" * 8, "0123456789" * 6, "_-" * 32]


def _count(block: dict[str, object]) -> int:
    """Raw tokens of a block as the data model counts them."""
    text = block["text"] if block["type"] == "text" else json.dumps(block, separators=(",", ":"), ensure_ascii=False)
    assert isinstance(text, str)
    return markers.BLOCK_TOKENS + load_counter().count(text)


def test_the_opener_says_who_began_and_costs_what_it_says() -> None:
    block = json.loads(markers.OPENER)
    assert block == {"type": "text", "text": "[The assistant began this conversation.]"}
    assert markers.FRAGMENT_TOKENS + _count(block) == markers.OPENER_TOKENS


@pytest.mark.parametrize("call_id", CALL_IDS)
def test_a_closer_answers_its_call_within_its_tokens(call_id: str) -> None:
    block = json.loads(markers.closer_block(call_id))
    assert block == {"type": "tool_result", "tool_use_id": call_id, "content": markers.NO_RESULT_TEXT}
    assert _count(block) <= markers.CLOSER_TOKENS + len(call_id)


@pytest.mark.parametrize(("first", "last"), [(1, 1), (3, 17), (1_234_567_890, 9_876_543_210)])
def test_a_gap_names_its_turns_within_its_tokens(first: int, last: int) -> None:
    block = json.loads(markers.gap_block(first, last))
    assert block["text"].startswith(f"[Prefold: turns {first}-{last} are left out here")
    assert markers.FRAGMENT_TOKENS + _count(block) <= markers.GAP_TOKENS


@pytest.mark.parametrize("call_id", CALL_IDS)
@pytest.mark.parametrize("suffix", ["_1", "_4711", "_9876543210"])
def test_a_renamed_call_costs_no_more_than_reckoned(call_id: str, suffix: str) -> None:
    count = load_counter().count
    before = markers.closer_block(call_id).decode()
    after = markers.closer_block(call_id[:50] + suffix).decode()
    assert count(after) <= count(before) + markers.RENAME_TOKENS


def test_an_open_result_and_a_late_one_say_the_same() -> None:
    part = ResultPart("call_1", b',"is_error":true', encode('no "stock"\n'), True, encode("no"))
    result = json.loads(markers.result_block(part))
    assert result == {"type": "tool_result", "tool_use_id": "call_1", "is_error": True, "content": 'no "stock"\n'}
    late = json.loads(b"[" + markers.late_result_blocks(part) + b"]")
    assert [block["text"] for block in late] == [
        "[Result of the earlier call call_1, which is no longer open:]",
        'no "stock"\n',
    ]
    assert late[0]["text"] == markers.late_result_text("call_1")
    assert check_anthropic([{"role": "user", "content": late}]) == []


def test_a_result_of_blocks_keeps_them_and_has_a_short_form_in_text() -> None:
    image = '{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}'
    part = ResultPart("c", b"", f'{{"type":"text","text":"see"}},{image}'.encode(), False, encode("see [Image]"))
    assert json.loads(markers.result_block(part))["content"] == [{"type": "text", "text": "see"}, json.loads(image)]
    assert json.loads(markers.result_block(part, short=True))["content"] == "see [Image]"
    assert len(json.loads(b"[" + markers.late_result_blocks(part) + b"]")) == 3
    assert json.loads(b"[" + markers.late_result_blocks(part, short=True) + b"]")[1]["text"] == "see [Image]"


def test_placeholders_name_what_they_stand_for() -> None:
    assert markers.image_placeholder("a red bicycle") == "[Image: a red bicycle]"
    assert markers.image_placeholder("") == "[Image]"
    assert markers.document_placeholder("Invoice") == "[Document: Invoice]"
    assert markers.left_out_text(4321) == "[… 4,321 tokens left out …]"
