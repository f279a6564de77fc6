"""Why a request could not read what the one before it had put into the cache, for clients that ask."""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import orjson

from tests.support.messages_api.prompt import MESSAGES, SYSTEM, TOOLS, Piece
from tests.support.messages_api.prompt_cache import Caching, canonical

_MOST = 1000


@dataclass(frozen=True, slots=True)
class _Print:
    """What is kept of one request."""

    model: tuple[Any, Any]
    levels: tuple[tuple[bytes, ...], ...]
    """Digests of the blocks of tools, system and messages."""
    settings: bytes
    cached_tokens: int


class Diagnoses:
    """Knows the last requests that asked for a diagnosis, by the id of the message that they got."""

    def __init__(self) -> None:
        self._prints: OrderedDict[str, _Print] = OrderedDict()

    def of(self, body: dict[str, Any], pieces: list[Piece], caching: Caching, message_id: str) -> dict[str, Any] | None:
        """The answer's ``diagnostics``; None where nothing was asked, nothing came before, or nothing was missed."""
        wanted = body.get("diagnostics")
        if wanted is None:
            return None
        now = _print_of(body, pieces, caching)
        self._prints[message_id] = now
        if len(self._prints) > _MOST:
            self._prints.popitem(last=False)
        previous = wanted.get("previous_message_id")
        if previous is None:
            return None
        before = self._prints.get(previous)
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = _difference(before, now)
        if reason is None:
            return None
        if reason == "unavailable":
            return {"cache_miss_reason": {"type": reason}}
        missed = max(0, before.cached_tokens - caching.read_tokens)
        return {"cache_miss_reason": {"type": reason, "cache_missed_input_tokens": missed}}


def _difference(before: _Print, now: _Print) -> str | None:
    if before.model != now.model:
        return "model_changed"
    if before.levels[SYSTEM] != now.levels[SYSTEM]:
        return "system_changed"
    if before.levels[TOOLS] != now.levels[TOOLS]:
        return "tools_changed"
    said = before.levels[MESSAGES]
    if now.levels[MESSAGES][: len(said)] != said:
        return "messages_changed"
    return "unavailable" if before.settings != now.settings else None


def _print_of(body: dict[str, Any], pieces: list[Piece], caching: Caching) -> _Print:
    levels = tuple(
        tuple(_digest(piece.role.encode() + canonical(piece.block)) for piece in pieces if piece.level == level)
        for level in (TOOLS, SYSTEM, MESSAGES)
    )
    settings = [body.get("tool_choice"), body.get("thinking"), body.get("output_config")]
    cached = caching.read_tokens + caching.creation_tokens
    return _Print((body["model"], body.get("speed")), levels, _digest(orjson.dumps(settings)), cached)


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=12).digest()
