"""The server's own compaction (a beta): where its block may stand, and that it comes back as it was given."""

import hashlib
from collections.abc import Iterator
from typing import Any

import orjson

from tests.support.messages_api.errors import ApiError, invalid
from tests.support.messages_api.prompt import blocks_of

_SIGNED = "compaction1"


def compaction_block(content: str) -> dict[str, Any]:
    """As the API returns it: alone, signed."""
    signature = f"{_SIGNED}.{_digest(content)}.{_digest(None)}"
    return {"type": "compaction", "content": content, "encrypted_content": None, "signature": signature}


def begins_compacted(messages: list[dict[str, Any]]) -> bool:
    """Whether the conversation begins with a block that stands for what was before."""
    first = blocks_of(messages[0]["content"])[:1]
    return bool(first) and first[0].get("type") == "compaction"


def check_compacting(body: dict[str, Any]) -> None:
    """Raises 400 with an ``error_code`` for blocks out of place or edited, and for a request to compact nothing."""
    blocks = list(_blocks(body["messages"]))
    if sum(block.get("content") is not None for _, _, block in blocks) > 1:
        raise _refused("compaction_block_ambiguous", "messages: more than one compaction block with content")
    for path, is_first, block in blocks:
        if not is_first:
            text = "a compaction block must be the first block of the conversation"
            raise _refused("compaction_block_misplaced", f"{path}: {text}")
        if block.get("content") is not None:
            _check_signature(path, block)
    if body.get("compaction") is not None:
        _check_request(body)


def _blocks(messages: list[dict[str, Any]]) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    for index, message in enumerate(messages):
        for at, block in enumerate(blocks_of(message["content"])):
            if block.get("type") == "compaction":
                is_first = index == at == 0 and message["role"] != "system"
                yield f"messages.{index}.content.{at}", is_first, block


def _check_signature(path: str, block: dict[str, Any]) -> None:
    parts = str(block.get("signature")).split(".")
    if len(parts) != 3 or parts[0] != _SIGNED:
        raise _refused("compaction_signature_invalid", f"{path}: the signature does not verify")
    if parts[1] != _digest(block["content"]):
        raise _refused("compaction_content_mismatch", f"{path}: the content differs from the signed text")
    if parts[2] != _digest(block.get("tool_changes")):
        raise _refused("compaction_tool_changes_mismatch", f"{path}: tool_changes differ from those returned")


def _check_request(body: dict[str, Any]) -> None:
    wanted = body["compaction"]
    if not isinstance(wanted, dict) or wanted.get("type") != "summarize":
        raise invalid("compaction.type: Input should be 'summarize'")
    last = body["messages"][-1]
    if last["role"] == "assistant" and any(block.get("type") == "tool_use" for block in blocks_of(last["content"])):
        raise _refused("compaction_incomplete_turn", "messages: the last assistant turn is not finished")
    said = [block for message in body["messages"] for block in blocks_of(message["content"])]
    if not any(block.get("type") != "compaction" for block in said):
        raise _refused("compaction_nothing_to_summarize", "messages: nothing to summarize")


def _refused(code: str, message: str) -> ApiError:
    return invalid(message, code)


def _digest(value: Any) -> str:
    return hashlib.blake2b(orjson.dumps(value), key=b"fake", digest_size=12).hexdigest()
