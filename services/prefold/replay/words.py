"""Turns and contents in a few words, for people."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def one_line(text: str) -> str:
    """The text with all white space folded, so that it stays on a line and carries no control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def clipped(text: str, most: int) -> str:
    """At most ``most`` characters, ending with an ellipsis where something is gone."""
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + "…"


def speaker_and_gist(turn: Mapping[str, Any]) -> tuple[str, str]:
    """Who speaks, and what on one line: ``("→ tool", "get_tracking …")`` for a call, ``("← tool", …)`` for a result."""
    content, calls = turn.get("content"), turn.get("tool_calls") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
    kinds = {block.get("type") for block in blocks}
    gist = one_line(" · ".join(filter(None, [*map(block_text, blocks), *map(_openai_call, calls)])))
    if calls or "tool_use" in kinds:
        return "→ tool", gist
    if turn["role"] == "tool" or "tool_result" in kinds:
        return "← tool", gist
    return str(turn.get("name") or turn["role"]), gist


def block_text(block: Mapping[str, Any]) -> str:
    """A content block as text."""
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "tool_use":
            return f"{block['name']} {json.dumps(block['input'], ensure_ascii=False)}"
        case "tool_result":
            content = block.get("content") or ""
            return content if isinstance(content, str) else _joined(content)
        case kind:
            return f"[{kind}]"


def _joined(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(map(block_text, blocks))


def _openai_call(call: Mapping[str, Any]) -> str:
    return f"{call['function']['name']} {call['function']['arguments']}"
