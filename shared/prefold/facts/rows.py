"""What is known of a user, as rows. Plain data: how rows are made, merged and shown is told elsewhere."""

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["CATEGORIES", "Category", "Fact", "Origin", "Source", "Stated"]

Category = Literal[
    "identity",
    "contact",
    "location",
    "work",
    "family",
    "health",
    "preference",
    "instruction",
    "constraint",
    "plan",
    "possession",
    "other",
]
"""What a fact is about. ``instruction``: how the user wants to be answered; ``constraint``: what they cannot or must not."""

CATEGORIES: Final[tuple[Category, ...]] = (
    "identity",
    "contact",
    "location",
    "work",
    "family",
    "health",
    "preference",
    "instruction",
    "constraint",
    "plan",
    "possession",
    "other",
)

Origin = Literal["extracted", "model", "backend"]
"""Who made a row: the offline extractor, a model, or the backend, whose word counts most."""


@dataclass(frozen=True, slots=True)
class Source:
    """The turn that a fact came from."""

    session: str
    incarnation: str
    turn_id: str
    seq: int
    revision: int


@dataclass(frozen=True, slots=True)
class Stated:
    """Something that a user said about themself, as an extractor found it in one turn."""

    subject: str
    """``user``, or the name of an entity that the user told something lasting about (``user's dog Rex``: ``Rex``)."""
    relation: str
    """snake_case: ``lives_in``, ``email``, ``allergic_to``."""
    object: str
    """As it was said, cut to what it names."""
    category: Category
    confidence: float
    """0..1, when it was said."""
    said: str
    """The user's own sentence, at most 300 characters: what is shown when somebody asks why this is known."""
    source: Source
    said_at_ms: int
    """When: the turn's own time, or when it was stored."""
    is_entity: bool = False
    """The object is a name of its own (a person, a place, an organisation, a thing): an edge of the graph."""
    is_single: bool = True
    """A new object replaces the old one (``lives_in``); False: objects stand side by side (``likes``)."""
    retracts: bool = False
    """The user took it back ("I no longer eat meat" of ``eats meat``): the row ends, nothing takes its place."""
    origin: Origin = "extracted"


@dataclass(frozen=True, slots=True)
class Fact:
    """One row. It is served while nothing superseded it and its time has not come."""

    id: str
    """Letters, digits and ``-``; never used again."""
    subject: str
    relation: str
    object: str
    category: Category
    confidence: float
    """As of ``last_confirmed_ms``; what it is now follows from its category's half-life."""
    sources: tuple[Source, ...]
    """Newest last, at most 16; empty for a row of the backend that named none."""
    origin: Origin
    said: str
    is_entity: bool
    is_single: bool
    first_seen_ms: int
    last_confirmed_ms: int
    expires_at_ms: int | None
    superseded_by: str | None = None
    """Id of the row that took its place; its own id when the user or the backend took it back."""
    superseded_at_ms: int | None = None
