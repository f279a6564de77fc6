"""A stored turn as text: what was said, by whom and when, what was called and what came back.

Text is made safe here, once, before anything looks at it: what Prefold had injected is stripped, secrets are
redacted, imitations of our marks are neutralised. Base64 never gets past this module.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from prefold.compaction.reading.redact import redact
from prefold.conversation.markers import document_placeholder, image_placeholder, late_result_text
from prefold.conversation.marks import neutralise, strip_injected
from prefold.conversation.turns import TurnKind
from prefold.storage.types import StoredTurn

_NAME_JUNK = re.compile(r"[^\w .'·・-]+")
_BLOB = re.compile(r"(?:data:[\w/+.-]{1,60};base64,)?[A-Za-z0-9+/_-]{200,}={0,2}")
_LATE = re.compile(re.escape(late_result_text("\0")).replace("\0", r"([\w-]{1,64})") + r"\Z")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class PartKind(StrEnum):
    """What a piece of a turn is."""

    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    IMAGE = "image"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a turn."""

    kind: PartKind
    text: str
    """Words; a call's arguments as JSON; a result's output; an image's caption; a document's title."""
    name: str = ""
    """A call's tool."""
    call_id: str = ""
    """Of a call or a result."""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """One turn, readable."""

    seq: int
    role: str
    """user, assistant or system."""
    speaker: str
    """The speaker's name where the turn has one, else the role."""
    date: str
    """``2023-05-08``, or empty."""
    parts: tuple[Part, ...]


def read_source(turn: StoredTurn) -> SourceTurn:
    """``turn`` as text. Never raises: what cannot be decoded counts as text."""
    verbatim = _object(turn.verbatim_json)
    role = "system" if turn.kind == TurnKind.SYSTEM else turn.role
    captions = _captions(verbatim.get("content"))
    blocks = _blocks(turn.content)
    if turn.kind == TurnKind.RESULTS:
        blocks = list(_late_as_results(blocks, verbatim.get("content")))
    parts = tuple(part for block in blocks for part in _parts(block, captions))
    return SourceTurn(turn.seq, role, _speaker(verbatim, role), _date(verbatim), parts)


def verbatim_text(turn: StoredTurn) -> str:
    """What a turn says, word for word; media as placeholders, calls and results left out.

    Secrets stay: this is for the head, which repeats what the window had. Imitations of our marks do not.
    """
    captions = _captions(_object(turn.verbatim_json).get("content"))
    said = [_said(block, captions) for block in _blocks(turn.content)]
    return neutralise(strip_injected("\n".join(text for text in said if text)))


def _said(block: dict[str, Any], captions: Iterator[str]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "image":
        return image_placeholder(next(captions, ""))
    return document_placeholder(str(block.get("title") or "")) if kind == "document" else ""


def clean(text: str) -> str:
    """``text`` safe to be quoted: see the module's first lines."""
    return neutralise(redact(_BLOB.sub("[data]", strip_injected(text))))


def _parts(block: dict[str, Any], captions: Iterator[str]) -> Iterator[Part]:
    kind = block.get("type")
    if kind == "text":
        yield Part(PartKind.TEXT, clean(str(block.get("text", ""))))
    elif kind == "image":
        yield Part(PartKind.IMAGE, clean(next(captions, "")))
    elif kind == "tool_use":
        arguments = msgspec.json.encode(block.get("input")).decode()
        yield Part(PartKind.CALL, clean(arguments), clean(str(block.get("name", ""))), str(block.get("id", "")))
    elif kind == "tool_result":
        yield _result(block)
    elif kind == "document":
        yield Part(PartKind.DOCUMENT, clean(str(block.get("title") or "")))


def _late_as_results(blocks: list[dict[str, Any]], published: object) -> Iterator[dict[str, Any]]:
    """``blocks`` with results that came late, which stand as plain text, as the results that they are."""
    sizes = {str(one.get("tool_use_id")): one.get("content") for one in _listed(published)}
    at = 0
    while at < len(blocks):
        found = _LATE.match(str(blocks[at].get("text", "")))
        if found is None:
            yield blocks[at]
            at += 1
            continue
        content = sizes.get(found[1], blocks[at + 1 :])
        size = len(content) if isinstance(content, list) and content else 1
        yield {"type": "tool_result", "tool_use_id": found[1], "content": blocks[at + 1 : at + 1 + size]}
        at += 1 + size


def _listed(content: object) -> Iterator[dict[str, Any]]:
    return (one for one in content if isinstance(one, dict)) if isinstance(content, list) else iter(())


def _result(block: dict[str, Any]) -> Part:
    content = block.get("content")
    if isinstance(content, list):
        content = "\n".join(str(one.get("text", "")) or "[image]" for one in content if isinstance(one, dict))
    is_error = block.get("is_error") is True
    return Part(
        PartKind.RESULT, clean(str(content or "")), call_id=str(block.get("tool_use_id", "")), is_error=is_error
    )


def _blocks(content: bytes) -> list[dict[str, Any]]:
    try:
        blocks = msgspec.json.decode(b"[" + content + b"]")
    except (msgspec.DecodeError, RecursionError):
        return [{"type": "text", "text": content.decode(errors="replace")}]
    return [block for block in blocks if isinstance(block, dict)]


def _captions(content: object) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") in ("image", "image_url", "input_image"):
            yield str(block.get("caption") or "")


def _object(raw: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _speaker(verbatim: dict[str, Any], role: str) -> str:
    name = verbatim.get("name")
    if role == "system" or not isinstance(name, str):
        return role
    return " ".join(_NAME_JUNK.sub(" ", name).split())[:24].strip() or role


def _date(verbatim: dict[str, Any]) -> str:
    found = _DATE.match(str(verbatim.get("ts") or ""))
    return found.group() if found else ""
