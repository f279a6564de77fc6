"""Writes turns as a backend publishes them, each with words that no other has."""

from typing import Any

CALL_IDS = ("A", "B", "C")


class Author:
    """Ids are m1, m2, …; the text of turn m7 begins with ``<m7>``."""

    def __init__(self) -> None:
        self._made = 0

    def made_turn(self, role: str, content: Any, **members: Any) -> dict[str, Any]:
        self._made += 1
        return {"id": f"m{self._made}", "role": role, "content": content, **members}

    def text(self, count: int) -> str:
        """For the turn that is made next."""
        return f"<m{self._made + 1}> " + "word " * count

    def plain(self, role: str, count: int) -> dict[str, Any]:
        return self.made_turn(role, self.text(count))

    def calls(self, ids: list[str], count: int, *, thinks: bool) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "hm", "signature": "s"}] if thinks else []
        blocks.append({"type": "text", "text": self.text(1)})
        blocks += [{"type": "tool_use", "id": one, "name": "find", "input": {"q": "word " * count}} for one in ids]
        return self.made_turn("assistant", blocks)

    def results(self, ids: list[str], count: int, *, text: bool) -> dict[str, Any]:
        body = self.text(count)
        blocks: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": one, "content": body} for one in ids]
        return self.made_turn("user", [*blocks, {"type": "text", "text": "and so"}] if text else blocks)
