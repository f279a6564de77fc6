"""Every tool call has its one result in the next turn, and every result its call in the one before."""

from dataclasses import dataclass, field
from typing import Any

from tests.support.messages_api.errors import invalid
from tests.support.messages_api.prompt import blocks_of


@dataclass
class _Turn:
    """Neighbours of one role, which the API reads as one."""

    role: str
    first: int
    blocks: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Each with its path."""
    last: int = 0


def check_pairing(messages: list[dict[str, Any]]) -> None:
    """Raises 400 for ids that are used twice, calls without results, and results without calls."""
    turns = _merged(messages)
    _check_unique(turns)
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            _check_answered(turn, turns[index + 1] if index + 1 < len(turns) else None)
        if turn.role == "user":
            _check_results(turn, turns[index - 1] if index else None)


def _merged(messages: list[dict[str, Any]]) -> list[_Turn]:
    turns: list[_Turn] = []
    for index, message in enumerate(messages):
        if not turns or turns[-1].role != message["role"]:
            turns.append(_Turn(message["role"], index))
        turn = turns[-1]
        turn.last = index
        turn.blocks += [
            (f"messages.{index}.content.{at}", block) for at, block in enumerate(blocks_of(message["content"]))
        ]
    return turns


def _check_unique(turns: list[_Turn]) -> None:
    seen: set[str] = set()
    for path, block in (found for turn in turns for found in turn.blocks):
        if block.get("type") == "tool_use":
            if block["id"] in seen:
                raise invalid(f"{path}: `tool_use` ids must be unique")
            seen.add(block["id"])


def _check_answered(turn: _Turn, following: _Turn | None) -> None:
    called = [block["id"] for _, block in turn.blocks if block.get("type") == "tool_use"]
    if not called:
        return
    # Only results at the head of the turn count: what stands behind a text is not "immediately after".
    answered = set()
    for _, block in following.blocks if following is not None and following.role == "user" else ():
        if block.get("type") != "tool_result":
            break
        answered.add(block["tool_use_id"])
    missing = [identifier for identifier in called if identifier not in answered]
    if missing:
        raise invalid(
            f"messages.{turn.last}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next"
            " message."
        )


def _check_results(turn: _Turn, before: _Turn | None) -> None:
    called = {
        block["id"]
        for _, block in (before.blocks if before is not None and before.role == "assistant" else ())
        if block.get("type") == "tool_use"
    }
    answered: set[str] = set()
    for path, block in turn.blocks:
        if block.get("type") != "tool_result":
            continue
        identifier = block["tool_use_id"]
        if identifier not in called:
            raise invalid(
                f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {identifier}. Each `tool_result`"
                " block must have a corresponding `tool_use` block in the previous message."
            )
        if identifier in answered:
            raise invalid(
                f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
                f"{identifier}"
            )
        answered.add(identifier)
