"""The form of a request: its members, their types, and the members of every block."""

import re
from collections.abc import Collection
from typing import Any

from tests.support.messages_api.checks.members import (
    BLOCKS,
    COMPACTION_BLOCK,
    COUNTED,
    MESSAGE,
    OF_BETAS,
    REQUEST,
    SAMPLING,
    SERVER_BLOCKS,
    TOOL,
    Members,
)
from tests.support.messages_api.errors import invalid

_FIRST_WITHOUT_SAMPLING = "2026-10-21"
_ROLES = ("user", "assistant", "system")
_MOST_MESSAGES = 100_000
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check_fields(body: dict[str, Any], betas: Collection[str], version: str, *, is_count: bool = False) -> None:
    """Raises 400 for the first member that is missing, unknown or of a wrong type."""
    members = COUNTED if is_count else REQUEST
    allowed = members.required | members.optional | _of_betas(betas)
    if version < _FIRST_WITHOUT_SAMPLING and not is_count:
        allowed |= set(SAMPLING)
    _check_members(body, Members(members.required, frozenset(allowed)), "")
    _check_types(body)
    for index, tool in enumerate(body.get("tools") or ()):
        _check_tool(tool, f"tools.{index}")
    _check_content(body.get("system", ""), "system", betas, only_text=True)
    _check_messages(body["messages"], betas)


def _of_betas(betas: Collection[str]) -> set[str]:
    return {name for name, beta in OF_BETAS.items() if any(given.startswith(beta) for given in betas)}


def _check_members(value: dict[str, Any], members: Members, path: str) -> None:
    prefix = f"{path}." if path else ""
    for name in sorted(members.required - value.keys()):
        raise invalid(f"{prefix}{name}: Field required")
    for name in value:
        if name not in members.required and name not in members.optional:
            raise invalid(f"{prefix}{name}: Extra inputs are not permitted")


def _check_types(body: dict[str, Any]) -> None:
    if not isinstance(body["model"], str):
        raise invalid("model: Input should be a valid string")
    if "max_tokens" in body:
        _check_max_tokens(body["max_tokens"])
    if not isinstance(body["messages"], list):
        raise invalid("messages: Input should be a valid list")
    if not body["messages"]:
        raise invalid("messages: at least one message is required")
    if len(body["messages"]) > _MOST_MESSAGES:
        raise invalid(f"messages: at most {_MOST_MESSAGES} messages are allowed")


def _check_max_tokens(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid("max_tokens: Input should be a valid integer")
    if value < 0:
        raise invalid("max_tokens: Input should be greater than or equal to 0")


def _check_tool(tool: Any, path: str) -> None:
    if not isinstance(tool, dict):
        raise invalid(f"{path}: Input should be a valid dictionary or object to extract fields from")
    if tool.get("type", "custom") != "custom":
        return
    _check_members(tool, TOOL, f"{path}.custom")
    if not isinstance(tool["name"], str) or not _TOOL_NAME.fullmatch(tool["name"]):
        raise invalid(f"{path}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool["input_schema"]
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise invalid(f"{path}.custom.input_schema.type: Field required")
    if schema.keys() & {"oneOf", "allOf", "anyOf"}:
        text = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        raise invalid(f"{path}.custom.input_schema: {text}")


def _check_messages(messages: list[Any], betas: Collection[str]) -> None:
    for index, message in enumerate(messages):
        path = f"messages.{index}"
        if not isinstance(message, dict):
            raise invalid(f"{path}: Input should be a valid dictionary or object to extract fields from")
        _check_members(message, MESSAGE, path)
        if message["role"] not in _ROLES:
            raise invalid(f"{path}.role: Input should be 'user', 'assistant' or 'system'")
        _check_content(message["content"], f"{path}.content", betas)


def _check_content(content: Any, path: str, betas: Collection[str], *, only_text: bool = False) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise invalid(f"{path}: Input should be a valid list")
    for index, block in enumerate(content):
        _check_block(block, f"{path}.{index}", betas, only_text=only_text)


def _check_block(block: Any, path: str, betas: Collection[str], *, only_text: bool) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in SERVER_BLOCKS:
        return
    members = COMPACTION_BLOCK if kind == "compaction" and "compaction" in _of_betas(betas) else BLOCKS.get(str(kind))
    if members is None or (only_text and kind != "text"):
        expected = ", ".join(f"'{name}'" for name in ([] if only_text else BLOCKS)) or "'text'"
        raise invalid(
            f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {expected}"
        )
    _check_members(block, members, f"{path}.{kind}")
    if kind == "text" and not isinstance(block["text"], str):
        raise invalid(f"{path}.text.text: Input should be a valid string")
    if kind == "tool_use" and not isinstance(block["input"], dict):
        raise invalid(f"{path}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result":
        _check_content(block.get("content") or "", f"{path}.tool_result.content", betas)
