"""Who speaks when, and that nobody says nothing."""

from collections.abc import Iterator
from typing import Any

from tests.support.messages_api.catalogue import NO_SYSTEM_TURNS, Model
from tests.support.messages_api.checks.compacting import begins_compacted
from tests.support.messages_api.errors import invalid
from tests.support.messages_api.prompt import blocks_of


def check_turns(body: dict[str, Any], model: Model) -> None:
    """Raises 400 for empty texts, turns without content, a prefill, and system turns out of place."""
    messages = body["messages"]
    _check_texts(body)
    _check_contents(messages)
    if messages[0]["role"] == "assistant" and not begins_compacted(messages):
        raise invalid('messages: first message must use the "user" role')
    _check_system_turns(messages, model)
    if messages[-1]["role"] == "assistant" and not body.get("compaction"):
        _check_prefill(messages[-1], model)
    for index, message in enumerate(messages):
        _check_blocks(message, f"messages.{index}.content")


def _check_texts(body: dict[str, Any]) -> None:
    for place, text in _texts(body):
        if not text:
            raise invalid(f"{place}: text content blocks must be non-empty")
        if not text.strip():
            raise invalid(f"{place}: text content blocks must contain non-whitespace text")


def _texts(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each with where it is told to be. An empty string as a whole content is told of elsewhere."""
    for block in blocks_of(body.get("system")):
        yield "system", block["text"]
    for message in body["messages"]:
        for block in blocks_of(message["content"]):
            if block.get("type") == "text":
                yield "messages", block["text"]
            if block.get("type") == "tool_result":
                inner = blocks_of(block.get("content")) if isinstance(block.get("content"), list) else []
                yield from (("messages", part["text"]) for part in inner if part.get("type") == "text")


def _check_contents(messages: list[dict[str, Any]]) -> None:
    for index, message in enumerate(messages):
        is_final_assistant = index == len(messages) - 1 and message["role"] == "assistant"
        if not message["content"] and not is_final_assistant:
            raise invalid(
                f"messages.{index}: all messages must have non-empty content"
                " except for the optional final assistant message"
            )


def _check_prefill(message: dict[str, Any], model: Model) -> None:
    if not model.is_older:
        raise invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    blocks = blocks_of(message["content"])
    if blocks and blocks[-1].get("type") == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        raise invalid("messages: final assistant content cannot end with trailing whitespace")


def _check_system_turns(messages: list[dict[str, Any]], model: Model) -> None:
    for index, message in enumerate(messages):
        if message["role"] != "system":
            continue
        if model.is_older or model.id in NO_SYSTEM_TURNS:
            raise invalid(f"messages.{index}: role 'system' is not supported on this model")
        if index == 0 or messages[index - 1]["role"] != "user":
            raise invalid(f"messages.{index}: a system message must directly follow a user message")
        if index + 1 < len(messages) and messages[index + 1]["role"] != "assistant":
            raise invalid(f"messages.{index}: a system message must be last or followed by an assistant message")


def _check_blocks(message: dict[str, Any], path: str) -> None:
    role = message["role"]
    for index, block in enumerate(blocks_of(message["content"])):
        kind = block.get("type")
        if kind in _ONLY_OF and role != _ONLY_OF[kind]:
            raise invalid(f"{path}.{index}: `{kind}` blocks can only be in {_ONLY_OF[kind]} messages")
        if kind == "text" and role == "user" and block.get("citations") is not None:
            raise invalid(f"{path}.{index}.text.citations: citations are not permitted on user text")


_ONLY_OF = {
    "tool_use": "assistant",
    "tool_result": "user",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "document": "user",
    "image": "user",
}
