"""A provider's answer as a turn: real objects of Anthropic's client, the JSON of OpenAI's, and what is neither."""

import json
from typing import Any

import pytest
from anthropic.types import Message

from prefold.client import turn_of
from prefold.client.reporting import EMPTY_ANSWER_TEXT
from prefold.conversation import TurnKind, prepare_turn
from prefold.conversation.turns import PreparedTurn
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


def prepared_of(response: object) -> PreparedTurn:
    return prepare_turn(turn_of(response), 0, load_counter(), lambda: "")


THINKING = {"type": "thinking", "thinking": "Nothing to add.", "signature": "c2ln"}
CHOICE = COMPLETION["choices"][0]


def completion_of(**message: object) -> dict[str, Any]:
    said = {"role": "assistant", "content": None, "refusal": None, "tool_calls": None, **message}
    return {**COMPLETION, "choices": [{**CHOICE, "message": said}]}


@pytest.mark.parametrize(
    ("response", "used"),
    [
        (Message.model_validate({**MESSAGE, "content": [], "stop_reason": "end_turn"}), 1000),
        ({**MESSAGE, "content": [{"type": "text", "text": " \n", "citations": None}]}, 1000),
        ({**MESSAGE, "content": [THINKING], "stop_reason": "max_tokens"}, 1000),
        (completion_of(), 700),
        (completion_of(content="  ", refusal="", tool_calls=[]), 700),
    ],
    ids=["no block", "blank text", "thinking alone", "null", "blank"],
)
def test_an_answer_that_says_nothing_is_stored_as_such_with_its_usage(response: object, used: int) -> None:
    prepared = prepared_of(response)

    assert (prepared.kind, prepared.usage_input_tokens) == (TurnKind.PLAIN, used)
    assert json.loads(b"[" + prepared.content + b"]")[-1] == {"type": "text", "text": EMPTY_ANSWER_TEXT}


def test_an_answer_that_says_something_is_left_as_it_is() -> None:
    for response in (MESSAGE, COMPLETION, completion_of(refusal="No."), completion_of(content="Yes.")):
        assert EMPTY_ANSWER_TEXT not in json.dumps(turn_of(response))


SEARCHED: dict[str, Any] = {
    **MESSAGE,
    "stop_reason": "end_turn",
    "content": [
        {"type": "text", "text": "I look it up."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "parcel Köln"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {
                    "type": "web_search_result",
                    "title": "Parcels",
                    "url": "https://parcels.example/koeln",
                    "encrypted_content": "c2VjcmV0",
                    "page_age": None,
                }
            ],
        },
        {
            "type": "text",
            "text": "It is in Cologne.",
            "citations": [
                {
                    "type": "web_search_result_location",
                    "cited_text": "in Cologne",
                    "encrypted_index": "aW5kZXg=",
                    "title": "Parcels",
                    "url": "https://parcels.example/koeln",
                }
            ],
        },
    ],
}


@pytest.mark.parametrize("response", [Message.model_validate(SEARCHED), SEARCHED], ids=["object", "json"])
def test_what_a_tool_of_the_provider_did_stands_there_as_text(response: object) -> None:
    prepared = prepared_of(response)

    assert (prepared.kind, prepared.usage_input_tokens) == (TurnKind.PLAIN, 1000)
    assert [block["text"] for block in json.loads(b"[" + prepared.content + b"]")] == [
        "I look it up.",
        '[web_search: {"query": "parcel Köln"}]',
        "[web_search result: Parcels, https://parcels.example/koeln]",
        "It is in Cologne.",
    ]


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s",
                "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            },
            "[web_search result: max_uses_exceeded]",
        ),
        (
            {
                "type": "code_execution_tool_result",
                "content": {"type": "code_execution_result", "stdout": "42\n", "stderr": "", "return_code": 0},
            },
            "[code_execution result: 42\n]",
        ),
        (
            {"type": "mcp_tool_result", "is_error": False, "content": [{"type": "text", "text": "sunny"}]},
            "[mcp result: sunny]",
        ),
        (
            {
                "type": "web_fetch_tool_result",
                "content": {
                    "type": "web_fetch_result",
                    "url": "https://a.example",
                    "content": {"type": "document", "source": {"type": "text", "data": "long"}},
                },
            },
            "[web_fetch result: https://a.example]",
        ),
        ({"type": "container_upload", "file_id": "file_1"}, "[container_upload result: done]"),
        ({"type": "mcp_tool_use", "name": "look", "input": {"at": "x" * 900}}, '[look: {"at": "' + "x" * 485 + "…]"),
    ],
)
def test_results_of_a_provider_s_tools_are_told_shortly(block: dict[str, Any], told: str) -> None:
    turn = turn_of({**MESSAGE, "content": [block]})

    assert turn["content"] == [{"type": "text", "text": told}]


def test_calls_of_ours_beside_those_of_the_provider_stay_calls() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    prepared = prepared_of({**SEARCHED, "content": [THINKING, *SEARCHED["content"][:3], call]})

    assert (prepared.kind, prepared.call_ids) == (TurnKind.CALLS, ("toolu_1",))
