"""What the storage gives and takes of the embedding of turns."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["EmbedDebt", "EmbedSpan", "MarkOutcome", "Purge"]


@dataclass(frozen=True, slots=True)
class Purge:
    """Vectors that have to go: of the turns ``first_seq``..``last_seq``, all but those of a turn's present revision."""

    first_seq: int
    last_seq: int
    asked_at_ms: int
    """When the turns changed. A worker that read them before may still write until a grace later."""


@dataclass(frozen=True, slots=True)
class EmbedDebt:
    """One look at what is left to the embedders of a session, and at what the look holds good for."""

    head_seq: int
    embedded_to: int
    """Seq up to which the session is in the collection that was asked for."""
    user: str
    changes: int
    """Edits, removals and rewinds so far, and the setting of the user. ``mark_embedded`` refuses when it has moved on."""
    redo: tuple[int, ...]
    """Seqs below the mark whose turn has a new revision."""
    purges: tuple[Purge, ...]
    read_at_ms: int
    """The server's clock; 0 without purges."""


MarkOutcome = Literal["marked", "gone", "changed"]
"""``gone``: this life is over, undo the upsert. ``changed``: turns changed meanwhile, look again, then mark."""


@dataclass(frozen=True, slots=True)
class EmbedSpan:
    """Turns that still have to be embedded: what one embed job carries, as a list of five JSON values."""

    tenant: str
    session: str
    incarnation: str
    first_seq: int
    last_seq: int
