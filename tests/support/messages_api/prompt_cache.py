"""What the prompt cache holds, and what a request reads from it and writes into it.

An entry is a whole prefix, known by the hash over all its blocks and over the settings that change how they are read:
those count from the level that they touch. A marker looks for an entry at its own block and at the 19 before it, never
further. An entry can be read only once the response that writes it has begun.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.support.messages_api.clock import Clock
from tests.support.messages_api.prompt import MESSAGES, SYSTEM, TOOLS, Piece

WALK_BACK = 20
_TTLS = {"5m": 300.0, "1h": 3600.0}
_SWEEP_AT = 4096


@dataclass(slots=True)
class Entry:
    ttl: float
    usable_at: float
    expires_at: float


@dataclass(slots=True)
class Caching:
    """What one request does with the cache; nothing is written before ``begin``."""

    read_tokens: int = 0
    written_tokens: dict[str, int] = field(default_factory=lambda: {"5m": 0, "1h": 0})
    uncached_tokens: int = 0
    hit: bytes | None = None
    writes: list[tuple[bytes, float]] = field(default_factory=list)

    @property
    def creation_tokens(self) -> int:
        return sum(self.written_tokens.values())

    def usage(self) -> dict[str, Any]:
        """Its part of a response's usage."""
        return {
            "input_tokens": self.uncached_tokens,
            "cache_creation_input_tokens": self.creation_tokens,
            "cache_read_input_tokens": self.read_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.written_tokens["5m"],
                "ephemeral_1h_input_tokens": self.written_tokens["1h"],
            },
        }


class PromptCache:
    """Of all workspaces of one server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[bytes, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        self._entries.clear()

    def plan(self, body: dict[str, Any], pieces: list[Piece], workspace: str, minimum_tokens: int) -> Caching:
        """What this request would read and write now."""
        caching = Caching()
        marked = [index for index, piece in enumerate(pieces) if piece.marker is not None]
        sums = _running_sums(pieces)
        total = sums[-1] if sums else 0
        # A prefix below the model's minimum is as if it had no marker.
        effective = [index for index in marked if sums[index] >= minimum_tokens]
        if not effective:
            caching.uncached_tokens = total
            return caching
        hashes = _running_hashes(body, pieces[: effective[-1] + 1], workspace)
        at = self._longest_hit(effective, hashes)
        if at is not None:
            caching.hit, caching.read_tokens = hashes[at], sums[at]
        _plan_writes(caching, effective, at, pieces, hashes, sums)
        caching.uncached_tokens = total - sums[effective[-1]]
        return caching

    def begin(self, caching: Caching) -> None:
        """The response has begun: from now on its entries can be read."""
        now = self._clock.now()
        if caching.hit is not None and (entry := self._entries.get(caching.hit)) is not None:
            entry.expires_at = now + entry.ttl
        for key, ttl in caching.writes:
            known = self._entries.get(key)
            lasting = max(ttl, known.ttl) if known is not None and known.expires_at > now else ttl
            self._entries[key] = Entry(lasting, now, now + lasting)
        if len(self._entries) > _SWEEP_AT:
            self._entries = {key: entry for key, entry in self._entries.items() if entry.expires_at > now}

    def _longest_hit(self, marked: list[int], hashes: list[bytes]) -> int | None:
        for marker in reversed(marked):
            for index in range(marker, max(-1, marker - WALK_BACK), -1):
                if self._is_usable(hashes[index]):
                    return index
        return None

    def _is_usable(self, key: bytes) -> bool:
        entry, now = self._entries.get(key), self._clock.now()
        return entry is not None and entry.usable_at <= now < entry.expires_at


def _plan_writes(
    caching: Caching, marked: list[int], hit: int | None, pieces: list[Piece], hashes: list[bytes], sums: list[int]
) -> None:
    before = sums[hit] if hit is not None else 0
    for index in marked:
        if hit is not None and index <= hit:
            continue
        ttl = str((pieces[index].marker or {}).get("ttl") or "5m")
        caching.writes.append((hashes[index], _TTLS[ttl]))
        caching.written_tokens[ttl] += sums[index] - before
        before = sums[index]


def _running_sums(pieces: list[Piece]) -> list[int]:
    sums, total = [], 0
    for piece in pieces:
        total += piece.tokens
        sums.append(total)
    return sums


def _running_hashes(body: dict[str, Any], pieces: list[Piece], workspace: str) -> list[bytes]:
    """The key of the prefix that ends at each block."""
    running = hashlib.blake2b(orjson.dumps([workspace, body["model"]]), digest_size=16)
    hashes, level = [], TOOLS
    settings = {SYSTEM: _system_settings(body), MESSAGES: _message_settings(body, pieces)}
    for piece in pieces:
        while level < piece.level:
            level += 1
            running.update(orjson.dumps(settings[level], option=orjson.OPT_SORT_KEYS))
        running.update(piece.role.encode())
        running.update(canonical(piece.block))
        hashes.append(running.digest())
    return hashes


def canonical(block: dict[str, Any]) -> bytes:
    """The block's own members in one order, without its marker; what is free in form (a tool's input, a schema)
    keeps the order that it came in, since that is what the model reads."""
    return orjson.dumps({name: block[name] for name in sorted(block) if name != "cache_control"})


def _system_settings(body: dict[str, Any]) -> list[Any]:
    return ["system", body.get("speed"), (body.get("output_config") or {}).get("format")]


def _message_settings(body: dict[str, Any], pieces: list[Piece]) -> list[Any]:
    has_images = any(_has_image(piece.block) for piece in pieces)
    effort = (body.get("output_config") or {}).get("effort")
    return ["messages", body.get("tool_choice"), body.get("thinking"), effort, has_images]


def _has_image(block: dict[str, Any]) -> bool:
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        return any(_has_image(part) for part in block["content"])
    return block.get("type") == "image"
