"""Turns prepared for tests, and the blocks that a context gets of them."""

import json
from typing import Any

from prefold.conversation import PreparedTurn, prepare_turn, restore_turn
from prefold.conversation.blocks import IMAGE_TOKENS
from prefold.tokens import load_counter

PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" * 1_000}


def prepare(**raw: Any) -> PreparedTurn:
    return prepare_turn(raw, 0, load_counter(), lambda: "made-id")


def blocks(content: bytes) -> list[dict[str, Any]]:
    decoded: list[dict[str, Any]] = json.loads(b"[" + content + b"]")
    return decoded


def call_blocks(turn: PreparedTurn, pieces: tuple[bytes, ...] | None = None) -> list[dict[str, Any]]:
    """The content of a turn of calls, as the script joins it."""
    parts = turn.pieces if pieces is None else pieces
    assert len(parts) == len(turn.call_ids) + 1
    joined = parts[0] + b"".join(
        call_id.encode() + piece for call_id, piece in zip(turn.call_ids, parts[1:], strict=True)
    )
    return blocks(joined)


def published(turn: PreparedTurn) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(restore_turn(turn.envelope, turn.verbatim, turn.content, 7))
    assert next(iter(value)) == "seq"
    assert value.pop("seq") == 7
    return value


def count(text: str) -> int:
    return load_counter().count(text)


def raw_tokens(used: list[dict[str, Any]]) -> int:
    """The data model's count, written down a second time."""
    total = 4
    for block in used:
        if block["type"] == "text":
            total += 3 + count(block["text"])
        elif block["type"] == "image":
            total += 3 + IMAGE_TOKENS
        else:
            inner = block["content"] if isinstance(block["content"], list) else []
            images = [part for part in inner if part["type"] == "image"]
            seen = {**block, "content": [part for part in inner if part not in images] if inner else block["content"]}
            total += 3 + count(json.dumps(seen, separators=(",", ":"), ensure_ascii=False))
            total += sum(3 + IMAGE_TOKENS for _ in images)
    return total
