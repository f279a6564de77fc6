"""One line of the ledger."""

from dataclasses import dataclass
from enum import StrEnum


class EntryKind(StrEnum):
    """Why something is in the ledger."""

    CORRECTION = "correction"
    CONSTRAINT = "constraint"
    IDENTITY = "identity"
    PREFERENCE = "preference"
    STATEMENT = "statement"
    """A sentence of a person with an exact value in it."""
    VALUE = "value"
    """A value that a tool or the assistant brought up, or that stands in what a person pasted."""


_BINDING = frozenset({EntryKind.CORRECTION, EntryKind.CONSTRAINT, EntryKind.IDENTITY})


_ESSENTIAL = 3.0


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line, or one value of a line."""

    kind: EntryKind
    text: str
    """A sentence as it was said, or ``label: value``."""
    values: tuple[str, ...]
    """What must be carried letter by letter: exact values; the text itself where there are none."""
    seq: int
    speaker: str
    by_person: bool
    mentions: int
    """In how many turns it, or its rarest value, occurs."""
    score: float
    keys: tuple[str, ...] = ()
    """What it states, in the form in which newer statements replace it."""
    replaces: str = ""
    """The value that this one has replaced."""
    replaces_seq: int = 0
    outdated: tuple[tuple[str, int], ...] = ()
    """Values or words in ``text`` that have been replaced, and by which turn; something else in it has not."""

    @property
    def binds(self) -> bool:
        """Whether a person binds, corrects, says who they are, or what it is about: no tool's value goes before it."""
        return self.by_person and (self.kind in _BINDING or self.is_essential)

    @property
    def is_essential(self) -> bool:
        """Whether a person cannot do without it."""
        return self.by_person and self.score >= _ESSENTIAL

    def is_in(self, folded_text: str) -> bool:
        """Whether ``folded_text`` (lower case, white space folded) carries what of it still holds."""
        gone = {value for value, _ in self.outdated}
        return all(" ".join(value.lower().split()) in folded_text for value in self.values if value not in gone)
