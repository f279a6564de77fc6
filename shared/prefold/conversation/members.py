"""The members of a published turn beside its content."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefold.conversation.ids import check_turn_id
from prefold.errors import InvalidInputError

ROLES = ("user", "assistant", "system", "developer", "tool")

READ_MEMBERS = frozenset(
    {"id", "role", "content", "name", "ts", "usage", "tool_calls", "tool_call_id", "refusal", "function_call", "audio"}
)
"""Members that mean something here."""

KEPT_MEMBERS = frozenset(
    {
        "metadata", "session",  # the producer's own
        "type", "model", "stop_reason", "stop_sequence", "stop_details", "container",  # of Anthropic's response message
        "annotations", "reasoning", "reasoning_content", "created_at",  # of OpenAI's, and of servers that speak its format
    }
)  # fmt: skip
"""Members that the log keeps and no context shows."""

_KNOWN = READ_MEMBERS | KEPT_MEMBERS
_MAX_TEXT_CHARS = 256
_MAX_TOKENS = 1_000_000_000
_ANTHROPIC_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_CHECKED_USAGE = (*_ANTHROPIC_USAGE, "output_tokens", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Members:
    """What was read, and where."""

    raw: Mapping[str, Any]
    field: str
    id: str
    """Empty when the producer gave none."""
    role: str
    usage_input_tokens: int


def read_members(raw: object, field: str) -> Members:
    """The members, checked. Raises ``InvalidInputError`` naming the one that is unknown or wrong."""
    if not isinstance(raw, Mapping):
        raise InvalidInputError("a turn is an object", field=field)
    if not raw.keys() <= _KNOWN:
        unknown = min(map(str, raw.keys() - _KNOWN))[:_MAX_TEXT_CHARS]
        raise InvalidInputError(f"unknown member {unknown!r}", code="unknown_member", field=f"{field}.{unknown}")
    role = raw.get("role")
    if role not in ROLES:
        raise InvalidInputError(f"the role is one of {', '.join(ROLES)}", field=f"{field}.role")
    given_id = raw.get("id")
    turn_id = "" if given_id is None else check_turn_id(given_id, f"{field}.id")
    _check_marks(raw, field)
    _check_tool_members(raw, role, field)
    usage = raw.get("usage")
    used = 0 if usage is None else read_usage(usage, f"{field}.usage")
    return Members(raw, field, turn_id, role, used if role == "assistant" else 0)


def read_usage(usage: object, field: str) -> int:
    """Tokens that the provider counted for the prompt, cached ones included; 0 when it did not say.

    Takes Anthropic's names and OpenAI's; in Anthropic's, the cached tokens are not part of ``input_tokens``.
    """
    if not isinstance(usage, Mapping):
        raise InvalidInputError("usage is an object", field=field)
    counts = {name: _tokens(usage.get(name), f"{field}.{name}") for name in _CHECKED_USAGE}
    return sum(counts[name] for name in _ANTHROPIC_USAGE) or counts["prompt_tokens"]


def _tokens(value: object, field: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_TOKENS:
        raise InvalidInputError(f"a token count is a whole number from 0 to {_MAX_TOKENS}", field=field)
    return value


def _check_marks(raw: Mapping[str, Any], field: str) -> None:
    name = raw.get("name")
    if name is not None and not _is_short_text(name):
        raise InvalidInputError(f"a name is 1 to {_MAX_TEXT_CHARS} printable characters", field=f"{field}.name")
    ts = raw.get("ts")
    if ts is not None and not _is_short_text(ts) and (isinstance(ts, bool) or not isinstance(ts, int | float)):
        raise InvalidInputError("ts is a date and time as text (ISO 8601), or a number of seconds", field=f"{field}.ts")
    if "metadata" in raw and not isinstance(raw["metadata"], Mapping | None):
        raise InvalidInputError("metadata is an object", field=f"{field}.metadata")


def _is_short_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_TEXT_CHARS and value.isprintable()


def _check_tool_members(raw: Mapping[str, Any], role: str, field: str) -> None:
    if raw.get("tool_calls") and role != "assistant":
        raise InvalidInputError("only an assistant turn has tool_calls", field=f"{field}.tool_calls")
    if (raw.get("tool_call_id") is not None) != (role == "tool"):
        raise InvalidInputError("a turn of role tool has a tool_call_id, and no other", field=f"{field}.tool_call_id")
    if raw.get("function_call") is not None:
        raise InvalidInputError("function_call is out of use: publish tool_calls", field=f"{field}.function_call")
    if raw.get("audio") is not None:
        raise InvalidInputError("audio is not kept: publish its transcript as text", field=f"{field}.audio")
    refusal = raw.get("refusal")
    if refusal is not None and (role != "assistant" or not isinstance(refusal, str)):
        raise InvalidInputError("refusal is the text of an assistant", field=f"{field}.refusal")
