"""A provider's answer as the turn to publish: content, usage and id, from the object that its client returned."""

from collections.abc import Mapping
from typing import Any, Final

from prefold.client.results import JsonObject
from prefold.client.server_tools import is_server_side, told_as_text
from prefold.errors import InvalidInputError

EMPTY_ANSWER_TEXT: Final = "[empty answer]"
"""Instead of the words of an answer that has none: a model may end its turn so, and no provider takes such a turn back."""
_ANTHROPIC_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_OPENAI_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
_ANTHROPIC = ("id", "role", "model", "stop_reason", "stop_sequence")
_OPENAI = ("role", "content", "refusal")


def turn_of(response: object) -> JsonObject:
    """The assistant's turn in an answer of ``anthropic``'s ``messages.create`` or ``openai``'s ``chat.completions.create``.

    Takes the clients' objects and their JSON. Members that are null are left out, the count of usage is kept, and the
    provider's id becomes the turn's, so that reporting twice is a duplicate. An answer that says nothing has
    ``EMPTY_ANSWER_TEXT`` as its text, and what a provider's own tools did stands there as a line of text each.
    ``InvalidInputError`` for anything else.
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
    content = [_block(block) for block in document["content"]]
    if not any(map(_says_something, content)):
        content.append({"type": "text", "text": EMPTY_ANSWER_TEXT})
    return {**turn, "content": content, **_usage(document, _ANTHROPIC_USAGE)}


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    return told_as_text(block) if is_server_side(block.get("type")) else _without_null(block)


def _says_something(block: Any) -> bool:
    """False for blank text and for thinking, which cannot end a turn; whatever else it is, the gateway judges it."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text" and isinstance(block.get("text"), str):
        return bool(block["text"].strip())
    return kind not in ("thinking", "redacted_thinking")


def _of_openai(document: JsonObject, message: JsonObject) -> JsonObject:
    turn = {"id": document["id"]} if document.get("id") else {}
    turn |= {name: message[name] for name in _OPENAI if message.get(name) is not None}
    turn.setdefault("role", "assistant")
    said = (turn.get("content"), turn.get("refusal"), message.get("tool_calls"))
    if not any(one.strip() if isinstance(one, str) else one for one in said):
        turn["content"] = EMPTY_ANSWER_TEXT
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
