"""One request as a brain sees it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.support.messages_api.catalogue import Model
from tests.support.messages_api.prompt import blocks_of


@dataclass
class Wanted:
    """A request that passed every check."""

    body: dict[str, Any]
    model: Model
    input_tokens: int
    number: int
    """Counts the calls of this server, from 1."""

    @property
    def max_tokens(self) -> int:
        """Most that may be generated, thinking included; the window may leave less than was asked for."""
        asked: int = self.body["max_tokens"]
        return min(asked, max(1, self.model.window_tokens - self.input_tokens)) if asked else 0

    @property
    def thinks(self) -> bool:
        thinking = self.body.get("thinking")
        if thinking is None:
            return self.model.thinks_unasked
        return thinking["type"] in {"adaptive", "enabled"}

    @cached_property
    def system(self) -> str:
        return "\n".join(text_of(block) for block in blocks_of(self.body.get("system")))

    @cached_property
    def messages(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Role and blocks of each, as they came."""
        return [(message["role"], blocks_of(message["content"])) for message in self.body["messages"]]

    @cached_property
    def last_text(self) -> str:
        """The last text block of the last message: the instruction, where a conversation comes before it."""
        texts = [text_of(block) for block in self.messages[-1][1] if block.get("type") == "text"]
        return texts[-1] if texts else ""


def text_of(block: dict[str, Any]) -> str:
    """What a block says in words."""
    if block.get("type") == "text":
        return str(block["text"])
    if block.get("type") == "tool_result":
        return "\n".join(text_of(part) for part in blocks_of(block.get("content")))
    return ""
