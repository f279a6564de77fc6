"""A request as the model reads it: one row of blocks, tools first, then system, then the merged turns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.messages_api.counting import MESSAGE_TOKENS, block_tokens, json_tokens

TOOLS, SYSTEM, MESSAGES = range(3)


@dataclass(slots=True)
class Piece:
    """One block in its place."""

    level: int
    role: str
    block: dict[str, Any]
    tokens: int
    marker: dict[str, Any] | None


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The blocks of a content: a plain string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def pieces_of(body: dict[str, Any]) -> list[Piece]:
    """The whole row. The request's own ``cache_control`` marks the last block that can be marked."""
    pieces = [*_tools(body), *_system(body), *_turns(body)]
    automatic = body.get("cache_control")
    if automatic:
        last = next((piece for piece in reversed(pieces) if can_be_marked(piece.block)), None)
        if last is not None and last.marker is None:
            last.marker = automatic
    return pieces


def can_be_marked(block: dict[str, Any]) -> bool:
    """Thinking and empty text cannot carry a marker."""
    if block.get("type") in {"thinking", "redacted_thinking"}:
        return False
    return not (block.get("type") == "text" and not block.get("text"))


def input_tokens(pieces: list[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _tools(body: dict[str, Any]) -> Iterator[Piece]:
    for tool in body.get("tools") or ():
        bare = {name: value for name, value in tool.items() if name != "cache_control"}
        yield Piece(TOOLS, "tool", tool, json_tokens(bare), tool.get("cache_control"))


def _system(body: dict[str, Any]) -> Iterator[Piece]:
    for block in blocks_of(body.get("system")):
        yield Piece(SYSTEM, "system", block, block_tokens(block), block.get("cache_control"))


def _turns(body: dict[str, Any]) -> Iterator[Piece]:
    role = None
    for message in body["messages"]:
        for block in blocks_of(message["content"]):
            tokens = block_tokens(block) + (MESSAGE_TOKENS if message["role"] != role else 0)
            role = message["role"]
            yield Piece(MESSAGES, role, block, tokens, block.get("cache_control"))
