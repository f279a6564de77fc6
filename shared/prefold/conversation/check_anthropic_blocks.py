"""Rules for one block of an Anthropic message: known members, right place, nothing empty."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_Block = Mapping[str, Any]

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_CALL_ID_CHARS = 64
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

_MEMBERS = {
    "text": {"text", "citations", "cache_control"},
    "image": {"source", "cache_control"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "tool_use": {"id", "name", "input", "cache_control"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_WHERE = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
    "result": {"text", "image", "document"},
    "system": {"text"},
}
_SOURCES = {
    "base64": {"media_type", "data"},
    "url": {"url"},
    "file": {"file_id"},
    "text": {"media_type", "data"},
    "content": {"content"},
}


def block_findings(block: object, role: str, place: str) -> Iterator[str]:
    """What is wrong with a block in a message of ``role`` (or in a ``result``, or in ``system``)."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        yield f"{place}: not a block"
        return
    kind = block["type"]
    if kind not in _WHERE[role]:
        yield f"{place}: a {kind} block cannot stand in {role}"
        return
    for name in sorted(block.keys() - _MEMBERS[kind] - {"type"}):
        yield f"{place}.{name}: extra inputs are not permitted"
    if role == "user" and block.get("citations") is not None and kind == "text":
        yield f"{place}.citations: citations on user text"
    yield from _RULES[kind](block, place)


def _text(block: _Block, place: str) -> Iterator[str]:
    text = block.get("text")
    if not isinstance(text, str):
        yield f"{place}.text: field required"
    elif not text:
        yield f"{place}: text content blocks must be non-empty"
    elif not text.strip():
        yield f"{place}: text content blocks must contain non-whitespace text"


def _source(block: _Block, place: str) -> Iterator[str]:
    source = block.get("source")
    kinds = _SOURCES if block["type"] == "document" else {"base64", "url", "file"}
    if not isinstance(source, dict) or source.get("type") not in kinds:
        yield f"{place}.source: not a source of a {block['type']}"
    elif source.keys() != _SOURCES[source["type"]] | {"type"} or not all(source.values()):
        yield f"{place}.source: members are {sorted(source)}"


def _tool_use(block: _Block, place: str) -> Iterator[str]:
    yield from _call_id(block.get("id"), f"{place}.id")
    if not isinstance(block.get("name"), str) or not _TOOL_NAME.fullmatch(block["name"]):
        yield f"{place}.name: not the name of a tool"
    if not isinstance(block.get("input"), dict):
        yield f"{place}.input: not an object"


def _tool_result(block: _Block, place: str) -> Iterator[str]:
    yield from _call_id(block.get("tool_use_id"), f"{place}.tool_use_id")
    if not isinstance(block.get("is_error", False), bool):
        yield f"{place}.is_error: not true or false"
    content = block.get("content")
    if isinstance(content, list) and content:
        for number, inner in enumerate(content):
            yield from block_findings(inner, "result", f"{place}.content[{number}]")
    elif not isinstance(content, str) or not content.strip():
        yield f"{place}.content: an empty result"


def _call_id(value: object, place: str) -> Iterator[str]:
    if not isinstance(value, str) or not _CALL_ID.fullmatch(value) or len(value) > _CALL_ID_CHARS:
        yield f"{place}: not the id of a call"


def _thinking(block: _Block, place: str) -> Iterator[str]:
    names = ("thinking", "signature") if block["type"] == "thinking" else ("data",)
    for name in names:
        if not isinstance(block.get(name), str):
            yield f"{place}.{name}: field required"
    if not block.get(names[-1]):
        yield f"{place}.{names[-1]}: empty"
    if block.get("cache_control") is not None:
        yield f"{place}: cache_control cannot be set on thinking blocks"


_RULES: dict[str, Callable[[_Block, str], Iterator[str]]] = {
    "text": _text,
    "image": _source,
    "document": _source,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
}
