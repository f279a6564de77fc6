"""Every request that arrived: its bytes, when, how it was answered, and whether the client waited for it."""

from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson


@dataclass
class Entry:
    """One request and its end. Times are the server's clock's."""

    number: int
    method: str
    path: str
    query: str
    headers: dict[str, str]
    arrived: float
    request_id: str
    body: bytes = b""
    status: int | None = None
    """None while it runs, and where the connection was cut before any answer."""
    answer_headers: dict[str, str] = field(default_factory=dict)
    ended: float | None = None
    hung_up: bool = False
    """The client went away before the end."""
    fault: str | None = None
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None

    @cached_property
    def json(self) -> Any:
        """The body; None if it is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    @property
    def is_message(self) -> bool:
        return self.path == "/v1/messages"

    @property
    def key(self) -> str | None:
        """The credential, whichever header it came in."""
        bearer = self.headers.get("authorization", "")
        return bearer.removeprefix("Bearer ") if bearer.startswith("Bearer ") else self.headers.get("x-api-key")

    @property
    def has_failed(self) -> bool:
        return (self.ended is not None and self.status != 200) or self.fault in CUTS


CUTS = frozenset({"reset", "reset_after_headers", "hang", "stall", "error_event", "cut_stream", "empty_stream"})
"""Faults that spoil an answer whose status was 200, or that give none."""


class Journal:
    """In order of arrival. It keeps the last ``keep`` requests (all if None) and counts them all."""

    def __init__(self, keep: int | None = None) -> None:
        self.entries: deque[Entry] = deque(maxlen=keep)
        self.statuses: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.count = 0
        self.hung_up = 0
        self.running = 0
        self.most_at_once = 0
        self.tokens: Counter[str] = Counter()

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.count += 1
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)

    def close(self, entry: Entry, now: float) -> None:
        """Counts how it ended."""
        entry.ended = now
        self.running -= 1
        self.hung_up += entry.hung_up
        self.statuses[str(entry.status)] += 1
        if entry.fault not in {None, "none"}:
            self.faults[str(entry.fault)] += 1
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            self.tokens[name] += (entry.usage or {}).get(name) or 0

    @property
    def messages(self) -> list[Entry]:
        """The calls that asked for a message."""
        return [entry for entry in self.entries if entry.is_message]

    def figures(self) -> dict[str, Any]:
        """Counts for who watches from outside."""
        return {
            "requests": self.count,
            "running": self.running,
            "most_at_once": self.most_at_once,
            "hung_up": self.hung_up,
            "statuses": dict(self.statuses),
            "faults": dict(self.faults),
            "tokens": dict(self.tokens),
        }

    def clear(self) -> None:
        """Forgets what has ended."""
        running = [entry for entry in self.entries if entry.ended is None]
        self.__init__(self.entries.maxlen)  # type: ignore[misc]
        for entry in running:
            self.add(entry)
