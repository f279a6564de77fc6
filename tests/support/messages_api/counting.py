"""A token counter that is cheap and always right about itself: bytes, not words."""

from typing import Any

import orjson

MESSAGE_TOKENS = 4
BLOCK_TOKENS = 3
IMAGE_TOKENS = 1600
_BYTES_A_TOKEN = 3.5


def text_tokens(text: str) -> int:
    """Of a plain text, rounded up."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -int(-size // _BYTES_A_TOKEN)


def json_tokens(value: Any) -> int:
    """Of any JSON value, as it is written without spaces."""
    return -int(-len(orjson.dumps(value)) // _BYTES_A_TOKEN)


def block_tokens(block: dict[str, Any]) -> int:
    """Of one content block, what it is wrapped in included. Images and documents have a flat price."""
    return BLOCK_TOKENS + _inner_tokens(block)


def _inner_tokens(block: dict[str, Any]) -> int:
    kind = block.get("type")
    if kind == "text":
        return text_tokens(block.get("text", ""))
    if kind in {"image", "document"}:
        return IMAGE_TOKENS
    if kind == "tool_use":
        return text_tokens(block.get("name", "")) + json_tokens(block.get("input", {}))
    if kind == "tool_result":
        content = block.get("content", "")
        return text_tokens(content) if isinstance(content, str) else sum(block_tokens(part) for part in content or ())
    if kind == "thinking":
        return text_tokens(block.get("thinking", ""))
    return json_tokens({name: value for name, value in block.items() if name != "cache_control"})
