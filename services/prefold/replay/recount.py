"""Counts a served context anew, from its messages alone, without any number that the server keeps.

The rule is the one of the stored counts, less what is not to be seen in messages: o200k tokens of each text,
4 a message and 3 a block; the system prompt by its text; tool blocks by their content; an image 1,600. So it is
a lower bound of the raw count, and a context whose recount passes the limit is over it beyond doubt.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from prefold.client import Context
from prefold.tokens import TokenCounter

MESSAGE_TOKENS = 4
BLOCK_TOKENS = 3
IMAGE_TOKENS = 1600

_REMEMBERED_TEXTS = 20_000


class Recount:
    """Counts contexts that mostly repeat each other, so texts are remembered. Not for sharing between threads."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._counts: dict[str, int] = {}

    def of(self, context: Context) -> int:
        """Raw tokens of the system prompt and of the messages beside it."""
        said = (message for message in context.messages if message["role"] != "system")
        return self._text(context.system) + sum(self._message(message) for message in said)

    def _message(self, message: Mapping[str, Any]) -> int:
        calls = message.get("tool_calls") or ()
        functions = (call["function"] for call in calls)
        return MESSAGE_TOKENS + self._content(message.get("content")) + sum(map(self._openai_call, functions))

    def _content(self, content: object) -> int:
        if content is None:
            return 0
        if isinstance(content, str):
            return BLOCK_TOKENS + self._text(content)
        assert isinstance(content, list)
        return sum(BLOCK_TOKENS + self._block(block) for block in content)

    def _block(self, block: Mapping[str, Any]) -> int:
        kind = block.get("type")
        if kind == "text":
            return self._text(block["text"])
        if kind in ("image", "image_url"):
            return IMAGE_TOKENS
        if kind in ("document", "file"):  # base64 is no text, and what its pages cost is not to be seen here
            return 0
        if kind == "tool_result":
            return self._content(block.get("content"))
        if kind in ("thinking", "redacted_thinking"):  # a signature is no text either: it stands for what it hides
            return self._text(block.get("thinking", ""))
        return self._text(orjson.dumps(block).decode())

    def _openai_call(self, function: Mapping[str, Any]) -> int:
        return BLOCK_TOKENS + self._text(function["name"]) + self._text(function["arguments"])

    def _text(self, text: str) -> int:
        known = self._counts.get(text)
        if known is None:
            if len(self._counts) >= _REMEMBERED_TEXTS:
                self._counts.clear()
            known = self._counts[text] = self._counter.count(text)
        return known
