"""Writes turns as a backend publishes them, each with a mark in all its parts that no other turn has."""

from collections.abc import Sequence
from typing import Any

CALL_IDS = ("A", "B", "C")

Raw = dict[str, Any]


def some_words(mark: str, count: int) -> str:
    """Text that begins with its mark, so that every short form of it has the mark too."""
    return f"<{mark}> " + "word " * count


class Author:
    """Ids are m1, m2, …; the mark of turn m7 is ``m7``, that of its first rewording ``m7.1``."""

    def __init__(self) -> None:
        self._made = 0
        self._reworded = 0

    def _next(self) -> str:
        self._made += 1
        return f"m{self._made}"

    def plain(self, role: str, count: int, **members: Any) -> Raw:
        mark = self._next()
        return {"id": mark, "role": role, "content": some_words(mark, count), **members}

    def calls(self, ids: Sequence[str], count: int, *, thinks: bool) -> Raw:
        mark = self._next()
        blocks: list[Raw] = [{"type": "thinking", "thinking": "", "signature": "s"}] if thinks else []
        blocks.append({"type": "text", "text": ""})
        blocks += [{"type": "tool_use", "id": one, "name": "find", "input": {}} for one in ids]
        return {"id": mark, "role": "assistant", "content": [_said_anew(block, mark, count) for block in blocks]}

    def results(self, ids: Sequence[str], count: int, *, text: bool) -> Raw:
        mark = self._next()
        blocks: list[Raw] = [{"type": "tool_result", "tool_use_id": one, "content": ""} for one in ids]
        blocks += [{"type": "text", "text": ""}] if text else []
        return {"id": mark, "role": "user", "content": [_said_anew(block, mark, count) for block in blocks]}

    def reworded(self, raw: Raw, count: int) -> tuple[Raw, str]:
        """The same turn in other words, of the same shape, and its new mark."""
        self._reworded += 1
        mark = f"{raw['id']}.{self._reworded}"
        content = raw["content"]
        new = some_words(mark, count) if isinstance(content, str) else [_said_anew(b, mark, count) for b in content]
        return {"id": raw["id"], "role": raw["role"], "content": new}, mark


def _said_anew(block: Raw, mark: str, count: int) -> Raw:
    """Thoughts and words beside calls stay short."""
    match block["type"]:
        case "thinking":
            return {**block, "thinking": some_words(mark, 1)}
        case "tool_use":
            return {**block, "input": {"q": some_words(mark, count)}}
        case "tool_result":
            return {**block, "content": some_words(mark, count)}
    return {**block, "text": some_words(mark, 1)}
