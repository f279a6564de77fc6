"""Turns as the summarizer gets to see them: data, between tags that nothing in them can close.

Each turn is one element, ``<turn n="12" role="user" speaker="Ann" date="2024-05-01">…</turn>``; what its tools were
asked and answered stands in ``<call>`` and ``<result>`` inside it. Everything of the conversation is escaped, so a
tag that is really there was written here. ``source`` has stripped what Prefold had injected, redacted secrets and
replaced base64 before any of it gets this far.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from prefold.compaction.gate.visible import visible
from prefold.compaction.reading.source import Part, PartKind, SourceTurn, read_source
from prefold.conversation.clipping import grapheme_start
from prefold.conversation.markers import document_placeholder, image_placeholder
from prefold.storage.types import StoredTurn

MOST_RESULT_CHARACTERS = 2_000
"""What a tool's output keeps by default: about 500 tokens, its beginning and its end."""
MOST_CALL_CHARACTERS = 1_200
_MOST_NAME_CHARACTERS = 64
_HEAD_SHARE = 0.7
_BRACKETS = re.compile(
    r"[＜‹⟨〈《˂﹤❮⧼](?=\s{0,3}[/／]?\s{0,3}(?:turn|transcript|summar|system|assistant|user|human|call|result|instruction))",
    re.IGNORECASE,
)
"""Look-alikes of ``<`` before a tag's name: they close nothing, but a small model may think so."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What one request shows of a conversation."""

    text: str
    """Elements, one after the other, without the tags around them all."""
    first_seq: int
    last_seq: int


def render_transcript(
    turns: Sequence[StoredTurn],
    *,
    most_result_characters: int = MOST_RESULT_CHARACTERS,
    most_text_characters: int | None = None,
) -> Transcript:
    """``turns``, ascending, as elements. A turn that says nothing is there all the same, empty.

    ``most_text_characters`` clips words as well, for a turn that no summarizer's window takes; None: never.
    """
    names: dict[str, str] = {}
    shown = [_turn(read_source(turn), names, most_result_characters, most_text_characters) for turn in turns]
    return Transcript("\n".join(shown), turns[0].seq if turns else 0, turns[-1].seq if turns else 0)


def inert(text: str) -> str:
    """``text`` of a conversation as it may stand between our tags: nothing unseen in it, no tag, no look-alike."""
    return escape(_BRACKETS.sub("(", visible(text)), quote=False)


def shortened(text: str, most: int) -> str:
    """``text``, or its beginning and end with what is left out and the full size said between them."""
    if len(text) <= most:
        return text
    head = grapheme_start(text, int(most * _HEAD_SHARE))
    tail = grapheme_start(text, len(text) - (most - head))
    return f"{text[:head]}\n[… {tail - head:,} of {len(text):,} characters left out …]\n{text[tail:]}"


def _turn(turn: SourceTurn, names: dict[str, str], most_result: int, most_text: int | None) -> str:
    attributes = [("n", str(turn.seq)), ("role", role_of(turn))]
    if turn.speaker not in (turn.role, "tool"):
        attributes.append(("speaker", turn.speaker))
    if turn.date:
        attributes.append(("date", turn.date))
    body = "\n".join(_parts(turn.parts, names, most_result, most_text))
    return f"<turn{_attributes(attributes)}>{body}</turn>"


def role_of(turn: SourceTurn) -> str:
    """``tool`` for a turn that only brings results, else its role."""
    is_tool = bool(turn.parts) and all(part.kind is PartKind.RESULT for part in turn.parts)
    return "tool" if is_tool else turn.role


def _parts(parts: Iterable[Part], names: dict[str, str], most_result: int, most_text: int | None) -> Iterator[str]:
    for part in parts:
        if part.kind is PartKind.CALL:
            names[part.call_id] = part.name
            yield f"<call{_attributes([('tool', part.name)])}>{inert(shortened(part.text, MOST_CALL_CHARACTERS))}</call>"
        elif part.kind is PartKind.RESULT:
            yield _result(part, names.get(part.call_id, ""), most_result)
        elif part.kind is PartKind.IMAGE:
            yield inert(image_placeholder(part.text))
        elif part.kind is PartKind.DOCUMENT:
            yield inert(document_placeholder(part.text))
        elif part.text.strip():
            yield inert(part.text if most_text is None else shortened(part.text, most_text))


def _result(part: Part, name: str, most: int) -> str:
    attributes = [("tool", name)] if name else []
    if len(part.text) > most:
        attributes.append(("characters", str(len(part.text))))
    if part.is_error:
        attributes.append(("error", "true"))
    return f"<result{_attributes(attributes)}>{inert(shortened(part.text, most))}</result>"


def _attributes(members: Iterable[tuple[str, str]]) -> str:
    return "".join(f' {key}="{_attribute(value)}"' for key, value in members)


def _attribute(value: str) -> str:
    return escape(" ".join(_BRACKETS.sub("(", visible(value)).split())[:_MOST_NAME_CHARACTERS], quote=True)
