"""The same checker for OpenAI's Chat Completions messages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefold.conversation.check import character_findings
from prefold.conversation.strict_json import parse_json_text
from prefold.errors import InvalidInputError

_Message = Mapping[str, Any]
_MEMBERS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
_PARTS = {
    "text": {"type", "text"},
    "image_url": {"type", "image_url"},
    "file": {"type", "file"},
}
_PLACES = {"user": {"text", "image_url", "file"}, "assistant": {"text"}, "system": {"text"}, "tool": {"text"}}


def check_openai(messages: object) -> list[str]:
    """What a server of this format would refuse, and what a context promises beyond that; empty when all is well.

    As ``check_anthropic``: calls may wait for results at the tail alone.
    """
    if not isinstance(messages, list):
        return ["messages: not a list"]
    findings = list(character_findings(messages, "messages"))
    if not messages:
        findings.append("messages: at least one message is required")
    shapes = [finding for n, message in enumerate(messages) for finding in _shape_findings(message, f"messages[{n}]")]
    return findings + shapes if shapes else [*findings, *_order_findings(messages), *_round_findings(messages)]


def _shape_findings(message: object, place: str) -> Iterator[str]:
    if not isinstance(message, dict) or message.get("role") not in _MEMBERS:
        yield f"{place}: not a message of a known role"
        return
    role = message["role"]
    for name in sorted(message.keys() - _MEMBERS[role]):
        yield f"{place}.{name}: not a member of a message of the {role}"
    calls = message.get("tool_calls")
    if "tool_calls" in message:
        yield from _call_shapes(calls, f"{place}.tool_calls")
    if role == "tool" and not _is_filled(message.get("tool_call_id")):
        yield f"{place}.tool_call_id: field required"
    if message.get("content") is not None or not calls:
        yield from _content_findings(message.get("content"), role, f"{place}.content")


def _content_findings(content: object, role: str, place: str) -> Iterator[str]:
    if isinstance(content, list) and content:
        for number, part in enumerate(content):
            yield from _part_findings(part, role, f"{place}[{number}]")
    elif not _is_filled(content):
        yield f"{place}: empty"


def _part_findings(part: object, role: str, place: str) -> Iterator[str]:
    if not isinstance(part, dict) or part.get("type") not in _PLACES[role]:
        yield f"{place}: not a part that can stand here"
        return
    kind = part["type"]
    if part.keys() != _PARTS[kind]:
        yield f"{place}: members are {sorted(part)}"
    elif kind == "text":
        if not _is_filled(part["text"]):
            yield f"{place}.text: empty"
    elif not isinstance(part[kind], dict) or not part[kind] or not all(map(_is_filled, part[kind].values())):
        yield f"{place}.{kind}: empty"


def _call_shapes(calls: object, place: str) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield f"{place}: an empty list"
        return
    for number, call in enumerate(calls):
        here = f"{place}[{number}]"
        if not isinstance(call, dict) or call.keys() != {"id", "type", "function"} or call["type"] != "function":
            yield f"{here}: not a call"
        elif not _is_filled(call["id"]):
            yield f"{here}.id: empty"
        elif not isinstance(call["function"], dict) or call["function"].keys() != {"name", "arguments"}:
            yield f"{here}.function: not a name with arguments"
        elif not _is_filled(call["function"]["name"]) or not _is_object_text(call["function"]["arguments"]):
            yield f"{here}.function: no name, or arguments that are no JSON object"


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_object_text(value: object) -> bool:
    try:
        return isinstance(value, str) and isinstance(parse_json_text(value), dict)
    except InvalidInputError:
        return False


def _order_findings(messages: Sequence[_Message]) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    if "system" in roles[1:]:
        yield f"messages[{roles.index('system', 1)}]: a system message that is not the first"
    spoken = [role for role in roles if role != "system"]
    if spoken and spoken[0] != "user":
        yield "messages: the first message is not the user's"
    for number in range(1, len(roles)):
        if roles[number] == roles[number - 1] and roles[number] in ("user", "assistant"):
            yield f"messages[{number}]: two messages of one role in a row"


def _round_findings(messages: Sequence[_Message]) -> Iterator[str]:
    known: set[str] = set()
    waiting: set[str] = set()
    answered: set[str] = set()
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            if call_id in answered:
                yield f"{place}: a second result of call {call_id}"
            elif call_id not in waiting:
                yield f"{place}: a result without its call before it: {call_id}"
            waiting.discard(call_id)
            answered.add(call_id)
            continue
        if waiting:
            yield f"{place}: calls before it have no result: {', '.join(sorted(waiting))}"
        calls = [call["id"] for call in message.get("tool_calls", ())]
        if known.intersection(calls) or len(set(calls)) != len(calls):
            yield f"{place}: a call id that was used before"
        known.update(calls)
        waiting, answered = set(calls), set()
