"""Conversations from files, in the form in which they are published.

Read are JSON Lines of turns (ours: ``id``, ``role``, ``content``, ``ts``, ``name``), of OpenAI messages
(``tool_calls``, role ``tool``), or of just ``role`` and ``content``; and one JSON document that is a list of
messages or has one under ``messages``. A turn without an id is called by its place, ``line-12`` (in a document
``message-12``), so that reading twice gives the same ids. Members that are no part of a turn are dropped.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from prefold.errors import InvalidInputError

OPTIONAL = ("name", "ts", "tool_calls", "tool_call_id")
"""What is published beside id, role and content."""
ROLES = ("system", "developer", "user", "assistant", "tool")

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileTurn:
    """One turn of a file."""

    place: str
    """``line 12``, for messages to people."""
    published: JsonObject
    """Exactly what goes out."""


def read_conversation(path: Path) -> list[FileTurn]:
    """The turns of a file, in order. InvalidInputError names the file and the line of what cannot be read."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidInputError(f"{path}: line {line}: is not UTF-8") from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    turns = list(_named(path, _messages(path, text)))
    if not turns:
        raise InvalidInputError(f"{path}: holds no turns")
    return turns


def _messages(path: Path, text: str) -> Iterator[tuple[str, object]]:
    document = _document(text)
    if document is not None:
        for number, message in enumerate(document, 1):
            yield f"message {number}", message
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", _parsed(path, number, line)


def _document(text: str) -> list[object] | None:
    """The messages of a whole-file document; None for JSON Lines, also when the file is broken."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[")):
        return None
    try:
        value, end = _DECODER.raw_decode(stripped)
    except (ValueError, RecursionError):
        return None
    messages = value.get("messages") if isinstance(value, dict) and "role" not in value else value
    return messages if isinstance(messages, list) and end == len(stripped) else None


def _parsed(path: Path, number: int, line: str) -> object:
    try:
        return _DECODER.decode(line.strip())
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"{path}: line {number}: is not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{path}: line {number}: is not JSON: {error}") from error


def _named(path: Path, messages: Iterator[tuple[str, object]]) -> Iterator[FileTurn]:
    places: dict[str, str] = {}
    for place, message in messages:
        published = _published(f"{path}: {place}", place, message)
        first = places.setdefault(published["id"], place)
        if first != place:
            raise InvalidInputError(f"{path}: {place}: the id {published['id']!r} was already used in {first}")
        yield FileTurn(place, published)


def _published(where: str, place: str, message: object) -> JsonObject:
    if not isinstance(message, dict):
        raise InvalidInputError(f"{where}: must be a JSON object with role and content")
    if "messages" in message and "role" not in message:
        raise InvalidInputError(f"{where}: is a conversation of its own; a file holds one conversation")
    if message.get("role") not in ROLES:
        raise InvalidInputError(f"{where}: role must be one of {', '.join(ROLES)}")
    content = message.get("content")
    if not isinstance(content, str | list) and not (content is None and message.get("tool_calls")):
        raise InvalidInputError(f"{where}: content must be a text or a list of blocks")
    turn = {"id": _id(message.get("id"), place), "role": message["role"], "content": content}
    return turn | {name: message[name] for name in OPTIONAL if message.get(name) is not None}


def _id(given: object, place: str) -> str:
    return place.replace(" ", "-") if given is None or given == "" else str(given)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise ValueError(f"{literal} is too large for a number")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
