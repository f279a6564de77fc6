"""What a published turn consists of, as far as it matters for keeping it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})
_RESULT_TYPES: Final = frozenset({"tool_result", "function_call_output"})
_CALL_TYPES: Final = frozenset({"tool_use", "function_call", "server_tool_use"})
_MAX_DEPTH: Final = 8


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn in pieces."""

    role: str
    name: str
    """Of the speaker; empty if the producer gave none."""
    text: str
    results: str
    """Of tools."""
    has_calls: bool
    has_more: bool
    """An image, a document, or a block that is not known here: never left out."""

    @property
    def is_talk(self) -> bool:
        """Nothing but text."""
        return bool(self.text.strip()) and not (self.results or self.has_calls or self.has_more)

    @property
    def is_output(self) -> bool:
        """Nothing but results of tools, and in text alone."""
        return bool(self.results.strip()) and not (self.text.strip() or self.has_calls or self.has_more)


def read_spoken(turn_json: bytes) -> Spoken:
    """From a turn as it was published, in Anthropic's or OpenAI's form."""
    turn = msgspec.json.decode(turn_json)
    is_tool = turn.get("role") in ("tool", "function")
    pieces = [("result" if is_tool and kind == "text" else kind, text) for kind, text in _pieces(turn, 0)]
    kinds = {kind for kind, _ in pieces}
    name = turn.get("name")
    return Spoken(
        role=str(turn.get("role", "")),
        name=name if isinstance(name, str) and not is_tool else "",
        text=_joined(pieces, "text"),
        results=_joined(pieces, "result"),
        has_calls="call" in kinds,
        has_more="more" in kinds,
    )


def is_structured(text: str) -> bool:
    """True for JSON, and for what begins like it (a result may be cut)."""
    return text.lstrip()[:1] in ("{", "[", "<")


def _joined(pieces: list[tuple[str, str]], wanted: str) -> str:
    return "\n".join(text for kind, text in pieces if kind == wanted)


def _pieces(turn: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    yield from _of_content(turn.get("content"), depth)
    if turn.get("tool_calls"):
        yield "call", ""
    if turn.get("refusal"):
        yield "more", ""


def _of_content(content: object, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield "text", content
    elif isinstance(content, list) and depth < _MAX_DEPTH:
        for block in content:
            yield from _of_block(block, depth + 1)
    elif content is not None:
        yield "more", ""


def _of_block(block: object, depth: int) -> Iterator[tuple[str, str]]:
    kind = str(block.get("type")) if isinstance(block, dict) else ""
    if isinstance(block, str):
        yield "text", block
    elif not isinstance(block, dict):
        yield "more", ""
    elif kind in _TEXT_TYPES and isinstance(block.get("text"), str):
        yield "text", block["text"]
    elif kind in _CALL_TYPES:
        yield "call", ""
    elif kind in _RESULT_TYPES:
        inner = _of_content(block.get("content", block.get("output")), depth)
        yield from (("result" if kind == "text" else "more", text) for kind, text in inner)
    else:
        yield "more", ""
