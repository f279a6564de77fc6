"""Our own checker of what is sent to a provider: replay and tests run it on every context.

It knows nothing of how a context is made, and shares no code with the projection, so that it can disagree. Each
finding is a sentence that begins with the place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefold.conversation.check_anthropic_blocks import block_findings

MAX_CACHE_BREAKPOINTS = 4

_BAD_CHARACTERS = re.compile("[\ud800-\udfff\x00]")
_Block = Mapping[str, Any]


def check_anthropic(messages: object, system: object = None) -> list[str]:
    """What Anthropic's Messages API would refuse, and what a context promises beyond that; empty when all is well.

    Calls without results are allowed at the tail alone: in the last message, or in the one before when the last has
    nothing but results. No message at all is allowed beside a system prompt, before anything was said.
    """
    if not isinstance(messages, list):
        return ["messages: not a list"]
    findings = [*_system_findings(system), *character_findings(messages, "messages")]
    findings += character_findings(system, "system")
    if not messages and not system:
        findings.append("messages: at least one message is required")
    shapes = [finding for n, message in enumerate(messages) for finding in _message_findings(message, f"messages[{n}]")]
    if shapes:
        return findings + shapes  # the rules below take the shapes for granted
    findings += _order_findings(messages)
    findings += _round_findings([(message["role"], _blocks(message)) for message in messages])
    findings += _breakpoint_findings(messages, system)
    return findings


def _blocks(message: Mapping[str, Any]) -> Sequence[_Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _system_findings(system: object) -> Iterator[str]:
    if system is None or system == "":
        return
    if isinstance(system, str):
        if not system.strip():
            yield "system: text content blocks must contain non-whitespace text"
        return
    if not isinstance(system, list):
        yield "system: neither a string nor a list of blocks"
        return
    for number, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            yield f"system[{number}]: only text blocks stand here"
        else:
            yield from block_findings(block, "system", f"system[{number}]")


def _message_findings(message: object, place: str) -> Iterator[str]:
    if not isinstance(message, dict):
        yield f"{place}: not an object"
        return
    if message.keys() != {"role", "content"}:
        yield f"{place}: members are {sorted(message)}, not role and content"
        return
    role, content = message["role"], message["content"]
    if role not in ("user", "assistant"):
        yield f"{place}.role: {role!r} is neither user nor assistant"
    elif not isinstance(content, str | list) or not content:
        yield f"{place}.content: all messages must have non-empty content"
    elif isinstance(content, str):
        if not content.strip():
            yield f"{place}.content: text content blocks must contain non-whitespace text"
    else:
        for number, block in enumerate(content):
            yield from block_findings(block, role, f"{place}.content[{number}]")


def _order_findings(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if messages and messages[0]["role"] != "user":
        yield "messages[0]: the first message is not the user's"
    for number in range(1, len(messages)):
        if messages[number]["role"] == messages[number - 1]["role"]:
            yield f"messages[{number}]: two messages of one role in a row"
    for number, message in enumerate(messages):
        blocks = _blocks(message)
        if message["role"] == "assistant" and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            yield f"messages[{number}]: the final block of an assistant message cannot be thinking"


def _round_findings(messages: Sequence[tuple[str, Sequence[_Block]]]) -> Iterator[str]:
    """Calls and results: once each, in the right places."""
    known: set[str] = set()
    waiting: list[str] = []
    for number, (role, blocks) in enumerate(messages):
        place = f"messages[{number}]"
        if role == "user":
            is_last = number == len(messages) - 1
            yield from _result_findings(blocks, waiting, place, may_wait=is_last)
            waiting = []
            continue
        if waiting:
            yield _unanswered(place, waiting)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for call_id in waiting:
            if call_id in known:
                yield f"{place}: `tool_use` ids must be unique: {call_id}"
            known.add(call_id)


def _result_findings(blocks: Sequence[_Block], waiting: Sequence[str], place: str, *, may_wait: bool) -> Iterator[str]:
    answered: set[str] = set()
    other_before = False
    for number, block in enumerate(blocks):
        if block["type"] != "tool_result":
            other_before = True
            continue
        call_id = block["tool_use_id"]
        if call_id not in waiting:
            yield f"{place}.content[{number}]: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}"
        if call_id in answered:
            yield f"{place}.content[{number}]: a second result of call {call_id}"
        if other_before:
            yield f"{place}.content[{number}]: a result after something else in its message"
        answered.add(call_id)
    missing = [call_id for call_id in waiting if call_id not in answered]
    if missing and (other_before or not may_wait):
        yield _unanswered(place, missing)


def _unanswered(place: str, missing: Sequence[str]) -> str:
    return f"{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"


def _breakpoint_findings(messages: Sequence[Mapping[str, Any]], system: object) -> Iterator[str]:
    blocks = [block for message in messages for block in _blocks(message)]
    blocks += system if isinstance(system, list) else []
    count = sum(block.get("cache_control") is not None for block in blocks)
    if count > MAX_CACHE_BREAKPOINTS:
        yield f"a maximum of 4 blocks with cache_control may be provided, found {count}"


def character_findings(value: object, place: str) -> Iterator[str]:
    """Strings and keys, at any depth, that cannot be sent or stored."""
    if isinstance(value, str):
        if _BAD_CHARACTERS.search(value):
            yield f"{place}: a lone surrogate or NUL"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from character_findings(item, f"{place}[{number}]")
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from character_findings(key, f"{place}, a key")
            yield from character_findings(member, f"{place}.{ascii(key)[1:-1]}")
