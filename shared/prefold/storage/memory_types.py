"""What the storage gives and takes of a session's memory. Tokens are raw."""

from dataclasses import dataclass
from typing import Literal

from prefold.storage.types import Proposals, SessionRef

__all__ = ["MemoryOutcome", "MemoryTicket", "SessionDigest", "StoredState", "TurnSpan", "spans_of"]


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """Turns by number, both ends in."""

    first_seq: int
    last_seq: int


def spans_of(stored: bytes) -> tuple[TurnSpan, ...]:
    """Out of "5-9 12-12"."""
    return tuple(TurnSpan(*map(int, span.split(b"-"))) for span in stored.split())


@dataclass(frozen=True, slots=True)
class MemoryTicket:
    """Leave to take facts out of a session's turns, and to close it if its time has come."""

    ref: SessionRef
    user: str
    """Empty: nobody's, then no facts are kept."""
    remembered_to: int
    """Turns up to here are done."""
    upto: int
    """Turns up to here are to be done now: what a summary covers, or all when the session closes."""
    head_seq: int
    closing: bool
    """The session is idle or was asked to close: its own summary is wanted too."""
    forget: tuple[TurnSpan, ...]
    """Turns that were changed or taken back since: what is known from them has to go first."""
    changes: int
    """Edits, removals and rewinds so far; ``end_memory`` refuses when it has moved on."""
    epoch: int
    """Of the session's tombstone, as in ``BuildTicket``."""
    lease_ms: int
    hard_limit_tokens: int
    calibration: float
    spoken_at_ms: int
    """When the newest of the turns came, or any of them changed: a change of settings or of the pinned state is neither."""
    first_user_seq: int = 0
    copied_to: int = 0
    """Turns up to here are another session's, of which this one is a fork, and"""
    copied_at_ms: int = 0
    """this is when the newest of them was stored there, at the latest."""


MemoryOutcome = Literal["ended", "gone", "changed"]
"""``gone``: this life is over, undo what was written. ``changed``: turns changed meanwhile: look again."""


@dataclass(frozen=True, slots=True)
class SessionDigest:
    """The summary of a whole session, made when it closed: what other sessions of its user can recall."""

    upto: int
    """It stands for the turns 1..upto."""
    text: str
    tokens: int
    """Raw."""
    digest: str
    """Hex digest of ``text``: the vector of another is outdated."""
    made_at_ms: int
    record: str = "{}"
    """JSON: engine, seconds; no text of the conversation."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """The pinned state as it is stored. ``version`` 0: there is none."""

    ref: SessionRef
    version: int
    body: bytes
    """JSON, opaque to the scripts: see ``prefold.pinned``."""
    tokens: int
    """Raw tokens of its rendered text."""
    cap_tokens: int
    proposals: Proposals
    user: str
