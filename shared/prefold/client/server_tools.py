"""What a provider's own tools did in an answer, as text: their blocks can be continued by that provider alone."""

import json
from collections.abc import Iterator
from typing import Any, Final

from prefold.client.results import JsonObject

__all__ = ["is_server_side", "told_as_text"]

_CALLS: Final = ("server_tool_use", "mcp_tool_use")
_MOST_CHARS: Final = 500
_MOST_FOUND: Final = 20


def is_server_side(kind: object) -> bool:
    """Whether a block of this type is a call that the provider answered itself, or the answer."""
    return isinstance(kind, str) and (kind.endswith("_tool_result") or kind in (*_CALLS, "container_upload"))


def told_as_text(block: JsonObject) -> JsonObject:
    """The call with its input, or titles and addresses of what it found, or its error; nothing that is encrypted."""
    kind = str(block["type"])
    if kind in _CALLS:
        told = f"{block.get('name')}: {json.dumps(block.get('input'), ensure_ascii=False)}"
    else:
        name = kind.removesuffix("_tool_result")
        told = f"{name} result: {'; '.join(_found(block.get('content'))) or 'done'}"
    return {"type": "text", "text": f"[{told if len(told) <= _MOST_CHARS else told[: _MOST_CHARS - 1] + '…'}]"}


def _found(content: Any) -> Iterator[str]:
    """What a model may want to name again: sources, texts, the code of an error."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for one in content[:_MOST_FOUND]:
            yield from _found(one)
    elif isinstance(content, dict):
        members = ("error_code", "title", "url", "text", "stdout", "stderr")
        said = [value for name in members if isinstance(value := content.get(name), str) and value.strip()]
        if said:
            yield ", ".join(said)
        else:
            yield from _found(content.get("content"))
