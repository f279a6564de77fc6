"""A provider's answer as a turn: real objects of Anthropic's client, the JSON of OpenAI's, and what is neither."""

from typing import Any

import pytest
from anthropic.types import Message

from prefold.client import turn_of
from prefold.conversation import TurnKind, prepare_turn
from prefold.errors import InvalidInputError
from prefold.tokens import load_counter

MESSAGE: dict[str, Any] = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-5-5",
    "content": [
        {"type": "thinking", "thinking": "Let me look.", "signature": "c2ln"},
        {"type": "text", "text": "I look it up.", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"order": "LF-1", "empty": None}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 900,
        "output_tokens": 40,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": None,
        "service_tier": "standard",
        "server_tool_use": None,
    },
}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-5.1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "audio": None,
                "function_call": None,
                "tool_calls": [
                    {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 700,
        "completion_tokens": 20,
        "total_tokens": 720,
        "prompt_tokens_details": {"cached_tokens": 5},
    },
}


@pytest.mark.parametrize("response", [Message.model_validate(MESSAGE), MESSAGE], ids=["object", "json"])
def test_a_message_of_anthropic_keeps_its_blocks_its_id_and_its_usage(response: object) -> None:
    turn = turn_of(response)

    assert turn["id"] == "msg_01"
    assert [block["type"] for block in turn["content"]] == ["thinking", "text", "tool_use"]
    assert turn["content"][2]["input"] == {"order": "LF-1", "empty": None}
    prepared = prepare_turn(turn, 0, load_counter(), lambda: "")
    assert (prepared.kind, prepared.call_ids, prepared.usage_input_tokens) == (TurnKind.CALLS, ("toolu_1",), 1000)


def test_a_completion_of_openai_keeps_its_calls_its_id_and_its_usage() -> None:
    turn = turn_of(COMPLETION)

    assert (turn["id"], turn["content"]) == ("chatcmpl-1", None)
    prepared = prepare_turn(turn, 0, load_counter(), lambda: "")
    assert (prepared.kind, prepared.call_ids, prepared.usage_input_tokens) == (TurnKind.CALLS, ("call_1",), 700)


@pytest.mark.parametrize("response", [None, "text", {"choices": []}, {"content": "text"}, 7, {"output": []}])
def test_what_is_no_answer_of_theirs_is_refused(response: object) -> None:
    with pytest.raises(InvalidInputError):
        turn_of(response)
