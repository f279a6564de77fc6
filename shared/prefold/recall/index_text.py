"""The text by which a turn is found: ``Name (8 May 2023): text [image: caption]``.

Who spoke and when belong to it: with them recall finds half as many evidence turns again as with the bare text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

import msgspec

from prefold.conversation.encoding import encode
from prefold.recall.points import Voice
from prefold.recall.sparse import DocumentWords, document_words, query_words

MAX_RESULT_WORDS: Final = 200
"""Of a tool's result: what it is about stands at its beginning, the rest is quantity."""
MAX_CHARS: Final = 32_768
_MAX_INPUT_CHARS: Final = 2_000
_MAX_DEPTH: Final = 8
_MAX_NAME_WORDS: Final = 4

_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_IMAGE_TYPES: Final = frozenset({"image", "image_url", "input_image"})
_RESULT_TYPES: Final = frozenset({"tool_result", "function_call_output"})
_CALL_TYPES: Final = frozenset({"tool_use", "function_call", "server_tool_use"})


@dataclass(frozen=True, slots=True)
class IndexedTurn:
    """What the index wants of a published turn."""

    text: str
    """Empty when there is nothing to find it by."""
    ts_ms: int | None
    """When it was said, if the producer told."""
    heading: str = ""
    """Who and when, as it stands before the colon in ``text``."""
    speaker: str = ""
    """The name, if the producer told one."""
    voice: Voice = "user"

    def words(self) -> DocumentWords:
        """As they are stored."""
        return document_words(self.text[len(self.heading) + 2 :], self.heading)

    def speaker_words(self) -> tuple[int, ...]:
        """Of the name, as a query would have them."""
        return query_words(self.speaker).indices[:_MAX_NAME_WORDS]


def index_turn(verbatim_json: bytes) -> IndexedTurn:
    """From a turn as it was published (``StoredTurn.verbatim_json``), in Anthropic's or OpenAI's form.

    Never fails on what it does not know: such blocks are left out. A date without a zone counts as UTC.
    """
    turn = msgspec.json.decode(verbatim_json)  # it keeps integers beyond 64 bits
    said_at = parse_time(turn.get("ts"))
    body = " ".join(piece for piece in _pieces(turn) if piece)[:MAX_CHARS].strip()
    if not body:
        return IndexedTurn("", _milliseconds(said_at))
    heading = _heading(turn, said_at)
    return IndexedTurn(f"{heading}: {body}", _milliseconds(said_at), heading, _name(turn), _voice(turn))


def parse_time(value: object, zone: tzinfo = UTC) -> datetime | None:
    """A time as producers write it: ISO 8601, or seconds or milliseconds since 1970. None if it is no time."""
    try:
        if isinstance(value, str):
            told = datetime.fromisoformat(value)
            return told if told.tzinfo else told.replace(tzinfo=zone)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, zone)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _heading(turn: Mapping[str, Any], said_at: datetime | None) -> str:
    speaker = _name(turn) or str(turn.get("role", "")).capitalize()
    return f"{speaker} ({said_at.day} {said_at:%B %Y})" if said_at else speaker


def _voice(turn: Mapping[str, Any]) -> Voice:
    role, content = turn.get("role"), turn.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = {str(block.get("type")) for block in blocks if isinstance(block, dict)}
    if role in ("tool", "function") or kinds & _RESULT_TYPES:
        return "tool"
    if role in ("system", "developer"):
        return "system"
    if role != "assistant":
        return "user"
    return "call" if turn.get("tool_calls") or kinds & _CALL_TYPES else "assistant"


def _name(turn: Mapping[str, Any]) -> str:
    name = turn.get("name")
    return name if isinstance(name, str) else ""


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


def _pieces(turn: Mapping[str, Any]) -> Iterator[str]:
    is_result = turn.get("role") in ("tool", "function")
    content = turn.get("content")
    if is_result:
        yield _clipped(" ".join(_of_content(content, 0)))
    else:
        yield from _of_content(content, 0)
    calls = turn.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
            yield _call(function.get("name"), function.get("arguments"))


def _of_content(content: object, depth: int) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list) and depth < _MAX_DEPTH:
        for block in content:
            yield from _of_block(block, depth + 1)


def _of_block(block: object, depth: int) -> Iterator[str]:
    if isinstance(block, str):
        yield block
        return
    if not isinstance(block, dict):
        return
    kind = block.get("type")
    if kind in _TEXT_TYPES:
        yield _text(block.get("text") or block.get("refusal"))
    elif kind in _IMAGE_TYPES and (caption := _text(block.get("caption"))):
        yield f"[image: {caption}]"
    elif kind in _CALL_TYPES:
        yield _call(block.get("name"), block.get("input", block.get("arguments")))
    elif kind in _RESULT_TYPES:
        yield _clipped(" ".join(_of_content(block.get("content", block.get("output")), depth)))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _call(name: object, arguments: object) -> str:
    """A call by its name and its values; JSON's punctuation does not disturb the word index."""
    given = arguments if isinstance(arguments, str) else encode(arguments or {}).decode()
    return f"[call {_text(name)} {given[:_MAX_INPUT_CHARS]}]"


def _clipped(text: str) -> str:
    return " ".join(text[: MAX_RESULT_WORDS * 40].split()[:MAX_RESULT_WORDS])
