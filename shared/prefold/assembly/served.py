"""A served context and its JSON. Tokens are served tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefold.assembly.breakpoints import Ttl, system_blocks
from prefold.conversation.encoding import orjson


@dataclass(frozen=True, slots=True)
class ServedRecall:
    """Something recalled that stands in the context."""

    seq: int
    """Of a turn; 0 for others."""
    role: str
    score: float
    tokens: int
    kind: str = "turn"
    id: str = ""
    session: str = ""
    copies: int = 0
    sources: tuple[tuple[str, str, int], ...] = ()
    """Of a fact: session, turn id and seq of where it was said."""


@dataclass(frozen=True, slots=True)
class ServedLeftOut:
    """What yielded. ``tokens`` is ``None`` where it is not known; the numbers of turns where it was turns."""

    part: str
    tokens: int | None
    reason: str
    first_seq: int | None = None
    last_seq: int | None = None
    kind: str = ""
    id: str = ""
    count: int | None = None
    """Of facts that had no room in the profile."""


@dataclass(frozen=True, slots=True)
class ServedContext:
    """What a backend sends to its model."""

    version: int
    covers_to: int
    status: str
    system: str
    messages: bytes
    """JSON array in the format asked for."""
    total_tokens: int
    sections: Mapping[str, int]
    recalled: tuple[ServedRecall, ...]
    left_out: tuple[ServedLeftOut, ...]
    open_calls: tuple[str, ...]
    """Calls at the end that still wait for their results."""
    cache: Ttl | None = None
    """``messages`` has cache breakpoints for so long."""

    def head(self) -> dict[str, Any]:
        """What stands before the messages. With breakpoints, ``system`` is a list of blocks."""
        system = self.system if self.cache is None else system_blocks(self.system, self.cache)
        return {"version": self.version, "covers_to": self.covers_to, "status": self.status, "system": system}

    def to_json(self) -> bytes:
        """The answer's body. ``messages`` is spliced in as it is; with breakpoints, ``system`` is a list of blocks."""
        tail = {
            "tokens": {"total": self.total_tokens, "sections": dict(self.sections)},
            "recalled": [shown_recall(one) for one in self.recalled],
            "left_out": [shown_left_out(one) for one in self.left_out],
            "open_calls": self.open_calls,
        }
        return b"".join((orjson.dumps(self.head())[:-1], b',"messages":', self.messages, b",", orjson.dumps(tail)[1:]))


def shown_recall(one: ServedRecall) -> dict[str, Any]:
    """As it stands in answers and records."""
    shown: dict[str, Any] = {"kind": one.kind, "id": one.id, "score": one.score, "tokens": one.tokens}
    if one.kind == "turn":
        shown |= {"seq": one.seq, "role": one.role}
    if one.session:
        shown["session"] = one.session
    if one.copies:
        shown["copies"] = one.copies
    if one.sources:
        shown["sources"] = [dict(zip(("session", "turn_id", "seq"), source, strict=True)) for source in one.sources]
    return shown


def shown_left_out(one: ServedLeftOut) -> dict[str, Any]:
    """As it stands in answers and records."""
    shown: dict[str, Any] = {"part": one.part, "tokens": one.tokens, "reason": one.reason}
    if one.first_seq is not None:
        shown["first_seq"], shown["last_seq"] = one.first_seq, one.last_seq
    if one.kind:
        shown["kind"], shown["id"] = one.kind, one.id
    if one.count is not None:
        shown["count"] = one.count
    return shown
