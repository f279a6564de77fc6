"""Settings beside the conversation: room for the answer, its form, tools' choice, metadata."""

import re
from collections.abc import Iterator
from typing import Any

from tests.support.messages_api.catalogue import Model
from tests.support.messages_api.errors import invalid

_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_MOST_OPTIONAL_PARAMETERS = 24
_MOST_STRICT_TOOLS = 20
_PERSONAL = re.compile(r"[^@\s]+@[^@\s]+\.\w+|\+?\d[\d\s().-]{7,}\d")


def check_options(body: dict[str, Any], model: Model) -> None:
    """Raises 400 for the first setting that cannot be."""
    _check_room(body, model)
    _check_tools(body, model)
    _check_output(body)
    user = (body.get("metadata") or {}).get("user_id")
    if user is not None and _PERSONAL.fullmatch(str(user)):
        raise invalid("metadata.user_id: must be opaque, and not an e-mail address or a phone number")


def _check_room(body: dict[str, Any], model: Model) -> None:
    asked = body.get("max_tokens")
    if asked is None:
        return
    if asked > model.max_output_tokens:
        raise invalid(
            f"max_tokens: {asked} > {model.max_output_tokens}, which is the maximum allowed number of output tokens"
            f" for {model.id}"
        )
    if asked == 0:
        _check_prewarming(body)


def _check_prewarming(body: dict[str, Any]) -> None:
    """Without room for an answer a request fills the cache, and can want nothing else."""
    wants = {
        "stream": bool(body.get("stream")),
        "thinking": (body.get("thinking") or {}).get("type") == "enabled",
        "output_config.format": bool((body.get("output_config") or {}).get("format")),
        "tool_choice": _is_forced(body.get("tool_choice")),
    }
    for name, is_wanted in wants.items():
        if is_wanted:
            raise invalid(f"max_tokens: 0 is not permitted with {name}")


def _is_forced(choice: Any) -> bool:
    return isinstance(choice, dict) and choice.get("type") in {"any", "tool"}


def _check_tools(body: dict[str, Any], model: Model) -> None:
    tools = body.get("tools") or []
    names = [tool["name"] for tool in tools if "name" in tool]
    if len(set(names)) < len(names):
        raise invalid("tools: Tool names must be unique.")
    if sum(bool(tool.get("strict")) for tool in tools) > _MOST_STRICT_TOOLS:
        raise invalid("Schema is too complex for compilation")
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not isinstance(choice, dict) or choice.get("type") not in {"auto", "any", "tool", "none"}:
        raise invalid("tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'")
    if not tools:
        raise invalid("tool_choice: tool_choice may only be specified while providing tools.")
    if choice["type"] == "tool" and choice.get("name") not in names:
        raise invalid(f"Tool '{choice.get('name')}' not found in provided tools")
    if _is_forced(choice) and not model.takes_forced_tools:
        raise invalid(f"tool_choice.type: '{choice['type']}' is not supported for this model")


def _check_output(body: dict[str, Any]) -> None:
    output = body.get("output_config") or {}
    for name in output.keys() - {"effort", "format"}:
        raise invalid(f"output_config.{name}: Extra inputs are not permitted")
    if output.get("effort") is not None and output["effort"] not in _EFFORTS:
        raise invalid("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
    wanted = output.get("format")
    if not wanted:
        return
    if wanted.get("type") != "json_schema" or not isinstance(wanted.get("schema"), dict):
        raise invalid("output_config.format.schema: Field required")
    if body["messages"][-1]["role"] == "assistant":
        raise invalid("output_config.format: not supported with prefill")
    if any(_has_citations(message["content"]) for message in body["messages"]):
        raise invalid("output_config.format: not supported with citations")
    _check_schema(wanted["schema"])


def _has_citations(content: Any) -> bool:
    blocks = content if isinstance(content, list) else []
    return any((block.get("citations") or {}).get("enabled") for block in blocks if block.get("type") == "document")


def _check_schema(schema: dict[str, Any]) -> None:
    optional = 0
    for part in _objects(schema):
        if part.get("additionalProperties") is not False:
            raise invalid(
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
        optional += len(set(part.get("properties") or ()) - set(part.get("required") or ()))
    if optional > _MOST_OPTIONAL_PARAMETERS:
        raise invalid("Schema is too complex for compilation")


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, list):
        for part in schema:
            yield from _objects(part)
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for name, part in schema.items():
            yield from _objects(list(part.values()) if name in {"properties", "$defs"} else part)
