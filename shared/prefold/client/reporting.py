"""A provider's answer as the turn to publish: content, usage and id, from the object that its client returned."""

from collections.abc import Mapping
from typing import Any

from prefold.client.results import JsonObject
from prefold.errors import InvalidInputError

_ANTHROPIC_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_OPENAI_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
_ANTHROPIC = ("id", "role", "model", "stop_reason", "stop_sequence")
_OPENAI = ("role", "content", "refusal")


def turn_of(response: object) -> JsonObject:
    """The assistant's turn in an answer of ``anthropic``'s ``messages.create`` or ``openai``'s ``chat.completions.create``.

    Takes the clients' objects and their JSON. Members that are null are left out, the count of usage is kept, and the
    provider's id becomes the turn's, so that reporting twice is a duplicate. ``InvalidInputError`` for anything else.
    """
    document = _document(response)
    if isinstance(document.get("content"), list):
        return _of_anthropic(document)
    choices = document.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0].get("message"), dict):
        return _of_openai(document, choices[0]["message"])
    raise InvalidInputError("neither a message of Anthropic's API nor a chat completion of OpenAI's", field="response")


def _of_anthropic(document: JsonObject) -> JsonObject:
    turn = {name: document[name] for name in _ANTHROPIC if document.get(name) is not None}
    turn.setdefault("role", "assistant")
    content = [_without_null(block) for block in document["content"]]
    return {**turn, "content": content, **_usage(document, _ANTHROPIC_USAGE)}


def _of_openai(document: JsonObject, message: JsonObject) -> JsonObject:
    turn = {"id": document["id"]} if document.get("id") else {}
    turn |= {name: message[name] for name in _OPENAI if message.get(name) is not None}
    turn.setdefault("role", "assistant")
    turn.setdefault("content", None)
    if message.get("tool_calls"):
        turn["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return {**turn, **_usage(document, _OPENAI_USAGE)}


def _call(call: JsonObject) -> JsonObject:
    """Without what only a stream needs."""
    return {name: value for name, value in _without_null(call).items() if name != "index"}


def _usage(document: JsonObject, names: tuple[str, ...]) -> JsonObject:
    usage = document.get("usage")
    if not isinstance(usage, dict):
        return {}
    return {"usage": {name: usage[name] for name in names if isinstance(usage.get(name), int)}}


def _document(response: object) -> JsonObject:
    """The object as JSON values."""
    value = _plain(response)
    return value if isinstance(value, dict) else {}


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    dump = getattr(value, "model_dump", None)  # of pydantic's models, which both clients return
    if callable(dump):
        return dump(mode="json")
    if hasattr(value, "__dict__"):  # a stand-in of a test
        return {name: _plain(member) for name, member in vars(value).items()}
    return value


def _without_null(block: JsonObject) -> JsonObject:
    return {name: value for name, value in block.items() if value is not None}
