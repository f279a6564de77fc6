"""What goes into and comes out of a user's book of facts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prefold.facts.rows import Category, Fact, Source

__all__ = ["Learnt", "NewFact", "Withdrawn"]


@dataclass(frozen=True, slots=True)
class NewFact:
    """What a backend says of a user."""

    subject: str
    relation: str
    object: str
    category: Category | None = None
    """None: the relation's own, else ``other``."""
    confidence: float | None = None
    """None: 1."""
    expires_at_ms: int | None = None
    """None: the category's life, if that has one."""
    sources: Sequence[Source] = ()
    """Turns that show it: it goes with the last of them. Without any only the backend takes it away."""
    is_entity: bool | None = None
    """None: as the relation has it, else no."""
    is_single: bool | None = None
    """None: the relation's own, else a new object replaces the old one."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What statements came to. Learning the same again adds and changes nothing."""

    added: list[Fact] = field(default_factory=list)
    """New rows; one that was said before what is known already is history at once."""
    confirmed: list[str] = field(default_factory=list)
    """Rows that another turn said again."""
    superseded: list[str] = field(default_factory=list)
    """Rows that were served and are not any more: replaced or taken back."""
    refused: dict[str, int] = field(default_factory=dict)
    """How many by code: suppressed, empty, too_long, doubtful, malformed; too_many: surer ones leave no room."""
    dropped: list[str] = field(default_factory=list)
    """Rows that went because there are too many: the oldest history, then what is least sure."""
    unreadable: int = 0
    """Stored rows that could not be read; they were left alone."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What went with some turns."""

    dropped: list[str] = field(default_factory=list)
    """Rows that nothing speaks for any more: they and their vectors have to go everywhere."""
    weakened: list[str] = field(default_factory=list)
    """Rows that other turns still speak for."""
    restored: list[str] = field(default_factory=list)
    """Rows that hold again, because what had replaced them went."""
    unreadable: int = 0
    """Stored rows that could not be read; they were left alone."""
